//! Reno's throughput at a given loss, including timeouts: Padhye, Firoiu, Towsley, Kurose, "Modeling TCP Throughput: A Simple
//! Model and its Empirical Validation", SIGCOMM 1998 (PFTK). With CUBIC's window it gives CUBIC's throughput.

use sweetspot_units::{Bytes, Duration, Probability, Rate};

use super::require_lossy;
use super::response::{CUBIC_BETA, CUBIC_C, LossResponse};
use crate::Result;
use crate::error::require;

/// A flow on a path with given loss and RTT.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Flow {
    pub(super) mss: Bytes,
    pub(super) rtt: Duration,
    timeout: Duration,
    pub(super) loss: Probability,
    segments_per_ack: f64,
}

impl Flow {
    /// A flow with segments of `mss`, mean `rtt`, first retransmission `timeout` T_0 and `loss` p (the probability of loss
    /// events; each ends a round), with one ACK per two segments (b = 2).
    ///
    /// # Errors
    /// If `mss`, `rtt` or `timeout` is zero, or `loss` is not between 0 and 1.
    pub fn new(mss: Bytes, rtt: Duration, timeout: Duration, loss: Probability) -> Result<Flow> {
        require_lossy(mss, rtt, loss)?;
        require(timeout > Duration::ZERO, "timeout", timeout, "it must be above zero")?;
        Ok(Flow { mss, rtt, timeout, loss, segments_per_ack: 2.0 })
    }

    /// The same flow with one ACK per `segments` segments (the paper's b; 1 is an ACK for each).
    ///
    /// # Errors
    /// If `segments` is zero.
    pub fn with_segments_per_ack(self, segments: u32) -> Result<Flow> {
        require(segments > 0, "segments per ACK", segments, "1 or more")?;
        Ok(Flow { segments_per_ack: f64::from(segments), ..self })
    }

    // PFTK eq. (20): B(p) = 1/RTT sqrt(3 / 2bp).
    /// The square-root formula: duplicate ACKs detect all losses.
    pub fn square_root(&self) -> Rate {
        self.rate(self.reno_window() / self.rtt.as_secs_f64())
    }

    // PFTK §2.2, approximation: B(p) = 1 / (RTT sqrt(2bp/3) + T_0 min(1, 3 sqrt(3bp/8)) p (1 + 32 p^2)).
    /// The approximate formula with timeouts.
    pub fn approximate(&self) -> Rate {
        self.with_mean_window(self.mean_window(LossResponse::Reno))
    }

    // RFC 9438, section 5.1: AVG_W = (C (3 + beta) / (4 (1 - beta)))^(1/4) (T / p)^(3/4), or Reno's window if that is larger
    // (section 4.3).
    /// CUBIC's rate, with the timeouts of the approximate formula.
    pub fn cubic(&self) -> Rate {
        self.with_mean_window(self.mean_window(LossResponse::Cubic))
    }

    /// The mean window in segments if duplicate ACKs detect every loss and only losses limit the window.
    pub(super) fn mean_window(&self, response: LossResponse) -> f64 {
        if response == LossResponse::Reno {
            return self.reno_window();
        }
        let factor = CUBIC_C * (3.0 + CUBIC_BETA) / (4.0 * (1.0 - CUBIC_BETA));
        let ratio = self.rtt.as_secs_f64() / self.loss.get();
        let window = libm::pow(factor, 0.25) * libm::pow(ratio, 0.75);
        window.max(self.reno_window())
    }

    /// Reno's mean window in segments, if duplicate ACKs detect every loss.
    fn reno_window(&self) -> f64 {
        libm::sqrt(3.0 / (2.0 * self.segments_per_ack * self.loss.get()))
    }

    /// The rate with a mean window of `segments` between losses, including timeouts.
    fn with_mean_window(&self, segments: f64) -> Rate {
        self.rate(1.0 / (self.rtt.as_secs_f64() / segments + self.waiting()))
    }

    /// Seconds per packet that timeouts add.
    pub(super) fn waiting(&self) -> f64 {
        let (b, p) = (self.segments_per_ack, self.loss.get());
        let share = (3.0 * libm::sqrt(3.0 * b * p / 8.0)).min(1.0);
        self.timeout.as_secs_f64() * share * p * (1.0 + 32.0 * p * p)
    }

