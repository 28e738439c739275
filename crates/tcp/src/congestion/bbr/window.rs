use sweetspot_units::Duration;

use super::{Bbr, HIGH_GAIN, MIN_PIPE_CWND, State};
use crate::congestion::AckSample;

impl Bbr {
    /// BBRUpdateControlParameters (section 4.2).
    pub(super) fn update_control_parameters(&mut self, ack: &AckSample) {
        if self.pacing.is_none()
            && let Some(rtt) = ack.rtt
        {
            // Section 4.2.1, BBRInitPacingRate: the initial window over the first RTT.
            self.pacing = Some(HIGH_GAIN * self.initial_window / rtt.as_secs_f64().max(1e-6));
        }
        self.set_pacing(self.pacing_gain());
        self.set_cwnd(ack);
    }

    /// BBRSetPacingRateWithGain: before the pipe is full the rate never falls.
    pub(super) fn set_pacing(&mut self, gain: f64) {
        let rate = gain * self.bandwidth.get();
        if rate > 0.0 && (self.full_pipe.filled() || self.pacing.is_none_or(|now| rate > now)) {
            self.pacing = Some(rate);
        }
    }

    /// The largest burst, in packets, that the sender passes down at once (section 4.2.2,
    /// BBRSetSendQuantum).
    fn send_quantum(&self) -> f64 {
        let bits = self.pacing.unwrap_or(0.0) * self.packet.as_f64() * 8.0;
        if bits < 1.2e6 {
            1.0
        } else if bits < 24e6 {
            2.0
        } else {
            // min(pacing_rate * 1 ms, 64 KB)
            (bits / 8.0 * 1e-3).min(64e3) / self.packet.as_f64()
        }
    }

    /// The target for packets in flight at `gain`: gain BDPs and three quanta (section 4.2.3.2,
    /// BBRInflight).
    pub(super) fn inflight(&self, gain: f64) -> f64 {
        let Some(min_rtt) = self.min_rtt.get() else { return self.initial_window };
        gain * self.bdp(min_rtt) + 3.0 * self.send_quantum()
    }

    fn bdp(&self, min_rtt: Duration) -> f64 {
        self.bandwidth.get() * min_rtt.as_secs_f64()
    }

    /// BBRSetCwnd (section 4.2.3.6).
    fn set_cwnd(&mut self, ack: &AckSample) {
        let delivered = f64::from(ack.delivered);
        let target = self.inflight(self.cwnd_gain());
        self.modulate_for_recovery(ack);
        if !self.conserving {
            if self.full_pipe.filled() {
                self.cwnd = (self.cwnd + delivered).min(target);
            } else if self.cwnd < target
                || (self.bandwidth.delivered() as f64) < self.initial_window
            {
                self.cwnd += delivered;
            }
            self.cwnd = self.cwnd.max(MIN_PIPE_CWND);
        }
        if matches!(self.state, State::ProbeRtt(_)) {
            // BBRModulateCwndForProbeRTT.
            self.cwnd = self.cwnd.min(MIN_PIPE_CWND);
        }
    }

    /// BBRModulateCwndForRecovery (section 4.2.3.4).
    fn modulate_for_recovery(&mut self, ack: &AckSample) {
        if ack.lost > 0 {
            self.cwnd = (self.cwnd - f64::from(ack.lost)).max(1.0);
        }
        if self.conserving {
            self.cwnd = self.cwnd.max(f64::from(ack.in_flight + ack.delivered));
        }
    }

    /// BBRSaveCwnd: the last known good window.
    pub(super) fn save_cwnd(&mut self) {
        let held_down = self.recovering
            || self.repaired_at.is_some()
            || matches!(self.state, State::ProbeRtt(_));
        self.prior_cwnd = if held_down { self.prior_cwnd.max(self.cwnd) } else { self.cwnd };
    }

    /// BBRRestoreCwnd.
    pub(super) fn restore_cwnd(&mut self) {
        self.cwnd = self.cwnd.max(self.prior_cwnd);
    }
}
