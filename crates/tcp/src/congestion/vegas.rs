use sweetspot_units::{Duration, Rate, Time};

use super::{AckSample, CongestionConfig, CongestionControl, CongestionEvent};

/// TCP Vegas (Brakmo and Peterson, IEEE JSAC 13(8), 1995). It keeps between [`Vegas::ALPHA`] and
/// [`Vegas::BETA`] packets of its own in the bottleneck's queue. Once per round trip it compares the
/// RTT with the lowest one seen.
///
/// The thresholds are ns-2's (`v_alpha_` 1, `v_beta_` 3, `v_gamma_` 1). The RTT of a round is its
/// lowest sample, as in Linux, because delayed ACKs distort the average. Vegas' own early
/// retransmission belongs to the sender and is not part of this congestion control.
#[derive(Debug, Clone)]
pub struct Vegas {
    cwnd: f64,
    ssthresh: f64,
    initial_window: f64,
    base_rtt: Option<Duration>,
    round_min: Option<Duration>,
    round_samples: u32,
    round_end: u64,
    /// Slow start grows only in every other round, so that the rounds between can be evaluated.
    growing: bool,
}

/// Queued packets that end slow start: gamma.
const SLOW_START_QUEUE: f64 = 1.0;
/// A round with fewer samples is not evaluated (Linux `tcp_vegas_cong_avoid`: cntRTT <= 2).
const MIN_SAMPLES: u32 = 3;
const MIN_WINDOW: f64 = 2.0;

impl Vegas {
    /// The minimum number of packets to keep queued.
    pub const ALPHA: f64 = 1.0;
    /// The maximum number of packets to keep queued.
    pub const BETA: f64 = 3.0;

    /// The control at the start of a connection.
    pub fn new(config: &CongestionConfig) -> Vegas {
        Vegas {
            cwnd: config.initial_window,
            ssthresh: config.initial_ssthresh,
            initial_window: config.initial_window,
            base_rtt: None,
            round_min: None,
            round_samples: 0,
            round_end: 0,
            growing: true,
        }
    }

    fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Adjusts the window, once per round trip.
    fn judge(&mut self, cwnd_limited: bool) {
        let (Some(rtt), Some(base)) = (self.round_min, self.base_rtt) else { return };
        // Diff = (Expected - Actual) baseRTT, in packets: cwnd (RTT - baseRTT) / RTT. Vegas
        // compares rates: expected = cwnd / baseRTT, actual = cwnd / RTT.
        let diff = self.cwnd * rtt.saturating_sub(base).as_secs_f64() / rtt.as_secs_f64();
        if self.in_slow_start() {
            self.growing = !self.growing;
            if diff > SLOW_START_QUEUE {
                // ns-2 `VegasTcpAgent::recv`: ssthresh_ = 2; cwnd_ -= cwnd_ / 8.
                self.cwnd = (self.cwnd * 7.0 / 8.0).max(MIN_WINDOW);
                self.ssthresh = MIN_WINDOW;
            }
        } else if diff > Vegas::BETA {
            self.cwnd = (self.cwnd - 1.0).max(MIN_WINDOW);
        } else if diff < Vegas::ALPHA && cwnd_limited {
            self.cwnd += 1.0;
        }
    }

    /// A loss that Vegas did not prevent reduces the window by a quarter (ns-2: win -= win >> 2).
    fn decrease(&mut self, event: &CongestionEvent) {
        let used = self.cwnd.min(event.window);
        self.cwnd = (used * 0.75).max(MIN_WINDOW);
        self.ssthresh = MIN_WINDOW;
    }
}

impl CongestionControl for Vegas {
    fn handle_ack(&mut self, ack: &AckSample) {
        if let Some(rtt) = ack.rtt {
            self.base_rtt = Some(self.base_rtt.map_or(rtt, |base| base.min(rtt)));
            self.round_min = Some(self.round_min.map_or(rtt, |min| min.min(rtt)));
            self.round_samples += 1;
        }
        if ack.acked == 0 || ack.recovering {
            return;
        }
        let round_over = ack.una >= self.round_end;
        if round_over {
            if self.round_samples >= MIN_SAMPLES {
                self.judge(ack.cwnd_limited);
            } else if !self.in_slow_start() && ack.cwnd_limited {
                self.cwnd += 1.0;
            }
            self.round_end = ack.nxt;
            self.round_min = None;
            self.round_samples = 0;
        }
        if self.in_slow_start() && self.growing && ack.cwnd_limited {
            self.cwnd += 1.0;
        }
    }

    fn handle_recovery(&mut self, event: &CongestionEvent) {
        self.decrease(event);
    }

    fn handle_recovered(&mut self, _now: Time) {
        self.round_min = None;
        self.round_samples = 0;
    }

    fn handle_timeout(&mut self, event: &CongestionEvent) {
        // As in Reno, the threshold is half of the window.
        self.ssthresh = (self.cwnd.min(event.window) / 2.0).max(MIN_WINDOW);
        self.cwnd = 1.0;
        self.growing = true;
    }

    fn handle_ecn(&mut self, event: &CongestionEvent) {
        self.decrease(event);
    }

    fn handle_restart(&mut self, _now: Time) {
        self.cwnd = self.cwnd.min(self.initial_window);
    }

    fn cwnd(&self) -> f64 {
        self.cwnd
    }

    fn ssthresh(&self) -> f64 {
        self.ssthresh
    }

    fn pacing_rate(&self) -> Option<Rate> {
        None
    }
}
