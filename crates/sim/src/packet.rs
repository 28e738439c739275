use sweetspot_units::{Bytes, Time};

use crate::flow::Direction;

/// A packet in the network: 32 bytes that are copied, not pointed to.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C, align(8))]
pub(crate) struct Packet {
    /// Whose it is.
    pub flow: u32,
    /// Bytes on the wire.
    pub size: u16,
    /// What it is.
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

/// What a packet is and which way it crosses the hops. No enum: one has values to spare, which
/// the compiler would use to tell `Some(packet)` from `None`, and would then copy packets in
/// pieces around that byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Kind(u8);

#[allow(non_upper_case_globals)]
impl Kind {
    /// TCP data.
    pub(crate) const Data: Kind = Kind(0);
    /// UDP, which nobody answers.
    pub(crate) const Datagram: Kind = Kind(1);
    /// Answer to a probe.
    pub(crate) const Answer: Kind = Kind(2);
    /// One of a packet train.
    pub(crate) const Train: Kind = Kind(3);
    /// TCP ACK.
    pub(crate) const Ack: Kind = Kind(4);
    /// A periodic probe of a sink.
    pub(crate) const Probe: Kind = Kind(5);
    /// A sink asks its source for something.
    pub(crate) const Request: Kind = Kind(6);

    /// Set where the packet goes as the targets' ACKs go.
    const BACKWARD: u8 = 1 << 7;

    /// The same, of a flow whose data goes `direction`.
    #[inline]
    pub(crate) fn on(self, direction: Direction) -> Kind {
        let backward = (direction == Direction::Backward) == self.goes_with_data();
        Kind(self.0 | if backward { Kind::BACKWARD } else { 0 })
    }

    /// What it is, whichever way it goes.
    #[inline]
    pub(crate) fn bare(self) -> Kind {
        Kind(self.0 & !Kind::BACKWARD)
    }

    /// Which way it crosses the hops.
    #[inline]
    pub(crate) fn direction(self) -> Direction {
        if self.0 & Kind::BACKWARD == 0 { Direction::Forward } else { Direction::Backward }
    }

    /// Whether it goes the way of its flow's data.
    #[inline]
    pub(crate) fn goes_with_data(self) -> bool {
        self.bare().0 < Kind::Ack.0
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