    // PFTK §2.2 and §2.3: the full model, without and with the window limit W_m.
    /// The full formula; `window` is the largest window that the hosts allow.
    ///
    /// # Errors
    /// If `window` holds less than one segment.
    pub fn full(&self, window: Option<Bytes>) -> Result<Rate> {
        let limit = window.map_or(f64::INFINITY, |w| w.as_f64() / self.mss.as_f64());
        require(limit >= 1.0, "window", format!("{limit:.2} segments"), "one segment or more")?;
        let (b, p) = (self.segments_per_ack, self.loss.get());
        let (rtt, timeout) = (self.rtt.as_secs_f64(), self.timeout.as_secs_f64());

        // PFTK §2.1, E[W]: the mean window at the end of a period limited only by loss.
        let mid = (2.0 + b) / (3.0 * b);
        let unlimited = mid + libm::sqrt(8.0 * (1.0 - p) / (3.0 * b * p) + mid * mid);
        let peak = unlimited.min(limit);
        // The rounds of a period: growth throughout, or growth and then a constant window.
        let rounds = if unlimited < limit {
            b / 2.0 * unlimited + 1.0
        } else {
            b / 8.0 * limit + (1.0 - p) / (p * limit) + 2.0
        };
        let timeouts = timeout_share(p, peak);
        let packets = (1.0 - p) / p + peak + timeouts / (1.0 - p);
        let seconds = rtt * rounds + timeouts * timeout * backoff(p) / (1.0 - p);
        Ok(self.rate(packets / seconds))
    }

    // SOBAS eq. (9), after PFTK eq. (32): R(S) = min(S/T, f(T, p)).
    /// Throughput on a path that was congested before the flow started. A socket buffer can only reduce it, so the best one
    /// is any that never limits.
    pub fn on_congested_path(&self, socket_buffer: Bytes) -> Rate {
        (socket_buffer / self.rtt).min(self.approximate())
    }

    pub(super) fn rate(&self, packets_per_second: f64) -> Rate {
        Rate::from_f64(packets_per_second * self.mss.as_f64() * 8.0)
    }
}

// PFTK §2.2, Q(w).
/// The share of loss events at a window of `w` segments that end in a timeout.
fn timeout_share(p: f64, w: f64) -> f64 {
    if w <= 3.0 {
        return 1.0;
    }
    // (1-p)^n and 1 - (1-p)^n, computed with logarithms to be exact for tiny p.
    let log = libm::log1p(-p);
    let kept = |n: f64| libm::exp(n * log);
    let lost = |n: f64| -libm::expm1(n * log);
    (lost(3.0) * (1.0 + kept(3.0) * lost(w - 3.0)) / lost(w)).min(1.0)
}

