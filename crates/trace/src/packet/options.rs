//! TCP options (RFC 9293 §3.1; RFC 7323, RFC 2018).

/// The options of one segment. Options that were cut off are absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    /// The MSS: the largest segment that the sender of this segment accepts; only in a SYN.
    pub mss: Option<u16>,
    /// The window scale; only in a SYN.
    pub scale: Option<u8>,
    /// Whether SACK is permitted; only in a SYN.
    pub sack_permitted: bool,
    /// The timestamps (RFC 7323).
    pub timestamps: Option<Timestamps>,
    /// Whether the capture cut off some options, so that absent ones may have been sent.
    pub cut: bool,
    sack: [SackBlock; 4],
    sacks: u8,
}

/// The values of the timestamps option: TSval and TSecr.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Timestamps {
    /// TSval: the sender's clock.
    pub value: u32,
    /// TSecr: the latest timestamp received from the other end.
    pub echo: u32,
}

/// A SACK block: bytes that arrived beyond the cumulative acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SackBlock {
    /// The sequence number of the first byte.
    pub left: u32,
    /// The sequence number after the last byte.
    pub right: u32,
}

impl Options {
    /// Reads options until they end, are invalid, or were cut off.
    pub fn read(mut bytes: &[u8]) -> Options {
        let mut options = Options::default();
        while let Some((&kind, rest)) = bytes.split_first() {
            match kind {
                0 => break,
                1 => {
                    bytes = rest;
                    continue;
                }
                _ => {}
            }
            let Some(&size) = rest.first() else { break };
            let size = usize::from(size);
            let (Some(value), true) = (bytes.get(2..size), size >= 2) else { break };
            options.take(kind, value);
            bytes = &bytes[size..];
        }
        options
    }

    /// The SACK blocks, in the order sent.
    pub fn sack(&self) -> &[SackBlock] {
        &self.sack[..usize::from(self.sacks)]
    }

    fn take(&mut self, kind: u8, value: &[u8]) {
        match (kind, value) {
            (2, &[a, b]) => self.mss = Some(u16::from_be_bytes([a, b])),
            // RFC 7323 §2.3: a larger scale counts as 14.
            (3, &[scale]) => self.scale = Some(scale.min(14)),
            (4, []) => self.sack_permitted = true,
            (5, blocks) => {
                let room = self.sack.len() - usize::from(self.sacks);
                for block in blocks.chunks_exact(8).take(room) {
                    let number = |i: usize| {
                        u32::from_be_bytes([block[i], block[i + 1], block[i + 2], block[i + 3]])
                    };
                    self.sack[usize::from(self.sacks)] =
                        SackBlock { left: number(0), right: number(4) };
                    self.sacks += 1;
                }
            }
            (8, &[a, b, c, d, e, f, g, h]) => {
                self.timestamps = Some(Timestamps {
                    value: u32::from_be_bytes([a, b, c, d]),
                    echo: u32::from_be_bytes([e, f, g, h]),
                });
            }
            _ => {}
        }
    }
}
