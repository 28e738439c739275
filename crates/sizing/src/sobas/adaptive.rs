use sweetspot_units::{Bytes, Duration, Rate, Time};

use super::congestion::CongestionCheck;
use super::epoch::{Epoch, Epochs};
use super::herald::Herald;
use super::hold::Hold;
use super::limits::Limits;
use super::manner::Manner;
use super::round_trip::RoundTrip;
use super::sharing::{Move, Sharing};
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

/// Share of the highest rate of late that is kept from epoch to epoch: that of a transfer which
/// lost a window of data is forgotten by when it has recovered.
const KEPT: f64 = 0.9;

/// Share of the path's capacity below which a transfer is not what makes a queue stand.
const MATTERS: f64 = 0.125;

/// ... and from which, with no probe lost for long, it has the path so much to itself that
/// congestion by others is over.
const DOMINANT: f64 = 0.5;

/// Share of the window that the sender's congestion window has where the window is the limit.
const BOUND: f64 = 0.95;

/// The same where a loss has cut it.
const HALVED: f64 = 0.75;

/// Epochs in a row that others must have shown themselves, or have gone, to be believed.
const CONVINCED: u32 = 8;

/// Epochs until a climb is tried again that did not pay, doubled each time.
const FIRST_REST: u32 = 128;
const LONGEST_REST: u32 = 2048;

/// Pacing over what the window allows behind a standing queue.
const SHARED_PACING: f64 = 1.0;

/// Share of a round trip that the queue rises to where others' bursts are to be reckoned with
/// while the window opens.
const CROWDED: f64 = 0.125;

