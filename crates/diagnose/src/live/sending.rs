//! The sender's rules.

use sweetspot_units::{Duration, Rate};

use super::{Memory, Sample, Step};
use crate::{Class, Limits};

/// A congestion window this full binds: the kernel sends in pieces of several segments.
const FULL: f64 = 0.8;
/// The share of the time that the buffer's chronograph must show before the buffer is to blame for
/// what it does not show: it counts only while the queue is empty for want of room, 45 % of the
/// time in a flow that nothing else held (measured on Linux 6.18).
const BUFFER_SHOWS: f64 = 0.05;
/// How far above its least a round trip stands where a queue does: with losses, small buffers fill
/// as well, so that it takes more.
const QUEUE: f64 = 1.1;
/// See there.
const QUEUE_AFTER_LOSS: f64 = 1.25;
/// The least growth per sample of a flow in BBR's start-up.
const STARTING: f64 = 1.25;

/// Divides the time between two samples.
pub fn divide(step: &Step, memory: &Memory) -> Limits {
    let Step { last, sample: now, time } = step;
    let mut limits = Limits::default();
    let grew = |f: fn(&Sample) -> Duration| f(now).saturating_sub(f(last));
    let busy = grew(|s| s.busy).min(*time);
    let window = grew(|s| s.window_limited).min(busy);
    let buffer = grew(|s| s.buffer_limited).min(busy.saturating_sub(window));
    let rest = busy.saturating_sub(window).saturating_sub(buffer);

    limits.add(Class::Application, time.saturating_sub(busy));
    limits.add(window_class(now, memory), window);
    limits.add(Class::SenderWindow, buffer);
    let buffer_shows = buffer.as_secs_f64() > BUFFER_SHOWS * time.as_secs_f64();
    limits.add(rest_class(step, memory, buffer_shows), rest);
    limits
}

/// A full window that is small because data lies unread is the reader's fault.
fn window_class(now: &Sample, memory: &Memory) -> Class {
    match now.peer_window {
        Some(window) if window < memory.largest_peer_window.scaled(0.5) => {
            Class::ReceiverApplication
        }
        _ => Class::ReceiverWindow,
    }
}

/// What held the sender while neither the peer's window nor the buffer was on record.
fn rest_class(step: &Step, memory: &Memory, buffer_shows: bool) -> Class {
    let now = &step.sample;
    let cwnd_binds =
        now.recovering || f64::from(now.under_way) >= FULL * f64::from(now.congestion_window);
    if !cwnd_binds && buffer_shows {
        return Class::SenderWindow;
    }
    let rate = step.rate(super::Side::Sender);
    if let Some(limit) = now.pacing_limit
        && rate.as_f64() >= FULL * limit.as_f64()
    {
        return Class::Pacing;
    }
    if !cwnd_binds && now.not_sent == sweetspot_units::Bytes::ZERO {
        return Class::Application;
    }
    congestion_class(now, memory, rate)
}

/// Why the congestion window is what it is.
fn congestion_class(now: &Sample, memory: &Memory, rate: Rate) -> Class {
    let stands = |factor: f64| {
        now.rtt_min > Duration::ZERO
            && now.rtt > now.rtt_min.scaled(factor) + Duration::from_millis(1)
    };
    let starting = rate.as_f64() >= STARTING * memory.rate.as_f64();
    match memory.lost_lately(now.at) {
        _ if now.model_based && !starting => Class::Bandwidth,
        true if stands(QUEUE_AFTER_LOSS) && !now.recovering => Class::Bandwidth,
        true if !now.model_based => Class::Congestion,
        _ if stands(QUEUE) => Class::Bandwidth,
        _ if now.congestion_window < now.slow_start_threshold => Class::Opportunity,
        _ => Class::Transport,
    }
}
