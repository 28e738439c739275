use std::collections::VecDeque;

use sweetspot_units::{Bytes, Duration, Time};

use crate::linux::INITIAL_SEGMENTS;
use crate::{
    Controller, ControllerConfig, EventKind, Input, Needs, Output, SizingEvent, SizingPhase,
};

/// The queueing delay aimed for (draft-irtf-iccrg-ledbat-plus-plus section 4.1, which RFC 9840
/// runs by default).
const TARGET_DELAY: Duration = Duration::from_millis(60);

/// Slow start ends at this share of the target (LEDBAT++ section 4.4).
const SLOW_START_ENDS: f64 = 0.75;

/// Smallest window, segments (LEDBAT++ section 4.2).
const RLEDBAT_MIN_SEGMENTS: u64 = 2;

/// Round trips that a slowdown lasts, and after slow start until the first (section 4.4).
const SLOWDOWN_ROUNDS: u32 = 2;

/// Between slowdowns, as a multiple of the last one's duration (section 4.4).
const BETWEEN_SLOWDOWNS: u64 = 9;

/// The shortest round.
const SHORTEST_ROUND: Duration = Duration::from_millis(10);

/// rLEDBAT (RFC 9840): a less-than-best-effort receiver. It grows like other transfers on an idle
/// path, shrinks as soon as the queueing delay, of whatever traffic, exceeds the target, and slows
/// down periodically to measure the path without its own queue.
#[derive(Debug)]
pub struct Rledbat {
    mss: Bytes,
    max: Bytes,
    window: Bytes,
    state: RledbatState,
    base: Option<Duration>,
    /// The lowest sample of the round.
    lowest: Option<Duration>,
    lost: bool,
    round_ends: Option<Time>,
    outputs: VecDeque<Output>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum RledbatState {
    /// Slow start up to `limit`.
    SlowStart { limit: Bytes, since: Time },
    /// Congestion avoidance until the next slowdown.
    Steady { slowdown: Time },
    /// At the smallest window for `rounds` more rounds; then back to `back_to`.
    Slowdown { rounds: u32, back_to: Bytes, since: Time },
}

impl Rledbat {
    /// A controller before the first byte.
    pub fn new(config: &ControllerConfig) -> Rledbat {
        Rledbat {
            mss: config.mss,
            max: config.max_window,
            window: config.mss * INITIAL_SEGMENTS,
            state: RledbatState::SlowStart { limit: config.max_window, since: Time::ZERO },
            base: None,
            lowest: None,
            lost: false,
            round_ends: None,
            outputs: VecDeque::new(),
        }
    }

    /// Starts anew; only the base RTT is kept.
    fn begin_again(&mut self) {
        self.window = self.mss * INITIAL_SEGMENTS;
        self.state = RledbatState::SlowStart { limit: self.max, since: Time::ZERO };
        (self.lowest, self.lost, self.round_ends) = (None, false, None);
        self.outputs.push_back(Output::Window(None));
    }

    fn min(&self) -> Bytes {
        (self.mss * RLEDBAT_MIN_SEGMENTS).min(self.max)
    }

    fn set(&mut self, now: Time, window: Bytes) {
        let window = window.clamp(self.min(), self.max);
        if window != self.window {
            self.window = window;
            self.outputs.push_back(Output::Window(Some(window)));
            let kind = EventKind::Limited { window };
            self.outputs.push_back(Output::Event(SizingEvent { at: now, kind }));
        }
    }

    /// Once per round trip.
    fn round(&mut self, now: Time, delay: Duration, base: Duration) {
        let lost = std::mem::take(&mut self.lost);
        match self.state {
            RledbatState::SlowStart { limit, since } => {
                if lost || delay > TARGET_DELAY.scaled(SLOW_START_ENDS) || self.window >= limit {
                    // A slowdown took as long as it lasted and as the way back took.
                    let pause = if since == Time::ZERO {
                        base * u64::from(SLOWDOWN_ROUNDS)
                    } else {
                        now.since(since) * BETWEEN_SLOWDOWNS
                    };
                    self.state = RledbatState::Steady { slowdown: now + pause };
                    self.set(now, if lost { self.window / 2 } else { self.window });
                } else {
                    self.set(now, (self.window * 2).min(limit));
                }
            }
            RledbatState::Steady { slowdown } if now >= slowdown => {
                let back_to = self.window;
                self.state =
                    RledbatState::Slowdown { rounds: SLOWDOWN_ROUNDS, back_to, since: now };
                self.set(now, self.min());
            }
            RledbatState::Steady { .. } if lost => self.set(now, self.window / 2),
            RledbatState::Steady { .. } => {
                // GAIN = 1 / min(16, ceil(2 TARGET / base)), and the multiplicative decrease
                // W - W (delay / TARGET - 1), at most to half (LEDBAT++ section 4.2).
                let steps = (TARGET_DELAY * 2).as_nanos().div_ceil(base.as_nanos().max(1)).min(16);
                let gain = self.mss.as_f64() / steps as f64;
                let window = self.window.as_f64();
                let over = (delay.as_secs_f64() / TARGET_DELAY.as_secs_f64() - 1.0).max(0.0);
                let change = (gain - window * over).max(-window / 2.0);
                self.set(now, Bytes::from_f64(window + change));
            }
            RledbatState::Slowdown { rounds: 0, back_to, since } => {
                self.state = RledbatState::SlowStart { limit: back_to, since };
            }
            RledbatState::Slowdown { rounds, back_to, since } => {
                self.state = RledbatState::Slowdown { rounds: rounds - 1, back_to, since };
            }
        }
    }

    fn advance(&mut self, now: Time) {
        let Some(base) = self.base else { return };
        let length = self.lowest.unwrap_or(base).max(SHORTEST_ROUND);
        let ends = *self.round_ends.get_or_insert(now + length);
        if now < ends {
            return;
        }
        self.round_ends = Some(now + length);
        if let Some(lowest) = self.lowest.take() {
            self.round(now, lowest.saturating_sub(base), base);
        }
    }
}

impl Controller for Rledbat {
    fn handle(&mut self, now: Time, input: &Input) {
        match *input {
            Input::KernelRtt(rtt) => {
                self.base = Some(self.base.map_or(rtt, |base| base.min(rtt)));
                self.lowest = Some(self.lowest.map_or(rtt, |lowest| lowest.min(rtt)));
            }
            Input::MinimumRtt(rtt) => {
                self.base = Some(self.base.map_or(rtt, |base| base.min(rtt)));
            }
            Input::OutOfOrder { segments } => self.lost |= segments > 0,
            Input::Data { .. } | Input::Timeout => {}
            Input::End => return self.begin_again(),
            Input::Probe(_) | Input::Sender(_) | Input::Train(_) | Input::Window { .. } => return,
        }
        self.advance(now);
    }
    fn poll_timeout(&self) -> Option<Time> {
        self.round_ends
    }
    fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }
    fn needs(&self) -> Needs {
        Needs { minimum_rtt: true, out_of_order: true, ..Needs::KERNEL }
    }
    fn phase(&self) -> SizingPhase {
        match self.state {
            RledbatState::SlowStart { .. } => SizingPhase::Ramping,
            RledbatState::Steady { .. } | RledbatState::Slowdown { .. } => SizingPhase::Holding,
        }
    }
}
