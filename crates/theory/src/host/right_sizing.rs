//! Dynamic Right-Sizing: Weigle and Feng, "Dynamic Right-Sizing: A Simulation Study" (2001).

use sweetspot_units::{Bytes, Duration, Rate};

use crate::Result;
use crate::error::require;

/// How the sender's window grows, as the receiver infers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowGrowth {
    /// The window doubles per RTT.
    SlowStart,
    /// The window grows by one segment per RTT.
    AdditiveIncrease,
}

// DRS §II: awnd >= 2 cwnd in slow start, awnd >= cwnd + 1 in additive increase.
/// The smallest window that a receiver must advertise so that it never limits a sender with a window of
/// `congestion_window` in the last RTT.
pub fn advertised_window(congestion_window: Bytes, mss: Bytes, phase: WindowGrowth) -> Bytes {
    match phase {
        WindowGrowth::SlowStart => congestion_window.saturating_add(congestion_window),
        WindowGrowth::AdditiveIncrease => congestion_window.saturating_add(mss),
    }
}

// DRS §II: fwnd = min(cwnd, awnd, maxwnd).
/// The sender's flow-control window, if a connection may use `max` bytes of memory.
pub fn flow_window(congestion_window: Bytes, advertised: Bytes, max: Bytes) -> Bytes {
    congestion_window.min(advertised).min(max)
}

// DRS §IV-D: "bandwidth proportional to the memory they dedicate".
/// A connection's fair share of the link's `rate`, if it dedicates `own` of the memory `all` that all of the link's
/// connections dedicate.
///
/// # Errors
/// If no memory is dedicated, or a connection dedicates more than `all`.
pub fn fair_share(rate: Rate, own: Bytes, all: Bytes) -> Result<Rate> {
    require(all > Bytes::ZERO, "memory of all", all, "it must be above zero")?;
    require(own <= all, "own memory", own, "at most that of all connections")?;
    Ok(rate.scaled(own.as_f64() / all.as_f64()))
}

// DRS §I-B footnote 2: half the window, one segment per RTT.
/// The time that additive increase takes from half of `window` to `window`.
///
/// # Errors
/// If `mss` or `rtt` is zero.
pub fn convergence_time(window: Bytes, mss: Bytes, rtt: Duration) -> Result<Duration> {
    require(mss > Bytes::ZERO, "MSS", mss, "it must be 1 B or more")?;
    require(rtt > Duration::ZERO, "RTT", rtt, "it must be above zero")?;
    Ok(rtt.scaled(window.as_f64() / 2.0 / mss.as_f64()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: Bytes = Bytes::new(1500);

    #[test]
    fn the_advertised_window_stays_ahead_of_the_sender() {
        let w = Bytes::new(30_000);
        assert_eq!(advertised_window(w, MSS, WindowGrowth::SlowStart), Bytes::new(60_000));
        assert_eq!(advertised_window(w, MSS, WindowGrowth::AdditiveIncrease), Bytes::new(31_500));
    }

    #[test]
    fn the_administrators_limit_binds_last() {
        let (a, b, c) = (Bytes::new(3), Bytes::new(2), Bytes::new(1));
        assert_eq!(flow_window(a, b, c), c);
        assert_eq!(flow_window(c, a, b), c);
    }

    #[test]
    fn memory_shares_add_up_to_the_link_rate() {
        let (link, all) = (Rate::from_mbit_per_second(100), Bytes::new(5_440_000));
        let (big, small) = (Bytes::new(1_024_000), Bytes::new(64_000));
        let share = |own| fair_share(link, own, all).unwrap().as_f64();
        assert!((5.0 * (share(big) + share(small)) - 1e8).abs() < 10.0);
        // Sixteen times the memory, sixteen times the rate.
        assert!((share(big) / share(small) - 16.0).abs() < 1e-5);
    }

    #[test]
    fn convergence_takes_one_rtt_per_segment_of_half_the_window() {
        // 3 MB: 1.5 MB / 1500 B = 1000 RTTs of 100 ms.
        let t = convergence_time(Bytes::new(3_000_000), MSS, Duration::from_millis(100));
        assert_eq!(t, Ok(Duration::from_secs(100)));
    }

    #[test]
    fn impossible_memory_is_rejected() {
        let link = Rate::from_mbit_per_second(100);
        assert!(fair_share(link, Bytes::ZERO, Bytes::ZERO).is_err());
        assert!(fair_share(link, Bytes::new(2), Bytes::new(1)).is_err());
        assert!(convergence_time(MSS, Bytes::ZERO, Duration::from_millis(1)).is_err());
        assert!(convergence_time(MSS, MSS, Duration::ZERO).is_err());
    }
}
