use super::sequence::Sequence;
use crate::packet::Segment;

/// An acknowledgement on its way to the sender.
#[derive(Debug, Clone, Copy)]
pub struct Ack {
    /// All before this has arrived.
    pub ack: u64,
    /// How much more may come.
    pub window: u64,
    /// The highest byte acknowledged selectively, if any.
    pub sacked: u64,
    /// It tells of something that arrived twice (RFC 2883).
    pub dsack: bool,
    /// It answers a SYN.
    pub opens: bool,
    /// It carries no payload, so it can be a duplicate.
    pub pure: bool,
    /// The receiver's payload in the same segment.
    pub payload: u64,
    /// Its window is a multiple of this.
    pub grain: u64,
    /// Its SACK blocks are far from all data: a device on the path changes sequence numbers and not these blocks.
    pub foreign: bool,
}

/// No flight is larger (RFC 7323 §2.2: a window has at most 30 bits).
const LARGEST_FLIGHT: u64 = 1 << 30;

impl Ack {
    /// Reads `segment`, which acknowledges everything before `ack`; its window is to be scaled by `scale`.
    pub fn read(segment: &Segment, ack: u64, scale: u8, sequence: &Sequence) -> Ack {
        let blocks = segment.options.sack();
        let foreign = blocks.iter().any(|b| sequence.place(b.right).abs_diff(ack) > LARGEST_FLIGHT);
        let blocks = if foreign { &[][..] } else { blocks };
        let places = blocks.iter().map(|b| sequence.place(b.right));
        // RFC 2883 §4: a first block below the acknowledgement, or within the second.
        let dsack = blocks.first().is_some_and(|first| {
            let (left, right) = (sequence.place(first.left), sequence.place(first.right));
            right <= ack
                || blocks.get(1).is_some_and(|second| {
                    sequence.place(second.left) <= left && right <= sequence.place(second.right)
                })
        });
        let flags = segment.flags;
        Ack {
            ack,
            // RFC 7323 §2.2: the window of a SYN is never scaled.
            window: u64::from(segment.window) << if flags.syn { 0 } else { scale },
            payload: u64::from(segment.payload),
            grain: 1 << scale,
            foreign,
            sacked: places.max().unwrap_or(0),
            dsack,
            opens: flags.syn,
            pure: segment.payload == 0 && !flags.syn && !flags.fin,
        }
    }
}
