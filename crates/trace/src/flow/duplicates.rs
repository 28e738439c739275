use sweetspot_units::{Duration, Time};

use crate::packet::Segment;

/// The number of recent packets per side that are compared. A duplicate follows its original closely, with at most a device's
/// queue in between.
const REMEMBERED: usize = 32;
/// The maximum time between a packet and its duplicate. After this time the host may have reused the IPv4 identification.
const SOON: Duration = Duration::from_millis(50);

/// Finds packets that were captured twice, such as at two ports of a switch, or at a bridge and at its member.
///
/// A duplicate equals the original in its IPv4 identification and all other fields. A retransmission gets another
/// identification (RFC 6864 §4.1), except from hosts that never change it. For those, and with IPv6, duplicates cannot be
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
    /// Whether the side uses the same identification for different packets.
    constant: bool,
}

/// The fields that identify a packet on its side.
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
    /// Whether `segment` of `side` duplicates a recent packet.
    pub fn is_copy(&mut self, side: usize, segment: &Segment) -> bool {
        let side = &mut self.sides[side];
        let clock = segment.options.timestamps.map_or(0, |t| t.value);
        let Segment { window, seq, ack, payload, .. } = *segment;
        let id = segment.id.unwrap_or(0);
        let print = Fingerprint { id, window, seq, ack, payload, clock };
        if segment.flags.syn {
            // A SYN is not retransmitted within a second (RFC 6298 §2.1). Linux answers a SYN with the identification 0.
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
