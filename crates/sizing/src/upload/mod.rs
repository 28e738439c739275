//! Pacing of other programs' uploads. A loss-based sender fills the bottleneck's buffer until the buffer overflows. If
//! it is paced just below the path's rate, it fills the path and leaves the buffer empty.

mod drain;
mod held;
mod open;
mod queue;
mod state;
mod trial;
mod yielding;

use std::collections::VecDeque;

use sweetspot_units::{Bytes, Duration, Rate, Time};

use state::PacingState;

use crate::model::{DeliveryRate, Epoch, Epochs, MinRtt, RoundTrip};
use crate::target_delay::TargetDelay;
use crate::{
    Controller, EventKind, Input, Needs, Output, PROBE_SIZE, Reason, SavedWindow, SizingEvent,
    SizingPhase,
};
use held::HeldUpload;
use queue::target_queue;
use trial::PaceTrial;

/// The shortest epoch; epochs last a round trip. It contains a few samples of a tuner that samples every 25 ms. At half this
/// value, programs with little to send would seem to fill their path.
const MIN_UPLOAD_EPOCH: Duration = Duration::from_millis(100);

/// State of a less-than-best-effort upload.
#[derive(Debug, Clone, Copy)]
struct Background {
    mss: Bytes,
    /// Another queue of up to this delay is tolerated.
    target: TargetDelay,
    /// The highest held rate: alone, the path's capacity.
    capacity: Rate,
    /// Segments retransmitted in the last report.
    retransmitted: Option<u64>,
}

/// Paces an upload at the rate that fills the path but not its buffer, if that rate can be
/// measured. It runs at the sender and decides whenever payload is delivered.
#[derive(Debug)]
pub struct Upload {
    state: PacingState,
    epochs: Epochs,
    round_trip: RoundTrip,
    min_rtt: MinRtt,
    delivery_rate: DeliveryRate,
    /// Data in flight in the sender's last report.
    in_flight: Bytes,
    starved: bool,
    pacing: Option<Rate>,
    background: Option<Background>,
    /// Delivery time of the upload's first payload.
    began: Time,
    outputs: VecDeque<Output>,
}

impl Default for Upload {
    fn default() -> Upload {
        Upload {
            state: PacingState::Measuring { last: Rate::ZERO },
            epochs: Epochs::new(MIN_UPLOAD_EPOCH),
            round_trip: RoundTrip::default(),
            min_rtt: MinRtt::default(),
            delivery_rate: DeliveryRate::default(),
            in_flight: Bytes::ZERO,
            starved: false,
            pacing: None,
            background: None,
            began: Time::ZERO,
            outputs: VecDeque::new(),
        }
    }
}

impl Upload {
    /// A less-than-best-effort upload of segments of `mss` bytes: it yields to cross traffic that keeps a queue.
    pub fn background(mss: Bytes) -> Upload {
        let (target, capacity) = (TargetDelay::default(), Rate::ZERO);
        let background = Background { mss, target, capacity, retransmitted: None };
        Upload { background: Some(background), ..Upload::default() }
    }

    /// An upload over a path for which an earlier one left `saved`: it is paced at that rate from the beginning (RFC 9959).
    pub fn resumed(now: Time, saved: SavedWindow) -> Upload {
        let (base, mut upload) = (saved.minimum_rtt, Upload::default());
        let pace = saved.window / base;
        let held = HeldUpload::new(PaceTrial::new(now, pace, base));
        upload.state = PacingState::Held(held);
        upload.report_phase(now, Reason::PathRemembered);
        upload.pace(Some(pace));
        upload
    }

    /// The parameters to save for the path. `None`: the transfer found none; `Some(None)`: the path is unknown.
    fn saved(&self) -> Option<Option<SavedWindow>> {
        if self.background.is_some() {
            // Its rate depends on cross traffic.
            return None;
        }
        match (&self.state, self.pacing, self.min_rtt.get()) {
            (PacingState::Measuring { .. } | PacingState::Ended, ..) => None,
            (PacingState::Held(held), Some(pace), Some(minimum_rtt)) => {
                let window = held.trial.base_pace(pace) * minimum_rtt;
                // No window: the RTT is too short to be measured.
                Some((window > Bytes::ZERO).then_some(SavedWindow { window, minimum_rtt }))
            }
            _ => Some(None),
        }
    }

    /// Changes the state; there is no other way to do so.
    fn transition_to(&mut self, now: Time, next: PacingState, reason: Reason) {
        debug_assert!(self.state.may_become(&next, reason), "{:?} {reason}", self.state);
        self.state = next;
        self.report_phase(now, reason);
    }

    fn report_phase(&mut self, now: Time, reason: Reason) {
        let kind = EventKind::Entered { phase: self.state.phase(), reason };
        self.outputs.push_back(Output::Event(SizingEvent { at: now, kind }));
    }

    /// Sets the pacing rate: at least one small packet per epoch, because less cannot be timed.
    fn pace(&mut self, pacing: Option<Rate>) {
        let pacing = pacing.map(|pace| pace.max(PROBE_SIZE / MIN_UPLOAD_EPOCH));
        if self.pacing != pacing {
            self.pacing = pacing;
            self.outputs.push_back(Output::Pacing(pacing));
        }
    }

