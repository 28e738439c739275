//! SOBAS that does no harm: it leaves the window to congestion control unless recent measurements on this connection show that
//! a limit costs no rate. It repeats these measurements at a bounded cost.

mod climb;
mod held;
mod limits;
mod memory;
mod open;
mod paced;
mod performance;
mod probing;
mod startup;
mod state;
mod streaks;
mod trial;

use sweetspot_units::{Bytes, Duration, Time};

use held::Held;
use limits::{TransferLimits, is_busy, target_queue};
use memory::Memory;
use performance::Traffic;
use startup::Startup;
use state::State;

use crate::driver::PROBE_INTERVAL;
use crate::model::{
    CHANGE, Epochs, InflightEstimator, MinRtt, Queued, Repairs, RoundTrip, TIMESTAMP_TICK, Trains,
    UnusedCapacity, is_behind,
};
use crate::{
    Controller, ControllerConfig, EventKind, Input, Needs, Output, Probing, Reason, SizingPhase,
};

/// Epochs until a change of the window has taken effect: a round trip until its first packets arrive, and the current epoch.
const SETTLING_EPOCHS: u32 = 2;

/// Observations, consecutive or in total, that are no longer attributed to chance
/// (`two_epochs_of_random_loss_on_an_open_path_trigger_new_trains`).
const MIN_OBSERVATIONS: u32 = 2;

/// The shortest epoch: an epoch lasts a round trip, and at least three probes.
fn min_epoch() -> Duration {
    PROBE_INTERVAL * 3
}

/// Epochs from a loss to the end of its repair: a round trip until the sender knows of it, one for the repair, and the current
/// epoch. The queue that overflowed lies within them.
const fn repair_epochs() -> u32 {
    SETTLING_EPOCHS + 1
}

/// Finds the window that fills the path but not its buffer, if that window can be measured.
#[derive(Debug)]
pub struct Sobas {
    config: ControllerConfig,
    sensors: Sensors,
    state: State,
    trains: Trains,
    epochs: Epochs,
    round_trip: RoundTrip,
    min_rtt: MinRtt,
    /// The longest RTT so far, and the longest of each recent epoch.
    highest_rtt: Duration,
    recent_highest: [Duration; repair_epochs() as usize],
    /// The longest RTT sustained over two consecutive samples.
    highest_sustained: Duration,
    /// Whether the sender was in slow start in its last report.
    in_slow_start: bool,
    /// Whether the sender's congestion control has no slow-start threshold even after a loss, like BBR.
    ignores_losses: bool,
    /// Payload received, and the bytes counted for payload and retransmissions.
    received: Bytes,
    counted: (u64, Bytes),
    /// The largest congestion window in the sender's reports.
    largest_cwnd: Bytes,
    inflight: InflightEstimator,
    unused: UnusedCapacity,
    limits: TransferLimits,
    /// Segments retransmitted since the connection began, from the sender's report.
    retransmitted: u64,
    began: Time,
    /// How often the trains were repeated.
    measured_again: u32,
    /// Total duration of failed trials.
    trials_failed: Duration,
    /// The path's parameters from the previous transfer.
    memory: Option<Memory>,
    /// Epochs on an open path before the next climb.
    patience: u32,
    /// Whether cross traffic was seen on the path; then the controller never climbs.
    is_shared: bool,
    /// Whether a remembered capacity proved wrong in this transfer.
    was_wrong: bool,
    /// The window held before a random loss, which is no evidence against that window.
    held_before: Option<Held>,
}

/// The controller's sources of measurements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sensors {
    /// Probes, trains, the sender's reports.
    Probes,
    /// Only the receiving kernel. The sender is another program, which cannot be asked to pace.
    Kernel,
}

impl Sobas {
    /// `sobas`: probes, packet trains and the sender's own reports.
    pub fn probing(config: &ControllerConfig) -> Sobas {
        Sobas::new(config, Sensors::Probes)
    }

    /// `sobas:live`: only measurements of the receiving kernel.
    pub fn live(config: &ControllerConfig) -> Sobas {
        Sobas::new(config, Sensors::Kernel)
    }

    fn new(config: &ControllerConfig, sensors: Sensors) -> Sobas {
        Sobas {
            config: *config,
            sensors,
            state: State::Startup(Startup::default()),
            trains: Trains::new(config),
            epochs: Epochs::new(min_epoch()),
            round_trip: RoundTrip::default(),
            min_rtt: MinRtt::default(),
            highest_rtt: Duration::ZERO,
            recent_highest: [Duration::ZERO; repair_epochs() as usize],
            highest_sustained: Duration::ZERO,
            in_slow_start: true,
            ignores_losses: false,
            received: Bytes::ZERO,
            counted: (0, Bytes::ZERO),
            largest_cwnd: Bytes::ZERO,
            inflight: InflightEstimator::default(),
            unused: UnusedCapacity::new(1.0 - CHANGE, Repairs::new(SETTLING_EPOCHS)),
            limits: TransferLimits::new(config),
            retransmitted: 0,
            began: Time::ZERO,
            measured_again: 0,
            trials_failed: Duration::ZERO,
            memory: None,
            patience: MIN_OBSERVATIONS,
            is_shared: false,
            was_wrong: false,
            held_before: None,
        }
    }

