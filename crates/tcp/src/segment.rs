use sweetspot_units::Time;

/// A data packet that a sender sends. All data packets of a connection are full. Number 0 is the
/// SYN, which carries no data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// The packet's number.
    pub number: u64,
    /// Whether it was sent before.
    pub retransmitted: bool,
    /// CWR of RFC 3168: the sender has reacted to a congestion echo.
    pub window_reduced: bool,
}

/// An acknowledgement that a receiver sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Acknowledgement {
    /// The number expected next. All packets below it have arrived.
    pub next: u64,
    /// The advertised window: number of packets accepted from [`Acknowledgement::next`] on.
    pub window: u32,
    /// The sending time of the packet that it answers (TSecr of RFC 7323).
    pub echo: Time,
    /// ECE of RFC 3168: the receiver saw a congestion mark.
    pub congestion_echo: bool,
    /// Whether SACK blocks accompany it. They are passed separately, because few ACKs have any.
    pub sacks: bool,
}

/// Up to three runs of packets that arrived out of order. The run that grew last is first
/// (RFC 2018).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SackBlocks {
    blocks: [Run; SackBlocks::MAX_BLOCKS],
    count: u8,
}

/// Packets from `start` to before `end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Run {
    /// The first number.
    pub start: u64,
    /// One past the last number.
    pub end: u64,
}

impl Run {
    /// The number of packets.
    pub fn len(self) -> u64 {
        self.end - self.start
    }

    /// Whether `number` is in the run.
    pub fn holds(self, number: u64) -> bool {
        (self.start..self.end).contains(&number)
    }

    /// Whether the run is empty.
    pub fn is_empty(self) -> bool {
        self.start == self.end
    }
}

impl SackBlocks {
    /// The maximum number of blocks that fit beside the timestamp option (RFC 2018 section 3).
    pub const MAX_BLOCKS: usize = 3;

    /// No blocks.
    pub const NONE: SackBlocks =
        SackBlocks { blocks: [Run { start: 0, end: 0 }; SackBlocks::MAX_BLOCKS], count: 0 };

    /// Adds a block unless the list is full or has it already.
    pub fn push(&mut self, run: Run) {
        if usize::from(self.count) < SackBlocks::MAX_BLOCKS && !self.as_slice().contains(&run) {
            self.blocks[usize::from(self.count)] = run;
            self.count += 1;
        }
    }

    /// The blocks.
    pub fn as_slice(&self) -> &[Run] {
        &self.blocks[..usize::from(self.count)]
    }

    /// Whether there are no blocks.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}
