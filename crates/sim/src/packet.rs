use sweetspot_units::{Bytes, Time};

/// A packet in the network: 32 bytes that are copied, not pointed to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Packet {
    /// Whose it is.
    pub flow: u32,
    /// Bytes on the wire.
    pub size: u16,
    pub kind: Kind,
    /// Which of the flow's connections it belongs to, modulo 256: one that has begun does not
    /// hear packets of the one before it.
    pub epoch: u8,
    /// Data: its number. ACK: the number expected next. Probe and answer: how many went before.
    pub number: u64,
    /// When it was sent; ACK and answer: when what they answer was sent.
    pub sent: Time,
    /// ACK: the advertised window in packets. Data: the number that its sender was last told to
    /// be expected, for the sink to time the round trip by. Train: packets of the whole train.
    pub window: u32,
    /// Marks in the upper bits, in the others where what does not fit is kept.
    pub extra: u32,
}

/// What a packet is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// TCP data.
    Data,
    /// UDP, which nobody answers.
    Datagram,
    /// Answer to a probe.
    Answer,
    /// One of a packet train.
    Train,
    /// TCP ACK.
    Ack,
    /// A periodic probe of a sink.
    Probe,
    /// A sink asks its source for something.
    Request,
}

impl Kind {
    /// Whether it goes the way of its flow's data.
    #[inline]
    pub(crate) fn goes_with_data(self) -> bool {
        matches!(self, Kind::Data | Kind::Datagram | Kind::Answer | Kind::Train)
    }
}

/// An ACK, a SYN: 20 bytes IP, 20 bytes TCP.
pub(crate) const BARE: u16 = 40;

/// Can carry a congestion mark (ECT).
pub(crate) const CAPABLE: u32 = 1 << 31;
/// Carries one (CE).
pub(crate) const CONGESTED: u32 = 1 << 30;
/// ACK: the sink saw a mark (ECE). Data: the source heard of it (CWR).
pub(crate) const ECHO: u32 = 1 << 29;
/// The other bits.
pub(crate) const TICKET: u32 = ECHO - 1;

impl sweetspot_path::Packet for Packet {
    #[inline]
    fn wire_size(&self) -> Bytes {
        Bytes::new(u64::from(self.size))
    }

    fn flow(&self) -> u64 {
        u64::from(self.flow) << 1 | u64::from(self.kind.goes_with_data())
    }

    fn mark_ecn(&mut self) -> bool {
        if self.extra & CAPABLE != 0 {
            self.extra |= CONGESTED;
        }
        self.extra & CONGESTED != 0
    }
}
