//! Cross traffic of many short TCP transfers: SOBAS §V-C.

use sweetspot_units::Rate;

use super::elephants::Elephants;

/// Bounds of the Maximum Feasible Throughput.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MftBounds {
    /// The bound for mice that do not react: A.
    pub low: Rate,
    /// The bound for mice that behave like elephants: eq. (8).
    pub high: Rate,
}

// SOBAS §V-C: size-limited transfers behave between UDP (§V-A) and elephants (§V-B); the paper
// gives no closed form.
/// Bounds of the Maximum Feasible Throughput with mice that leave the same bandwidth and buffer as
/// `as_elephants`. With a small buffer, bursts can make the true value slightly lower than the
/// lower bound.
pub fn bounds(as_elephants: &Elephants) -> MftBounds {
    let low = as_elephants.rate_at_backlog(sweetspot_units::Bytes::ZERO);
    MftBounds { low, high: as_elephants.optimum().rate }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sweetspot_units::{Bytes, Duration};

    #[test]
    fn mice_lie_between_udp_and_elephants() {
        // As in §V-B with B = 1250 kB = 10 Mbit: R = 15 * 0.76667 / 0.3 = 38.333 Mbit/s.
        let t = Duration::from_millis(100);
        let mbit = Rate::from_mbit_per_second;
        let link = Elephants::new(mbit(50), mbit(15), t, t, Bytes::new(1_250_000)).unwrap();
        let b = bounds(&link);
        assert_eq!(b.low, mbit(15));
        assert!((b.high.as_f64() - 38.333e6).abs() < 1e3);
    }
}
