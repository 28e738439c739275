use sweetspot_units::{Bytes, Duration, Rate, Time};

use super::{CROWDED, Live, MANNER, State, Why, long_queue};
use crate::EventKind;
use crate::sobas::adaptive::{REACHED, RISING};
use crate::sobas::epoch::Epoch;
use crate::sobas::hold::Hold;
use crate::sobas::toll::Toll;

/// What the window may grow by in a round trip, besides slow start's own doubling: this share of
/// the bandwidth-delay product. What comes in addition stands in the bottleneck's buffer until the
/// next round trip, so that it is bounded by the smallest buffer worth serving.
const STEP_SHARE: f64 = 1.0 / 8.0;

/// The shortest round in which a flight is counted.
const SHORTEST_ROUND: Duration = Duration::from_millis(5);

/// Epochs with a queue below that share before the path is taken for full.
const DOUBTS: u32 = 8;

/// Epochs of that after which it is others': our own, of several connections that begin at once,
/// has drained by then.
const LONG_EPOCHS: u32 = 2;

/// Never limited below this while ramping: 64 KiB, the window of a receiver that was told nothing
/// (kernel commit a337531b942b).
const INITIAL_SEGMENTS: u64 = 45;

/// How the window opens: by the transfer's own bursts, or at once to what is known of the path.
impl Live {
    /// Data arrives while the window opens.
    pub(super) fn handle_burst(&mut self, now: Time, arrived: Bytes) {
        let Some(base) = self.round_trip.base() else { return };
        if arrived > Bytes::ZERO {
            self.dispersion.handle_arrival(now, arrived, base, self.flights.largest());
        }
        let round = base.max(SHORTEST_ROUND);
        // It arrived since the last look: by the time of this one two flights might seem to be one.
        let counted = match self.last_look.replace(now) {
            None => self.flights.counts(now, round),
            Some(since) => {
                // In a longer time there were several.
                let share = round.as_secs_f64() / now.since(since).max(round).as_secs_f64();
                self.flights.handle_arrival(since, arrived.scaled(share), round)
            }
        };
        if let Some(known) = self.known {
            if !known.is_refuted(base, self.dispersion.capacity(), self.flights.largest()) {
                if self.limits.window().is_none() {
                    self.limits.steer(now, known.window, base);
                }
                return;
            }
            self.known = None;
            if counted {
                // Another path: as far as the window had opened, and carefully from there.
                self.limits.steer(now, self.next_window(base), base);
            }
        }
        if counted {
            self.open(now, round);
        }
    }

    /// The window at which the path as the bursts show it is full.
    fn full(&self, base: Duration) -> Option<Bytes> {
        let capacity = self.dispersion.capacity()?;
        Some(self.limits.window_for(capacity, base + MANNER.queue_aim(base)))
    }

    /// Lets the window grow with what is in flight.
    fn open(&mut self, now: Time, base: Duration) {
        let next = self.next_window(base);
        if self.limits.window().is_none_or(|window| next > window) {
            self.limits.steer(now, next, base);
        }
    }

    /// More than what is in flight, by no more than a small buffer bears.
    fn next_window(&self, base: Duration) -> Bytes {
        let (full, flight) = (self.full(base), self.flights.largest());
        let doubled = flight * 2;
        let next =
            full.map_or(doubled, |full| doubled.min(flight + full.scaled(STEP_SHARE)).min(full));
        // Not below what a receiving kernel begins with: that much has been promised already.
        let opened = full.map_or(self.opened_to, |full| full.min(self.opened_to));
        next.max(opened).max(self.setting.mss * INITIAL_SEGMENTS)
    }

