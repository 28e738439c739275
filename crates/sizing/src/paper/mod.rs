//! SOBAS as published. Comments on the constants document departures from the paper.

mod congestion;
mod saturation;

use std::collections::VecDeque;

use sweetspot_units::{Bytes, Duration, Rate, Time};

use congestion::CongestionCheck;
use saturation::RateSaturation;

use crate::model::{RoundTrip, Trains};
use crate::{
    Controller, ControllerConfig, EventKind, Input, Needs, Output, Probing, SizingEvent,
    SizingPhase,
};

/// "By two maximum segments per round-trip" (section VII-A).
const SEGMENTS_PER_ROUND_TRIP: u64 = 2;

/// The share of the limit at which "the transfer's window has reached S~" (section VII-A): the
/// receive throughput is an average and lags behind a growing window.
const REACHED_SHARE: f64 = 0.95;

/// If more than this share of the window is unread after a read, the application is stalled.
const PAPER_STALL_UNREAD_SHARE: f64 = 0.5;

/// SOBAS as in section VII-A of the paper: five packet trains, the initial limit C~ x T~, two segments per round trip beyond
/// it, receive throughput per second. It sets S = R x T once, when the slope of the last five measurements is about zero and
/// none of the last 1000 probes was lost. Unlike the paper, it measures the slope for longer if congestion avoidance climbs
/// slowly.
#[derive(Debug)]
pub struct SobasPaper {
    config: ControllerConfig,
    state: PaperState,
    trains: Trains,
    saturation: RateSaturation,
    congestion: CongestionCheck,
    round_trip: RoundTrip,
    outputs: VecDeque<Output>,
}

#[derive(Debug)]
enum PaperState {
    /// The trains are being sent.
    Measuring,
    /// Limited to the initial limit plus its increases.
    Ramping { limit: Bytes, next_growth: Option<Time> },
    /// No limit: there is no capacity estimate, or the path is congested.
    Unlimited,
    /// Rate saturation was detected; the limit stays.
    Saturated,
}

impl SobasPaper {
    /// A controller before the first byte.
    pub fn new(config: &ControllerConfig) -> SobasPaper {
        // "Upon connection establishment, SOBAS sets the send and receive socket buffers to their
        // maximum possible value."
        SobasPaper {
            config: *config,
            state: PaperState::Measuring,
            trains: Trains::new(config),
            saturation: RateSaturation::default(),
            congestion: CongestionCheck::default(),
            round_trip: RoundTrip::default(),
            outputs: VecDeque::from([Output::Window(None)]),
        }
    }

    fn emit(&mut self, at: Time, kind: EventKind) {
        self.outputs.push_back(Output::Event(SizingEvent { at, kind }));
    }

    fn limit(&mut self, now: Time, window: Bytes) {
        // A window below one segment would stop the sender.
        let min = self.config.mss.min(self.config.max_window);
        let window = window.clamp(min, self.config.max_window);
        self.outputs.push_back(Output::Window(Some(window)));
        self.emit(now, EventKind::Limited { window });
    }

    fn advance(&mut self, now: Time) {
        if matches!(self.state, PaperState::Measuring) {
            self.set_initial_limit(now);
        }
        if let Some(rate) = self.saturation.poll_measurement(now) {
            self.check_reached(now, rate);
            if self.saturation.is_saturated(self.climb(rate)) {
                self.react_to_saturation(now, rate);
            }
        }
        self.grow(now);
    }

    /// "SOBAS limits the initial socket buffer size to S~ = C~ x T~."
    fn set_initial_limit(&mut self, now: Time) {
        while let Some(request) = self.trains.poll_request(now) {
            self.outputs.push_back(Output::Train(request));
        }
        if !self.trains.are_over(now) {
            return;
        }
        match (self.trains.estimate(), self.round_trip.average()) {
            (Some(rate), Some(rtt)) => {
                self.emit(now, EventKind::CapacityEstimated { rate, rtt });
                let limit = rate * rtt;
                self.limit(now, limit);
                self.state = PaperState::Ramping { limit, next_growth: None };
            }
            _ => self.state = PaperState::Unlimited,
        }
    }

    /// "If SOBAS detects that the transfer's window has reached S~ [...] the socket buffer size
    /// is further increased linearly, by two maximum segments per round-trip."
    fn grow(&mut self, now: Time) {
        let Some(rtt) = self.round_trip.average() else { return };
        let step = self.config.mss * SEGMENTS_PER_ROUND_TRIP;
        let PaperState::Ramping { limit, next_growth: Some(due) } = &mut self.state else { return };
        if now < *due {
            return;
        }
        *limit += step;
        *due = now + rtt;
        let window = *limit;
        self.limit(now, window);
    }

