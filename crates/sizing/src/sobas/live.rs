use sweetspot_units::{Bytes, Duration, Rate, Time};

use super::adaptive::{ALONE, REACHED, RISING};
use super::dispersion::Dispersion;
use super::epoch::{Epoch, Epochs};
use super::hold::Hold;
use super::limits::Limits;
use super::manner::Manner;
use super::round_trip::RoundTrip;
use crate::{Controller, EventKind, Output, Phase, Probe, Setting, Train};

const MANNER: Manner = Manner::LIVE;

/// Growth of the window per round trip while the flight is short against the capacity: slow
/// start's own.
const FREE_GROWTH: f64 = 2.0;

/// The share of a bandwidth-delay product up to which it may double: the last doubling leaves
/// half of the flight in the bottleneck's buffer, an eighth of a BDP.
const FREE_SHARE: f64 = 0.25;

/// Growth beyond it. A flight W that came by growth g arrives at g times the bottleneck's rate and
/// leaves (g - 1)/g W in its buffer: a sixth of a BDP at the end.
const BOUNDED_GROWTH: f64 = 1.2;

/// Between two looks while ramping: a burst that lasts long enough to be timed is seen twice.
const LOOK: Duration = Duration::from_millis(3);

/// The shortest round in which a flight is counted.
const SHORTEST_ROUND: Duration = Duration::from_millis(5);

/// Share of the capacity below which others have so much of the path that holding back may cost.
const CROWDED: f64 = 0.9;

/// Queue, in aims, that stands in spite of us when others keep it.
const OTHERS_QUEUE: f64 = 2.0;

/// Epochs in a row of that before the window is let go.
const PATIENCE: u32 = 30;

/// For how long it is let go before that is judged; doubled each time, up to the longest.
const FIRST_REST: Duration = Duration::from_secs(10);
const LONGEST_REST: Duration = Duration::from_secs(160);

/// SOBAS on a connection of another program: all it has is what the receiving kernel knows, and
/// all it can do is to limit the window.
///
/// - Where the connection is caught early, the window opens with slow start until the transfer's
///   own bursts have told the path's capacity, and then in steps that a small buffer bears.
/// - It is held at R x T_base plus a small queue, re-opened when that queue vanishes though the
///   window binds, tightened when a longer one stands.
/// - Where others keep a queue and take the path, it is let go; what the transfer gains by that
///   decides how soon it is taken up again.
#[derive(Debug)]
pub struct Live {
    setting: Setting,
    state: State,
    epochs: Epochs,
    round_trip: RoundTrip,
    dispersion: Dispersion,
    limits: Limits,
    flights: Flights,
    /// What waited unread at the last look.
    unread: Bytes,
    next_look: Time,
    rest: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum State {
    /// The window opens; the last epoch's rate.
    Ramping { last: Rate },
    /// At the sweet spot; epochs in a row in which others kept a queue.
    Holding { hold: Hold, crowded: u32 },
    /// Left to congestion control until a time; the rate before, and what came since.
    LetGo { since: Time, until: Time, held: Rate, bytes: Bytes },
}

/// The largest number of bytes that arrived in one round trip: what the sender has in flight.
#[derive(Debug, Default)]
struct Flights {
    since: Option<Time>,
    bytes: Bytes,
    largest: Bytes,
    /// Whether a whole round was seen: before that, the flight is not known.
    whole: bool,
}

impl Flights {
    /// Counts what arrived; whether the flight is known by now.
    fn handle_arrival(&mut self, now: Time, bytes: Bytes, round: Duration) -> bool {
        let since = *self.since.get_or_insert(now);
        if now.since(since) >= round {
            self.since = Some(now);
            self.bytes = Bytes::ZERO;
            self.whole = true;
        }
        self.bytes += bytes;
        self.largest = self.largest.max(self.bytes);
        self.whole
    }
}

impl Live {
    /// A controller that has seen nothing yet of its connection.
    pub fn new(setting: &Setting) -> Live {
        Live {
            setting: *setting,
            state: State::Ramping { last: Rate::ZERO },
            epochs: Epochs::new(MANNER.shortest_epoch),
            round_trip: RoundTrip::default(),
            dispersion: Dispersion::new(setting.mss),
            limits: Limits::of_window(setting),
            flights: Flights::default(),
            unread: Bytes::ZERO,
            next_look: Time::ZERO,
            rest: FIRST_REST,
        }
    }

