use core::num::NonZeroU32;

/// An index into a vector of fewer than 2^32 - 1 items. `Option<Index>` takes four bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Index(NonZeroU32);

impl Index {
    #[inline(always)]
    pub(crate) fn new(index: usize) -> Index {
        Index(NonZeroU32::new(index as u32 + 1).unwrap_or(NonZeroU32::MAX))
    }

    #[inline(always)]
    pub(crate) fn get(self) -> usize {
        self.0.get() as usize - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_optional_index_takes_four_bytes() {
        assert_eq!(size_of::<Option<Index>>(), 4);
        assert_eq!(Index::new(0).get(), 0);
        assert_eq!(Index::new(7).get(), 7);
    }
}
