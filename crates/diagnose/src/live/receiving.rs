//! The receiver's rules: it sees its own window and its own reader, and of the sender and the
//! path only what arrives.

use sweetspot_units::{Bytes, Duration};

use super::{Memory, QUEUE_AFTER_LOSS, Side, Step};
use crate::{Class, Limits};

/// A window this full binds: what one round trip brings, against what was advertised.
const FULL: f64 = 0.8;

/// Segments under way of which the receiver's estimate of the round trip is one.
const MUCH: u64 = 8;

/// Divides the time between two samples.
pub fn divide(step: &Step, memory: &Memory) -> Limits {
    let mut limits = Limits::default();
    limits.add(class(step, memory), step.time);
    limits
}

fn class(step: &Step, memory: &Memory) -> Class {
    let (last, now) = (&step.last, &step.sample);
    let window = now.window.unwrap_or(Bytes::ZERO);
    // A reader that keeps up leaves next to nothing; one that does not, more than there is room.
    if now.unread > window {
        return Class::ReceiverApplication;
    }
    if now.received == last.received {
        return Class::Application;
    }
    let least = memory.least_receiver_rtt.unwrap_or(Duration::ZERO);
    let standing = least.scaled(QUEUE_AFTER_LOSS) + Duration::from_millis(1);
    // The estimate of a receiver that little comes to is the sender's pauses, not a queue.
    let rate = step.rate(Side::Receiver);
    let much = rate * now.receiver_rtt >= now.mss * MUCH;
    if least > Duration::ZERO && now.receiver_rtt > standing && much {
        return Class::Bandwidth;
    }
    // A sender waits for room for a whole segment; two may be missing.
    let bound = rate * least;
    let filled = bound + now.mss * 2 >= window || bound >= window.scaled(FULL);
    if window > Bytes::ZERO && filled {
        return Class::ReceiverWindow;
    }
    if now.out_of_order > 0 { Class::Congestion } else { Class::Unknown }
}
