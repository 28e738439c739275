//! The sweet spot of a path that others share.

use sweetspot_units::{Bytes, Duration, Time};

use super::{CONVINCED, FIRST_REST, LONGEST_REST, Sobas, State};
use crate::EventKind;
use crate::sobas::epoch::Epoch;
use crate::sobas::herald::Herald;
use crate::sobas::sharing::{Move, Sharing};

/// Share of the window below which the sender's congestion window was cut by a loss: between what
/// that leaves of it, half, and all.
pub(super) const HALVED: f64 = 0.75;

impl Sobas {
    /// Judges an epoch on a path that others share.
    pub(super) fn share(&mut self, now: Time, epoch: &Epoch, base: Duration, mut sharing: Sharing) {
        let window = self.limits.window_or_max();
        let alone = self.is_alone(epoch);
        self.convincing = if alone { self.convincing + 1 } else { 0 };
        if self.convincing >= CONVINCED {
            self.convincing = 0;
            self.rest = FIRST_REST;
            self.state = State::Holding(self.begin_hold(epoch.rate, base));
            return;
        }
        let Some(capacity) = self.unshared() else { return };
        if !alone && !self.window_binds(epoch) {
            sharing.pause();
            let halved = |cwnd: Bytes| cwnd < window.scaled(HALVED);
            if !sharing.is_full() && epoch.cwnd.is_some_and(halved) {
                // What cut the congestion window was a loss.
                self.overflow(now, epoch, sharing, window);
                return;
            }
            self.state = State::Sharing(sharing);
            return;
        }
        match sharing.handle_epoch(epoch, base, window, capacity) {
            Move::Stay => self.pace_shared(now, epoch, window),
            Move::Set(window) => self.pace_shared(now, epoch, window),
            Move::Herald(queue) => {
                let (rate, setting) = (window / epoch.rtt, &self.setting);
                let herald = Herald::new(now, setting, rate, queue, capacity);
                self.limits.pause(now, herald.resumes());
                self.herald = Some(herald);
            }
            Move::Leave(window) => {
                self.limits.steer(now, window, base);
                self.rest = self.next_rest;
                self.next_rest = (self.next_rest * 2).min(LONGEST_REST);
                self.state = State::Holding(self.begin_hold(epoch.rate, base));
                return;
            }
        }
        self.state = State::Sharing(sharing);
    }

    /// Sets the window behind a standing queue, and the pacing that just lets it circulate: what
    /// fills an empty path would, after a pause, overshoot.
    fn pace_shared(&mut self, now: Time, epoch: &Epoch, window: Bytes) {
        self.limits.set(now, window, window / epoch.rtt);
    }

    /// Sends a herald, and hears what it found.
    pub(super) fn attend_herald(&mut self, now: Time) {
        let Some(herald) = &mut self.herald else { return };
        if let Some(request) = herald.poll_request(now) {
            self.limits.push(request);
        }
        let Some(fits) = herald.poll_finding(now) else { return };
        self.herald = None;
        if let State::Sharing(sharing) = &mut self.state {
            sharing.handle_finding(fits);
        }
    }

    /// Goes on after an overflow on a path that others share, with `in_flight`.
    pub(super) fn overflow(
        &mut self,
        now: Time,
        epoch: &Epoch,
        mut sharing: Sharing,
        in_flight: Bytes,
    ) {
        self.limits.emit(now, EventKind::Overflowed { rate: epoch.rate });
        let window = sharing.handle_overflow(in_flight);
        self.pace_shared(now, epoch, window);
        self.state = State::Sharing(sharing);
    }
}
