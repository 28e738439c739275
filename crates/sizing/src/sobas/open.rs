//! The open state: congestion control alone sets the window.

use sweetspot_units::{Bytes, Duration, Time};

use super::limits::{PROBING_GAIN, is_busy, target_queue};
use super::memory::MIN_ROOM;
use super::startup::{Startup, first_window};
use super::state::State;
use super::trial::Trial;
use super::{MIN_OBSERVATIONS, SETTLING_EPOCHS, Sensors, Sobas};
use crate::Reason;
use crate::model::{
    CHANGE, Elasticity, ElasticityEstimate, Epoch, PACE_SHARE, RESOLUTION, Repairs, Trains,
};

/// The window divided by the largest flight of a round trip. Slow start doubles the flight in each round trip, twice before the
/// window takes effect, and buffers hold a BDP (`an_open_window_grows_two_bytes_per_byte_up_to_eight_flights`).
const OPEN_FLIGHTS: u64 = 8;

/// The window follows the arrivals, at a multiple of the data in flight.
#[derive(Debug)]
pub(super) struct Open {
    elasticity: Elasticity,
    /// Elasticity over the epochs since the last loss that had a queue throughout.
    full: Elasticity,
    repairs: Repairs,
    /// Whether the window was held before. Then the sender's congestion window is larger, up to
    /// twice (RFC 7661), and must not be released at once.
    was_held: bool,
    /// Epochs after slow start.
    pub(super) epochs: u32,
    /// Epochs in which packets were lost without a queue.
    random_losses: u32,
    /// The last loss without a queue.
    random_loss: Option<Time>,
}

impl Open {
    /// Opens the window.
    pub(super) fn new(was_held: bool) -> Open {
        Open {
            elasticity: Elasticity::lately(),
            full: Elasticity::throughout(),
            repairs: Repairs::new(SETTLING_EPOCHS),
            was_held,
            epochs: 0,
            random_losses: 0,
            random_loss: None,
        }
    }

    /// Adds an epoch on a path of base RTT `base`. If the rate did not depend on the queue's length, the path is full. The
    /// result is then the estimate over the epochs since the last loss that had a queue throughout.
    fn fills(&mut self, epoch: &Epoch, base: Duration) -> Option<ElasticityEstimate> {
        if self.repairs.handle_epoch(epoch) || epoch.stalled || !is_busy(epoch, base) {
            self.full.clear();
            return None;
        }
        self.full.handle_epoch(epoch.rate * epoch.average_rtt, epoch.rate, epoch.rtt);
        self.full.answer().filter(is_inelastic)
    }
}

/// Whether the rate did not follow the window, so that a trial probably costs nothing. A window that moves by the smallest room
/// must change the rate by less than the resolution, even one standard error higher.
fn is_inelastic(estimate: &ElasticityEstimate) -> bool {
    estimate.slope + estimate.error < RESOLUTION / MIN_ROOM
        && estimate.moved >= CHANGE
        && estimate.varied <= RESOLUTION
}

impl Sobas {
    /// Keeps the window well above the data in flight. The limit is never lifted altogether: a receiver cannot take back an
    /// advertised right edge (RFC 9293 section 3.8.6), and later limits would have no effect for long.
    pub(super) fn widen(&mut self, now: Time, arrived: Bytes) {
        if self.limits.window().is_none() {
            // A short transfer is never limited.
            return;
        }
        let window = (self.inflight.largest() * OPEN_FLIGHTS).max(first_window());
        let was_held = matches!(&self.state, State::Open(open) if open.was_held);
        // Two bytes per arriving byte, as in Linux (`__tcp_grow_window`).
        let growth = if was_held { PROBING_GAIN - 1.0 } else { 2.0 };
        self.limits.widen(now, arrived.scaled(growth), window);
    }

    /// Repeats the trains if packets are lost without a queue: if there is no cross traffic, another congestion control gains a
    /// lot.
    fn measure_again(&mut self, now: Time, epoch: &Epoch, base: Duration) {
        let queue = self.recent_queue(base);
        let State::Open(open) = &mut self.state else { return };
        if epoch.losses == 0 || queue > target_queue(base) {
            return;
        }
        open.random_losses += 1;
        if open.random_losses >= MIN_OBSERVATIONS && self.measured_again < MIN_OBSERVATIONS {
            self.measured_again += 1;
            self.trains = Trains::new(&self.config);
            self.highest_rtt = Duration::ZERO;
            self.transition_to(now, State::Startup(Startup::default()), Reason::RandomLoss);
        }
    }

    /// Watches the rate's elasticity, and tries a smaller window if the rate does not depend on it.
    pub(super) fn watch(&mut self, now: Time, epoch: &Epoch, base: Duration) {
        if self.sensors == Sensors::Probes {
            self.consider_climbing(now);
            return self.measure_again(now, epoch, base);
        }
        let State::Open(open) = &mut self.state else { return };
        let queue = epoch.highest_rtt.saturating_sub(base);
        if epoch.losses > 0 && queue <= target_queue(base) * 2 {
            open.random_loss = Some(now);
        }
        let full = open.fills(epoch, base);
        if epoch.stalled {
            open.elasticity.clear();
            return;
        }
        let in_flight = epoch.rate * epoch.average_rtt;
        open.elasticity.handle_epoch(in_flight, epoch.rate, epoch.rtt);
        let calm = open
            .random_loss
            .is_none_or(|at| now.since(at) >= self.limits.loss_free(self.inflight.largest()));
        let spent = self.trials_failed.as_secs_f64() / now.since(self.began).as_secs_f64();
        // While it lasts, a failed trial costs at most a change of the rate; all trials together may cost as much as an empty
        // buffer. With half of that budget, cross traffic got 0.65 of its goodput beside the kernel's window, instead of 0.94
        // (population `drawn`, seed 6262).
        if !calm || spent * CHANGE >= 1.0 - PACE_SHARE {
            return;
        }
        let lately = open.elasticity.answer().filter(is_inelastic);
        // Beside competing flows that grow like this one, the rate also stays the same. After a failed trial, this evidence is
        // too weak for another.
        let full = full.filter(|_| self.trials_failed == Duration::ZERO);
        let Some(answer) = lately.or(full) else { return };
        let queue = answer.rtt.saturating_sub(base);
        if queue > target_queue(base) {
            let trial = Trial::new(now, answer.rate, queue);
            self.transition_to(now, State::Trial(trial), Reason::RateInelastic);
            self.apply_trial(now);
        }
    }
}
