/// The bytes of an input; each byte makes a choice. After the last byte, every choice is the first
/// option.
pub struct Choices<'a>(pub &'a [u8]);

impl Choices<'_> {
    pub fn are_left(&self) -> bool {
        !self.0.is_empty()
    }

    pub fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((first, rest)) => {
                self.0 = rest;
                *first
            }
            None => 0,
        }
    }

    /// Chooses an element of `table`.
    pub fn of<T: Copy>(&mut self, table: &[T]) -> T {
        table[usize::from(self.byte()) % table.len()]
    }

    /// Chooses a number below `end`, which must be 1 to 256.
    pub fn below(&mut self, end: usize) -> usize {
        usize::from(self.byte()) % end.max(1)
    }

    /// Rarely true, so that most inputs continue.
    pub fn rarely(&mut self) -> bool {
        self.byte() >= 240
    }

    pub fn bytes(&mut self, max: usize) -> Vec<u8> {
        let n = self.below(max);
        (0..n).map(|_| self.byte()).collect()
    }
}
