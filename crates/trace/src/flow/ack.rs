use super::sequence::Sequence;
use crate::packet::Segment;

/// An acknowledgement, which has passed the capture and is on its way to the sender.
#[derive(Debug, Clone, Copy)]
pub struct Ack {
    /// Everything before this has arrived.
    pub ack: u64,
    /// The advertised window, in bytes.
    pub window: u64,
    /// The right edge of the highest SACK block, if any.
    pub sacked: u64,
    /// Whether it reports duplicate data (D-SACK, RFC 2883).
    pub dsack: bool,
    /// Whether it is a SYN-ACK.
    pub opens: bool,
    /// Whether it has no payload, and so can be a duplicate acknowledgement.
    pub pure: bool,
    /// The receiver's payload in the same segment, in bytes.
    pub payload: u64,
    /// The granularity of the window: it is a multiple of this.
    pub grain: u64,
    /// Whether its SACK blocks are far from all data: a device on the path changes sequence numbers, but not the
    /// blocks.
    pub foreign: bool,
}

/// The largest possible flight (RFC 7323 §2.2: a window has at most 30 bits).
const LARGEST_FLIGHT: u64 = 1 << 30;

impl Ack {
    /// Reads the acknowledgement in `segment`. `ack` is its number as a position, and its window is scaled by
    /// `scale`.
    pub fn read(segment: &Segment, ack: u64, scale: u8, sequence: &Sequence) -> Ack {
        let blocks = segment.options.sack();
        let foreign = blocks.iter().any(|b| sequence.place(b.right).abs_diff(ack) > LARGEST_FLIGHT);
        let blocks = if foreign { &[][..] } else { blocks };
        let places = blocks.iter().map(|b| sequence.place(b.right));
        // RFC 2883 §4: the first block lies below the acknowledgement number, or within the second block.
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
