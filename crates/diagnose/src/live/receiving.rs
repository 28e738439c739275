//! The receiver's rules: it sees its own window and its own reader, and of the sender and the
//! path only what arrives.

use sweetspot_units::{Bytes, Duration};

use super::{Memory, Side, Step};
use crate::{Class, Limits};

/// A window this full binds: what one round trip brings, against what was advertised.
const FULL: f64 = 0.8;
/// How far above its least a round trip stands where a queue does.
const QUEUE: f64 = 1.25;

/// Divides the time between two samples.
pub fn divide(step: &Step, memory: &Memory) -> Limits {
    let mut limits = Limits::default();
    limits.add(class(step, memory), step.time);
    limits
}

fn class(step: &Step, memory: &Memory) -> Class {
    let now = &step.sample;
    let window = now.window.unwrap_or(Bytes::ZERO);
    // Unread data takes from the window. A reader that keeps up leaves a piece at most.
    let shrunk = now.window.is_some() && window < memory.largest_window.scaled(0.5);
    if shrunk && now.unread > window.max(memory.largest_window.scaled(0.25)) {
        return Class::ReceiverApplication;
    }
    let rate = step.rate(Side::Receiver);
    if now.received == step.last.received {
        return Class::Application;
    }
    let queue = memory
        .least_receiver_rtt
        .is_some_and(|least| now.receiver_rtt > least.scaled(QUEUE) + Duration::from_millis(1));
    if queue && !memory.lost_lately(now.at) {
        return Class::Bandwidth;
    }
    let trip = memory.least_receiver_rtt.unwrap_or(Duration::ZERO);
    if now.window.is_some() && (rate * trip).as_f64() >= FULL * window.as_f64() {
        return Class::ReceiverWindow;
    }
    if memory.lost_lately(now.at) { Class::Congestion } else { Class::Unknown }
}
