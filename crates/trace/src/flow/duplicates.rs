use sweetspot_units::{Duration, Time};

use crate::packet::Segment;

/// The number of packets of each side to search for a duplicate: duplicates follow at once, with at most a device's queue
/// between them.
const REMEMBERED: usize = 32;
/// A copy comes this soon: later, the host has used the identification again.
const SOON: Duration = Duration::from_millis(50);

/// Finds packets that were captured twice: on two ports of a switch, on a bridge and its member.
///
/// A copy has the IPv4 identification of the original and everything else in common with it. A retransmission gets another
/// identification (RFC 6864 §4.1), except by hosts that never change it; for those, and in IPv6, copies cannot be
/// distinguished.
#[derive(Debug, Default)]
pub struct Duplicates {
    sides: [Side; 2],
}

#[derive(Debug, Default)]
struct Side {
    recent: Vec<(Fingerprint, Time)>,
    synchronised: Option<(Fingerprint, Time)>,
    oldest: usize,
    /// The side gives packets of different content the same identification.
    constant: bool,
}

/// Fields that distinguish a packet from others of its side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Fingerprint {
    id: u16,
    window: u16,
    seq: u32,
    ack: u32,
    payload: u32,
    clock: u32,
}

impl Duplicates {
    /// Whether `segment` of `side` is a copy of one that passed shortly before.
    pub fn is_copy(&mut self, side: usize, segment: &Segment) -> bool {
        let side = &mut self.sides[side];
        let clock = segment.options.timestamps.map_or(0, |t| t.value);
        let Segment { window, seq, ack, payload, .. } = *segment;
        let id = segment.id.unwrap_or(0);
        let print = Fingerprint { id, window, seq, ack, payload, clock };
        if segment.flags.syn {
            // A SYN is not sent again for a second (RFC 6298 §2.1); Linux answers one with the
            // identification 0.
            let before = side.synchronised.replace((print, segment.time));
            return before
                .is_some_and(|(twin, at)| twin == print && segment.time.since(at) <= SOON);
        }
        if side.constant || id == 0 {
            return false;
        }
        if let Some((twin, at)) = side.recent.iter_mut().find(|(other, _)| other.id == id) {
            if *twin == print {
                let soon = segment.time.since(*at) <= SOON;
                *at = segment.time;
                return soon;
            }
            side.constant = true;
        } else if side.recent.len() < REMEMBERED {
            side.recent.push((print, segment.time));
        } else {
            side.recent[side.oldest] = (print, segment.time);
            side.oldest = (side.oldest + 1) % REMEMBERED;
        }
        false
    }
}
