//! The sender's rules.

use sweetspot_theory::reno::response::LossResponse;
use sweetspot_units::{Bytes, Duration, Rate};

use super::history::ConnectionHistory;
use super::model::Shaper;
use super::{FULL, LOW_FLIGHT_SHARE, Sample, Side, Step};
use crate::evidence::{QUEUE, QUEUE_AFTER_LOSS};
use crate::{Class, Limits};

/// Time for which a loss shapes the congestion window: CUBIC takes this long to recover a large window.
const AFTER_LOSS: Duration = Duration::from_secs(30);
/// Number of unanswered timeouts from which on the peer counts as silent.
const MIN_UNANSWERED_TIMEOUTS: u64 = 2;

/// Divides the time between two samples.
pub fn divide(step: &Step, history: &ConnectionHistory) -> Limits {
    let Step { last, sample: now, time } = step;
    let mut limits = Limits::default();
    let grew = |f: fn(&Sample) -> Duration| f(now).saturating_sub(f(last));
    let busy = grew(|s| s.busy).min(*time);
    let window = grew(|s| s.window_limited).min(busy);
    let buffer = grew(|s| s.buffer_limited).min(busy.saturating_sub(window));
    let rest = busy.saturating_sub(window).saturating_sub(buffer);

    limits.add(Class::Application, time.saturating_sub(busy));
    limits.add(window_class(step, history, window), window);
    limits.add(buffer_class(step, history), buffer);
    let rest_class = match history.model.shaper(now) {
        _ if history.is_one_reading => rest_of_life(rest_class(step, history)),
        Some(Shaper::PeerWindow) => window_class(step, history, window),
        Some(Shaper::SendBuffer) => buffer_class(step, history),
        None => rest_class(step, history),
    };
    limits.add(rest_class, rest);
    limits
}

/// The class of the rest of a connection's life, if `class` is the class at its end. One reading shows only a program without
/// more to send, a pacing rate, and silence; queues and congestion windows come and go.
fn rest_of_life(class: Class) -> Class {
    match class {
        Class::Application | Class::Pacing | Class::Stalled => class,
        _ => Class::Unknown,
    }
}

/// The class of the time `full`, in which the peer's window was full.
fn window_class(step: &Step, history: &ConnectionHistory, full: Duration) -> Class {
    let closed = |sample: &Sample| sample.peer_window == Some(Bytes::ZERO);
    let took_back = step.sample.exceeds_window() || (closed(&step.last) && closed(&step.sample));
    let reads_late = took_back || history.waits_at_reader(&step.sample) || reopens_late(step, full);
    let by_choice = history.is_limited_by_choice(step.rate(Side::Sender));
    let unread = history.peer_reads_slowly() || history.larger_window_is_slower();
    if (unread && !by_choice) || reads_late {
        Class::ReceiverApplication
    } else {
        Class::ReceiverWindow
    }
}

/// The limit while the send buffer is full. If a queue stands on the path or in this host, data from a larger buffer would only
/// wait there. Bursts from large writes queue, too, but below the path's capacity: their queue drains before the next burst, and
/// the path delivers them faster than `rate`.
fn buffer_class(step: &Step, history: &ConnectionHistory) -> Class {
    let rate = step.delivery_rate(Side::Sender);
    let fills_path = history.has_standing_queue(&step.sample)
        && history.is_at_capacity(rate)
        && !step.sample.outruns(rate);
    if fills_path || step.sample.queues_in_device() {
        congestion_class(step, history, rate)
    } else {
        Class::SenderWindow
    }
}

/// Whether the window was full throughout but much less than a window per RTT was delivered: acknowledged data were unread, and
/// the window did not open again.
fn reopens_late(step: &Step, full: Duration) -> bool {
    let (last, now) = (&step.last, &step.sample);
    let Some((before, after)) = last.peer_window.zip(now.peer_window) else { return false };
    let rtt = last.rtt.max(now.rtt);
    let throughout = full >= step.time.scaled(FULL)
        && !step.repairs()
        && step.time >= rtt
        && rtt > Duration::ZERO;
    throughout && step.rate(Side::Sender) < (before.min(after) / rtt).scaled(LOW_FLIGHT_SHARE)
}

/// The limit if the counters show neither the peer's window nor the send buffer.
fn rest_class(step: &Step, history: &ConnectionHistory) -> Class {
    let now = &step.sample;
    // A single timeout follows any loss. After several without an answer, the peer or the path is gone. The kernel counts them since
    // before the first sample, but also window probes, which leave nothing in flight.
    let unanswered = if now.segments_in_flight > 0 { now.backoff } else { 0 };
    if history.unanswered.max(unanswered) >= MIN_UNANSWERED_TIMEOUTS {
        return Class::Stalled;
    }
    let rate = step.rate(Side::Sender);
    if history.keeps_up(step) {
        return Class::Application;
    }
    let is_paced = now.pacing_limit.is_some_and(|limit| rate.as_f64() >= FULL * limit.as_f64());
    // Behind a queue in the device, neither more data nor a larger buffer would help.
    if !is_paced && now.queues_in_device() {
        return congestion_class(step, history, rate);
    }
    let binds = f64::from(now.segments_in_flight) >= FULL * f64::from(now.congestion_window);
    let has_sent_all = step.has_sent_all();
    // A buffer binds if the flight fills it. If it holds as much again, its data wait for something slower: a pacing rate, or a
    // queue below TCP.
    if (!binds || has_sent_all) && !now.recovering && history.fills_buffer(step) {
        return buffer_class(step, history);
    }
    if is_paced {
        return Class::Pacing;
    }
    if has_sent_all && !now.recovering {
        return Class::Application;
    }
    congestion_class(step, history, step.delivery_rate(Side::Sender))
}

/// Whether the congestion window is still below its size at an earlier loss. After a loss before the first sample, only the
/// threshold shows that.
fn is_below_earlier_loss(now: &Sample) -> bool {
    // CUBIC's factor; Reno's is smaller.
    let window = f64::from(now.congestion_window) * LossResponse::Cubic.kept();
    now.retransmitted > 0 && window < f64::from(now.slow_start_threshold)
}

/// The class while the congestion window is the limit.
fn congestion_class(step: &Step, history: &ConnectionHistory, rate: Rate) -> Class {
    let now = &step.sample;
    let starting = history.outdoes && !step.is_past_slow_start();
    let full = history.is_at_capacity(rate);
    let repaired = history.has_repaired_within(now, AFTER_LOSS);
    let dropped = history.was_dropped_by_peer();
    match now.recovering || repaired {
        // BBR restarts behind data that the peer dropped.
        _ if now.model_based && starting && repaired && dropped => Class::ReceiverApplication,
        _ if now.model_based && starting => Class::Opportunity,
        _ if now.model_based || full => Class::Bandwidth,
        _ if !starting && (now.queues_in_device() || now.waits_in_host()) => Class::Bandwidth,
        true if now.queues(QUEUE_AFTER_LOSS) && !now.recovering => Class::Bandwidth,
        true if dropped => Class::ReceiverApplication,
        true => Class::Congestion,
        false if now.queues(QUEUE) => Class::Bandwidth,
        false if now.congestion_window < now.slow_start_threshold => Class::Opportunity,
        false if is_below_earlier_loss(now) => Class::Congestion,
        false => Class::Transport,
    }
}
