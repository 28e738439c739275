//! The receiver's rules: it sees its own window and its own reader, and only arrivals of the sender and the path.

use sweetspot_units::{Bytes, Duration};

use super::history::ConnectionHistory;
use super::{AT_CAPACITY, QUEUE_AFTER_LOSS, Side, Step};
use crate::{Class, Limits};

/// A window this full binds: the arrivals of one RTT, relative to the advertised window.
const FULL: f64 = 0.8;

/// A reader that keeps up has read data that came this long ago.
const LATE: Duration = Duration::from_millis(20);
/// Less than this share of the window may lie unread without a meaning.
const LITTLE: f64 = 1.0 / 16.0;

/// RTTs for which a hole accounts for the sender's behaviour.
const ROUNDS: u64 = 4;
/// With this many segments in flight, the receiver's RTT estimate is a real RTT.
const MUCH: u64 = 8;

/// Divides the time between two samples.
pub fn divide(step: &Step, history: &ConnectionHistory) -> Limits {
    let mut limits = Limits::default();
    limits.add(class(step, history), step.time);
    limits
}

/// Whether a queue stands on the way, by the receiver's own estimate of the round trip.
pub fn queues(step: &Step, history: &ConnectionHistory) -> bool {
    let rtt = step.sample.receiver_rtt;
    let min = history.min_receiver_rtt.unwrap_or(Duration::ZERO);
    let standing = min.scaled(QUEUE_AFTER_LOSS) + Duration::from_millis(1);
    // The estimate of a receiver that little comes to is the sender's pauses, not a queue.
    let much = step.rate(Side::Receiver) * rtt >= step.sample.mss * MUCH;
    min > Duration::ZERO && rtt > standing && much
}

fn class(step: &Step, history: &ConnectionHistory) -> Class {
    let (last, now) = (&step.last, &step.sample);
    let window = now.window.unwrap_or(Bytes::ZERO);
    // A reader that keeps up leaves next to nothing; one that does not, more than there is room.
    let rate = step.rate(Side::Receiver);
    let behind = last.unread.min(now.unread);
    if now.unread > window || behind > (rate * LATE).max(window.scaled(LITTLE)) {
        return Class::ReceiverApplication;
    }
    if now.received == last.received {
        return Class::Application;
    }
    if queues(step, history) {
        return Class::Bandwidth;
    }
    // A sender waits for room for a whole segment; two may be missing.
    let min = history.min_receiver_rtt.unwrap_or(Duration::ZERO);
    let lately = history.arrivals.rate();
    let bound = lately * min;
    let filled = bound.saturating_add(now.mss * 2) >= window || bound >= window.scaled(FULL);
    if window > Bytes::ZERO && filled {
        return Class::ReceiverWindow;
    }
    // The path also carries the rate that arrived through a standing queue when there is none.
    if history.capacity.is_some_and(|c| lately.as_f64() >= AT_CAPACITY * c.as_f64()) {
        return Class::Bandwidth;
    }
    // A hole limits the sender for an RTT or two; its behaviour then does not show here.
    if history.has_repaired_within(now, min * ROUNDS + step.time) {
        Class::Congestion
    } else if history.starts && history.loss_events == 0 {
        // Each interval brings a quarter more than the best before: slow start (RFC 5681 §3.1).
        Class::Opportunity
    } else {
        Class::Unknown
    }
}
