//! The receiver's rules. A receiver sees its own window and reader; of the sender and the path it sees only arrivals.

use sweetspot_units::{Bytes, Duration};

use super::Step;
use super::history::{ConnectionHistory, leaves_unread};
use crate::{Class, Limits};

/// A window this full binds: the arrivals of one RTT, relative to the advertised window.
const FULL_WINDOW_SHARE: f64 = 0.8;

/// Number of RTTs for which a hole explains the sender's behaviour.
const ROUNDS: u64 = 4;

/// Divides the time between two samples.
pub fn divide(step: &Step, history: &ConnectionHistory) -> Limits {
    let mut limits = Limits::default();
    limits.add(class(step, history), step.time);
    limits
}

/// Whether `class` takes precedence over a queue in the rules.
pub fn outweighs_queue(class: Class) -> bool {
    matches!(class, Class::ReceiverApplication | Class::Application)
}

fn class(step: &Step, history: &ConnectionHistory) -> Class {
    let (last, now) = (&step.last, &step.sample);
    if leaves_unread(last.unread.min(now.unread), step) {
        return Class::ReceiverApplication;
    }
    let fills_round = fills_round(step, history);
    // A full window arrives in a burst; then the sender waits for a round trip.
    let waits_for_window = fills_round && step.time < now.receiver_rtt;
    if now.received == last.received && !waits_for_window {
        return Class::Application;
    }
    if history.queues_at_receiver(step) {
        return Class::Bandwidth;
    }
    let min = history.min_receiver_rtt.unwrap_or(Duration::ZERO);
    let lately = history.arrivals.rate();
    if fills_round || fills(lately * min, step) {
        // A slow reader keeps the window small.
        let late = history.reads_late();
        return if late { Class::ReceiverApplication } else { Class::ReceiverWindow };
    }
    // The rate that arrived through a standing queue is also the capacity while no queue stands.
    if history.is_at_capacity(lately) {
        return Class::Bandwidth;
    }
    // A late reader delays the next opening of the window by the time in which the unread data arrived.
    let until_read = (lately * min).saturating_add(now.unread);
    if history.reads_late() || history.often_leaves_unread() && fills(until_read, step) {
        return Class::ReceiverApplication;
    }
    // A hole limits the sender for an RTT or two; its behaviour then does not show here.
    if history.has_repaired_within(now, min * ROUNDS + step.time) {
        Class::Congestion
    } else if history.starts && history.loss_events == 0 {
        // Each interval brings at least a quarter more than all earlier ones: slow start (RFC 5681 §3.1).
        Class::Opportunity
    } else {
        Class::Unknown
    }
}

/// Whether the arrivals of the latest round trip, with any queue, fill the window. Behind a queue, such a sender is limited by the
/// path if the queue is its own, and by the window if other connections keep it.
pub fn fills_round(step: &Step, history: &ConnectionHistory) -> bool {
    fills_as_estimated(history.arrivals.rate() * step.sample.receiver_rtt, step)
}

/// Whether the arrivals of a round trip fill the window. A sender waits for space for a whole segment, so up to two may be
/// missing.
fn fills(arrivals: Bytes, step: &Step) -> bool {
    let (window, mss) = (step.sample.window.unwrap_or(Bytes::ZERO), step.sample.mss);
    let is_full =
        arrivals.saturating_add(mss * 2) >= window || arrivals >= window.scaled(FULL_WINDOW_SHARE);
    window > Bytes::ZERO && is_full
}

/// As [`fills`], over the receiver's own RTT estimate, which contains the sender's pauses. If a program pauses, the kernel keeps
/// the window at twice the arrivals or more (tcp_rcv_space_adjust), so it is not full. More than a window cannot arrive in one
/// round trip.
fn fills_as_estimated(arrivals: Bytes, step: &Step) -> bool {
    let window = step.sample.window.unwrap_or(Bytes::ZERO);
    step.sample.timestamps && fills(arrivals, step) && arrivals.scaled(FULL_WINDOW_SHARE) <= window
}
