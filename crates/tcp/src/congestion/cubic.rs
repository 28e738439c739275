use sweetspot_units::{Duration, Rate, Time};

use super::hystart::{HyStart, SlowStart};
use super::{AckSample, CongestionConfig, CongestionControl, CongestionEvent, Growth};

/// CUBIC (RFC 9438) with HyStart++ (RFC 9406) in its first slow start.
#[derive(Debug, Clone)]
pub struct Cubic {
    cwnd: f64,
    ssthresh: f64,
    initial_window: f64,
    growth: Growth,
    /// The window at the last reduction, lowered by fast convergence: W_max.
    w_max: f64,
    /// The window just before the last reduction: cwnd_prior.
    prior: f64,
    epoch: Option<Epoch>,
    hystart: HyStart,
    last_ack: Time,
    srtt: Option<Duration>,
}

/// A congestion avoidance stage.
#[derive(Debug, Clone, Copy)]
struct Epoch {
    /// t_epoch.
    start: Time,
    /// K, in seconds.
    k: f64,
    /// The plateau of this stage's curve.
    w_max: f64,
    /// W_est.
    reno: f64,
}

/// RFC 9438 section 5: in packets per cubic second.
const CUBIC_C: f64 = 0.4;
/// Section 4.6: beta_cubic.
const BETA_CUBIC: f64 = 0.7;
/// Section 4.3: alpha_cubic = 3 (1 - beta) / (1 + beta), Reno's rate of growth given beta.
const ALPHA_CUBIC: f64 = 3.0 * (1.0 - BETA_CUBIC) / (1.0 + BETA_CUBIC);

impl Cubic {
    /// The control at the start of a connection.
    pub fn new(config: &CongestionConfig) -> Cubic {
        Cubic {
            cwnd: config.initial_window,
            ssthresh: config.initial_ssthresh,
            initial_window: config.initial_window,
            growth: config.growth,
            w_max: 0.0,
            prior: 0.0,
            epoch: None,
            hystart: HyStart::default(),
            last_ack: Time::ZERO,
            srtt: None,
        }
    }

    fn slow_start(&mut self, ack: &AckSample, counted: f64) {
        match self.hystart.handle_ack(ack, counted) {
            SlowStart::Grow(packets) => self.cwnd += packets,
            SlowStart::Exit => self.ssthresh = self.cwnd,
        }
    }

    /// Begins a congestion avoidance stage (RFC 9438 section 4.2, equation (2)).
    fn begin(&self, now: Time) -> Epoch {
        // After a timeout, or if slow start ended without a loss: K = 0 and W_max = cwnd (sections 4.8 and 4.10).
        let w_max = self.w_max.max(self.cwnd);
        let k = libm::cbrt((w_max - self.cwnd) / CUBIC_C);
        Epoch { start: now, k, w_max, reno: self.cwnd }
    }

    fn congestion_avoidance(&mut self, ack: &AckSample, counted: f64) {
        let mut epoch = self.epoch.unwrap_or_else(|| self.begin(ack.now));
        // Section 4.3, equation (4): alpha is 1 once the window of the last reduction is back.
        let alpha = if epoch.reno < self.prior { ALPHA_CUBIC } else { 1.0 };
        epoch.reno += alpha * f64::from(ack.acked) / self.cwnd;
        self.epoch = Some(epoch);

        let t = ack.now.since(epoch.start);
        if epoch.at(t) < epoch.reno {
            // The Reno-friendly region (section 4.3).
            self.cwnd = self.cwnd.max(epoch.reno);
        } else {
            // Sections 4.2, 4.4 and 4.5.
            let target =
                epoch.at(t + self.srtt.unwrap_or(Duration::ZERO)).clamp(self.cwnd, 1.5 * self.cwnd);
            self.cwnd += counted * (target - self.cwnd) / self.cwnd;
        }
    }

    /// Multiplicative decrease (section 4.6) with fast convergence (section 4.7).
    fn decrease(&mut self, event: &CongestionEvent) {
        // The smaller of cwnd and the sender's other bounds. Section 4.6 asks for FlightSize, but duplicate ACKs have
        // already reduced that here.
        let used = self.cwnd.min(event.window);
        self.w_max = if used < self.w_max { used * (1.0 + BETA_CUBIC) / 2.0 } else { used };
        self.prior = used;
        self.ssthresh = (used * BETA_CUBIC).max(2.0);
        self.epoch = None;
        self.hystart.handle_congestion();
    }
}

impl Epoch {
    /// W_cubic(t), equation (1).
    fn at(&self, t: Duration) -> f64 {
        let x = t.as_secs_f64() - self.k;
        CUBIC_C * x * x * x + self.w_max
    }
}

impl CongestionControl for Cubic {
    fn handle_ack(&mut self, ack: &AckSample) {
        let idle = ack.now.since(self.last_ack);
        self.last_ack = ack.now;
        if let Some(rtt) = ack.rtt {
            // RFC 6298 section 2.3, alpha 1/8.
            self.srtt = Some(self.srtt.map_or(rtt, |srtt| (srtt * 7 + rtt) / 8));
        }
        if ack.acked == 0 || ack.recovering {
            return;
        }
        if !ack.cwnd_limited {
            // Sections 5.8 and 4.2: time in which the application or the receiver was the limit does not count.
            if let Some(epoch) = &mut self.epoch {
                epoch.start += idle;
            }
            return;
        }
        let counted = match self.growth {
            Growth::PerAck => 1.0,
            Growth::PerPacket => f64::from(ack.acked),
        };
        if self.cwnd < self.ssthresh {
            self.slow_start(ack, counted);
        } else {
            self.congestion_avoidance(ack, counted);
        }
    }

    fn handle_recovery(&mut self, event: &CongestionEvent) {
        self.decrease(event);
        self.cwnd = self.ssthresh;
    }

    fn handle_recovered(&mut self, _now: Time) {}

    fn handle_timeout(&mut self, event: &CongestionEvent) {
        self.decrease(event);
        // Section 4.8: the curve starts again from the end of slow start.
        self.w_max = 0.0;
        self.cwnd = 1.0;
    }

    fn handle_ecn(&mut self, event: &CongestionEvent) {
        self.decrease(event);
        self.cwnd = self.ssthresh;
    }

    fn handle_restart(&mut self, _now: Time) {
        self.cwnd = self.cwnd.min(self.initial_window);
        self.epoch = None;
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
