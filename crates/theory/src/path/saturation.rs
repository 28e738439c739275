//! Throughput as a function of socket buffer on a path without cross traffic: SOBAS eqs (4), (5), (17).

use sweetspot_units::{Bytes, Rate};

use super::Path;
use crate::Result;
use crate::error::require;

/// The limit of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Regime {
    /// The socket buffer limits; the path is not full.
    BufferLimited,
    /// The path limits; it is full, and no packet is lost.
    Saturated,
    /// Losses that the transfer itself causes limit.
    CongestionLimited,
}

/// A throughput and its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Throughput {
    /// Average throughput in the steady state.
    pub rate: Rate,
    /// Its limit.
    pub regime: Regime,
}

/// The windows at which a path is full without loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SweetSpot {
    /// C T_m: with a smaller window the link is sometimes idle.
    pub low: Bytes,
    /// C T_m + B_t: above it the buffer overflows.
    pub high: Bytes,
}

// SOBAS §IV: C T_m < S <= C T_m + B_t.
/// The sweet spot of `path`.
pub fn sweet_spot(path: &Path) -> SweetSpot {
    let low = path.bdp();
    SweetSpot { low, high: low.saturating_add(path.buffer()) }
}

// SOBAS eqs (4) and (5).
/// Average throughput R(S) of a bulk transfer with `socket_buffer` S.
///
/// Assumes steady state, no cross traffic, and single losses recovered by fast retransmit.
///
/// # Errors
/// If `socket_buffer` is zero: no data can be sent.
pub fn throughput(path: &Path, socket_buffer: Bytes) -> Result<Throughput> {
    require(socket_buffer > Bytes::ZERO, "socket buffer", socket_buffer, "it must be above zero")?;
    let spot = sweet_spot(path);
    Ok(if socket_buffer <= spot.low {
        let rate = (socket_buffer / path.minimum_rtt()).min(path.capacity());
        Throughput { rate, regime: Regime::BufferLimited }
    } else if socket_buffer <= spot.high {
        Throughput { rate: path.capacity(), regime: Regime::Saturated }
    } else {
        Throughput { rate: congestion_limited(path), regime: Regime::CongestionLimited }
    })
}

// SOBAS eq. (17) under-buffered, §Appendix I 3-a (N_V / T_V = C) over-buffered:
// R = 3C/4 (CTm+B)^2 / ((CTm+B)^2 - CTm B).
/// The throughput of a transfer limited only by its own losses: the path's bulk transfer capacity for one Reno flow. It is
/// 3/4 C without a buffer, and C for B_t >= C T_m.
pub fn congestion_limited(path: &Path) -> Rate {
    if !path.is_under_buffered() {
        return path.capacity();
    }
    let (pipe, buffer) = (path.bdp().as_f64(), path.buffer().as_f64());
    let peak = (pipe + buffer) * (pipe + buffer);
    path.capacity().scaled(0.75 * peak / (peak - pipe * buffer))
}

// SOBAS §IV: the largest value of R(S).
/// The Maximum Feasible Throughput: C, with any buffer.
pub fn maximum_feasible(path: &Path) -> Rate {
    path.capacity()
}

#[cfg(test)]
mod tests {
    use super::*;
    use sweetspot_units::Duration;

    /// SOBAS §V: 50 Mbit/s, 100 ms, C T_m = 625 kB.
    fn papers_path(buffer_kb: u64) -> Path {
        let rtt = Duration::from_millis(100);
        Path::new(Rate::from_mbit_per_second(50), rtt, Bytes::new(buffer_kb * 1000)).unwrap()
    }

    fn rate(path: &Path, kb: u64) -> f64 {
        throughput(path, Bytes::new(kb * 1000)).unwrap().rate.as_f64() / 1e6
    }

    #[test]
    fn below_the_bdp_throughput_is_window_over_rtt() {
        // 313 kB * 8 / 0.1 s = 25.04 Mbit/s.
        assert_eq!(rate(&papers_path(625), 313), 25.04);
    }

    #[test]
    fn the_sweet_spot_saturates_the_path_with_any_buffer() {
        for buffer in [1, 100, 313, 625, 1250] {
            let path = papers_path(buffer);
            let at = throughput(&path, sweet_spot(&path).high).unwrap();
            assert_eq!(at, Throughput { rate: path.capacity(), regime: Regime::Saturated });
            assert_eq!(at.rate, maximum_feasible(&path));
        }
    }

    #[test]
    fn past_the_sweet_spot_an_under_buffered_path_is_below_capacity() {
        // B = 313, CTm = 625: (938)^2 = 879,844; CTm B = 195,625;
        // 0.75 * 50 * 879844 / 684219 = 48.2216 Mbit/s.
        assert!((rate(&papers_path(313), 4000) - 48.2216).abs() < 1e-3);
        // B = 100: 725^2 = 525,625; 62,500; 37.5 * 525625 / 463125 = 42.5607 Mbit/s.
        assert!((rate(&papers_path(100), 4000) - 42.5607).abs() < 1e-3);
    }

    #[test]
    fn without_a_buffer_three_quarters_of_the_capacity_remain() {
        assert_eq!(rate(&papers_path(0), 4000), 37.5);
    }

    #[test]
    fn throughput_is_continuous_at_a_buffer_of_one_bdp() {
        // At B = CTm: (2D)^2 = 4 D^2, D^2 less leaves 3 D^2: 0.75 * 4/3 = 1.
        assert!((rate(&papers_path(624), 4000) - 50.0).abs() < 1e-3);
        assert_eq!(rate(&papers_path(625), 4000), 50.0);
    }

    #[test]
    fn an_empty_socket_buffer_is_rejected() {
        let e = throughput(&papers_path(625), Bytes::ZERO).unwrap_err();
        assert!(e.to_string().starts_with("socket buffer 0 B"), "{e}");
    }

    #[test]
    fn a_path_without_capacity_or_delay_is_rejected() {
        let (c, t) = (Rate::from_mbit_per_second(1), Duration::from_millis(1));
        assert!(Path::new(Rate::ZERO, t, Bytes::ZERO).is_err());
        assert!(Path::new(c, Duration::ZERO, Bytes::ZERO).is_err());
    }
}
