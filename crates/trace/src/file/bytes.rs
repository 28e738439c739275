/// The byte order of the machine that wrote a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    #[default]
    Little,
    Big,
}

impl Order {
    pub fn u16(self, bytes: [u8; 2]) -> u16 {
        match self {
            Order::Little => u16::from_le_bytes(bytes),
            Order::Big => u16::from_be_bytes(bytes),
        }
    }

    pub fn u32(self, bytes: [u8; 4]) -> u32 {
        match self {
            Order::Little => u32::from_le_bytes(bytes),
            Order::Big => u32::from_be_bytes(bytes),
        }
    }

    /// The 16-bit number at `offset`; `None` beyond the end.
    pub fn u16_at(self, bytes: &[u8], offset: usize) -> Option<u16> {
        Some(self.u16(*bytes.get(offset..)?.first_chunk()?))
    }

    /// The 32-bit number at `offset`; `None` beyond the end.
    pub fn u32_at(self, bytes: &[u8], offset: usize) -> Option<u32> {
        Some(self.u32(*bytes.get(offset..)?.first_chunk()?))
    }
}