    /// Changes the state; there is no other way to do so.
    fn transition_to(&mut self, now: Time, next: State, reason: Reason) {
        debug_assert!(self.state.may_become(&next, reason), "{:?} {reason}", self.state);
        self.state = next;
        let phase = self.state.phase();
        self.limits.emit(now, EventKind::Entered { phase, reason });
    }

    fn handle_round_trip(&mut self, rtt: Duration) {
        self.round_trip.handle_sample(rtt);
        self.highest_rtt = self.highest_rtt.max(rtt);
    }

    /// The longest queue of the last epochs, beyond `base`. A loss becomes known only after the queue that overflowed has
    /// drained.
    fn recent_queue(&self, base: Duration) -> Duration {
        let highest = self.recent_highest.iter().max().copied().unwrap_or(base);
        highest.saturating_sub(base)
    }

    fn handle_data(&mut self, now: Time, bytes: Bytes, unread: Bytes) {
        if matches!(self.state, State::Ended) {
            // This is the next transfer: keep nothing but the memory of the path.
            let memory = self.memory;
            *self = Sobas { memory, ..Sobas::new(&self.config, self.sensors) };
        }
        if self.began == Time::ZERO {
            self.began = now;
        }
        self.received += bytes;
        self.trains.handle_data(now);
        let window = self.limits.window().unwrap_or(self.config.max_window);
        self.epochs.handle_data(now, bytes, unread, window);
        let Some(base) = self.min_rtt.get() else { return };
        self.inflight.handle_arrival(now, bytes, base);
        if matches!(&self.state, State::Held(held) if held.is_opening()) {
            self.apply_hold(now);
        }
        let is_unlimited = match &self.state {
            State::Open(_) | State::Climb(_) => true,
            // Until a train has measured the path, no limit is known to be free of cost.
            State::Startup(_) => self.trains.first().is_none(),
            State::Held(_) | State::Trial(_) | State::Ended => false,
        };
        // A larger window would only buffer more unread data.
        if is_unlimited && !is_behind(unread, window) {
            self.widen(now, bytes);
        }
    }

    /// The sender's traffic since the last call.
    fn take_traffic(&mut self) -> Traffic {
        let now = (self.retransmitted, self.received);
        let before = std::mem::replace(&mut self.counted, now);
        Traffic {
            retransmitted: now.0 - before.0,
            delivered: (now.1 - before.1).get() / self.config.mss.get().max(1),
        }
    }

    fn end(&mut self, now: Time) {
        let base = self.min_rtt.get();
        let learnt = match &self.state {
            State::Held(held) if !held.is_remembered() => Some(*held),
            State::Open(_) | State::Trial(_) if self.held_before.is_some() => self.held_before,
            // Beside cross traffic a rate also stays the same.
            State::Trial(trial) if self.trials_failed == Duration::ZERO => {
                base.and_then(|base| trial.known(base))
            }
            // A window that was never held, but was reached.
            State::Open(_) if self.trials_failed == Duration::ZERO && !self.was_wrong => {
                self.unused.capacity().zip(base).map(|(rate, base)| Held::new(rate, base))
            }
            _ => None,
        };
        self.memory = match (learnt, base) {
            (Some(held), Some(base)) => {
                let longest = self.highest_sustained.saturating_sub(base);
                let memory = held.memory(base, longest, self.unused.bytes(), now).with(self.memory);
                let was_held = !matches!(self.state, State::Open(_)) || self.held_before.is_some();
                Some(memory).filter(|memory| was_held && memory.has_room() || memory.pays())
            }
            // Nothing was learned since.
            _ if matches!(self.state, State::Held(_) | State::Ended) => self.memory,
            _ => None,
        };
        if !matches!(self.state, State::Ended) {
            self.transition_to(now, State::Ended, Reason::Ended);
            let saved = self.memory.map(|memory| memory.saved(&self.limits));
            self.limits.push(Output::Saved(saved));
        }
        self.limits.lift(now);
    }

