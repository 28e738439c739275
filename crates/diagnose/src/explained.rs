//! The invariant of every verdict: the named limit accounts for the measured rate.

use sweetspot_units::Rate;

use crate::{Class, Evidence};

/// Maximum factor between the measured rate and the rate that the named limit allows times its share of the
/// time.
pub const FACTOR: f64 = 2.5;
/// Measurement tolerance: a limit that allows 5 % less than the measured rate may still be the limit.
pub const RATE_TOLERANCE: f64 = 0.95;

/// The rate that `class` allows, if this kind of limit sets a rate and the rate is known.
pub fn allowed(class: Class, e: &Evidence) -> Option<Rate> {
    match class {
        Class::ReceiverWindow => Some(e.window? / e.window_round.or(e.rtt)?),
        Class::SenderWindow | Class::Transport => Some(e.flight? / e.flight_round.or(e.rtt)?),
        Class::Bandwidth => e.capacity,
        Class::WaitingForPeer => Some(e.granted? / e.rtt_min.or(e.rtt)?),
        _ => None,
    }
}

/// Whether `class`, with its `share` of the time, accounts for `e.goodput`.
pub fn explains(class: Class, share: f64, e: &Evidence) -> bool {
    let Some(allowed) = allowed(class, e).map(Rate::as_f64) else { return true };
    let goodput = e.goodput.as_f64();
    let carried = allowed * share;
    allowed >= goodput * RATE_TOLERANCE
        && carried <= goodput * FACTOR
        && goodput <= carried * FACTOR
}
