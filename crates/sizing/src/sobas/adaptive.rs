use sweetspot_units::{Bytes, Duration, Rate, Time};

use super::congestion::CongestionCheck;
use super::epoch::{Epoch, Epochs};
use super::hold::{Allowed, Hold, KNOWN_STEP, Move};
use super::limits::Limits;
use super::round_trip::RoundTrip;
use super::trains::Trains;
use crate::{Controller, EventKind, Output, Phase, Probe, Setting, Train};

/// Share of the trains' capacity at which the sender is paced while its window opens. Below
/// capacity no queue forms however fast the window grows; a tenth is what the trains err by.
const RAMP_PACING: f64 = 0.9;

/// The standing queue aimed for, as a share of the base round trip. It keeps the link busy
/// through the sender's and receiver's hesitations and costs this share of delay.
const QUEUE_SHARE: f64 = 0.03;

/// ... and at least this much: below it, neither probes nor the kernel's timers see a queue.
const QUEUE_LEAST: Duration = Duration::from_millis(1);

/// Growth of the window in the first step beyond what is known to fit, well inside the smallest
/// buffer worth serving, a tenth of a BDP.
pub(super) const FIRST_STEP: f64 = 1.04;

/// Share of what the limits allow at which the transfer has caught up with them.
pub(super) const REACHED: f64 = 0.95;

/// The same where it is to be judged whether the limits or congestion control bind.
const BOUND: f64 = 0.85;

/// Growth per epoch below which the rate no longer rises: slow start doubles it in a round trip,
/// with delayed ACKs and three round trips to a short path's epoch still by more than this.
const RISING: f64 = 1.1;

/// Share of the trains' capacity at which a transfer has the path to itself.
const ALONE: f64 = 0.95;

/// Epochs that a change of window needs to show: one for the window to reach the sender and its
/// data to come back, one to measure.
pub(super) const EPOCHS_PER_STEP: u32 = 2;

/// After an overflow, the share of the window that is kept at most, and for how long.
const AFTER_OVERFLOW: f64 = 0.95;
const OVERFLOW_FORGOTTEN: Duration = Duration::from_secs(10);

/// The same where others share the path: their bursts need room, and a loss from a long window
/// takes congestion avoidance minutes to make up for.
const AFTER_SHARED_OVERFLOW: f64 = 0.85;
const SHARED_OVERFLOW_FORGOTTEN: Duration = Duration::from_secs(300);

/// Share of the path's capacity below which a transfer that is still opening its window is not
/// what made a queue stand.
const MATTERS: f64 = 0.125;

/// Lost probes that make a path congested rather than unlucky.
const CONGESTED_LOSSES: u64 = 2;

/// Growth per epoch where there is no capacity estimate: a round trip and a quarter of what
/// arrives, so that the window never runs far ahead of the path.
const BLIND_STEP: f64 = 1.25;

