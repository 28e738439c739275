/// Converts sequence numbers to positions that never wrap (RFC 9293 §3.4).
#[derive(Debug, Default)]
pub struct Sequence {
    highest: Option<u64>,
}

impl Sequence {
    /// The position of `number`, which must be within 2 GiB of the highest position. It becomes the highest
    /// position if it is higher.
    pub fn advance(&mut self, number: u32) -> u64 {
        let position = self.place(number);
        self.highest = self.highest.max(Some(position));
        position
    }

    /// The position of `number`.
    pub fn place(&self, number: u32) -> u64 {
        let Some(highest) = self.highest else {
            // Leaves space below for data sent before the capture began.
            return (1 << 32) + u64::from(number);
        };
        let ahead = number.wrapping_sub(highest as u32) as i32;
        highest.saturating_add_signed(ahead.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_continue_when_sequence_numbers_wrap() {
        let mut sequence = Sequence::default();
        let before = sequence.advance(0xffff_fff0);
        assert_eq!(sequence.advance(0x10), before + 0x20);
        // An earlier number has a lower position.
        assert_eq!(sequence.advance(0xffff_fff8), before + 8);
        assert_eq!(sequence.place(0x11), before + 0x21);
    }
}
