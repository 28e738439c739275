//! Cross traffic of buffer-limited persistent TCP transfers: SOBAS §V-B, eqs (6)-(8).

use sweetspot_units::{Bytes, Duration, Rate};

use super::saturation::{Regime, Throughput};
use crate::error::require;
use crate::{Result, TheoryError};

/// A tight link with persistent transfers that are limited by windows, not losses. A backlog lengthens their RTT and thereby
/// lowers their rate; the target transfer gains the difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Elephants {
    capacity: Rate,
    available: Rate,
    exogenous_rtt: Duration,
    cross_rtt: Duration,
    available_buffer: Bytes,
}

/// The maximum throughput without loss, and the socket buffer that achieves it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeasibleOptimum {
    /// The Maximum Feasible Throughput.
    pub rate: Rate,
    /// The socket buffer that exactly fills the available buffer.
    pub socket_buffer: Bytes,
}

impl Elephants {
    /// A link of `capacity` C with available bandwidth `available` A; T_e is the target's RTT
    /// before it starts, T_ct the elephants' RTT, `available_buffer` the free buffer.
    ///
    /// # Errors
    /// If A exceeds C, or capacity or an RTT is zero.
    pub fn new(
        capacity: Rate,
        available: Rate,
        exogenous_rtt: Duration,
        cross_rtt: Duration,
        available_buffer: Bytes,
    ) -> Result<Elephants> {
        require(capacity > Rate::ZERO, "capacity", capacity, "it must be above zero")?;
        require(available <= capacity, "available bandwidth", available, "at most the capacity")?;
        require(exogenous_rtt > Duration::ZERO, "RTT", exogenous_rtt, "it must be above zero")?;
        require(cross_rtt > Duration::ZERO, "cross RTT", cross_rtt, "it must be above zero")?;
        Ok(Elephants { capacity, available, exogenous_rtt, cross_rtt, available_buffer })
    }

    // SOBAS eq. (6): R'_ct = (C - A) T_ct / (T_ct + Q/C).
    /// The elephants' rate if the target keeps `backlog` Q at the link.
    pub fn cross_rate(&self, backlog: Bytes) -> Rate {
        let t = self.cross_rtt.as_secs_f64();
        let queueing = backlog.as_f64() * 8.0 / self.capacity.as_f64();
        (self.capacity - self.available).scaled(t / (t + queueing))
    }

    // SOBAS eq. (7): R = A (T_ct + Q/A) / (T_ct + Q/C) = (A T_ct + Q) / (T_ct + Q/C).
    /// The target's rate if it keeps `backlog` Q at the link.
    pub fn rate_at_backlog(&self, backlog: Bytes) -> Rate {
        self.capacity - self.cross_rate(backlog)
    }

    // SOBAS eq. (8) and the text below it: S = R T_e + B.
    /// The Maximum Feasible Throughput: the available buffer is full and no packet is lost.
    pub fn optimum(&self) -> FeasibleOptimum {
        let rate = self.rate_at_backlog(self.available_buffer);
        FeasibleOptimum { rate, socket_buffer: rate * self.exogenous_rtt + self.available_buffer }
    }

    // SOBAS eq. (3), R = W_s / T(W_s), with T = T_e + Q/C. Only the target's own packets in a shared backlog are part of its
    // window. The paper's S = R T_e + Q counts the whole backlog.
    /// The window at which the whole backlog at the link, including elephants' packets, is `backlog` Q.
    pub fn window_at_backlog(&self, backlog: Bytes) -> Bytes {
        let queueing = backlog / self.capacity;
        self.rate_at_backlog(backlog) * (self.exogenous_rtt + queueing)
    }