    pub(super) fn ramp(
        &mut self,
        now: Time,
        epoch: &Epoch,
        base: Duration,
        last: Rate,
        doubtful: u32,
    ) {
        self.state = State::Ramping { last: epoch.rate, doubtful };
        if epoch.stalled || self.known.is_some() && !self.recall(now, epoch, base) {
            return;
        }
        let reaches = |offered: Rate| epoch.rate >= offered.scaled(REACHED);
        // A rate that rises with the window finds no queue, whatever the round trip looks like.
        let flat = epoch.rate <= last.scaled(RISING);
        let queue_stands = epoch.rtt > base + MANNER.queue_aim(base) && flat;
        let opened = self.full(base).is_some_and(|full| self.limits.window_or_max() >= full);
        // Jitter looks like a queue: below the capacity that the bursts showed the window opens on,
        // for a while.
        let below = self.dispersion.capacity().is_none_or(|c| epoch.rate < c.scaled(CROWDED));
        let long = epoch.rtt.saturating_sub(base) > long_queue(base);
        self.saw_no_queue |= !long;
        // What was there before our window was large enough to make it.
        let others = long && below && !self.saw_no_queue;
        if others && doubtful >= LONG_EPOCHS {
            // Others fill the buffer: who opens the window slowly there never gets a share.
            self.let_go(now, Why::Others);
        } else if others || queue_stands && below && !long && doubtful < DOUBTS {
            self.state = State::Ramping { last: epoch.rate, doubtful: doubtful + 1 };
        } else if queue_stands && below && !long && opened {
            // What the bursts showed is no more than the path, so that it is no queue to hold that.
            self.state = holding(Hold::new(&MANNER, epoch.rate, base));
        } else if queue_stands || opened && self.limits.offered(base).is_some_and(reaches) {
            self.saturate(now, epoch, base);
        }
    }

    /// Whether what was known of the path is of no use any more: neither has the window that filled
    /// it filled it again, nor is slow start under way.
    fn recall(&mut self, now: Time, epoch: &Epoch, base: Duration) -> bool {
        let Some(known) = &mut self.known else { return true };
        if epoch.rate >= known.capacity.scaled(CROWDED) {
            let (rate, rtt) = (known.capacity, epoch.rtt);
            self.limits.emit(now, EventKind::Saturated { rate, rtt });
            self.dispersion.correct(rate);
            self.state = holding(Hold::again(&MANNER, rate, base, known.aim));
            self.known = None;
            return false;
        }
        let overdue = known.is_overdue();
        if overdue {
            self.known = None;
        }
        overdue
    }

    /// Slow start has overflowed the path's buffer. The path was full, so that what arrived in a round
    /// trip is what it carries, whatever a burst that was held back for a moment made it seem; less
    /// than half of that was a burst that a short buffer did not bear. Whether the window was opened
    /// to more than that, which is taken back.
    pub(super) fn opened_too_far(&mut self, now: Time, base: Duration) -> bool {
        let rate = self.flights.largest() / base.max(SHORTEST_ROUND);
        let window = self.limits.window_for(rate, base + MANNER.queue_aim(base));
        let was_full = self.full(base).is_some_and(|full| window * 2 >= full);
        let too_far = self.limits.window().is_some_and(|opened| opened > window);
        if self.known.is_some() || !was_full || !too_far {
            return false;
        }
        self.limits.emit(now, EventKind::Overflowed { rate });
        self.dispersion.correct(rate);
        self.limits.steer(now, window, base);
        let mut toll = Toll::default();
        toll.excuse(now, base);
        self.state = State::Holding { hold: Hold::new(&MANNER, rate, base), crowded: 0, toll };
        true
    }

    pub(super) fn saturate(&mut self, now: Time, epoch: &Epoch, base: Duration) {
        self.limits.emit(now, EventKind::Saturated { rate: epoch.rate, rtt: epoch.rtt });
        self.dispersion.correct(epoch.rate);
        let window = self.limits.window_for(epoch.rate, base + MANNER.queue_aim(base));
        let queue = epoch.rtt.saturating_sub(base);
        let before = self.limits.window().filter(|w| *w > window && queue <= long_queue(base));
        self.limits.steer(now, window, base);
        let mut hold = Hold::new(&MANNER, epoch.rate, base);
        if let Some(before) = before {
            hold = hold.cut(before, epoch.rate, queue);
        }
        self.state = holding(hold);
    }
}

fn holding(hold: Hold) -> State {
    State::Holding { hold, crowded: 0, toll: Toll::default() }
}
