use std::collections::VecDeque;

use sweetspot_units::{Bytes, Duration, Rate, Time};

use crate::{Event, EventKind, Output, Setting};

/// Pacing over what the window allows on an empty path. The window is then the limit, and bursts
/// (after a stall of the sender, or of compressed ACKs) leave it smoothly.
const PACING_OVER_WINDOW: f64 = 1.02;

/// Pacing until the first train is in, which is a round trip or two. Slow start would overflow a
/// short path's buffer in that time; at this rate a path of 20 ms gets three times TCP's initial
/// window per round trip, and a path slower than this is in slow start's own hands.
const FIRST_PACING: Rate = Rate::from_mbit_per_second(20);

/// The smallest window, in segments: one that fast retransmit still works with (RFC 5681 needs
/// three duplicate ACKs behind a loss).
const LEAST_SEGMENTS: u64 = 4;

/// What a delaying receiver may hold back from the acknowledgements, in segments (RFC 5681
/// section 4.2): so much of the window is not in flight.
const UNACKNOWLEDGED_SEGMENTS: u64 = 2;

/// Share of what the limits allow from which they, and not congestion control, hold the transfer.
const BOUND: f64 = 0.85;

/// Share of its pace at which a sender goes on that pauses.
const PAUSED: f64 = 1.0 / 64.0;

/// Segments that a paced sender releases at once at the least (Linux's tcp_min_tso_segs).
const BURST_SEGMENTS: u64 = 2;

/// How long an overflowed window stays forbidden.
const CEILING_LASTS: Duration = Duration::from_secs(10);

/// What the controller holds the transfer to, and the outputs that say so.
#[derive(Debug)]
pub(super) struct Limits {
    setting: Setting,
    window: Option<Bytes>,
    pacing: Option<Rate>,
    ceiling: Option<(Bytes, Time)>,
    /// Whether the sender is told a pace.
    paces: bool,
    /// What a round trip is longer by without a queue.
    jitter: Duration,
    /// Until when the sender is told to send next to nothing.
    paused: Option<Time>,
    outputs: VecDeque<Output>,
}

impl Limits {
    /// No window yet: "upon connection establishment, SOBAS sets the send and receive socket
    /// buffers to their maximum possible value" (section VII-A).
    pub(super) fn new(setting: &Setting) -> Limits {
        Limits {
            setting: *setting,
            window: None,
            pacing: Some(FIRST_PACING),
            ceiling: None,
            paces: true,
            jitter: Duration::ZERO,
            paused: None,
            outputs: VecDeque::from([Output::Window(None), Output::Pacing(Some(FIRST_PACING))]),
        }
    }

    /// Limits on the window alone, for senders that take no hints; the kernel's own window is
    /// left as it is until the first one.
    pub(super) fn of_window(setting: &Setting) -> Limits {
        Limits {
            setting: *setting,
            window: None,
            pacing: None,
            ceiling: None,
            paces: false,
            jitter: Duration::ZERO,
            paused: None,
            outputs: VecDeque::new(),
        }
    }

    /// Records something.
    pub(super) fn emit(&mut self, at: Time, kind: EventKind) {
        self.outputs.push_back(Output::Event(Event { at, kind }));
    }

    /// Passes an output on.
    pub(super) fn push(&mut self, output: Output) {
        self.outputs.push_back(output);
    }

    /// The next output.
    pub(super) fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// The window in force, or the largest there is.
    pub(super) fn window_or_max(&self) -> Bytes {
        self.window.unwrap_or(self.setting.max_window)
    }

    /// The window in force, where there is a limit.
    pub(super) fn window(&self) -> Option<Bytes> {
        self.window
    }

    /// Sets the window and a pacing of its own.
    pub(super) fn set(&mut self, now: Time, window: Bytes, pacing: Rate) {
        let least = self.setting.mss * LEAST_SEGMENTS;
        let window = window.max(least).min(self.setting.max_window);
        if self.window != Some(window) {
            self.window = Some(window);
            self.outputs.push_back(Output::Window(Some(window)));
            self.emit(now, EventKind::Limited { window });
        }
        self.pace(pacing);
    }

