mod congested;
mod losses;
mod ramp;
mod share;

use ramp::Ramp;
use sweetspot_units::{Bytes, Duration, Rate, Time};

use super::congestion::CongestionCheck;
use super::epoch::{Epoch, Epochs};
use super::following::Following;
use super::herald::Herald;
use super::hold::{Hold, may_be_jitter};
use super::limits::Limits;
use super::manner::Manner;
use super::round_trip::RoundTrip;
use super::sharing::Sharing;
use super::trains::Trains;
use crate::{Controller, EventKind, Output, Phase, Probe, Setting, Train};

/// Share of the trains' capacity at which the sender is paced while its window opens. Below
/// capacity no queue forms however fast the window grows; a tenth is what the trains err by.
const RAMP_PACING: f64 = 0.9;

/// How much more a round trip varies than the first few samples show: of six evenly spread ones the
/// range is expected to be 5/7 of the whole.
const UNSEEN: f64 = 1.4;

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
const ALONE: f64 = 0.95;

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

/// Share of the longest round trip's excess that the shortest of several epochs has where it is
/// jitter: each packet waits for the latest of many. A queue of others comes and goes.
const STEADY: f64 = 0.25;

/// Epochs in a row that others must have shown themselves, or have gone, to be believed.
const CONVINCED: u32 = 8;

/// Epochs until a climb is tried again that did not pay, doubled each time.
const FIRST_REST: u32 = 128;
const LONGEST_REST: u32 = 2048;