    /// The queueing delay of others that a less-than-best-effort upload tolerates; otherwise none.
    fn tolerated(&self) -> Duration {
        self.background.map_or(Duration::ZERO, |background| background.target.get())
    }

    /// The queueing delay: the latest RTT minus `base`.
    fn queue(&self, base: Duration) -> Duration {
        self.round_trip.latest().saturating_sub(base)
    }

    fn handle_data(&mut self, now: Time, bytes: Bytes) {
        if matches!(self.state, PacingState::Ended) {
            let background = self.background;
            *self = Upload { background, ..Upload::default() };
        }
        if self.began == Time::ZERO {
            self.began = now;
        }
        let kept = self.min_rtt.get().map_or(Duration::MAX, |base| base + self.measured_for(now));
        self.delivery_rate.handle_delivery(now, bytes, kept);
        // The sender does not know whether the peer reads its data, and does not need to.
        self.epochs.handle_data(now, bytes, Bytes::ZERO, Bytes::ZERO);
        self.advance(now);
    }

    /// A loss lowers the target of a less-than-best-effort upload.
    fn note_losses(&mut self, retransmitted: u64) {
        let queue = self.min_rtt.get().map(|base| self.queue(base));
        if let Some(background) = &mut self.background {
            let before = background.retransmitted.replace(retransmitted);
            if before.is_some_and(|before| retransmitted > before) {
                background.target.handle_loss(queue);
            }
        }
    }

    /// The duration of the current measurement.
    fn measured_for(&self, now: Time) -> Duration {
        let began = match &self.state {
            PacingState::Draining(drain) => Some(drain.began()),
            PacingState::Held(held) => held.trial.began(),
            PacingState::Measuring { .. }
            | PacingState::Yielding(_)
            | PacingState::Open(_)
            | PacingState::Ended => None,
        };
        began.map_or(Duration::ZERO, |began| now.since(began))
    }

    fn end(&mut self, now: Time) {
        self.outputs.extend(self.saved().map(Output::Saved));
        if !matches!(self.state, PacingState::Ended) {
            self.transition_to(now, PacingState::Ended, Reason::Ended);
        }
        self.pace(None);
    }

    fn advance(&mut self, now: Time) {
        let Some(base) = self.min_rtt.get() else { return };
        self.drain(now, base);
        self.check_yield(now, base);
        self.probe(now, base);
        let epoch = self.epochs.poll_epoch(now, base, &mut self.round_trip);
        // If a queue stands throughout, the path is busy even if an application seems to wait: a full send buffer looks like
        // an application that has nothing to send.
        let is_busy = |e: &Epoch| !e.stalled || e.rtt > base + target_queue(base, e.rate);
        let Some(epoch) = epoch.filter(|e| e.rate > Rate::ZERO && is_busy(e)) else { return };
        match self.state {
            PacingState::Measuring { last } => self.measure(now, &epoch, base, last),
            PacingState::Held(_) => self.check_hold(now, &epoch, base),
            PacingState::Open(_) => self.reconsider(now, &epoch),
            PacingState::Draining(_) | PacingState::Yielding(_) | PacingState::Ended => {}
        }
    }

    /// Waits for a standing queue at a rate that no longer rises: the path is full.
    fn measure(&mut self, now: Time, epoch: &Epoch, base: Duration, last: Rate) {
        let queue = epoch.rtt.saturating_sub(base);
        if queue > target_queue(base, epoch.rate) && epoch.rate <= last {
            return self.begin_drain(now, epoch.rate, base, Reason::RateInelastic);
        }
        self.state = PacingState::Measuring { last: epoch.rate };
    }
}

impl Controller for Upload {
    fn handle(&mut self, now: Time, input: &Input) {
        match *input {
            Input::Data { bytes, .. } => self.handle_data(now, bytes),
            Input::Sender(report) => {
                (self.in_flight, self.starved) = (report.in_flight, report.starved);
                self.note_losses(report.retransmitted);
                if report.starved {
                    self.epochs.handle_starvation();
                }
            }
            Input::KernelRtt(rtt) => {
                self.round_trip.handle_sample(rtt);
                self.min_rtt.handle_sample(rtt);
            }
            Input::MinimumRtt(rtt) => self.min_rtt.handle_sample(rtt),
            Input::Timeout => self.advance(now),
            Input::End => self.end(now),
            Input::Probe(_) | Input::OutOfOrder { .. } | Input::Train(_) | Input::Window { .. } => {
            }
        }
    }

    fn poll_timeout(&self) -> Option<Time> {
        match &self.state {
            PacingState::Held(held) => held.trial.poll_timeout(),
            PacingState::Measuring { .. }
            | PacingState::Draining(_)
            | PacingState::Yielding(_)
            | PacingState::Open(_)
            | PacingState::Ended => None,
        }
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    fn needs(&self) -> Needs {
        Needs { minimum_rtt: true, ..Needs::KERNEL }
    }

    fn phase(&self) -> SizingPhase {
        self.state.phase()
    }
}
