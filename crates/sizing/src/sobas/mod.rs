//! SOBAS that does no harm: the window is left to congestion control unless a limit is known to
//! cost no rate. Known means recently measured on this connection, and tested again at a bounded
//! cost.

mod held;
mod limits;
mod open;
mod params;
mod startup;
mod state;
mod trial;

use sweetspot_units::{Bytes, Duration, Time};

pub use params::SHORT_PATH;

use held::{Held, Memory};
use limits::{TransferLimits, is_busy, target_queue};
use params::{COLLAPSE, KERNEL_RTT_ERROR, LOSS_EPOCHS, MIN_EPOCH, SETTLING_EPOCHS};
use startup::Startup;
use state::State;

use crate::model::{
    Epochs, InflightEstimator, MinRtt, Queued, Repairs, RoundTrip, Trains, UnusedCapacity,
    is_behind,
};
use crate::{
    Controller, ControllerConfig, EventKind, Input, Needs, Output, Probing, Reason, SizingPhase,
};

/// Finds the window that fills the path but not its buffer, if it can be measured.
#[derive(Debug)]
pub struct Sobas {
    config: ControllerConfig,
    sensors: Sensors,
    state: State,
    trains: Trains,
    epochs: Epochs,
    round_trip: RoundTrip,
    min_rtt: MinRtt,
    /// The longest round trip so far, and the longest of each of the last epochs.
    highest_rtt: Duration,
    highest_lately: [Duration; LOSS_EPOCHS],
    /// The longest round trip that lasted.
    highest_sustained: Duration,
    /// The largest congestion window in the sender's reports.
    largest_cwnd: Bytes,
    inflight: InflightEstimator,
    unused: UnusedCapacity,
    limits: TransferLimits,
    /// Segments retransmitted since the connection began, by the sender's report.
    retransmitted: u64,
    began: Time,
    /// How often the trains were repeated.
    measured_again: u32,
    /// Time spent on trials that did not pay.
    trials_failed: Duration,
    /// The path as the transfer before left it.
    memory: Option<Memory>,
    /// Whether a memory was given up in this transfer.
    was_wrong: bool,
    /// What was held until a packet was lost that did not overflow: that says nothing against it.
    held_before: Option<Held>,
}

/// The controller's sources of measurements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sensors {
    /// Probes, trains, the sender's reports.
    Probes,
    /// The receiving kernel. The sender is another program's, which takes no pace.
    Kernel,
}

impl Sobas {
    /// `sobas`: probes, packet trains and the sender's own reports.
    pub fn probing(config: &ControllerConfig) -> Sobas {
        Sobas::new(config, Sensors::Probes)
    }

    /// `sobas:live`: measurements of the receiving kernel alone.
    pub fn live(config: &ControllerConfig) -> Sobas {
        Sobas::new(config, Sensors::Kernel)
    }

    fn new(config: &ControllerConfig, sensors: Sensors) -> Sobas {
        Sobas {
            config: *config,
            sensors,
            state: State::Startup(Startup::default()),
            trains: Trains::new(config),
            epochs: Epochs::new(MIN_EPOCH),
            round_trip: RoundTrip::default(),
            min_rtt: MinRtt::default(),
            highest_rtt: Duration::ZERO,
            highest_lately: [Duration::ZERO; LOSS_EPOCHS],
            highest_sustained: Duration::ZERO,
            largest_cwnd: Bytes::ZERO,
            inflight: InflightEstimator::default(),
            unused: UnusedCapacity::new(COLLAPSE, Repairs::new(SETTLING_EPOCHS)),
            limits: TransferLimits::new(config),
            retransmitted: 0,
            began: Time::ZERO,
            measured_again: 0,
            trials_failed: Duration::ZERO,
            memory: None,
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

    /// The longest queue of the last epochs, beyond a round trip of `base`: a loss becomes known
    /// after the queue that overflowed is gone.
    fn recent_queue(&self, base: Duration) -> Duration {
        let highest = self.highest_lately.iter().max().copied().unwrap_or(base);
        highest.saturating_sub(base)
    }

    fn handle_data(&mut self, now: Time, bytes: Bytes, unread: Bytes) {
        if matches!(self.state, State::Ended) {
            // The next transfer. Nothing is kept but the memory of the path.
            let memory = self.memory;
            *self = Sobas { memory, ..Sobas::new(&self.config, self.sensors) };
        }
        if self.began == Time::ZERO {
            self.began = now;
        }
        self.trains.handle_data(now);
        let window = self.limits.window().unwrap_or(self.config.max_window);
        self.epochs.handle_data(now, bytes, unread, window);
        let Some(base) = self.min_rtt.get() else { return };
        self.inflight.handle_arrival(now, bytes, base);
        if matches!(&self.state, State::Held(held) if held.is_opening()) {
            self.apply_hold(now);
        }
        // A larger window would but hold more that is unread.
        if matches!(self.state, State::Open(_)) && !is_behind(unread, window) {
            self.widen(now, bytes);
        }
    }

    fn end(&mut self, now: Time) {
        let base = self.min_rtt.get();
        let learnt = match &self.state {
            State::Held(held) if !held.is_remembered() => Some(*held),
            State::Open(_) | State::Trial(_) if self.held_before.is_some() => self.held_before,
            // Among others a rate stays the same, too.
            State::Trial(trial) if self.trials_failed == Duration::ZERO => {
                base.and_then(|base| trial.known(base))
            }
            // What it was never held at, but has reached.
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
            // Nothing was learnt since.
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
        self.highest_lately.rotate_right(1);
        self.highest_lately[0] = self.round_trip.take_sustained();
        self.highest_sustained = self.highest_sustained.max(self.highest_lately[0]);
        let is_open = matches!(self.state, State::Open(_));
        let queued = Queued {
            throughout: is_busy(&epoch, base),
            lately: self.recent_queue(base) > target_queue(base),
        };
        self.unused.handle_epoch(now, &epoch, queued, is_open);
        match self.state {
            State::Startup(_) | State::Ended => {}
            State::Held(_) => self.check_hold(now, &epoch, base),
            State::Open(_) if self.limits.window().is_none() => {}
            State::Open(_) => self.watch(now, &epoch, base),
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
                self.epochs.handle_losses(probe.forward_lost);
            }
            Input::Sender(report) => {
                self.largest_cwnd = self.largest_cwnd.max(report.cwnd);
                if report.starved {
                    self.epochs.handle_starvation();
                }
                let lost = report.retransmitted.saturating_sub(self.retransmitted);
                // On an open path gaps in the sequence are watched, which are seen at once.
                if !matches!(self.state, State::Open(_)) {
                    self.epochs.handle_losses(lost);
                }
                self.retransmitted = self.retransmitted.max(report.retransmitted);
            }
            Input::KernelRtt(rtt) => {
                self.handle_round_trip(rtt + KERNEL_RTT_ERROR / 2);
                self.min_rtt.handle_sample(rtt + KERNEL_RTT_ERROR);
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
            State::Held(_) | State::Open(_) | State::Trial(_) | State::Ended => None,
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
            // Probes take room in a buffer; an open path must not be affected by them.
            (Sensors::Probes, State::Open(_) | State::Ended) => {
                Needs { probes: Probing::Sparse, trains: true, ..kernel }
            }
            (Sensors::Probes, State::Startup(_)) if self.is_short() => kernel,
            (Sensors::Probes, State::Startup(_) | State::Held(_) | State::Trial(_)) => {
                Needs { probes: Probing::Budgeted, ..probed }
            }
        }
    }

    fn phase(&self) -> SizingPhase {
        self.state.phase()
    }
}