// PFTK §2.2, f(p) = 1 + p + 2p^2 + 4p^3 + 8p^4 + 16p^5 + 32p^6.
/// The mean length of a series of timeouts in units of the first timeout, times 1 - p: each timeout is twice the previous
/// one, up to a factor of 64.
fn backoff(p: f64) -> f64 {
    let powers = [1.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0];
    powers.iter().rev().fold(0.0, |sum, c| sum * p + c)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(p: f64) -> Flow {
        let loss = Probability::new(p).unwrap();
        Flow::new(Bytes::new(1000), Duration::from_millis(100), Duration::from_secs(1), loss)
            .unwrap()
    }

    #[test]
    fn the_square_root_formula_matches_a_hand_calculation() {
        // b = 2, p = 0.0003: sqrt(3 / 0.0012) = 50 segments per 0.1 s = 4 Mbit/s.
        assert_eq!(flow(3e-4).square_root(), Rate::from_f64(4e6));
        // b = 1: sqrt(2) more.
        let each = flow(3e-4).with_segments_per_ack(1).unwrap().square_root();
        assert!((each.as_f64() / 4e6 - core::f64::consts::SQRT_2).abs() < 1e-6);
    }

    #[test]
    fn the_approximate_formula_matches_a_hand_calculation() {
        // p = 0.01, b = 2: RTT term 0.1 * sqrt(0.013333) = 0.0115470; timeout term
        // 3 sqrt(0.0075) = 0.259808, * 0.01 * 1.0032 = 0.00260639; 1 / 0.0141534 = 70.6544
        // segments/s = 565.235 kbit/s.
        let rate = flow(0.01).approximate().as_f64();
        assert!((rate - 565_235.0).abs() < 10.0, "{rate}");
    }

    #[test]
    fn cubic_matches_a_hand_calculation() {
        // RFC 9438, Table 1, T = 0.1 s: 187 segments at p = 1e-4 (Reno has 120), here 187 per 0.1 s. Timeouts: T_0 = 1 s,
        // 3 sqrt(0.75e-4) x 1e-4 = 2.6e-6 s beside 0.1 / 187 = 5.3e-4 s, 0.5 %.
        let rate = flow(1e-4).cubic().as_f64() / 8e3 * 0.1;
        assert!((rate / 187.0 - 0.995).abs() < 0.003, "{rate}");
        // At p = 1e-2, CUBIC's own window would be 5.9 segments and Reno's, with an ACK for each, 12: CUBIC has Reno's rate.
        let reno = flow(1e-2).with_segments_per_ack(1).unwrap();
        assert_eq!(reno.cubic(), reno.approximate());
    }

    #[test]
    fn the_full_formula_matches_a_hand_calculation() {
        // p = 0.01, b = 2: mid = 2/3; W = 2/3 + sqrt(132 + 4/9) = 12.17514.
        // Q: lost(3) = 0.029701, kept(3) = 0.970299, lost(9.17514) = 0.0880939,
        // lost(12.17514) = 0.1151784: 0.029701 * 1.0854774 / 0.1151784 = 0.279911.
        // packets = 99 + 12.17514 + 0.282739 = 111.457879; rounds = 13.17514;
        // backoff = 1.010204; seconds = 1.317514 + 0.279911 * 1.010204 / 0.99 = 1.603136.
        // 69.5249 segments/s = 556.199 kbit/s.
        let rate = flow(0.01).full(None).unwrap().as_f64();
        assert!((rate - 556_199.0).abs() < 20.0, "{rate}");
    }

    #[test]
    fn at_low_loss_all_three_formulas_agree() {
        let f = flow(1e-6);
        let (root, approximate) = (f.square_root().as_f64(), f.approximate().as_f64());
        assert!((approximate / root - 1.0).abs() < 0.02);
        assert!((f.full(None).unwrap().as_f64() / root - 1.0).abs() < 0.02);
    }

    #[test]
    fn a_limiting_window_gives_window_over_rtt() {
        // 20 segments per 0.1 s = 1.6 Mbit/s, while loss alone would allow 69 Mbit/s.
        let limited = flow(1e-6).full(Some(Bytes::new(20_000))).unwrap().as_f64();
        assert!((limited / 1.6e6 - 1.0).abs() < 0.001, "{limited}");
    }

    #[test]
    fn a_window_above_the_mean_does_not_limit() {
        let f = flow(0.01);
        assert_eq!(f.full(Some(Bytes::new(1_000_000))), f.full(None));
    }

    #[test]
    fn timeouts_and_more_loss_only_lower_the_rate() {
        let mut last = Rate::MAX;
        for exponent in 0..60 {
            let f = flow(libm::pow(10.0, -6.0 + f64::from(exponent) * 0.1).min(0.99));
            let now = f.approximate();
            assert!(now <= f.square_root() && now <= last);
            last = now;
        }
    }

    #[test]
    fn on_a_congested_path_a_socket_buffer_only_lowers_the_rate() {
        let f = flow(0.01);
        let free = f.on_congested_path(Bytes::MAX);
        assert_eq!(free, f.approximate());
        // 2 kB per 0.1 s = 160 kbit/s.
        assert_eq!(f.on_congested_path(Bytes::new(2000)), Rate::from_bits_per_second(160_000));
    }

    #[test]
    fn impossible_flows_are_rejected() {
        let (m, t) = (Bytes::new(1000), Duration::from_millis(100));
        for p in [0.0, 1.0] {
            assert!(Flow::new(m, t, t, Probability::new(p).unwrap()).is_err());
        }
        let p = Probability::new(0.1).unwrap();
        assert!(Flow::new(m, t, Duration::ZERO, p).is_err());
        assert!(flow(0.1).with_segments_per_ack(0).is_err());
        assert!(flow(0.1).full(Some(Bytes::new(999))).is_err());
    }
}
