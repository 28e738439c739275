//! Integers of four bytes (words) and of eight.

pub(super) fn put_word(out: &mut Vec<u8>, n: u32) {
    out.extend(n.to_be_bytes());
}

/// Removes four bytes from the front.
pub(super) fn take_word(rest: &mut &[u8]) -> Option<u32> {
    let (word, left) = rest.split_first_chunk::<4>()?;
    *rest = left;
    Some(u32::from_be_bytes(*word))
}

pub(super) fn put_long(out: &mut Vec<u8>, n: u64) {
    out.extend(n.to_be_bytes());
}

/// Removes eight bytes from the front.
pub(super) fn take_long(rest: &mut &[u8]) -> Option<u64> {
    let (long, left) = rest.split_first_chunk::<8>()?;
    *rest = left;
    Some(u64::from_be_bytes(*long))
}
