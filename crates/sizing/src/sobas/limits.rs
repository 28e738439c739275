use std::collections::VecDeque;

use sweetspot_units::{Bytes, Duration, Rate, Time};

use crate::model::{AGREEMENT, CHANGE, Epoch, RESOLUTION, Share, TIMESTAMP_TICK};
use crate::{CongestionChoice, ControllerConfig, EventKind, Output, SizingEvent};

/// Segments that a receiver with delayed ACKs may leave unacknowledged (RFC 5681, section 4.2).
const UNACKNOWLEDGED_SEGMENTS: u64 = 2;

/// CUBIC's window after a loss, as a share of the window before, and its growth constant in segments per second cubed (RFC
/// 9438, sections 4.6 and 5.1).
pub(super) const CUBIC_BETA: f64 = 0.7;
const CUBIC_C: f64 = 0.4;

/// Growth per round trip that a path with a small buffer tolerates, and the smallest growth that is reported. It is the gain of
/// BBR's probes (draft-cardwell-iccrg-bbr-congestion-control-00, section 4.3.4).
pub(super) const PROBING_GAIN: f64 = 1.25;

/// The transfer's limits, and the outputs that set them.
#[derive(Debug)]
pub(super) struct TransferLimits {
    config: ControllerConfig,
    window: Option<Bytes>,
    /// The current size of an open window, which is reported only after a large growth.
    room: Bytes,
    pacing: Option<Rate>,
    congestion: CongestionChoice,
    outputs: VecDeque<Output>,
}

impl TransferLimits {
    /// A transfer without limits.
    pub(super) fn new(config: &ControllerConfig) -> TransferLimits {
        TransferLimits {
            config: *config,
            window: None,
            room: Bytes::ZERO,
            pacing: None,
            congestion: CongestionChoice::Own,
            outputs: VecDeque::new(),
        }
    }

    pub(super) fn window(&self) -> Option<Bytes> {
        self.window
    }

    pub(super) fn limit(&mut self, now: Time, window: Bytes) {
        let window = self.within_bounds(window);
        if self.window != Some(window) {
            self.window = Some(window);
            self.outputs.push_back(Output::Window(Some(window)));
            self.emit(now, EventKind::Limited { window });
        }
    }

    /// The nearest window that may be set. The minimum is twice the bytes that delayed ACKs leave unacknowledged, so that data
    /// are in flight while an ACK is (BBRMinPipeCwnd of draft-ietf-ccwg-bbr).
    pub(super) fn within_bounds(&self, window: Bytes) -> Bytes {
        window.max(self.unacknowledged() * 2).min(self.config.max_window)
    }

    /// Grows the window by at most `more` towards `window`; it never shrinks.
    pub(super) fn widen(&mut self, now: Time, more: Bytes, window: Bytes) {
        let before = self.window.unwrap_or(Bytes::ZERO);
        self.room = (self.room.max(before) + more).min(window).min(self.config.max_window);
        let grown = self.room >= before.scaled(PROBING_GAIN) || self.room == self.config.max_window;
        if self.room > before && grown {
            self.limit(now, self.room);
        }
    }

    pub(super) fn pace(&mut self, pacing: Option<Rate>) {
        if self.pacing != pacing {
            self.pacing = pacing;
            self.outputs.push_back(Output::Pacing(pacing));
        }
    }

    /// Sets the sender's congestion control.
    pub(super) fn congestion(&mut self, now: Time, choice: CongestionChoice) {
        if self.congestion != choice {
            self.congestion = choice;
            self.outputs.push_back(Output::Congestion(choice));
            self.emit(now, EventKind::Switched { to: choice });
        }
    }

    pub(super) fn lift(&mut self, now: Time) {
        self.pace(None);
        self.congestion(now, CongestionChoice::Own);
        if self.window.take().is_some() {
            self.outputs.push_back(Output::Window(None));
            self.emit(now, EventKind::Lifted);
        }
    }

    /// The window for `rate` over a base RTT of `base` and a standing queue of `queue` (at least a
    /// segment).
    pub(super) fn window_for(&self, rate: Rate, base: Duration, queue: Duration) -> Bytes {
        let queue = queue.max(self.config.mss / rate);
        rate * (base + queue) + self.unacknowledged()
    }

    /// The bytes that a receiver with delayed ACKs may leave unacknowledged.
    fn unacknowledged(&self) -> Bytes {
        self.config.mss * UNACKNOWLEDGED_SEGMENTS
    }

    /// Whether `window` limits a transfer with `in_flight` bytes in flight, apart from the allowance for delayed ACKs.
    pub(super) fn binds(&self, window: Bytes, in_flight: Bytes) -> bool {
        in_flight >= window.saturating_sub(self.unacknowledged()).scaled(1.0 - AGREEMENT)
    }

    /// Whether the `in_flight` bytes must have been sent under a window larger than `window`.
    pub(super) fn exceeds(&self, window: Bytes, in_flight: Bytes) -> bool {
        in_flight.scaled(1.0 - AGREEMENT) > window
    }

    /// The factor of a step up: it widens `window`, less the two segments for delayed ACKs, by at least two segments.
    pub(super) fn step_of(&self, window: Bytes) -> f64 {
        let segments = self.unacknowledged();
        let rest = window.saturating_sub(segments).max(segments);
        1.0 + RESOLUTION.max(segments.as_f64() / rest.as_f64())
    }

    /// Time after a random loss until no more are expected, in which CUBIC would return to `window`: K = cbrt(W (1 - beta) / C)
    /// seconds (RFC 9438, section 4.2).
    pub(super) fn loss_free(&self, window: Bytes) -> Duration {
        let segments = window.as_f64() / self.config.mss.as_f64();
        Duration::from_secs_f64((segments * (1.0 - CUBIC_BETA) / CUBIC_C).cbrt())
    }

    /// Share of a packet that is payload.
    pub(super) fn payload(&self) -> f64 {
        self.config.mss.as_f64() / self.config.packet.as_f64()
    }

    pub(super) fn emit(&mut self, at: Time, kind: EventKind) {
        self.outputs.push_back(Output::Event(SizingEvent { at, kind }));
    }

    pub(super) fn push(&mut self, output: Output) {
        self.outputs.push_back(output);
    }

    pub(super) fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }
}

/// The queue that keeps a bottleneck busy on a path of base RTT `base`: at least the mean error of a kernel's RTT samples.
pub(super) fn target_queue(base: Duration) -> Duration {
    base.scaled(RESOLUTION).max(TIMESTAMP_TICK / 2)
}

/// Whether [`target_queue`] stood throughout `epoch`, so that the bottleneck was busy.
pub(super) fn is_busy(epoch: &Epoch, base: Duration) -> bool {
    epoch.rtt > base + target_queue(base)
}

/// Whether a probe with this RTT found the path idle: at most half of the kept queue above `base`, because hosts also add
/// delay.
pub(super) fn is_idle(rtt: Duration, base: Duration) -> bool {
    rtt <= base + target_queue(base) / 2
}

/// Whether the path is full if a share of `idle` of the probes found it idle: the rate cannot grow by twice a change. Jitter
/// hides an idle path.
pub(super) fn is_used(idle: Share) -> bool {
    idle.share() < 2.0 * CHANGE
}
