//! The receiver's rules: it sees its own window and its own reader, and only arrivals of the sender and the path.

use sweetspot_units::{Bytes, Duration};

use super::Step;
use super::history::{ConnectionHistory, leaves_unread};
use crate::{Class, Limits};

/// A window this full binds: the arrivals of one RTT, relative to the advertised window.
const FULL: f64 = 0.8;

/// RTTs for which a hole accounts for the sender's behaviour.
const ROUNDS: u64 = 4;

/// Divides the time between two samples.
pub fn divide(step: &Step, history: &ConnectionHistory) -> Limits {
    let mut limits = Limits::default();
    limits.add(class(step, history), step.time);
    limits
}

/// Whether the rules find `class` before they look for a queue.
pub fn outweighs_queue(class: Class) -> bool {
    matches!(class, Class::ReceiverApplication | Class::Application)
}

fn class(step: &Step, history: &ConnectionHistory) -> Class {
    let (last, now) = (&step.last, &step.sample);
    if leaves_unread(last.unread.min(now.unread), step) {
        return Class::ReceiverApplication;
    }
    if now.received == last.received {
        return Class::Application;
    }
    if history.queues_at_receiver(step) {
        return Class::Bandwidth;
    }
    let min = history.min_receiver_rtt.unwrap_or(Duration::ZERO);
    let lately = history.arrivals.rate();
    if fills(lately * min, step) || fills_as_estimated(lately * now.receiver_rtt, step) {
        // A window that the reader keeps small is its doing.
        let late = history.reads_late();
        return if late { Class::ReceiverApplication } else { Class::ReceiverWindow };
    }
    // The path also carries the rate that arrived through a standing queue when there is none.
    if history.is_at_capacity(lately) {
        return Class::Bandwidth;
    }
    if history.reads_late() {
        return Class::ReceiverApplication;
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

/// Whether the arrivals of a round trip fill the window. A sender waits for room for a whole segment; two may be missing.
fn fills(arrivals: Bytes, step: &Step) -> bool {
    let (window, mss) = (step.sample.window.unwrap_or(Bytes::ZERO), step.sample.mss);
    let is_full = arrivals.saturating_add(mss * 2) >= window || arrivals >= window.scaled(FULL);
    window > Bytes::ZERO && is_full
}

/// The same by the receiver's own estimate of the round trip, which contains the sender's pauses. Behind a program's pauses the kernel
/// keeps a window of twice as much or more (tcp_rcv_space_adjust), so that it is not full. More than a window is no round trip's.
fn fills_as_estimated(arrivals: Bytes, step: &Step) -> bool {
    let window = step.sample.window.unwrap_or(Bytes::ZERO);
    step.sample.timestamps && fills(arrivals, step) && arrivals.scaled(FULL) <= window
}
