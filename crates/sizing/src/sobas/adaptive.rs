use sweetspot_units::{Bytes, Duration, Rate, Time};

use super::congestion::CongestionCheck;
use super::epoch::{Epoch, Epochs};
use super::hold::Hold;
use super::limits::Limits;
use super::manner::Manner;
use super::round_trip::RoundTrip;
use super::trains::Trains;
use crate::{Controller, EventKind, Output, Phase, Probe, Setting, Train};

/// Share of the trains' capacity at which the sender is paced while its window opens. Below
/// capacity no queue forms however fast the window grows; a tenth is what the trains err by.
const RAMP_PACING: f64 = 0.9;

const MANNER: Manner = Manner::PROBED;

/// Growth of the window in the first step beyond what is known to fit, well inside the smallest
/// buffer worth serving, a tenth of a BDP.
pub(super) const FIRST_STEP: f64 = 1.04;

/// Share of what the limits allow at which the transfer has caught up with them.
pub(super) const REACHED: f64 = 0.95;

/// Growth per epoch below which the rate no longer rises: slow start doubles it in a round trip,
/// with delayed ACKs and three round trips to a short path's epoch still by more than this.
pub(super) const RISING: f64 = 1.1;

/// Share of the trains' capacity at which a transfer has the path to itself.
pub(super) const ALONE: f64 = 0.95;

/// Epochs that a change of window needs to show: one for the window to reach the sender and its
/// data to come back, one to measure.
pub(super) const EPOCHS_PER_STEP: u32 = 2;

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
    /// The window opens up to the limits, and these step by step: the epochs since the last step,
    /// and the last epoch's rate.
    Ramping { epochs: u32, last: Rate },
    /// At the sweet spot.
    Holding(Hold),
    /// Left to congestion control.
    Congested,
}

impl Sobas {
    /// A controller before the first byte.
    pub fn new(setting: &Setting) -> Sobas {
        Sobas {
            setting: *setting,
            state: State::Measuring,
            trains: Trains::new(setting),
            epochs: Epochs::new(MANNER.shortest_epoch),
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
            State::Ramping { epochs, last } => self.ramp(now, &epoch, base, epochs + 1, last),
            State::Holding(hold) => self.hold(now, &epoch, base, hold),
            State::Congested if !self.congestion.is_congested() && !epoch.stalled => {
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
            self.state = State::Ramping { epochs: 0, last: Rate::ZERO };
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

    fn ramp(&mut self, now: Time, epoch: &Epoch, base: Duration, epochs: u32, last: Rate) {
        self.state = State::Ramping { epochs, last: epoch.rate };
        if epoch.stalled {
            return;
        }
        let reached =
            self.limits.offered(base).map(|offered| epoch.rate >= offered.scaled(REACHED));
        // A queue may be others', and the rate may have to rise yet.
        let bound = self.limits.offered(epoch.rtt).is_some_and(|o| epoch.rate >= o.scaled(REACHED));
        let flat = epoch.rate <= last.scaled(RISING);
        let queue_stands = epoch.rtt > base + MANNER.queue_aim(base) && (bound || flat);
        match reached {
            _ if queue_stands => self.saturate(now, epoch, base),
            // Without a capacity estimate the pace comes from what arrives.
            None => self.limits.pace(epoch.rate.scaled(BLIND_STEP)),
            // The limits were reached and no queue stands: the path may have more to give.
            Some(true) if epochs >= EPOCHS_PER_STEP => {
                let known = self
                    .limits
                    .window_for(epoch.rate, base + MANNER.queue_aim(base))
                    .min(self.limits.window_or_max());
                self.limits.steer(now, known.scaled(FIRST_STEP), base);
                self.state = State::Ramping { epochs: 0, last: epoch.rate };
            }
            Some(_) => {}
        }
    }

    fn saturate(&mut self, now: Time, epoch: &Epoch, base: Duration) {
        self.limits.emit(now, EventKind::Saturated { rate: epoch.rate, rtt: epoch.rtt });
        self.limits.steer(
            now,
            self.limits.window_for(epoch.rate, base + MANNER.queue_aim(base)),
            base,
        );
        self.state = State::Holding(Hold::new(MANNER, epoch.rate, base));
    }

    fn hold(&mut self, now: Time, epoch: &Epoch, base: Duration, mut hold: Hold) {
        let shared = self.capacity().is_some_and(|c| epoch.rate < c.scaled(ALONE));
        hold.steer(&mut self.limits, now, epoch, base, shared);
        self.state = State::Holding(hold);
    }

    /// Tells three kinds of loss apart; whether this one called for action. Behind our own queue
    /// and at our own limits it is an overflow. Behind a queue while congestion control holds us
    /// back, with probes lost too, the path is congested by others. Without a queue it is
    /// random, and no reason to go slower.
    fn reacts_to_loss(&mut self, now: Time, epoch: &Epoch, base: Duration) -> bool {
        let queue_rose = epoch.highest_rtt > base + MANNER.queue_aim(base);
        let bound = self.limits.bind(epoch.rate, epoch.rtt);
        if !queue_rose || self.state == State::Congested {
            return false;
        }
        if bound {
            let mut hold = match self.state {
                State::Holding(hold) if hold.is_settling() => return false,
                State::Holding(hold) => hold,
                _ => Hold::new(MANNER, epoch.rate, base),
            };
            hold.retreat(&mut self.limits, now, epoch, base);
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
            State::Ramping { .. } => Phase::Ramping,
            State::Holding(_) => Phase::Holding,
            State::Congested => Phase::Congested,
        }
    }
}