    /// The share by which congestion avoidance raises the sender's window in a second: half a segment per round trip with
    /// delayed ACKs. Infinite while the window fills the limit, because then the limit grows.
    fn climb(&self, rate: Rate) -> f64 {
        const SEGMENTS: f64 = 0.5;
        let Some(rtt) = self.round_trip.average() else { return f64::INFINITY };
        let window = (rate * rtt).as_f64();
        match self.state {
            PaperState::Ramping { limit, .. } if window >= limit.as_f64() * REACHED_SHARE => {
                f64::INFINITY
            }
            _ => SEGMENTS * self.config.mss.as_f64() / (window * rtt.as_secs_f64()),
        }
    }

    /// Starts the linear growth when a second's throughput shows that the limit was reached.
    fn check_reached(&mut self, now: Time, rate: Rate) {
        let Some(rtt) = self.round_trip.average() else { return };
        if let PaperState::Ramping { limit, next_growth: next @ None } = &mut self.state
            && (rate * rtt) >= limit.scaled(REACHED_SHARE)
        {
            *next = Some(now);
        }
    }

    fn react_to_saturation(&mut self, now: Time, rate: Rate) {
        let Some(rtt) = self.round_trip.average() else { return };
        if matches!(self.state, PaperState::Measuring | PaperState::Saturated) {
            return;
        }
        self.emit(now, EventKind::Saturated { rate, rtt });
        if self.congestion.is_congested() {
            if !matches!(self.state, PaperState::Unlimited) {
                self.outputs.push_back(Output::Window(None));
                self.emit(now, EventKind::Congested);
                self.state = PaperState::Unlimited;
            }
            return;
        }
        // "SOBAS limits then the receive-socket buffer size to S_rs = R_rs x T_rs", and "does not
        // attempt to readjust the socket buffer size after it has already done so once".
        self.limit(now, rate * rtt);
        self.state = PaperState::Saturated;
    }
}

impl Controller for SobasPaper {
    fn handle(&mut self, now: Time, input: &Input) {
        match *input {
            Input::Data { bytes, unread } => {
                self.trains.handle_data(now);
                self.saturation.handle_data(now, bytes);
                let window = match self.state {
                    PaperState::Ramping { limit, .. } => limit,
                    PaperState::Measuring | PaperState::Unlimited | PaperState::Saturated => {
                        self.config.max_window
                    }
                };
                if unread > window.scaled(PAPER_STALL_UNREAD_SHARE) {
                    self.saturation.handle_stall();
                }
            }
            Input::Probe(probe) => {
                self.round_trip.handle_sample(probe.rtt);
                self.trains.handle_probe(now);
                self.congestion.handle_probe(&probe);
            }
            Input::KernelRtt(rtt) => self.round_trip.handle_sample(rtt),
            Input::Train(train) => {
                let rtt = self.round_trip.average().unwrap_or(Duration::MAX);
                self.trains.handle_train(now, &train, rtt);
            }
            Input::Timeout => {}
            Input::End => {
                *self = SobasPaper::new(&self.config);
                return;
            }
            Input::Sender(_)
            | Input::MinimumRtt(_)
            | Input::OutOfOrder { .. }
            | Input::Window { .. } => return,
        }
        self.advance(now);
    }

    fn poll_timeout(&self) -> Option<Time> {
        let trains = match self.state {
            PaperState::Measuring => self.trains.poll_timeout(),
            PaperState::Ramping { next_growth, .. } => next_growth,
            PaperState::Unlimited | PaperState::Saturated => None,
        };
        [trains, self.saturation.poll_timeout()].into_iter().flatten().min()
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    fn needs(&self) -> Needs {
        Needs { probes: Probing::Periodic, trains: true, data: true, ..Needs::NOTHING }
    }

    fn phase(&self) -> SizingPhase {
        match self.state {
            PaperState::Measuring => SizingPhase::Measuring,
            PaperState::Ramping { .. } => SizingPhase::Ramping,
            PaperState::Saturated => SizingPhase::Holding,
            PaperState::Unlimited if self.congestion.is_congested() => SizingPhase::Congested,
            PaperState::Unlimited => SizingPhase::Ramping,
        }
    }
}
