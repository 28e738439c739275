use sweetspot_units::{Duration, Time};

use crate::packet::Segment;

/// A header with four bytes of options: the largest segment, and no room for more.
const MSS_ALONE: u8 = 24;

/// The options that one side offered in its SYN.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Offer {
    /// Largest segment it takes.
    pub mss: Option<u16>,
    /// Window scale.
    pub scale: Option<u8>,
    /// Selective acknowledgements.
    pub sack: bool,
    /// Timestamps.
    pub timestamps: bool,
    /// The window in the SYN, which is never scaled.
    pub window: u16,
    /// Its sequence number.
    pub seq: u32,
    /// Whether the capture cut off some of its options that may matter.
    pub cut: bool,
}

/// How a connection began, as far as the capture shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Handshake {
    /// The offers of client and server.
    pub offers: [Option<Offer>; 2],
    /// How many SYNs the opening side sent.
    pub syns: u64,
    /// Whether the opening side acknowledged the answer.
    pub confirmed: bool,
    syn: Option<Time>,
    /// When the SYN was answered, until that is confirmed; `None` within where it was answered more than once.
    answer: Option<Option<Time>>,
    /// From SYN to SYN/ACK: to the opened side and back.
    pub to_opened: Option<Duration>,
    /// From SYN/ACK to ACK: to the opening side and back.
    pub to_opener: Option<Duration>,
    /// The window scales of client and server as a kernel reported them, for a handshake before the capture.
    pub reported: Option<[u8; 2]>,
}

impl Handshake {
    /// Takes a segment of side 0 (the client) or 1; true if it ends the handshake.
    pub fn take(&mut self, side: usize, segment: &Segment) -> bool {
        let (flags, now) = (segment.flags, segment.time);
        if flags.syn {
            let options = segment.options;
            // A repeated SYN leaves its answer ambiguous (Karn).
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

    /// Whether both SYNs are there, which makes all options known.
    pub fn is_complete(&self) -> bool {
        self.offers.iter().all(Option::is_some)
    }

    /// By how many bits windows of `side` are shifted, where that is known.
    pub fn scale(&self, side: usize) -> Option<u8> {
        let [opener, opened] = self.offers;
        if let (None, None, Some(reported)) = (opener, opened, self.reported) {
            return Some(reported[side]);
        }
        let offers = [opener?, opened?];
        // RFC 7323 §2.2: only if both sent the option.
        match offers.map(|offer| offer.scale) {
            [Some(a), Some(b)] => Some([a, b][side]),
            _ if offers.iter().any(|offer| offer.scale.is_none() && !offer.cut) => Some(0),
            _ => None,
        }
    }
}
