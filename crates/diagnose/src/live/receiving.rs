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
    let window = now.window.unwrap_or(Bytes::ZERO);
    if leaves_unread(last.unread.min(now.unread), step) {
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