/// SOBAS, improved: finds the window at which the path is full and its buffer is not, holds it,
/// and keeps watching.
///
/// - The sender is paced just below the trains' estimate while its window opens, so that slow
///   start cannot overflow a small buffer.
/// - Then the window grows in small steps for as long as no queue stands; where one does, the
///   path is saturated, and the window is R x T_base plus a small queue.
/// - It re-opens when the queue vanishes, tightens when one stands, stays below what overflowed,
///   and leaves a path that loses packets by itself to congestion control.
#[derive(Debug)]
pub struct Sobas {
    setting: Setting,
    state: State,
    trains: Trains,
    epochs: Epochs,
    round_trip: RoundTrip,
    congestion: CongestionCheck,
    /// Segments that the sender said it retransmitted, since the connection began.
    retransmitted: u64,
    limits: Limits,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum State {
    /// The trains are out.
    Measuring,
    /// The window opens up to the limits, and these step by step.
    Ramping(Ramp),
    /// At the sweet spot.
    Holding(Hold),
    /// Left to congestion control.
    Congested,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Ramp {
    /// Epochs since the limits last changed.
    epochs: u32,
    /// The last epoch's rate.
    last: Rate,
    /// Whether they changed because a queue stood.
    braked: bool,
}

/// The queue that a path of round trip `base` is to hold, as the time it takes to drain.
pub(super) fn queue_aim(base: Duration) -> Duration {
    base.scaled(QUEUE_SHARE).max(QUEUE_LEAST)
}

impl Sobas {
    /// A controller before the first byte.
    pub fn new(setting: &Setting) -> Sobas {
        Sobas {
            setting: *setting,
            state: State::Measuring,
            trains: Trains::new(setting),
            epochs: Epochs::default(),
            round_trip: RoundTrip::default(),
            congestion: CongestionCheck::default(),
            retransmitted: 0,
            limits: Limits::new(setting),
        }
    }

    fn advance(&mut self, now: Time) {
        if self.state == State::Measuring {
            self.measure(now);
        }
        let Some(epoch) = self.epochs.poll_epoch(now, &mut self.round_trip) else { return };
        let Some(base) = self.round_trip.base() else { return };
        if epoch.losses > 0 && self.reacts_to_loss(now, &epoch, base) {
            return;
        }
        match self.state {
            State::Measuring => {}
            State::Ramping(ramp) => self.ramp(now, &epoch, base, ramp),
            State::Holding(hold) => self.hold(now, &epoch, base, hold),
            State::Congested
                if !self.congestion.is_congested() && !epoch.stalled && self.is_alone(&epoch) =>
            {
                self.saturate(now, &epoch, base);
            }
            State::Congested => {}
        }
    }

    /// Asks for the trains, until they are in.
    fn measure(&mut self, now: Time) {
        while let Some(request) = self.trains.poll_request(now) {
            self.limits.push(request);
        }
        if self.trains.are_over(now) {
            if let Some((rate, rtt)) = self.trains.estimate().zip(self.round_trip.base()) {
                self.limits.emit(now, EventKind::CapacityEstimated { rate, rtt });
            }
            self.state = State::Ramping(Ramp { epochs: 0, last: Rate::ZERO, braked: false });
        }
    }

    /// The trains' estimate as payload.
    fn capacity(&self) -> Option<Rate> {
        let payload = self.setting.mss.as_f64() / self.setting.packet.as_f64();
        self.trains.estimate().map(|rate| rate.scaled(payload))
    }

    /// Limits window and pacing by what the trains said so far, before slow start can overflow.
    fn limit_by_estimate(&mut self, now: Time) {
        let estimate = self.trains.estimate().zip(self.capacity());
        if let Some(((rate, payload), rtt)) = estimate.zip(self.round_trip.base()) {
            self.limits.set(now, rate * rtt, payload.scaled(RAMP_PACING));
        }
    }

    fn ramp(&mut self, now: Time, epoch: &Epoch, base: Duration, ramp: Ramp) {
        let next = Ramp { epochs: ramp.epochs + 1, last: epoch.rate, ..ramp };
        self.state = State::Ramping(next);
        if epoch.stalled {
            return;
        }
        let queue_stands = epoch.rtt > base + queue_aim(base)
            && self.capacity().is_none_or(|c| epoch.rate >= c.scaled(MATTERS));
        if queue_stands {
            return self.ramp_behind_queue(now, epoch, base, ramp, next);
        }
        match self.limits.offered(base) {
            // Without a capacity estimate the pace comes from what arrives.
            None => self.limits.pace(epoch.rate.scaled(BLIND_STEP)),
            // The limits were reached and no queue stands: the path may have more to give.
            Some(offered)
                if epoch.rate >= offered.scaled(REACHED) && next.epochs >= EPOCHS_PER_STEP =>
            {
                let known = self
                    .limits
                    .window_for(epoch.rate, base + queue_aim(base))
                    .min(self.limits.window_or_max());
                let paced = self.capacity().map(|c| c.scaled(RAMP_PACING));
                let within = paced.is_some_and(|paced| epoch.rate.scaled(KNOWN_STEP) < paced);
                let step = if within { KNOWN_STEP } else { FIRST_STEP };
                self.limits.steer(now, known.scaled(step), base);
                self.state = State::Ramping(Ramp { epochs: 0, last: epoch.rate, braked: false });
            }
            Some(_) => {}
        }
    }

    /// A queue stands while the window opens: it may be others', and the rate may have to rise
    /// yet.
    fn ramp_behind_queue(
        &mut self,
        now: Time,
        epoch: &Epoch,
        base: Duration,
        ramp: Ramp,
        next: Ramp,
    ) {
        let bound = self.limits.offered(epoch.rtt).is_some_and(|o| epoch.rate >= o.scaled(REACHED));
        let flat = epoch.rate <= ramp.last.scaled(RISING);
        let limited = bound || self.is_alone(epoch) || self.window_binds(epoch);
        if next.braked && next.epochs < EPOCHS_PER_STEP {
            // What arrives was sent before the brake.
        } else if bound || (flat && limited) {
            self.saturate(now, epoch, base);
        } else if !flat {
            // What gets through a standing queue is all that the path has for us: slow start would
            // go on to overflow it. The pace counts from the next packet on; of a window, what
            // was advertised once stays.
            self.limits.set(now, self.limits.window_for(epoch.rate, epoch.rtt), epoch.rate);
            self.state = State::Ramping(Ramp { epochs: 0, last: epoch.rate, braked: true });
        }
    }

    /// Whether nobody else seems to use the path. Trains between others' packets come out too
    /// slow: where a longer queue has paid, others are there, and the fastest train counts.
    fn is_alone(&self, epoch: &Epoch) -> bool {
        let payload = self.setting.mss.as_f64() / self.setting.packet.as_f64();
        let capacity = match self.state {
            State::Holding(hold) if hold.has_paid() => self.trains.fastest(),
            _ => self.trains.estimate(),
        };
        capacity.is_none_or(|c| epoch.rate >= c.scaled(payload * ALONE))
    }

    /// Whether the window is what holds the transfer back, and not congestion control.
    fn window_binds(&self, epoch: &Epoch) -> bool {
        match epoch.cwnd {
            Some(cwnd) => cwnd >= self.limits.window_or_max().scaled(REACHED),
            None => self.limits.offered(epoch.rtt).is_some_and(|o| epoch.rate >= o.scaled(BOUND)),
        }
    }

    fn saturate(&mut self, now: Time, epoch: &Epoch, base: Duration) {
        self.limits.emit(now, EventKind::Saturated { rate: epoch.rate, rtt: epoch.rtt });
        self.limits.steer(now, self.limits.window_for(epoch.rate, base + queue_aim(base)), base);
        self.state = State::Holding(Hold::new(epoch.rate, base));
    }

    fn hold(&mut self, now: Time, epoch: &Epoch, base: Duration, mut hold: Hold) {
        let window = self.limits.window_or_max();
        let allowed = Allowed {
            window,
            without_queue: self.limits.offered(base).unwrap_or(Rate::MAX),
            with_queue: self.limits.offered(epoch.rtt).unwrap_or(Rate::MAX),
            shared: !self.is_alone(epoch),
            congestion: !self.is_alone(epoch) && !self.window_binds(epoch),
            hesitation: self.limits.hesitation(epoch.rate),
        };
        let calm = hold.is_calm();
        match hold.handle_epoch(epoch, base, &allowed) {
            Move::Stay => {}
            Move::Grow(factor) => {
                let grew = self.limits.steer(now, window.scaled(factor), base);
                if !grew {
                    hold.handle_ceiling();
                } else if calm {
                    self.limits.emit(now, EventKind::Reopened);
                }
            }
            Move::Tighten(queue) => {
                let window = self.limits.window_for(epoch.rate, base + queue).min(window);
                self.limits.steer(now, window, base);
                self.limits.emit(now, EventKind::Tightened { window });
            }
            Move::Segment => {
                self.limits.steer(now, window + self.setting.mss, base);
            }
            Move::Set(window) => {
                self.limits.steer(now, window, base);
            }
        }
        self.state = State::Holding(hold);
    }

    /// Tells three kinds of loss apart; whether this one called for action. Behind our own queue
    /// and at our own limits it is an overflow. Behind a queue while congestion control holds us
    /// back, with probes lost too, the path is congested by others. Without a queue it is
    /// random, and no reason to go slower.
    fn reacts_to_loss(&mut self, now: Time, epoch: &Epoch, base: Duration) -> bool {
        let queue_rose = epoch.highest_rtt > base + queue_aim(base);
        let bound = self.is_alone(epoch) || self.window_binds(epoch);
        if !queue_rose || self.state == State::Congested {
            return false;
        }
        if bound {
            let mut hold = match self.state {
                State::Holding(hold) if hold.is_settling() => return false,
                State::Holding(hold) => hold,
                _ => Hold::new(epoch.rate, base),
            };
            self.limits.emit(now, EventKind::Overflowed { rate: epoch.rate });
            let window = self.limits.window_or_max();
            if self.is_alone(epoch) {
                self.limits.forbid(now, window.scaled(AFTER_OVERFLOW), OVERFLOW_FORGOTTEN);
                let window = self.limits.window_for(epoch.rate, base + hold.handle_overflow(base));
                self.limits.steer(now, window, base);
            } else {
                hold.handle_shared_overflow(epoch.highest_rtt.saturating_sub(base));
                let window = window.scaled(AFTER_SHARED_OVERFLOW);
                // Slow start overflows at a window that says little of the one that fits.
                let forgotten = match self.state {
                    State::Holding(_) => SHARED_OVERFLOW_FORGOTTEN,
                    _ => OVERFLOW_FORGOTTEN,
                };
                self.limits.forbid(now, window, forgotten);
                self.limits.steer(now, window, base);
            }
            self.state = State::Holding(hold);
            return true;
        }
        if self.congestion.is_congested() && self.congestion.losses() >= CONGESTED_LOSSES {
            self.limits.lift(now);
            self.limits.emit(now, EventKind::Congested);
            self.state = State::Congested;
            return true;
        }
        false
    }
}

impl Controller for Sobas {
    fn handle_data(&mut self, now: Time, bytes: Bytes, unread: Bytes) {
        self.trains.handle_data(now);
        self.epochs.handle_data(now, bytes, unread, self.limits.window_or_max());
        self.advance(now);
    }

    fn handle_probe(&mut self, now: Time, probe: &Probe) {
        self.round_trip.handle_sample(probe.rtt);
        self.trains.handle_probe(now);
        self.congestion.handle_probe(probe);
        self.epochs.handle_losses(probe.forward_lost);
        if let Some(sender) = probe.sender {
            self.epochs.handle_losses(sender.retransmitted.saturating_sub(self.retransmitted));
            self.retransmitted = self.retransmitted.max(sender.retransmitted);
            self.epochs.handle_cwnd(sender.cwnd);
            if sender.starved {
                self.epochs.handle_starvation();
            }
        }
        self.advance(now);
    }

    fn handle_kernel_rtt(&mut self, now: Time, rtt: Duration) {
        self.round_trip.handle_sample(rtt);
        self.advance(now);
    }

    fn handle_train(&mut self, now: Time, train: &Train) {
        let rtt = self.round_trip.base().unwrap_or(Duration::MAX);
        self.trains.handle_train(now, train, rtt);
        if self.state == State::Measuring {
            self.limit_by_estimate(now);
        }
        self.advance(now);
    }

    fn handle_window(&mut self, _now: Time, _advertised: Bytes) {}

    fn handle_timeout(&mut self, now: Time) {
        self.advance(now);
    }

    fn poll_timeout(&self) -> Option<Time> {
        let trains = match self.state {
            State::Measuring => self.trains.poll_timeout(),
            _ => None,
        };
        [trains, self.epochs.poll_timeout()].into_iter().flatten().min()
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.limits.poll_output()
    }

    fn phase(&self) -> Phase {
        match self.state {
            State::Measuring => Phase::Measuring,
            State::Ramping(_) => Phase::Ramping,
            State::Holding(_) => Phase::Holding,
            State::Congested => Phase::Congested,
        }
    }
}
