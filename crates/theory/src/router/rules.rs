//! The rules of thumb for a router's buffer, before and after the capacity ratio.

use sweetspot_units::{Bytes, Duration, Rate};

use crate::TheoryError;
use crate::error::require;

/// A congestion control, as far as a buffer's size depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CongestionResponse {
    /// Halves its window (RFC 5681).
    Reno,
    /// Keeps 0.7 of it (RFC 9438 §4.6).
    Cubic,
    /// Probes with 5/4 of the rate that it measured for one RTT (BBR version 1).
    Bbr,
}

// Villamizar and Song, "High Performance TCP in ANSNET", CCR 24(5), 1994.
/// C T: enough to keep the link busy while one Reno flow recovers.
///
/// # Errors
/// If a quantity is zero.
pub fn bandwidth_delay(capacity: Rate, rtt: Duration) -> Result<Bytes, TheoryError> {
    require(capacity > Rate::ZERO, "capacity", capacity, "it must be above zero")?;
    require(rtt > Duration::ZERO, "RTT", rtt, "it must be above zero")?;
    Ok(capacity * rtt)
}

// Appenzeller, Keslassy, McKeown, "Sizing Router Buffers", SIGCOMM 2004: C T / sqrt(n).
/// C T / sqrt(n): enough for nearly full use by `flows` unsynchronised long flows. It asks only
/// for utilisation, not for loss or per-flow throughput.
///
/// # Errors
/// If a quantity is zero.
pub fn square_root(capacity: Rate, rtt: Duration, flows: u64) -> Result<Bytes, TheoryError> {
    require(flows > 0, "flows", flows, "it must be 1 or more")?;
    Ok(bandwidth_delay(capacity, rtt)?.scaled(1.0 / libm::sqrt(flows as f64)))
}

// Spang, Arslan, McKeown, "Updating the Theory of Buffer Sizing", Performance 2021
// (arXiv 2109.11693): the link stays busy if what is in flight after the reduction still fills
// the pipe. A window control that keeps beta of its window needs beta (C T + B) >= C T, so
// B >= (1/beta - 1) C T; BBR needs what one RTT of probing adds, (5/4 - 1) C T.
/// The buffer with which `control` alone keeps the link full, as a share of C T: 1 for Reno, 3/7 for Cubic, 1/4 for BBR; the
/// paper's "60 to 75 % smaller".
pub fn share_of_bdp(control: CongestionResponse) -> f64 {
    match control {
        CongestionResponse::Reno => 1.0,
        CongestionResponse::Cubic => 1.0 / 0.7 - 1.0,
        CongestionResponse::Bbr => 0.25,
    }
}

// The same paper: the square-root rule holds for these controls too.
/// The buffer that keeps a link full with `flows` flows of `control`, unsynchronised if several.
/// The rule fails for unfair flows and for some settings of ECN.
///
/// # Errors
/// If a quantity is zero.
pub fn updated(
    capacity: Rate,
    rtt: Duration,
    flows: u64,
    control: CongestionResponse,
) -> Result<Bytes, TheoryError> {
    Ok(square_root(capacity, rtt, flows)?.scaled(share_of_bdp(control)))
}

// Enachescu, Ganjali, Goel, McKeown, Roughgarden, "Part III: Routers with Very Small Buffers",
// CCR 35(3), 2005, and Stanford TR05-HPNG-060606: a buffer of the order of log W, "fewer than
// twenty" packets, where sources pace and about a fifth of the link may stay unused.
/// The tiny buffer, in packets: for paced flows, or access links much slower than this one.
pub const TINY: u64 = 20;

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(60);

    fn gbit() -> Rate {
        Rate::from_mbit_per_second(1000)
    }

    #[test]
    fn the_classic_rules_by_hand() {
        // 1 Gbit/s * 60 ms = 7.5 MB; / sqrt(100) = 750 kB.
        assert_eq!(bandwidth_delay(gbit(), RTT), Ok(Bytes::new(7_500_000)));
        assert_eq!(square_root(gbit(), RTT, 100), Ok(Bytes::new(750_000)));
    }

    #[test]
    fn newer_controls_need_less() {
        // 0.3 / 0.7 = 3/7 of 7.5 MB = 3,214,286; a quarter = 1,875,000.
        assert_eq!(updated(gbit(), RTT, 1, CongestionResponse::Reno), Ok(Bytes::new(7_500_000)));
        assert_eq!(updated(gbit(), RTT, 1, CongestionResponse::Cubic), Ok(Bytes::new(3_214_286)));
        assert_eq!(updated(gbit(), RTT, 1, CongestionResponse::Bbr), Ok(Bytes::new(1_875_000)));
    }

    #[test]
    fn one_flow_is_the_bandwidth_delay_product_and_four_are_half() {
        assert_eq!(square_root(gbit(), RTT, 1), bandwidth_delay(gbit(), RTT));
        assert_eq!(square_root(gbit(), RTT, 4), Ok(Bytes::new(3_750_000)));
    }

    #[test]
    fn impossible_links_are_refused() {
        assert!(bandwidth_delay(Rate::ZERO, RTT).is_err());
        assert!(bandwidth_delay(gbit(), Duration::ZERO).is_err());
        assert!(square_root(gbit(), RTT, 0).is_err());
    }
}
