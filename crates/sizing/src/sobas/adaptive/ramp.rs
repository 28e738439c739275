//! The window opens: slow start, kept from overflowing the bottleneck's buffer.

use sweetspot_units::{Bytes, Duration, Rate, Time};

use super::{EPOCHS_PER_STEP, FIRST_STEP, RAMP_PACING, REACHED, RISING, Sobas, State};
use crate::sobas::epoch::Epoch;

/// Share of a round trip that the queue rises to where others' bursts are to be reckoned with
/// while the window opens.
const CROWDED: f64 = 0.125;

/// Growth of the pace per epoch then: what slow start adds with delayed acknowledgements, without
/// its bursts.
const CAREFUL_STEP: f64 = 1.5;

/// Growth per epoch where there is no capacity estimate: a round trip and a quarter of what
/// arrives, so that the window never runs far ahead of the path.
const BLIND_STEP: f64 = 1.25;

/// Room of the window above what arrives: slow start doubles it in a round trip.
const BLIND_ROOM: f64 = 2.0;

/// Epochs in a row that others' queue must stand: a single one may have met a burst.
const STANDING: u32 = 2;

/// Where the opening of the window stands.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Ramp {
    /// Epochs since the limits last changed.
    epochs: u32,
    /// The last epoch's rate, and the largest congestion window until then.
    last: Rate,
    cwnd: Option<Bytes>,
    /// Whether they changed because a queue stood.
    braked: bool,
    /// Whether others' bursts were seen, so that the pace grows with what arrives.
    crowded: bool,
    /// Epochs in a row in which others' queue stood.
    congested: u32,
    /// Whether what the trains said is doubtful.
    blind: bool,
    /// Epochs in a row behind a queue in which the rate did not rise.
    flat: u32,
}

impl Ramp {
    /// The limits were set; what came before was received at `last`.
    pub(super) fn new(last: Rate) -> Ramp {
        Ramp {
            epochs: 0,
            last,
            cwnd: None,
            braked: false,
            crowded: false,
            congested: 0,
            blind: false,
            flat: 0,
        }
    }

    /// The window turned out to be too small at `last`, whatever the trains said.
    pub(super) fn blind(last: Rate) -> Ramp {
        Ramp { blind: true, ..Ramp::new(last) }
    }
}

impl Sobas {
    /// Judges an epoch in which the window opens.
    pub(super) fn ramp(&mut self, now: Time, epoch: &Epoch, base: Duration, ramp: Ramp) {
        let congested = if self.meets_congestion(epoch, base) { ramp.congested + 1 } else { 0 };
        if congested >= STANDING {
            return self.leave_to_congestion_control(now);
        }
        let (epochs, last, cwnd) = (ramp.epochs + 1, epoch.rate, epoch.cwnd);
        let queue = self.has_queue(epoch.rtt, base);
        let flat = if queue { ramp.flat } else { 0 };
        let next = Ramp { epochs, last, cwnd, congested, flat, ..ramp };
        self.state = State::Ramping(next);
        if epoch.stalled {
            return;
        }
        let known = self.known_capacity(ramp);
        let free = known.map_or(Rate::MAX, |capacity| capacity.scaled(RAMP_PACING));
        let careful = epoch.rate.scaled(if self.matters() { BLIND_STEP } else { CAREFUL_STEP });
        let crowded = epoch.highest_rtt > base + base.scaled(CROWDED) && careful < free;
        if crowded || ramp.crowded {
            self.limits.pace(if crowded { careful } else { free });
            self.state = State::Ramping(Ramp { crowded, ..next });
        }
        if queue && self.matters() {
            return self.ramp_behind_queue(now, epoch, base, ramp, Ramp { crowded, ..next });
        }
        match self.limits.offered(base) {
            _ if known.is_none() => self.open_blindly(now, epoch),
            _ if crowded => {}
            // The limits were reached and no queue stands: the path may have more to give.
            Some(offered)
                if epoch.rate >= offered.scaled(REACHED) && next.epochs >= EPOCHS_PER_STEP =>
            {
                let window = self
                    .limits
                    .window_for(epoch.rate, base + self.aim(base))
                    .min(self.limits.window_or_max());
                self.limits.steer(now, window.scaled(FIRST_STEP), base);
                self.state = State::Ramping(Ramp { congested, ..Ramp::new(epoch.rate) });
            }
            _ => {}
        }
    }

    /// The trains' estimate, unless it is doubtful.
    fn known_capacity(&self, ramp: Ramp) -> Option<Rate> {
        self.capacity().filter(|_| !ramp.blind)
    }

    /// Without a capacity estimate the pace comes from what arrives. What was advertised once stays, so
    /// that the window does not run far ahead, either.
    pub(super) fn open_blindly(&mut self, now: Time, epoch: &Epoch) {
        let window = self.limits.window_for(self.lately, epoch.highest_rtt).scaled(BLIND_ROOM);
        let window = self.limits.allowed(now, window);
        self.limits.set(now, window, self.lately.scaled(BLIND_STEP));
    }

    /// Whether more was in flight than in the epoch before, or the window is the limit: a congestion
    /// window that stays keeps the rate, however empty the path.
    fn could_rise(&self, epoch: &Epoch, before: Ramp) -> bool {
        let grew = epoch.cwnd.zip(before.cwnd).is_none_or(|(now, then)| now > then.scaled(RISING));
        grew || self.window_binds(epoch)
    }

    /// A queue stands while the window opens: it may be others', and the rate may have to rise
    /// yet.
    fn ramp_behind_queue(
        &mut self,
        now: Time,
        epoch: &Epoch,
        base: Duration,
        before: Ramp,
        next: Ramp,
    ) {
        let blind = self.known_capacity(next).is_none();
        let bound = !next.crowded
            && !blind
            && self.limits.offered(epoch.rtt).is_some_and(|o| epoch.rate >= o.scaled(REACHED));
        let flat = epoch.rate <= before.last.scaled(RISING) && self.could_rise(epoch, before);
        let flat = if flat { before.flat + 1 } else { 0 };
        let next = Ramp { flat, ..next };
        self.state = State::Ramping(next);
        // Where a queue may be jitter a single epoch may have been a pause.
        let flat = flat >= if blind { STANDING } else { 1 };
        if next.braked && next.epochs < EPOCHS_PER_STEP {
            // What arrives was sent before the brake.
        } else if bound || flat {
            if next.blind {
                self.trains.doubt(epoch.rate.scaled(1.0 / self.payload()));
            }
            self.saturate(now, epoch, base);
        } else if epoch.rtt > base + base.scaled(CROWDED) {
            // What gets through a standing queue is all that the path has for us: slow start would
            // go on to overflow it. The pace counts from the next packet on; of a window, what
            // was advertised once stays.
            self.limits.set(now, self.limits.window_for(epoch.rate, epoch.rtt), epoch.rate);
            self.state = State::Ramping(Ramp {
                braked: true,
                blind: next.blind,
                flat: next.flat,
                ..Ramp::new(epoch.rate)
            });
        }
    }
}
