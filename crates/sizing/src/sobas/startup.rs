//! The first round trips: measures the capacity and detects cross traffic.

use sweetspot_units::{Bytes, Duration, Rate, Time};

use super::held::Held;
use super::limits::target_queue;
use super::memory::MIN_ROOM;
use super::open::Open;
use super::state::State;
use super::{Sensors, Sobas};
use crate::driver::TRAIN_TIMEOUT;
use crate::linux::INITIAL_SEGMENTS;
use crate::model::{Agreement, MEASURING_SHARE, SILENCE, TIMESTAMP_TICK};
use crate::{CongestionChoice, EventKind, Output, Reason};

/// The window before any data, equal to Linux's initial one: the largest that can be advertised unscaled, as in a SYN (RFC
/// 7323, section 2.2).
pub(super) fn first_window() -> Bytes {
    Bytes::new(u16::MAX.into())
}

/// Measuring with packet trains.
#[derive(Debug, Default)]
pub(super) struct Startup {
    /// When the wait began, and when the length of the long trains was known.
    began: Option<Time>,
    settled: Option<Time>,
}

impl Sobas {
    /// Requests trains until they agree, differ, or do not arrive.
    pub(super) fn start_up(&mut self, now: Time) {
        let State::Startup(startup) = &mut self.state else { return };
        startup.began.get_or_insert(now);
        if self.is_short() {
            self.sensors = Sensors::Kernel;
            return self.open(now, Reason::ShortTransfer);
        }
        if self.limits.window().is_none() {
            self.limits.limit(now, first_window());
        }
        let base = self.min_rtt.get();
        if base.is_some_and(|base| base < TIMESTAMP_TICK) {
            return self.open(now, Reason::ShortPath);
        }
        if self.resume(now, base) {
            return;
        }
        if self.sensors == Sensors::Kernel {
            // The controller cannot reach the sender.
            return self.open(now, Reason::CapacityUnknown);
        }
        while let Some(request) = self.trains.poll_request(now) {
            self.limits.push(Output::Train(request));
        }
        match (self.trains.agreement(), base) {
            (Agreement::Apart, _) => self.open(now, Reason::CapacityUnclear),
            (Agreement::Close { slowest, .. }, Some(base)) if self.trains.are_complete() => {
                self.hold_at(now, slowest, base);
            }
            (agreement, base) => self.wait_for_trains(now, agreement, base),
        }
    }

    /// Resumes the window that the last transfer on this path held to its end, as soon as the RTT is known. Returns whether it
    /// holds that window or still waits for the RTT. Like any hold, this one is checked: if the path's capacity has changed, or
    /// cross traffic uses it, the window is opened and the memory deleted (RFC 9959).
    fn resume(&mut self, now: Time, base: Option<Duration>) -> bool {
        let (State::Startup(startup), Sensors::Kernel) = (&self.state, self.sensors) else {
            return false;
        };
        let Some(memory) = self.memory else { return false };
        let Some(base) = base else {
            return startup.began.is_some_and(|began| now < began + SILENCE);
        };
        let Some(held) = Held::resumed(&memory, now, base) else { return false };
        self.transition_to(now, State::Held(held), Reason::PathRemembered);
        self.apply_hold(now);
        true
    }

    /// Whether the transfer is too small for trains of the current length.
    pub(super) fn is_short(&self) -> bool {
        let affordable = self.config.size.map(|size| size.scaled(MEASURING_SHARE));
        affordable.is_some_and(|max| self.trains.total() > max)
    }

    fn wait_for_trains(&mut self, now: Time, agreement: Agreement, base: Option<Duration>) {
        let State::Startup(startup) = &mut self.state else { return };
        if self.trains.are_settled() {
            startup.settled.get_or_insert(now);
        }
        let due = self.startup_ends();
        if now >= due {
            return match (agreement, base) {
                (Agreement::Close { slowest, .. }, Some(base)) => self.hold_at(now, slowest, base),
                _ => self.open(now, Reason::CapacityUnknown),
            };
        }
        if let Some((rate, base)) = self.trains.first().zip(base) {
            let rate = rate.scaled(self.limits.payload());
            // This does not slow down slow start, and overflows no buffer of at least [`MIN_ROOM`]. At least TCP's initial
            // window (RFC 6928).
            let window = (rate * base).scaled(1.0 + MIN_ROOM);
            self.limits.limit(now, window.max(self.config.mss * INITIAL_SEGMENTS));
        }
    }

    /// When the wait for trains ends.
    pub(super) fn startup_ends(&self) -> Time {
        let State::Startup(startup) = &self.state else { return Time::MAX };
        let Some(began) = startup.began else { return Time::MAX };
        let rtt = self.round_trip.average().or(self.min_rtt.get());
        let Some(rtt) = rtt else { return began + SILENCE };
        // The first train is requested a round trip after the beginning, and settles the length of the others, which are
        // spread. Each needs a round trip for its request and its packets.
        let since = startup.settled.unwrap_or(began + rtt * 2);
        since + self.trains.spread(rtt) + rtt * 2 + TRAIN_TIMEOUT
    }

    fn hold_at(&mut self, now: Time, wire: Rate, base: Duration) {
        let capacity = wire.scaled(self.limits.payload());
        self.limits.emit(now, EventKind::CapacityEstimated { rate: wire, rtt: base });
        // Our own burst causes our own queue: slow start doubles a window and sends half of it as a burst. A train adds to it.
        let window = self.largest_cwnd / capacity;
        let own = window.saturating_sub(base).max(window / 2) + self.trains.longest() / capacity;
        if self.highest_rtt > base + target_queue(base) + own {
            return self.open(now, Reason::CrossTrafficQueue);
        }
        let held = Held::new(capacity, base);
        self.transition_to(now, State::Held(held), Reason::CapacityKnown);
        self.apply_hold(now);
    }

    /// Leaves the window to congestion control.
    pub(super) fn open(&mut self, now: Time, reason: Reason) {
        let (was_held, tried) = match &self.state {
            // Slow start opened a window that is only remembered: continue from there.
            State::Held(held) => (!held.is_remembered(), held.tried()),
            State::Trial(trial) => (true, Some(trial.began())),
            State::Startup(_) | State::Open(_) | State::Climb(_) | State::Ended => (false, None),
        };
        self.was_wrong |= self.memory.take().is_some();
        self.is_shared |= reason == Reason::CrossTrafficQueue;
        self.held_before = match &self.state {
            State::Held(held) if reason == Reason::RandomLoss && !held.is_remembered() => {
                Some(*held)
            }
            _ => None,
        };
        // If the path opens again, the trial has failed, unless the path has become faster since.
        let failed = tried.filter(|_| reason != Reason::PathFaster);
        self.trials_failed += failed.map_or(Duration::ZERO, |began| now.since(began));
        self.transition_to(now, State::Open(Open::new(was_held)), reason);
        self.limits.pace(None);
        self.limits.congestion(now, CongestionChoice::Own);
        self.widen(now, Bytes::ZERO);
    }
}