    fn advance(&mut self, now: Time) {
        let Some(epoch) = self.epochs.poll_epoch(now, &mut self.round_trip) else { return };
        let Some(base) = self.round_trip.base() else { return };
        if epoch.losses > 0 && self.reacts_to_loss(now, &epoch, base) {
            return;
        }
        match self.state {
            State::Ramping { last } => self.ramp(now, &epoch, base, last),
            State::Holding { hold, crowded } => self.hold(now, &epoch, base, hold, crowded),
            State::LetGo { .. } => self.reconsider(now, &epoch, base),
        }
    }

    /// The window at which the path as the bursts show it is full.
    fn full(&self, base: Duration) -> Option<Bytes> {
        let capacity = self.dispersion.capacity()?;
        Some(self.limits.window_for(capacity, base + MANNER.queue_aim(base)))
    }

    /// Lets the window grow with what is in flight, no faster than a small buffer bears.
    fn open(&mut self, now: Time, base: Duration) {
        let full = self.full(base);
        let flight = self.flights.largest;
        let bounded = full.is_some_and(|full| flight > full.scaled(FREE_SHARE));
        let growth = if bounded { BOUNDED_GROWTH } else { FREE_GROWTH };
        let next = full.map_or(flight.scaled(growth), |full| flight.scaled(growth).min(full));
        // Not below what a receiving kernel begins with: that much has been promised already.
        let next = next.max(self.setting.mss * INITIAL_SEGMENTS);
        if self.limits.window().is_none_or(|window| next > window) {
            self.limits.steer(now, next, base);
        }
    }

    fn ramp(&mut self, now: Time, epoch: &Epoch, base: Duration, last: Rate) {
        self.state = State::Ramping { last: epoch.rate };
        if epoch.stalled {
            return;
        }
        let reaches = |offered: Rate| epoch.rate >= offered.scaled(REACHED);
        let bound = self.limits.offered(epoch.rtt).is_some_and(reaches);
        let flat = epoch.rate <= last.scaled(RISING);
        let queue_stands = epoch.rtt > base + MANNER.queue_aim(base) && (bound || flat);
        let opened = self.full(base).is_some_and(|full| self.limits.window_or_max() >= full);
        if queue_stands || opened && self.limits.offered(base).is_some_and(reaches) {
            self.saturate(now, epoch, base);
        }
    }

    fn saturate(&mut self, now: Time, epoch: &Epoch, base: Duration) {
        self.limits.emit(now, EventKind::Saturated { rate: epoch.rate, rtt: epoch.rtt });
        self.dispersion.correct(epoch.rate);
        let window = self.limits.window_for(epoch.rate, base + MANNER.queue_aim(base));
        self.limits.steer(now, window, base);
        self.state = State::Holding { hold: Hold::new(MANNER, epoch.rate, base), crowded: 0 };
    }

    fn hold(&mut self, now: Time, epoch: &Epoch, base: Duration, mut hold: Hold, crowded: u32) {
        let capacity = self.dispersion.capacity().map_or(epoch.rate, |c| c.max(epoch.rate));
        self.dispersion.correct(capacity);
        let shared = epoch.rate < capacity.scaled(ALONE);
        hold.steer(&mut self.limits, now, epoch, base, shared);
        let others_queue = epoch.rtt > base + MANNER.queue_aim(base).scaled(OTHERS_QUEUE);
        let held_back = others_queue && epoch.rate < capacity.scaled(CROWDED) && !epoch.stalled;
        let crowded = if held_back { crowded + 1 } else { 0 };
        self.state = State::Holding { hold, crowded };
        if crowded >= PATIENCE {
            self.limits.lift(now);
            self.limits.emit(now, EventKind::Congested);
            let (until, bytes) = (now + self.rest, Bytes::ZERO);
            self.state = State::LetGo { since: now, until, held: epoch.rate, bytes };
        }
    }