    /// Sets the pacing alone.
    pub(super) fn pace(&mut self, pacing: Rate) {
        if self.paces && self.pacing != Some(pacing) {
            self.pacing = Some(pacing);
            if self.paused.is_none() {
                self.outputs.push_back(Output::Pacing(Some(pacing)));
            }
        }
    }

    /// Holds the sender back until a time. A little goes on: so that no acknowledgement is
    /// delayed until then, which a sender might take for a loss, and because a sender keeps the
    /// distance to its next burst that it chose under the old pace (Linux's tcp_wstamp_ns), which
    /// is to be no longer than the pause.
    pub(super) fn pause(&mut self, now: Time, until: Time) {
        self.paused = Some(until);
        let least = self.setting.mss * BURST_SEGMENTS / until.since(now);
        let pacing = self.pacing.map(|pacing| pacing.scaled(PAUSED).max(least));
        self.outputs.push_back(Output::Pacing(pacing));
    }

    /// Ends a pause that is over by `now`.
    pub(super) fn handle_timeout(&mut self, now: Time) {
        if self.paused.is_some_and(|until| until <= now) {
            self.paused = None;
            self.outputs.push_back(Output::Pacing(self.pacing));
        }
    }

    /// When a pause ends.
    pub(super) fn poll_timeout(&self) -> Option<Time> {
        self.paused
    }

    /// Sets the window, below what overflowed lately, and the pacing that just lets it fill an
    /// empty path of round trip `base`. Whether the whole window was allowed.
    pub(super) fn steer(&mut self, now: Time, window: Bytes, base: Duration) -> bool {
        let allowed = self.allowed(now, window);
        let pacing = (allowed / (base + self.jitter)).scaled(PACING_OVER_WINDOW);
        self.set(now, allowed, pacing);
        allowed == window
    }

    /// `window`, or as much of it as did not overflow lately.
    pub(super) fn allowed(&self, now: Time, window: Bytes) -> Bytes {
        match self.ceiling {
            Some((ceiling, until)) if now < until => window.min(ceiling),
            _ => window,
        }
    }

    /// Round trips are this much longer than their lowest without a queue.
    pub(super) fn expect_jitter(&mut self, jitter: Duration) {
        self.jitter = jitter;
    }

    /// Forbids more than `window` for a while.
    pub(super) fn forbid(&mut self, now: Time, window: Bytes) {
        self.ceiling = Some((window, now + CEILING_LASTS));
    }

    /// Lifts every limit.
    pub(super) fn lift(&mut self, now: Time) {
        self.window = None;
        self.pacing = None;
        self.outputs.push_back(Output::Window(None));
        if self.paces {
            self.outputs.push_back(Output::Pacing(None));
        }
        self.emit(now, EventKind::Lifted);
    }

    /// The time in which what is held back from the acknowledgements drains at `rate`.
    pub(super) fn hesitation(&self, rate: Rate) -> Duration {
        self.setting.mss * UNACKNOWLEDGED_SEGMENTS / rate
    }

    /// The window that lets `rate` through in round trips of `rtt`.
    pub(super) fn window_for(&self, rate: Rate, rtt: Duration) -> Bytes {
        rate * rtt + self.setting.mss * UNACKNOWLEDGED_SEGMENTS
    }

    /// The rate that the limits in force allow on a path of round trip `rtt`.
    pub(super) fn offered(&self, rtt: Duration) -> Option<Rate> {
        let usable = self.window?.saturating_sub(self.setting.mss * UNACKNOWLEDGED_SEGMENTS);
        let by_window = usable / rtt;
        Some(self.pacing.map_or(by_window, |pacing| pacing.min(by_window)))
    }

    /// Whether the limits, and not congestion control, hold a transfer of `rate` in round trips of
    /// `rtt`.
    pub(super) fn bind(&self, rate: Rate, rtt: Duration) -> bool {
        self.offered(rtt).is_some_and(|offered| rate >= offered.scaled(BOUND))
    }
}
