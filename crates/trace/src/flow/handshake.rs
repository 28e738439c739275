use sweetspot_units::{Duration, Time};

use crate::packet::Segment;

/// A TCP header with four bytes of options: the MSS, and no space for another option.
const MSS_ALONE: u8 = 24;

/// The options that one side offered in its SYN.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Offer {
    /// The MSS: the largest segment that this side accepts.
    pub mss: Option<u16>,
    /// The window scale.
    pub scale: Option<u8>,
    /// Whether selective acknowledgements (SACK) are permitted.
    pub sack: bool,
    /// Whether it has the timestamps option.
    pub timestamps: bool,
    /// The window in the SYN, which is never scaled.
    pub window: u16,
    /// The sequence number of the SYN.
    pub seq: u32,
    /// Whether the capture cut off options that may matter.
    pub cut: bool,
}

/// How a connection began, as far as it was captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Handshake {
    /// The offers of client and server.
    pub offers: [Option<Offer>; 2],
    /// The number of SYNs that the client sent.
    pub syns: u64,
    /// Whether the client acknowledged the SYN-ACK.
    pub confirmed: bool,
    syn: Option<Time>,
    /// When the SYN-ACK was captured, until the client acknowledges it. The inner `None` stands for several
    /// SYN-ACKs.
    answer: Option<Option<Time>>,
    /// The time from SYN to SYN-ACK: from the capture to the server and back.
    pub to_opened: Option<Duration>,
    /// The time from SYN-ACK to ACK: from the capture to the client and back.
    pub to_opener: Option<Duration>,
    /// The window scales of client and server that a kernel reported, if the handshake was not captured.
    pub reported: Option<[u8; 2]>,
}

impl Handshake {
    /// Handles a segment of side 0 (the client) or 1. Returns whether it ends the handshake.
    pub fn take(&mut self, side: usize, segment: &Segment) -> bool {
        let (flags, now) = (segment.flags, segment.time);
        if flags.syn {
            let options = segment.options;
            // After a retransmitted SYN it is unknown which SYN the answer belongs to (Karn's algorithm).
            let repeated = self.offers[side].is_some();
            self.offers[side] = Some(Offer {
                mss: options.mss,
                scale: options.scale,
                sack: options.sack_permitted,
                timestamps: options.timestamps.is_some(),
                window: segment.window,
                seq: segment.seq,
                cut: options.cut && segment.header > MSS_ALONE,
            });
            if !flags.ack {
                self.syns += 1;
                self.syn = (!repeated).then_some(now);
            } else {
                self.to_opened = self.syn.take().map(|syn| now.since(syn));
                self.answer = Some((!repeated).then_some(now)).filter(|_| !self.confirmed);
            }
            return false;
        }
        if side != 0 || !flags.ack {
            return false;
        }
        self.confirmed |= self.offers[1].is_some() && !flags.rst;
        let Some(answer) = self.answer.take() else { return false };
        self.to_opener = answer.map(|answer| now.since(answer));
        true
    }

    /// Whether both SYNs were captured, so that all options are known.
    pub fn is_complete(&self) -> bool {
        self.offers.iter().all(Option::is_some)
    }

    /// The window scale of `side`, if known.
    pub fn scale(&self, side: usize) -> Option<u8> {
        let [opener, opened] = self.offers;
        if let (None, None, Some(reported)) = (opener, opened, self.reported) {
            return Some(reported[side]);
        }
        let offers = [opener?, opened?];
        // RFC 7323 §2.2: scaling applies only if both SYNs have the option.
        match offers.map(|offer| offer.scale) {
            [Some(a), Some(b)] => Some([a, b][side]),
            _ if offers.iter().any(|offer| offer.scale.is_none() && !offer.cut) => Some(0),
            _ => None,
        }
    }
}
