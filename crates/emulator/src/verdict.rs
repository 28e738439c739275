//! Whether the emulation was the path that was asked for.

use serde::Serialize;
use sweetspot_path::{DirectionSpec, PathSpec};
use sweetspot_units::Duration;

use crate::engine::Books;
use crate::tally::Tally;

/// Half of a typical network card's interrupt moderation (some 200 us): real hosts do not see
/// packets more exactly timed than this, so less lateness proves nothing.
const UNNOTICED: Duration = Duration::from_micros(100);
/// One release in a hundred may be late by this share of the time in which the bottleneck
/// drains its full buffer. Packets released L late arrive in a burst, and so do the
/// acknowledgements; the burst of data they set off is L x rate long and must fit the buffer
/// with room to spare.
const SHARE_OF_BUFFER: f64 = 0.1;
/// And by this share of the round-trip propagation, so that the RTT is right to a few percent.
const SHARE_OF_RTT: f64 = 0.05;
/// The achieved rate may be off by this share.
const RATE_TOLERANCE: f64 = 0.01;
/// The rate is judged if the bottleneck was backlogged for this long; a shorter time measures
/// the lateness of two packets more than the rate.
const LEAST_BACKLOG: Duration = Duration::from_millis(500);

/// Trust or do not trust, and why not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// Whether the emulation was true to the path.
    pub trust: bool,
    /// What speaks against it, one line each; empty if it is to be trusted.
    pub reasons: Vec<String>,
}

impl Verdict {
    pub(crate) fn of(spec: &PathSpec, books: &Books) -> Verdict {
        let mut reasons = Vec::new();
        for (name, direction, tally) in
            [("up", &spec.up, &books.up), ("down", &spec.down, &books.down)]
        {
            judge(name, &Limits::of(spec, direction), tally, &mut reasons);
        }
        Verdict { trust: reasons.is_empty(), reasons }
    }
}

/// How much lateness a direction stands.
struct Limits {
    p99: Duration,
    max: Duration,
}

impl Limits {
    fn of(spec: &PathSpec, direction: &DirectionSpec) -> Limits {
        let drain = direction.buffer.in_bytes(spec.mtu) / direction.rate;
        let rtt = if spec.rtt() == Duration::ZERO { Duration::MAX } else { spec.rtt() };
        Limits {
            p99: drain.scaled(SHARE_OF_BUFFER).min(rtt.scaled(SHARE_OF_RTT)).max(UNNOTICED),
            // A single stall longer than this can overflow a buffer that was empty.
            max: drain.max(UNNOTICED * 10),
        }
    }
}

fn judge(name: &str, limits: &Limits, tally: &Tally, reasons: &mut Vec<String>) {
    let mut object = |wrong: bool, reason: String| {
        if wrong {
            reasons.push(format!("{name}: {reason}"));
        }
    };
    let p99 = tally.lateness.quantile(0.99);
    object(p99 > limits.p99, format!("p99 lateness {p99} exceeds {}", limits.p99));
    let max = tally.lateness.max();
    object(max > limits.max, format!("the latest release, {max}, exceeds {}", limits.max));
    for (count, what) in [
        (tally.ring_losses, "overflowed the ring"),
        (tally.cable_losses, "were lost on the way to or from the path"),
        (tally.send_failures, "could not be released"),
        (tally.oversized, "were longer than the MTU"),
    ] {
        object(count > 0, format!("{count} packets {what}"));
    }
    if let Some(error) = rate_error(tally) {
        let percent = 100.0 * error;
        let reason = format!("the rate was off by {percent:+.2} % while backlogged");
        object(error.abs() > RATE_TOLERANCE, reason);
    }
    object(!tally.conserved(), "packets in are not packets out, dropped and held".into());
}

/// Achieved over asked rate, less one, while the bottleneck was backlogged.
fn rate_error(tally: &Tally) -> Option<f64> {
    if tally.backlogged_due < LEAST_BACKLOG {
        return None;
    }
    Some(tally.backlogged_due.as_secs_f64() / tally.backlogged_time.as_secs_f64() - 1.0)
}
