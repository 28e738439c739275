//! The receiver's rules: it sees its own window and its own reader, and only arrivals of the sender and the path.

use sweetspot_units::{Bytes, Duration};

use super::history::ConnectionHistory;
use super::{AT_CAPACITY, Side, Step};
use crate::{Class, Limits};

/// A window this full binds: the arrivals of one RTT, relative to the advertised window.
const FULL: f64 = 0.8;

/// A reader that keeps up has read data that came this long ago.
const LATE: Duration = Duration::from_millis(20);
/// Less than this share of the window may lie unread without a meaning.
const LITTLE: f64 = 1.0 / 16.0;

/// RTTs for which a hole accounts for the sender's behaviour.
const ROUNDS: u64 = 4;

/// Divides the time between two samples.
pub fn divide(step: &Step, history: &ConnectionHistory) -> Limits {
    let mut limits = Limits::default();
    limits.add(class(step, history), step.time);
    limits
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
    if history.queues_at_receiver(step) {
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