    fn advance(&mut self, now: Time) {
        self.start_up(now);
        let rtt = self.round_trip.average().unwrap_or(Duration::ZERO);
        let Some(epoch) = self.epochs.poll_epoch(now, rtt, &mut self.round_trip) else { return };
        let Some(base) = self.min_rtt.get() else { return };
        self.recent_highest.rotate_right(1);
        self.recent_highest[0] = self.round_trip.take_sustained();
        self.highest_sustained = self.highest_sustained.max(self.recent_highest[0]);
        let is_open = matches!(self.state, State::Open(_) | State::Climb(_));
        let queued = Queued {
            throughout: is_busy(&epoch, base),
            lately: self.recent_queue(base) > target_queue(base),
        };
        self.unused.handle_epoch(now, &epoch, queued, is_open);
        let traffic = self.take_traffic();
        match self.state {
            State::Startup(_) | State::Ended => {}
            State::Held(_) => self.check_hold(now, &epoch, base, traffic),
            State::Open(_) if self.limits.window().is_none() => {}
            State::Open(_) => self.watch(now, &epoch, base),
            State::Climb(_) => self.check_climb(now, &epoch, base, traffic),
            State::Trial(_) => self.check_trial(now, &epoch, base),
        }
    }
}

impl Controller for Sobas {
    fn handle(&mut self, now: Time, input: &Input) {
        match *input {
            Input::Data { bytes, unread } => self.handle_data(now, bytes, unread),
            Input::Probe(probe) => {
                self.handle_round_trip(probe.rtt);
                self.min_rtt.handle_sample(probe.rtt);
                self.trains.handle_probe(now);
                if let Some(base) = self.min_rtt.get() {
                    match &mut self.state {
                        State::Climb(climb) => climb.handle_probe(probe.rtt, base),
                        State::Held(held) => held.handle_probe(probe.rtt, base),
                        _ => {}
                    }
                }
                self.epochs.handle_losses(probe.forward_lost);
            }
            Input::Sender(report) => {
                self.largest_cwnd = self.largest_cwnd.max(report.cwnd);
                if report.starved {
                    self.epochs.handle_starvation();
                }
                let lost = report.retransmitted.saturating_sub(self.retransmitted);
                // On an open path the gaps in the sequence are watched instead; they are visible at once.
                let in_slow_start = report.ssthresh.is_none_or(|threshold| report.cwnd < threshold);
                if self.in_slow_start
                    && !in_slow_start
                    && let State::Held(held) = &mut self.state
                {
                    held.forget_slow_start();
                }
                self.in_slow_start = in_slow_start;
                self.ignores_losses = report.retransmitted > 0 && report.ssthresh.is_none();
                if !matches!(self.state, State::Open(_) | State::Climb(_)) {
                    self.epochs.handle_losses(lost);
                }
                self.retransmitted = self.retransmitted.max(report.retransmitted);
            }
            Input::KernelRtt(rtt) => {
                self.handle_round_trip(rtt + TIMESTAMP_TICK / 2);
                self.min_rtt.handle_sample(rtt + TIMESTAMP_TICK);
            }
            Input::MinimumRtt(rtt) => self.min_rtt.handle_sample(rtt),
            Input::OutOfOrder { segments } => {
                self.epochs.handle_losses(segments);
                if let Some(base) = self.min_rtt.get() {
                    self.inflight.handle_gap(now, base);
                }
            }
            Input::Train(train) => {
                let rtt = self.round_trip.average().unwrap_or(Duration::MAX);
                self.trains.handle_train(now, &train, rtt);
            }
            Input::Window { .. } | Input::Timeout => {}
            Input::End => return self.end(now),
        }
        self.advance(now);
    }

    fn poll_timeout(&self) -> Option<Time> {
        let startup = match self.state {
            State::Startup(_) => {
                let request = self.trains.next_request().unwrap_or(Time::MAX);
                Some(request.min(self.startup_ends()))
            }
            State::Held(_) | State::Open(_) | State::Climb(_) | State::Trial(_) | State::Ended => {
                None
            }
        };
        [startup, self.epochs.poll_timeout()].into_iter().flatten().min()
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.limits.poll_output()
    }

    fn needs(&self) -> Needs {
        let kernel = Needs { minimum_rtt: true, out_of_order: true, ..Needs::KERNEL };
        let probed = Needs { minimum_rtt: true, data: true, trains: true, ..Needs::NOTHING };
        match (self.sensors, &self.state) {
            (Sensors::Kernel, _) => kernel,
            // Probes occupy buffer space; they must not affect an open path.
            (Sensors::Probes, State::Open(_) | State::Ended) => {
                Needs { probes: Probing::Sparse, trains: true, ..kernel }
            }
            (Sensors::Probes, State::Startup(_)) if self.is_short() => kernel,
            (
                Sensors::Probes,
                State::Startup(_) | State::Held(_) | State::Trial(_) | State::Climb(_),
            ) => Needs { probes: Probing::Budgeted, ..probed },
        }
    }

    fn phase(&self) -> SizingPhase {
        self.state.phase()
    }
}
