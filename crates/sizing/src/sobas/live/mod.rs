use sweetspot_units::{Bytes, Duration, Rate, Time};

use crate::sobas::dispersion::Dispersion;
use crate::sobas::epoch::{Epoch, Epochs};
use crate::sobas::flights::Flights;
use crate::sobas::hold::Hold;
use crate::sobas::known::Known;
use crate::sobas::limits::Limits;
use crate::sobas::manner::Manner;
use crate::sobas::round_trip::RoundTrip;
use crate::sobas::toll::Toll;
use crate::{Controller, EventKind, Output, Phase, Probe, Setting, Train};

mod opening;

const MANNER: Manner = Manner::LIVE;

/// Between two looks while ramping: a burst that lasts long enough to be timed is seen twice.
const LOOK: Duration = Duration::from_millis(3);

/// Share of the capacity below which others have so much of the path that holding back may cost.
const CROWDED: f64 = 0.9;

/// What the path is held for may rise by so much per epoch.
const CAPACITY_RISES: f64 = 1.02;

/// A queue beyond this share of the base round trip is no jitter, and not our own while the window
/// opens.
const LONG_QUEUE: f64 = 0.25;
/// ... and beyond so many aims.
const LONG_QUEUE_AIMS: f64 = 3.0;
/// Queue, in aims, that stands in spite of us when others keep it.
const OTHERS_QUEUE: f64 = 2.0;

/// Epochs in a row of that before the window is let go.
const PATIENCE: u32 = 16;

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
/// - A connection that comes when all others are over opens at once to what these were held at, unless
///   its first bursts, or its handshake, are another path's.
/// - Where others keep a queue and take the path, it is let go, until their queue has gone or the
///   path is ours again.
#[derive(Debug)]
pub struct Live {
    setting: Setting,
    state: State,
    epochs: Epochs,
    round_trip: RoundTrip,
    dispersion: Dispersion,
    limits: Limits,
    flights: Flights,
    /// What earlier connections left, until it is proved or refuted.
    known: Option<Known>,
    /// How far the window of a connection had opened that was over before it was held: the next one
    /// goes on from there.
    opened_to: Bytes,
    /// Whether a window that opened at once overflowed the path's buffer.
    bursts_overflow: bool,
    /// Whether an epoch went by without a long queue.
    saw_no_queue: bool,
    /// What waited unread at the last look.
    unread: Bytes,
    next_look: Time,
    last_look: Option<Time>,
    rest: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum State {
    /// The window opens; the last epoch's rate, and epochs in which a queue stood though the path
    /// should have carried more.
    Ramping { last: Rate, doubtful: u32 },
    /// At the sweet spot; epochs in a row in which others kept a queue, and what losses cost.
    Holding { hold: Hold, crowded: u32, toll: Toll },
    /// Left to congestion control until a time; what came since, and why.
    LetGo { since: Time, until: Time, bytes: Bytes, why: Why },
}

/// Why a window was let go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Why {
    /// Others keep a queue and take the path.
    Others,
    /// At random losses a queue would have kept the path busy.
    Losses,
}

impl Live {
    /// A controller that has seen nothing yet of its connection.
    pub fn new(setting: &Setting) -> Live {
        Live {
            setting: *setting,
            state: State::Ramping { last: Rate::ZERO, doubtful: 0 },
            epochs: Epochs::new(MANNER.shortest_epoch),
            round_trip: RoundTrip::default(),
            dispersion: Dispersion::new(setting.mss),
            limits: Limits::of_window(setting),
            flights: Flights::default(),
            known: None,
            opened_to: Bytes::ZERO,
            bursts_overflow: false,
            saw_no_queue: false,
            unread: Bytes::ZERO,
            next_look: Time::ZERO,
            last_look: None,
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
            State::Ramping { last, doubtful } => {
                self.ramp(now, &epoch, base, last, doubtful);
            }
            State::Holding { hold, crowded, toll } => {
                self.hold(now, &epoch, base, hold, crowded, toll);
            }
            State::LetGo { .. } => self.reconsider(now, &epoch, base),
        }
    }

    fn hold(
        &mut self,
        now: Time,
        epoch: &Epoch,
        base: Duration,
        mut hold: Hold,
        crowded: u32,
        mut toll: Toll,
    ) {
        // Step by step: an epoch that caught up on what a stall held back is no faster path.
        let risen = |c: Rate| c.max(epoch.rate.min(c.scaled(CAPACITY_RISES)));
        let capacity = self.dispersion.capacity().map_or(epoch.rate, risen);
        self.dispersion.correct(capacity);
        // Nobody sends trains, so that what is known of the capacity may be wrong.
        hold.steer(&mut self.limits, now, epoch, base, true);
        let others_queue = epoch.rtt > base + MANNER.queue_aim(base).scaled(OTHERS_QUEUE);
        let held_back = others_queue && epoch.rate < capacity.scaled(CROWDED) && !epoch.stalled;
        let crowded = if held_back { crowded + 1 } else { 0 };
        let bound = self.limits.bind(epoch.rate, epoch.rtt);
        let too_high = toll.is_too_high(now, epoch, bound, capacity);
        self.state = State::Holding { hold, crowded, toll };
        // Less window made us slower and left a long queue where it was: sooner.
        let foreign = hold.foreign().is_some_and(|queue| queue > long_queue(base));
        if crowded >= if foreign { PATIENCE / 4 } else { PATIENCE } {
            self.let_go(now, Why::Others);
        } else if too_high {
            self.let_go(now, Why::Losses);
        }
    }