/// SOBAS, improved: finds the window at which the path is full and its buffer is not, holds it,
/// and keeps watching.
///
/// - The sender is paced just below the trains' estimate while its window opens, so that slow
///   start cannot overflow a small buffer.
/// - Then the window grows in small steps for as long as no queue stands; where one does, the
///   path is saturated, and the window is R x T_base plus a small queue.
/// - Where others share the path and yield to a queue, the window climbs to the longest one that
///   pays; heralds find out where the buffer ends.
/// - Where a queue stands before it could have made one, it leaves the path to congestion control.
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
    /// How far the round trip varies by itself, where that showed.
    jitter: Duration,
    /// Whether the rate follows the window that is held.
    following: Following,
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
            jitter: Duration::ZERO,
            following: Following::default(),
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
        if matches!(self.state, State::Holding(_) | State::Sharing(_))
            && self.was_too_small(&epoch, base)
        {
            return self.reopen(now, &epoch);
        }
        match self.state {
            State::Measuring => {}
            State::Ramping(ramp) => self.ramp(now, &epoch, base, ramp),
            State::Holding(hold) => self.hold(now, &epoch, base, hold),
            State::Sharing(sharing) => self.share(now, &epoch, base, sharing),
            State::Congested => self.compete(now, &epoch),
        }
    }

    /// Asks for the trains, until they are in.
    fn measure(&mut self, now: Time) {
        while let Some(request) = self.trains.poll_request(now) {
            self.limits.push(request);
        }
        if self.trains.are_over(now) {
            if self.trains.are_blurred() {
                // Nothing is known of the capacity: the window opens with what arrives.
                self.expect_jitter(self.round_trip.spread().scaled(UNSEEN));
                self.trains.forget();
                self.limits.lift(now);
            }
            if let Some((rate, rtt)) = self.trains.estimate().zip(self.round_trip.base()) {
                self.limits.emit(now, EventKind::CapacityEstimated { rate, rtt });
            }
            self.state = State::Ramping(Ramp::new(Rate::ZERO));
        }
    }

    /// The trains' estimate as payload.
    fn capacity(&self) -> Option<Rate> {
        self.trains.estimate().map(|rate| rate.scaled(self.payload()))
    }

    /// Limits window and pacing by what the trains said so far, before slow start can overflow.
    fn limit_by_estimate(&mut self, now: Time) {
        let estimate = self.trains.estimate().zip(self.capacity());
        if let Some(((rate, payload), rtt)) = estimate.zip(self.round_trip.base()) {
            self.limits.set(now, rate * rtt, payload.scaled(RAMP_PACING));
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

    /// Whether nobody else seems to use the path.
    fn is_alone(&self, epoch: &Epoch) -> bool {
        self.unshared().is_none_or(|c| epoch.rate >= c.scaled(self.payload() * ALONE))
    }

    /// The path's capacity as far as it tells whether others share it. Two trains must say that
    /// they do, or the transfer be faster than those two; then the one that met the fewest of
    /// their packets counts.
    fn unshared(&self) -> Option<Rate> {
        match self.state {
            State::Sharing(_) => self.trains.fastest(),
            _ => self.trains.agreed_beside(self.lately.scaled(1.0 / self.payload())),
        }
    }

    /// The queue that the path is to hold, and what may look like one.
    fn aim(&self, base: Duration) -> Duration {
        MANNER.queue_aim(base).max(self.jitter)
    }

    /// Whether a round trip of `rtt` shows more queue than that.
    fn has_queue(&self, rtt: Duration, base: Duration) -> bool {
        rtt > base + self.aim(base)
    }

    /// Share of a packet that is payload.
    fn payload(&self) -> f64 {
        self.setting.mss.as_f64() / self.setting.packet.as_f64()
    }

    /// Whether a queue stands. Both the probes and the transfer itself must say so: a window that
    /// comes round in W / R = T_base has none to wait in, however late the probes' answers come,
    /// and is what keeps the rate low.
    fn is_saturated(&self, epoch: &Epoch, base: Duration) -> bool {
        let slack = base + self.aim(base) / 2;
        epoch.rtt > slack && self.limits.offered(slack).is_some_and(|o| epoch.rate < o)
    }

    /// Whether the window, and not congestion control, is what holds the transfer back.
    fn window_binds(&self, epoch: &Epoch) -> bool {
        match epoch.cwnd {
            Some(cwnd) => cwnd >= self.limits.window_or_max().scaled(BOUND),
            None => self.limits.bind(epoch.rate, epoch.rtt),
        }
    }

    fn saturate(&mut self, now: Time, epoch: &Epoch, base: Duration) {
        self.convincing = 0;
        // What waits behind a missing segment has arrived, too; without a capacity estimate a pause shows
        // in nothing else.
        let hidden = epoch.losses > 0 || self.capacity().is_none();
        let rate = if hidden { self.lately } else { epoch.rate };
        self.limits.emit(now, EventKind::Saturated { rate, rtt: epoch.rtt });
        self.limits.steer(now, self.limits.window_for(rate, base + self.aim(base)), base);
        self.state = State::Holding(self.begin_hold(rate, base));
    }

    /// Holding a path that carried `rate`; what it jitters by is no queue to be taken away.
    fn begin_hold(&self, rate: Rate, base: Duration) -> Hold {
        Hold::again(&MANNER, rate, base, self.jitter)
    }

    /// Whether the rate follows the window, so that this is all that limits it, and what looked like a
    /// queue was jitter.
    fn was_too_small(&mut self, epoch: &Epoch, base: Duration) -> bool {
        if epoch.stalled || !self.window_binds(epoch) {
            return false;
        }
        let window = self.limits.window_or_max();
        let Some((lowest, highest)) = self.following.handle_epoch(epoch, window) else {
            return false;
        };
        let (least, most) = (lowest.saturating_sub(base), highest.saturating_sub(base));
        let found = self.trains.are_doubtful()
            && may_be_jitter(least, base)
            && least >= most.scaled(STEADY);
        if found {
            self.expect_jitter(most);
        }
        found
    }

    /// The round trip varies by this much without a queue.
    fn expect_jitter(&mut self, jitter: Duration) {
        self.jitter = self.jitter.max(jitter);
        self.limits.expect_jitter(self.jitter);
    }

    /// Opens a window that was too small, as if nothing were known of the path.
    fn reopen(&mut self, now: Time, epoch: &Epoch) {
        self.following = Following::default();
        self.limits.emit(now, EventKind::Reopened);
        self.open_blindly(now, epoch);
        self.state = State::Ramping(Ramp::blind(epoch.rate));
    }

    fn hold(&mut self, now: Time, epoch: &Epoch, base: Duration, mut hold: Hold) {
        let shared = !epoch.stalled && !self.is_alone(epoch) && self.window_binds(epoch);
        let behind_queue = shared && self.is_saturated(epoch, base);
        self.convincing = if behind_queue { self.convincing + 1 } else { 0 };
        self.rest = self.rest.saturating_sub(1);
        if self.convincing >= CONVINCED && self.rest == 0 {
            self.convincing = 0;
            self.state = State::Sharing(Sharing::new(self.limits.window_or_max()));
            return;
        }
        if !self.is_alone(epoch) && !self.window_binds(epoch) {
            return;
        }
        // Beside others a trial without a herald may be one too many for their queue. But where that
        // drains within an epoch there is room, and between two climbs a round trip that is longer and
        // never varies is a longer route's.
        let aim = MANNER.queue_aim(base);
        let drains = epoch.rtt <= base + aim / 2;
        let steady = epoch.highest_rtt <= epoch.rtt + aim;
        let tries = !shared || drains || steady && self.rest > 0;
        hold.steer(&mut self.limits, now, epoch, base, tries);
        self.state = State::Holding(hold);
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
            self.trains.handle_herald(train);
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