/// Growth of the pace per epoch then: what slow start adds with delayed acknowledgements, without
/// its bursts.
const CAREFUL_STEP: f64 = 1.5;

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
    herald: Option<Herald>,
    /// The rate of late: the last epochs' highest, forgotten within a few.
    lately: Rate,
    /// Epochs in a row that spoke for the other of holding and sharing.
    convincing: u32,
    /// Epochs to be spent holding, and the next time that a climb does not pay.
    rest: u32,
    next_rest: u32,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum State {
    /// The trains are out.
    Measuring,
    /// The window opens up to the limits, and these step by step.
    Ramping(Ramp),
    /// At the sweet spot.
    Holding(Hold),
    /// At the sweet spot of a path that others share.
    Sharing(Sharing),
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
    /// Whether others' bursts were seen, so that the pace grows with what arrives.
    crowded: bool,
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
            herald: None,
            lately: Rate::ZERO,
            convincing: 0,
            rest: 0,
            next_rest: FIRST_REST,
        }
    }

    fn advance(&mut self, now: Time) {
        self.limits.handle_timeout(now);
        if self.state == State::Measuring {
            self.measure(now);
        }
        self.attend_herald(now);
        let Some(epoch) = self.epochs.poll_epoch(now, &mut self.round_trip) else { return };
        let Some(base) = self.round_trip.base() else { return };
        if let State::Sharing(sharing) = &mut self.state {
            sharing.handle_queue(epoch.highest_rtt.saturating_sub(base));
        }
        self.lately = epoch.rate.max(self.lately.scaled(KEPT));
        if epoch.losses > 0 && self.reacts_to_loss(now, &epoch, base) {
            return;
        }
        if self.herald.is_some() {
            return;
        }
        match self.state {
            State::Measuring => {}
            State::Ramping(ramp) => self.ramp(now, &epoch, base, ramp),
            State::Holding(hold) => self.hold(now, &epoch, base, hold),
            State::Sharing(sharing) => self.share(now, &epoch, base, sharing),
            State::Congested
                if !self.congestion.is_congested()
                    && !epoch.stalled
                    && self.has_share(DOMINANT) =>
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
            self.state =
                State::Ramping(Ramp { epochs: 0, last: Rate::ZERO, braked: false, crowded: false });
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
        let free = self.capacity().map_or(Rate::MAX, |capacity| capacity.scaled(RAMP_PACING));
        let careful = epoch.rate.scaled(if self.matters() { BLIND_STEP } else { CAREFUL_STEP });
        let crowded = epoch.highest_rtt > base + base.scaled(CROWDED) && careful < free;
        if crowded || ramp.crowded {
            self.limits.pace(if crowded { careful } else { free });
            self.state = State::Ramping(Ramp { crowded, ..next });
        }
        if epoch.rtt > base + MANNER.queue_aim(base) && self.matters() {
            return self.ramp_behind_queue(now, epoch, base, ramp.last, Ramp { crowded, ..next });
        }
        match self.limits.offered(base) {
            _ if crowded => {}
            // Without a capacity estimate the pace comes from what arrives.
            None => self.limits.pace(epoch.rate.scaled(BLIND_STEP)),
            // The limits were reached and no queue stands: the path may have more to give.
            Some(offered)
                if epoch.rate >= offered.scaled(REACHED) && next.epochs >= EPOCHS_PER_STEP =>
            {
                let known = self
                    .limits
                    .window_for(epoch.rate, base + MANNER.queue_aim(base))
                    .min(self.limits.window_or_max());
                self.limits.steer(now, known.scaled(FIRST_STEP), base);
                self.state = State::Ramping(Ramp {
                    epochs: 0,
                    last: epoch.rate,
                    braked: false,
                    crowded: false,
                });
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
        last: Rate,
        next: Ramp,
    ) {
        let bound = !next.crowded
            && self.limits.offered(epoch.rtt).is_some_and(|o| epoch.rate >= o.scaled(REACHED));
        let flat = epoch.rate <= last.scaled(RISING);
        if next.braked && next.epochs < EPOCHS_PER_STEP {
            // What arrives was sent before the brake.
        } else if bound || flat {
            self.saturate(now, epoch, base);
        } else if epoch.rtt > base + base.scaled(CROWDED) {
            // What gets through a standing queue is all that the path has for us: slow start would
            // go on to overflow it. The pace counts from the next packet on; of a window, what
            // was advertised once stays.
            self.limits.set(now, self.limits.window_for(epoch.rate, epoch.rtt), epoch.rate);
            self.state =
                State::Ramping(Ramp { epochs: 0, last: epoch.rate, braked: true, crowded: false });
        }
    }

    /// Whether the transfer's rate is large enough for a queue to be its own.
    fn matters(&self) -> bool {
        self.has_share(MATTERS)
    }

    /// Whether the transfer's rate of late is this share of the path's capacity.
    fn has_share(&self, share: f64) -> bool {
        self.capacity().is_none_or(|capacity| self.lately >= capacity.scaled(share))
    }

    /// Whether nobody else seems to use the path. Trains between others' packets come out too
    /// slow: where others have shown themselves, the fastest train counts.
    fn is_alone(&self, epoch: &Epoch) -> bool {
        let payload = self.setting.mss.as_f64() / self.setting.packet.as_f64();
        let capacity = match self.state {
            State::Sharing(_) => self.trains.fastest(),
            _ => self.trains.estimate(),
        };
        capacity.is_none_or(|c| epoch.rate >= c.scaled(payload * ALONE))
    }

    /// Whether the window, and not congestion control, is what holds the transfer back.
    fn window_binds(&self, epoch: &Epoch) -> bool {
        match epoch.cwnd {
            Some(cwnd) => cwnd >= self.limits.window_or_max().scaled(BOUND),
            None => self.limits.bind(epoch.rate, epoch.rtt),
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
        let shared = !epoch.stalled && !self.is_alone(epoch) && self.window_binds(epoch);
        self.convincing = if shared { self.convincing + 1 } else { 0 };
        self.rest = self.rest.saturating_sub(1);
        let saturated = epoch.rtt > base + MANNER.queue_aim(base) / 2;
        if self.convincing >= CONVINCED && saturated && self.rest == 0 {
            self.convincing = 0;
            self.state = State::Sharing(Sharing::new(self.limits.window_or_max()));
            return;
        }
        if !self.is_alone(epoch) && !self.window_binds(epoch) {
            return;
        }
        hold.steer(&mut self.limits, now, epoch, base, false);
        self.state = State::Holding(hold);
    }

    fn share(&mut self, now: Time, epoch: &Epoch, base: Duration, mut sharing: Sharing) {
        let window = self.limits.window_or_max();
        let alone = self.is_alone(epoch);
        self.convincing = if alone { self.convincing + 1 } else { 0 };
        if self.convincing >= CONVINCED {
            self.convincing = 0;
            self.rest = FIRST_REST;
            self.state = State::Holding(Hold::new(MANNER, epoch.rate, base));
            return;
        }
        let Some(capacity) = self.trains.fastest() else { return };
        if !alone && !self.window_binds(epoch) {
            sharing.pause();
            let halved = |cwnd: Bytes| cwnd < window.scaled(HALVED);
            if !sharing.is_full() && epoch.cwnd.is_some_and(halved) {
                // What cut the congestion window was a loss.
                self.overflow(now, epoch, sharing);
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
                self.limits.pause(herald.resumes());
                self.herald = Some(herald);
            }
            Move::Leave(window) => {
                self.limits.steer(now, window, base);
                self.rest = self.next_rest;
                self.next_rest = (self.next_rest * 2).min(LONGEST_REST);
                self.state = State::Holding(Hold::new(MANNER, epoch.rate, base));
                return;
            }
        }
        self.state = State::Sharing(sharing);
    }

    /// Sets the window behind a standing queue, and the pacing that just lets it circulate: after
    /// a pause, what fills an empty path would overshoot.
    fn pace_shared(&mut self, now: Time, epoch: &Epoch, window: Bytes) {
        self.limits.set(now, window, (window / epoch.rtt).scaled(SHARED_PACING));
    }

    /// Hears what a herald found.
    fn attend_herald(&mut self, now: Time) {
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

    /// Tells three kinds of loss apart; whether this one called for action. Behind our own queue
    /// and at our own limits it is an overflow. Behind a queue while congestion control holds us
    /// back, with probes lost too, the path is congested by others. Without a queue it is
    /// random, and no reason to go slower.
    fn reacts_to_loss(&mut self, now: Time, epoch: &Epoch, base: Duration) -> bool {
        let queue_rose = epoch.highest_rtt > base + MANNER.queue_aim(base);
        let heralded = match self.state {
            State::Sharing(sharing) => self.herald.is_some() || sharing.is_deaf(),
            _ => false,
        };
        if !queue_rose || heralded || self.state == State::Congested {
            return false;
        }
        let others = self.congestion.is_congested() && self.congestion.losses() >= CONGESTED_LOSSES;
        if self.matters() && (self.is_alone(epoch) || self.window_binds(epoch)) {
            return self.retreat(now, epoch, base);
        }
        let shared = matches!(self.state, State::Sharing(_));
        if others && !shared || !self.matters() {
            self.limits.lift(now);
            self.limits.emit(now, EventKind::Congested);
            self.state = State::Congested;
            return true;
        }
        false
    }

    /// The transfer overflowed the buffer at its own limits. Whether that called for action.
    fn retreat(&mut self, now: Time, epoch: &Epoch, base: Duration) -> bool {
        let mut hold = match self.state {
            State::Holding(hold) if hold.is_settling() => return false,
            State::Sharing(sharing) if sharing.is_settling() && sharing.is_full() => return false,
            State::Sharing(sharing) => {
                self.overflow(now, epoch, sharing);
                return true;
            }
            State::Holding(hold) => hold,
            _ => Hold::new(MANNER, epoch.rate, base),
        };
        // What comes after the loss says nothing of what the path bears.
        let epoch = Epoch { rate: self.lately, ..*epoch };
        hold.retreat(&mut self.limits, now, &epoch, base);
        self.state = State::Holding(hold);
        true
    }

    /// Goes on after an overflow on a path that others share.
    fn overflow(&mut self, now: Time, epoch: &Epoch, mut sharing: Sharing) {
        self.limits.emit(now, EventKind::Overflowed { rate: epoch.rate });
        let window = sharing.handle_overflow(self.limits.window_or_max());
        self.pace_shared(now, epoch, window);
        self.state = State::Sharing(sharing);
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
        if let Some(herald) = &mut self.herald {
            herald.handle_train(train);
            return self.advance(now);
        }
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
        let herald = self.herald.as_ref().map(Herald::poll_timeout);
        [trains, herald, self.limits.poll_timeout(), self.epochs.poll_timeout()]
            .into_iter()
            .flatten()
            .min()
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.limits.poll_output()
    }

    fn phase(&self) -> Phase {
        match self.state {
            State::Measuring => Phase::Measuring,
            State::Ramping(_) => Phase::Ramping,
            State::Holding(_) | State::Sharing(_) => Phase::Holding,
            State::Congested => Phase::Congested,
        }
    }
}
