use sweetspot_units::{Duration, Time};

use super::{Bbr, MIN_PIPE_CWND, State};
use crate::congestion::AckSample;

/// ProbeRTT: every ten seconds, the path is drained to measure its true round-trip time (section
/// 4.3.5).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum ProbeRtt {
    /// Waiting until few enough packets are in flight.
    Draining,
    /// Few enough packets are in flight, and stay so until `until` and for a whole round trip.
    Measuring { until: Time, round_done: bool },
}

/// ProbeRTTDuration.
const PROBE_RTT_DURATION: Duration = Duration::from_millis(200);

impl Bbr {
    /// BBRCheckProbeRTT.
    pub(super) fn check_probe_rtt(&mut self, ack: &AckSample, expired: bool) {
        if expired && !self.idle_restart && !matches!(self.state, State::ProbeRtt(_)) {
            self.save_cwnd();
            self.state = State::ProbeRtt(ProbeRtt::Draining);
        }
        if let State::ProbeRtt(probe) = self.state {
            self.handle_probe_rtt(ack, probe);
        }
        self.idle_restart = false;
    }

    /// BBRHandleProbeRTT.
    fn handle_probe_rtt(&mut self, ack: &AckSample, probe: ProbeRtt) {
        self.bandwidth.starve(ack.in_flight);
        match probe {
            ProbeRtt::Draining if f64::from(ack.in_flight) <= MIN_PIPE_CWND => {
                self.bandwidth.start_round();
                let until = ack.now + PROBE_RTT_DURATION;
                self.state = State::ProbeRtt(ProbeRtt::Measuring { until, round_done: false });
            }
            ProbeRtt::Draining => {}
            ProbeRtt::Measuring { until, round_done } => {
                let round_done = round_done || self.bandwidth.round_start();
                if round_done && ack.now > until {
                    self.min_rtt.confirm(ack.now);
                    self.restore_cwnd();
                    self.leave_probe_rtt(ack.now);
                } else {
                    self.state = State::ProbeRtt(ProbeRtt::Measuring { until, round_done });
                }
            }
        }
    }

    fn leave_probe_rtt(&mut self, now: Time) {
        if self.full_pipe.filled() {
            self.enter_probe_bandwidth(now);
        } else {
            self.state = State::Startup;
        }
    }
}
