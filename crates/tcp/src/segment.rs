use sweetspot_units::Time;

/// A packet of data, as the sender hands it out. All data packets of a connection are full and
/// counted; number 0 is the SYN, which carries no data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// Its number.
    pub number: u64,
    /// Whether it was sent before.
    pub retransmitted: bool,
    /// Whether it tells the receiver that the sender heard its congestion echo (RFC 3168, CWR).
    pub window_reduced: bool,
}

/// An acknowledgement, as the receiver hands it out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Acknowledgement {
    /// The number that the receiver expects next: all below it have arrived.
    pub next: u64,
    /// How many packets from [`Acknowledgement::next`] on the receiver has room for.
    pub window: u32,
    /// When the packet that it answers was sent (the timestamp echo of RFC 7323).
    pub echo: Time,
    /// Whether congestion marks were seen (RFC 3168, ECE).
    pub congestion_echo: bool,
    /// Whether SACK blocks go with it, which travel apart because few ACKs have any.
    pub sacks: bool,
}

/// Up to three runs of packets that arrived out of order, the newest news first (RFC 2018).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SackBlocks {
    blocks: [Run; SackBlocks::MOST],
    count: u8,
}

/// Packets from `start` to before `end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Run {
    /// The first.
    pub start: u64,
    /// One past the last.
    pub end: u64,
}

impl Run {
    /// How many packets.
    pub fn len(self) -> u64 {
        self.end - self.start
    }

    /// Whether `number` is among them.
    pub fn holds(self, number: u64) -> bool {
        (self.start..self.end).contains(&number)
    }

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.start == self.end
    }
}

impl SackBlocks {
    /// What fits beside the timestamp option (RFC 2018 section 3).
    pub const MOST: usize = 3;

    /// None.
    pub const NONE: SackBlocks =
        SackBlocks { blocks: [Run { start: 0, end: 0 }; SackBlocks::MOST], count: 0 };

    /// Adds a block unless there is no room or it stands there already.
    pub fn push(&mut self, run: Run) {
        if usize::from(self.count) < SackBlocks::MOST && !self.as_slice().contains(&run) {
            self.blocks[usize::from(self.count)] = run;
            self.count += 1;
        }
    }

    /// The blocks.
    pub fn as_slice(&self) -> &[Run] {
        &self.blocks[..usize::from(self.count)]
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}
