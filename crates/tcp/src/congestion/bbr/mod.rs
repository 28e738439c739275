//! BBR version 1 (draft-cardwell-iccrg-bbr-congestion-control-00): a model of the path instead
//! of a reaction to loss. Section numbers below are the draft's.
//!
//! `bandwidth` and `min_rtt` are the model, `pipe` judges whether the path is full, `cycle` and
//! `probe_rtt` probe, and `window` derives the window and the pacing rate.

mod bandwidth;
mod cycle;
mod min_rtt;
mod pipe;
mod probe_rtt;
mod window;

use sweetspot_units::{Bytes, Duration, Rate, Time};

use self::bandwidth::Bandwidth;
use self::cycle::Cycle;
use self::min_rtt::MinRtt;
use self::pipe::FullPipe;
use self::probe_rtt::ProbeRtt;
use super::{AckSample, CongestionConfig, CongestionControl, CongestionEvent};

/// BBR's state for one connection. It needs rate samples
/// ([`super::Algorithm::needs_delivery_rate`]) and a sender that paces.
#[derive(Debug, Clone)]
pub struct Bbr {
    state: State,
    bandwidth: Bandwidth,
    min_rtt: MinRtt,
    full_pipe: FullPipe,
    cycle: Cycle,
    packet: Bytes,
    initial_window: f64,
    cwnd: f64,
    /// Packets per second; `None` before the first RTT sample.
    pacing: Option<f64>,
    /// The window to restore after a recovery or ProbeRTT.
    prior_cwnd: f64,
    /// The first round trip of a recovery: packet conservation (section 4.2.3.4).
    conserving: bool,
    recovering: bool,
    /// SND.NXT when a timeout expired: losses are repaired once this is acknowledged.
    repaired_at: Option<u64>,
    idle_restart: bool,
}

/// Section 3.4, the state machine.
#[derive(Debug, Clone, Copy, PartialEq)]
enum State {
    Startup,
    Drain,
    ProbeBandwidth,
    ProbeRtt(ProbeRtt),
}

/// 2/ln 2: the smallest gain that doubles the rate each round (section 4.1.1.3).
const HIGH_GAIN: f64 = 2.885;
/// Minimum window, in packets, with which delivery continues despite delayed ACKs: BBRMinPipeCwnd
/// (section 4.1.2).
const MIN_PIPE_CWND: f64 = 4.0;

impl Bbr {
    /// The control at the start of a connection (section 4.3.1, BBROnConnectionInit).
    pub fn new(config: &CongestionConfig) -> Bbr {
        Bbr {
            state: State::Startup,
            bandwidth: Bandwidth::default(),
            min_rtt: MinRtt::default(),
            full_pipe: FullPipe::default(),
            cycle: Cycle::new(config.seed),
            packet: config.packet,
            initial_window: config.initial_window,
            cwnd: config.initial_window,
            pacing: None,
            prior_cwnd: 0.0,
            conserving: false,
            recovering: false,
            repaired_at: None,
            idle_restart: false,
        }
    }

    fn pacing_gain(&self) -> f64 {
        match self.state {
            State::Startup => HIGH_GAIN,
            State::Drain => 1.0 / HIGH_GAIN,
            State::ProbeBandwidth => self.cycle.gain(),
            State::ProbeRtt(_) => 1.0,
        }
    }

    fn cwnd_gain(&self) -> f64 {
        match self.state {
            State::Startup | State::Drain => HIGH_GAIN,
            // Section 4.2.3.2: room for delayed and aggregated ACKs.
            State::ProbeBandwidth => 2.0,
            State::ProbeRtt(_) => 1.0,
        }
    }

    /// Section 4.3.2.3, BBREnterProbeBW.
    fn enter_probe_bandwidth(&mut self, now: Time) {
        self.state = State::ProbeBandwidth;
        self.cycle.start(now);
    }

    /// BBRUpdateModelAndState (section 4.1).
    fn update_model_and_state(&mut self, ack: &AckSample) {
        self.bandwidth.handle_ack(ack);
        if self.bandwidth.round_start() {
            self.conserving = false;
        }
        self.check_cycle_phase(ack);
        self.full_pipe.handle_ack(ack, &self.bandwidth);
        self.check_drain(ack);
        let expired = self.min_rtt.handle_ack(ack);
        self.check_probe_rtt(ack, expired);
    }

    fn check_cycle_phase(&mut self, ack: &AckSample) {
        if self.state != State::ProbeBandwidth {
            return;
        }
        let inflight = |gain| self.inflight(gain);
        let min_rtt = self.min_rtt.get().unwrap_or(Duration::MAX);
        if self.cycle.phase_is_over(ack, min_rtt, inflight) {
            self.cycle.advance(ack.now);
        }
    }

    /// Section 4.3.3: Drain removes the queue that Startup built.
    fn check_drain(&mut self, ack: &AckSample) {
        if self.state == State::Startup && self.full_pipe.filled() {
            self.state = State::Drain;
        }
        if self.state == State::Drain && f64::from(ack.in_flight) <= self.inflight(1.0) {
            self.enter_probe_bandwidth(ack.now);
        }
    }
}

impl CongestionControl for Bbr {
    fn handle_ack(&mut self, ack: &AckSample) {
        self.update_model_and_state(ack);
        self.update_control_parameters(ack);
        if self.repaired_at.is_some_and(|end| ack.una >= end) {
            self.repaired_at = None;
            self.restore_cwnd();
        }
    }

    /// Section 4.2.3.4: on entering fast recovery.
    fn handle_recovery(&mut self, event: &CongestionEvent) {
        self.save_cwnd();
        self.recovering = true;
        self.conserving = true;
        self.bandwidth.start_round();
        self.cwnd = f64::from(event.in_flight) + 1.0;
    }

    fn handle_recovered(&mut self, _now: Time) {
        self.recovering = false;
        self.conserving = false;
        self.restore_cwnd();
    }

    /// Section 4.2.3.4: on a timeout, start over with one packet.
    fn handle_timeout(&mut self, event: &CongestionEvent) {
        self.save_cwnd();
        self.recovering = false;
        self.conserving = false;
        self.repaired_at = Some(event.nxt);
        self.cwnd = 1.0;
    }

    /// Version 1 ignores marks.
    fn handle_ecn(&mut self, _event: &CongestionEvent) {}

    /// Section 4.3.4.4: restart at the estimated bandwidth, without a gain.
    fn handle_restart(&mut self, _now: Time) {
        self.idle_restart = true;
        if self.state == State::ProbeBandwidth {
            self.set_pacing(1.0);
        }
    }

    fn cwnd(&self) -> f64 {
        self.cwnd.max(1.0)
    }

    /// BBR has no threshold.
    fn ssthresh(&self) -> f64 {
        f64::INFINITY
    }

    fn pacing_rate(&self) -> Option<Rate> {
        let bits = self.pacing? * self.packet.as_f64() * 8.0;
        Some(Rate::from_f64(bits).max(Rate::from_bits_per_second(1)))
    }
}