    /// The backlog at the link with `window`; `None` if it exceeds the available buffer.
    pub fn backlog_of_window(&self, window: Bytes) -> Option<Bytes> {
        if window > self.window_at_backlog(self.available_buffer) {
            return None;
        }
        // The window grows with the backlog, so bisection finds it to the byte.
        let (mut low, mut high) = (0, self.available_buffer.get());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.window_at_backlog(Bytes::new(middle)) < window {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Some(Bytes::new(low))
    }

    // SOBAS §V-B: R = S / T_e up to A T_e; beyond it eq. (7) with Q = S - R T_e, which is
    // Q^2/C + Q (T_e + T_ct - S/C) - T_ct (S - A T_e) = 0 and has one positive root.
    /// The target's throughput with `socket_buffer` S.
    ///
    /// # Errors
    /// If S is zero, or so large that the target overflows the buffer and becomes congestion-limited. No closed form is known
    /// for that case.
    pub fn throughput(&self, socket_buffer: Bytes) -> Result<Throughput> {
        let wanted = "it must be above zero";
        require(socket_buffer > Bytes::ZERO, "socket buffer", socket_buffer, wanted)?;
        if socket_buffer <= self.available * self.exogenous_rtt {
            let rate = socket_buffer / self.exogenous_rtt;
            return Ok(Throughput { rate, regime: Regime::BufferLimited });
        }
        if socket_buffer > self.optimum().socket_buffer {
            let because = "beyond the optimum the transfer overflows the buffer, and only a simulation \
                           gives its share against buffer-limited transfers";
            return Err(TheoryError::NotCovered { because });
        }
        let backlog = self.backlog(socket_buffer);
        Ok(Throughput { rate: self.rate_at_backlog(backlog), regime: Regime::Saturated })
    }

    fn backlog(&self, socket_buffer: Bytes) -> Bytes {
        let c = self.capacity.as_f64() / 8.0;
        let a = self.available.as_f64() / 8.0;
        let (te, tct) = (self.exogenous_rtt.as_secs_f64(), self.cross_rtt.as_secs_f64());
        let s = socket_buffer.as_f64();
        let half = (te + tct - s / c) * c / 2.0;
        let product = c * tct * (s - a * te);
        let root = libm::sqrt(half * half + product);
        // The numerically stable form for either sign of the linear term.
        let q = if half > 0.0 { product / (root + half) } else { root - half };
        Bytes::from_f64(q)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SOBAS §V-B: 50 Mbit/s, A = 15 Mbit/s, T_e = T_ct = 100 ms, packets of 1000 B.
    fn papers(buffer_packets: u64) -> Elephants {
        let t = Duration::from_millis(100);
        let mbit = Rate::from_mbit_per_second;
        Elephants::new(mbit(50), mbit(15), t, t, Bytes::new(buffer_packets * 1000)).unwrap()
    }

    #[test]
    fn the_optimum_matches_a_hand_calculation() {
        // B = 625 kB = 5 Mbit: B/A = 0.3333 s, B/C = 0.1 s;
        // R = 15 * 0.43333 / 0.2 = 32.5 Mbit/s; S = 32.5e6 * 0.1 / 8 + 625,000 = 1,031,250 B.
        let best = papers(625).optimum();
        assert_eq!(best.rate, Rate::from_f64(32.5e6));
        assert_eq!(best.socket_buffer, Bytes::new(1_031_250));
    }

    #[test]
    fn a_backlog_shifts_rate_from_the_elephants_to_the_target() {
        let link = papers(625);
        for q in [0, 1_000, 100_000, 625_000] {
            let q = Bytes::new(q);
            assert_eq!(link.rate_at_backlog(q) + link.cross_rate(q), link.capacity);
        }
        assert_eq!(link.rate_at_backlog(Bytes::ZERO), link.available);
    }

    #[test]
    fn throughput_is_continuous_and_never_falls_up_to_the_optimum() {
        let link = papers(625);
        let best = link.optimum();
        let mut last = Rate::ZERO;
        for step in 1..=1000 {
            let s = best.socket_buffer.scaled(f64::from(step) / 1000.0);
            let now = link.throughput(s).unwrap().rate;
            assert!(now >= last && now.as_f64() - last.as_f64() < 1e5, "{s}: {last} {now}");
            last = now;
        }
        assert!((last.as_f64() / best.rate.as_f64() - 1.0).abs() < 1e-5);
    }

    #[test]
    fn the_window_contains_only_the_targets_share_of_the_backlog() {
        // A full buffer of 625 kB adds 100 ms: R = 32.5 Mbit/s x 200 ms = 812.5 kB. The paper's S = R T_e + B gives 1031 kB.
        let link = papers(625);
        assert_eq!(link.window_at_backlog(Bytes::new(625_000)), Bytes::new(812_500));
        for backlog in [0, 1, 10_000, 300_000, 625_000] {
            let window = link.window_at_backlog(Bytes::new(backlog));
            let back = link.backlog_of_window(window).unwrap();
            assert!(back.get().abs_diff(backlog) <= 5, "{backlog}: {back}");
        }
        assert_eq!(link.backlog_of_window(Bytes::new(813_000)), None);
    }

    #[test]
    fn the_model_does_not_apply_beyond_the_optimum() {
        let link = papers(625);
        let e = link.throughput(link.optimum().socket_buffer + Bytes::new(1)).unwrap_err();
        assert!(matches!(e, TheoryError::NotCovered { .. }));
    }

    #[test]
    fn on_a_full_path_the_target_gets_only_its_backlog_share() {
        // A = 0, B = 625 kB: R = Q / (T_ct + Q/C) = 5e6 / 0.2 = 25 Mbit/s.
        let t = Duration::from_millis(100);
        let full = Rate::from_mbit_per_second(50);
        let link = Elephants::new(full, Rate::ZERO, t, t, Bytes::new(625_000)).unwrap();
        assert_eq!(link.optimum().rate, Rate::from_mbit_per_second(25));
    }

    #[test]
    fn available_bandwidth_above_capacity_is_rejected() {
        let t = Duration::from_millis(1);
        let mbit = Rate::from_mbit_per_second;
        assert!(Elephants::new(mbit(1), mbit(2), t, t, Bytes::ZERO).is_err());
    }
}