    fn let_go(&mut self, now: Time, why: Why) {
        self.limits.lift(now);
        self.limits.emit(
            now,
            match why {
                Why::Others => EventKind::Congested,
                Why::Losses => EventKind::Lossy,
            },
        );
        // Others come and go; a path that loses goes on losing.
        if why == Why::Losses {
            self.rest = LONGEST_REST;
        }
        let (until, bytes) = (now + self.rest, Bytes::ZERO);
        self.state = State::LetGo { since: now, until, bytes, why };
        self.rest = (self.rest * 2).min(LONGEST_REST);
    }

    /// Takes the window up again when the others' queue has gone, or the path is ours again.
    fn reconsider(&mut self, now: Time, epoch: &Epoch, base: Duration) {
        let State::LetGo { since, until, bytes, why } = self.state else { return };
        let queue_gone = why == Why::Others && epoch.rtt <= base + MANNER.queue_aim(base);
        if epoch.stalled || !queue_gone && now < until {
            return;
        }
        let free = bytes / now.since(since);
        if queue_gone || self.dispersion.capacity().is_some_and(|c| free >= c.scaled(CROWDED)) {
            self.saturate(now, epoch, base);
        } else {
            let (until, bytes) = (now + self.rest, Bytes::ZERO);
            self.state = State::LetGo { since: now, until, bytes, why };
            self.rest = (self.rest * 2).min(LONGEST_REST);
        }
    }

    /// Segments ahead of a missing one, behind a queue of our own and at our own limit, are an
    /// overflow. Without a queue the loss is random, and no reason to go slower.
    fn reacts_to_loss(&mut self, now: Time, epoch: &Epoch, base: Duration) -> bool {
        let queue_rose = epoch.highest_rtt > base + MANNER.queue_aim(base);
        let at_once = self.known.is_some() || self.opened_to > Bytes::ZERO;
        self.bursts_overflow |= queue_rose && at_once;
        if queue_rose
            && matches!(self.state, State::Ramping { .. })
            && self.opened_too_far(now, base)
        {
            return true;
        }
        let bound = self.limits.bind(epoch.rate, epoch.rtt);
        if !queue_rose || !bound {
            return false;
        }
        let (mut hold, crowded, mut toll) = match self.state {
            State::Holding { hold, .. } if hold.is_settling() => return false,
            State::Holding { hold, crowded, toll } => (hold, crowded, toll),
            State::Ramping { .. } => (Hold::new(&MANNER, epoch.rate, base), 0, Toll::default()),
            State::LetGo { .. } => return false,
        };
        hold.retreat(&mut self.limits, now, epoch, base);
        toll.excuse(now, base);
        self.state = State::Holding { hold, crowded, toll };
        true
    }
}

/// The shortest queue that must be others' where our own window is not what fills the path.
fn long_queue(base: Duration) -> Duration {
    base.scaled(LONG_QUEUE).max(MANNER.queue_aim(base).scaled(LONG_QUEUE_AIMS))
}

impl Controller for Live {
    fn handle_data(&mut self, now: Time, bytes: Bytes, unread: Bytes) {
        // What waits now and did not before has arrived, too.
        let arrived = (bytes + unread).saturating_sub(self.unread);
        self.unread = unread;
        if bytes > Bytes::ZERO {
            self.epochs.handle_data(now, bytes, unread, self.limits.window_or_max());
        }
        match &mut self.state {
            State::Ramping { .. } => self.handle_burst(now, arrived),
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

    fn handle_out_of_order(&mut self, now: Time, segments: u64) {
        if let Some(base) = self.round_trip.base() {
            self.dispersion.handle_gap(now, base);
            self.flights.handle_gap(now, base);
        }
        self.epochs.handle_losses(segments);
    }

    fn handle_end(&mut self) {
        let (capacity, overflow) = (self.dispersion.capacity(), self.bursts_overflow);
        let path = capacity.zip(self.round_trip.base()).zip(self.limits.window());
        let known = match (self.state, path) {
            (State::Holding { hold, .. }, Some(((capacity, base), window))) => {
                Some(Known::new(capacity, base, window, hold.aim()))
            }
            // It was over before its window was open.
            (State::Ramping { .. }, _) => self.known.map(Known::again),
            _ => None,
        };
        let opened_to = match self.state {
            State::Ramping { .. } if !overflow => self.limits.window().unwrap_or(Bytes::ZERO),
            _ => Bytes::ZERO,
        };
        let fresh = Live { opened_to, ..Live::new(&self.setting) };
        let Live { state, rest, .. } = std::mem::replace(self, fresh);
        (self.bursts_overflow, self.known) = (overflow, known.filter(|_| !overflow));
        if matches!(state, State::LetGo { why: Why::Losses, .. }) {
            // A path that loses goes on losing.
            (self.state, self.rest) = (state, rest);
            if let Some(capacity) = capacity {
                self.dispersion.correct(capacity);
            }
        }
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
