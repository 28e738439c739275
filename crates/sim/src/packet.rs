use sweetspot_units::{Bytes, Time};

/// A packet in the network: 32 bytes that are copied, not pointed to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Packet {
    /// Whose it is.
    pub flow: u32,
    /// Bytes on the wire.
    pub size: u16,
    pub kind: Kind,
    /// Which of the flow's connections it belongs to, modulo 256: one that has ended does not
    /// hear packets of the one before it.
    pub epoch: u8,
    /// Data: its number. ACK: the number expected next.
    pub number: u64,
    /// Data: when it was sent. ACK: the echo of that.
    pub sent: Time,
    /// ACK: the advertised window in packets.
    pub window: u32,
    /// ACK: where its SACK blocks are kept, plus one; 0: it has none.
    pub sack: u32,
}

/// What a packet is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Data,
    Ack,
    /// UDP, which nobody answers.
    Datagram,
}

impl sweetspot_path::Packet for Packet {
    fn wire_size(&self) -> Bytes {
        Bytes::new(u64::from(self.size))
    }
}

/// An ACK, a SYN: 20 bytes IP, 20 bytes TCP.
pub(crate) const BARE: u16 = 40;
