//! Unresponsive cross traffic: rate-controlled UDP, SOBAS §V-A.

use sweetspot_units::{Bytes, Duration, Rate};

use super::Path;
use crate::Result;
use crate::error::require;

// SOBAS §V-A: equations (4) and (5) with A for C, T_e for T_m and the available buffer for B_t.
/// The path as the target transfer sees it: `capacity` minus the unresponsive cross traffic
/// `cross`, the RTT `exogenous_rtt` (T_e) that the cross traffic causes, and the remaining free
/// buffer. All results for a [`Path`] apply to it. The Maximum Feasible Throughput is therefore A =
/// C - R_c and the sweet spot [A T_e, A T_e + B].
///
/// This is a fluid model: with bursts, the true optimum is near A T_e.
///
/// # Errors
/// If the cross traffic needs the whole capacity, or capacity or RTT is zero.
pub fn path(
    capacity: Rate,
    cross: Rate,
    exogenous_rtt: Duration,
    available_buffer: Bytes,
) -> Result<Path> {
    require(cross < capacity, "cross traffic", cross, "below the capacity, or nothing is left")?;
    Path::new(capacity - cross, exogenous_rtt, available_buffer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::saturation::{maximum_feasible, sweet_spot};

    fn mbit(n: u64) -> Rate {
        Rate::from_mbit_per_second(n)
    }

    #[test]
    fn without_cross_traffic_the_path_is_unchanged() {
        let (c, t, b) = (mbit(50), Duration::from_millis(100), Bytes::new(625_000));
        assert_eq!(path(c, Rate::ZERO, t, b), Path::new(c, t, b));
    }

    #[test]
    fn available_bandwidth_bounds_throughput_and_sizes_the_window() {
        // A = 15 Mbit/s, T_e = 102 ms: A T_e = 15e6 * 0.102 / 8 = 191,250 B.
        let left = path(mbit(50), mbit(35), Duration::from_millis(102), Bytes::new(313_000));
        let left = left.unwrap();
        assert_eq!(maximum_feasible(&left), mbit(15));
        assert_eq!(sweet_spot(&left).low, Bytes::new(191_250));
        assert_eq!(sweet_spot(&left).high, Bytes::new(504_250));
    }

    #[test]
    fn cross_traffic_that_leaves_nothing_is_rejected() {
        assert!(path(mbit(50), mbit(50), Duration::from_millis(1), Bytes::ZERO).is_err());
    }
}