    /// Takes the window up again when the others' queue has gone, or when being let go has gained
    /// nothing.
    fn reconsider(&mut self, now: Time, epoch: &Epoch, base: Duration) {
        let State::LetGo { since, until, held, bytes } = self.state else { return };
        let queue_gone = epoch.rtt <= base + MANNER.queue_aim(base);
        if epoch.stalled || !queue_gone && now < until {
            return;
        }
        let free = bytes / now.since(since);
        if queue_gone || free <= held {
            self.saturate(now, epoch, base);
        } else {
            self.rest = (self.rest * 2).min(LONGEST_REST);
            let (until, bytes) = (now + self.rest, Bytes::ZERO);
            self.state = State::LetGo { since: now, until, held, bytes };
        }
    }

    /// Segments ahead of a missing one, behind a queue of our own and at our own limit, are an
    /// overflow. Without a queue the loss is random, and no reason to go slower.
    fn reacts_to_loss(&mut self, now: Time, epoch: &Epoch, base: Duration) -> bool {
        let queue_rose = epoch.highest_rtt > base + MANNER.queue_aim(base);
        let bound = self.limits.bind(epoch.rate, epoch.rtt);
        if !queue_rose || !bound {
            return false;
        }
        let (mut hold, crowded) = match self.state {
            State::Holding { hold, .. } if hold.is_settling() => return false,
            State::Holding { hold, crowded } => (hold, crowded),
            State::Ramping { .. } => (Hold::new(MANNER, epoch.rate, base), 0),
            State::LetGo { .. } => return false,
        };
        hold.retreat(&mut self.limits, now, epoch, base);
        self.state = State::Holding { hold, crowded };
        true
    }
}

/// Never limited below this while ramping: 64 KiB, the window of a receiver that was told nothing
/// (kernel commit a337531b942b).
const INITIAL_SEGMENTS: u64 = 45;

impl Controller for Live {
    fn handle_data(&mut self, now: Time, bytes: Bytes, unread: Bytes) {
        // What waits now and did not before has arrived, too.
        let arrived = (bytes + unread).saturating_sub(self.unread);
        self.unread = unread;
        if bytes > Bytes::ZERO {
            self.epochs.handle_data(now, bytes, unread, self.limits.window_or_max());
        }
        match &mut self.state {
            State::Ramping { .. } => {
                if arrived > Bytes::ZERO {
                    self.dispersion.handle_arrival(now, arrived);
                }
                let round = self.round_trip.base().map(|base| base.max(SHORTEST_ROUND));
                if let Some(round) = round
                    && self.flights.handle_arrival(now, arrived, round)
                {
                    self.open(now, round);
                }
            }
            State::LetGo { bytes: total, .. } => *total += bytes,
            State::Holding { .. } => {}
        }
        self.advance(now);
    }

    fn handle_probe(&mut self, _now: Time, _probe: &Probe) {}

    fn handle_kernel_rtt(&mut self, now: Time, rtt: Duration) {
        self.round_trip.handle_sample(rtt);
        self.advance(now);
    }

    fn handle_minimum_rtt(&mut self, _now: Time, rtt: Duration) {
        self.round_trip.handle_minimum(rtt);
    }

    fn handle_out_of_order(&mut self, _now: Time, segments: u64) {
        self.epochs.handle_losses(segments);
    }

    fn handle_train(&mut self, _now: Time, _train: &Train) {}

    fn handle_window(&mut self, _now: Time, _advertised: Bytes) {}

    fn handle_timeout(&mut self, now: Time) {
        self.next_look = now + LOOK;
        self.advance(now);
    }

    fn poll_timeout(&self) -> Option<Time> {
        let look = matches!(self.state, State::Ramping { .. }).then_some(self.next_look);
        [look, self.epochs.poll_timeout()].into_iter().flatten().min()
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.limits.poll_output()
    }

    fn phase(&self) -> Phase {
        match self.state {
            State::Ramping { .. } => Phase::Ramping,
            State::Holding { .. } => Phase::Holding,
            State::LetGo { .. } => Phase::Congested,
        }
    }
}
