//! The square-root law, called L-model by Prasad, Dovrolis and Thottan.

use sweetspot_units::{Bytes, Duration, Probability, Rate};

use super::require_lossy;
use crate::Result;

/// The constant k for one ACK per segment: sqrt(3/2), which the router-buffer paper (§IV)
/// rounds to 1.22.
pub const K: f64 = 1.22;

// Mathis, Semke, Mahdavi, Ott, CCR 27(3), 1997; router-buffer eq. (3): R = k m / (T sqrt(p)).
/// The throughput of a flow in congestion avoidance with segments of `mss`.
///
/// # Errors
/// If `mss` or `rtt` is zero, or `loss` is not between 0 and 1.
pub fn throughput(mss: Bytes, rtt: Duration, loss: Probability) -> Result<Rate> {
    require_lossy(mss, rtt, loss)?;
    let window = K / libm::sqrt(loss.get());
    Ok(Rate::from_f64(window * mss.as_f64() * 8.0 / rtt.as_secs_f64()))
}

// The same equation solved for p = (k m / (R T))^2.
/// The loss at which the throughput is `rate`.
pub fn loss_at(mss: Bytes, rate: Rate, rtt: Duration) -> Probability {
    let window = rate.as_f64() * rtt.as_secs_f64() / (mss.as_f64() * 8.0);
    let root = K / window;
    Probability::new((root * root).min(1.0)).unwrap_or(Probability::ZERO)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loss(p: f64) -> Probability {
        Probability::new(p).unwrap()
    }

    #[test]
    fn one_loss_in_ten_thousand_matches_a_hand_calculation() {
        // 1.22 / sqrt(1e-4) = 122 segments of 1460 B per 0.1 s: 122 * 11,680 / 0.1 = 14.2496e6.
        let rate = throughput(Bytes::new(1460), Duration::from_millis(100), loss(1e-4)).unwrap();
        assert_eq!(rate, Rate::from_f64(14_249_600.0));
    }

    #[test]
    fn law_the_loss_at_a_rate_gives_that_rate() {
        let (mss, rtt) = (Bytes::new(1460), Duration::from_millis(100));
        let found = loss_at(mss, Rate::from_f64(14_249_600.0), rtt).get();
        assert!((found / 1e-4 - 1.0).abs() < 1e-9);
        assert_eq!(loss_at(mss, Rate::ZERO, rtt).get(), 1.0);
    }

    #[test]
    fn four_times_the_loss_halves_the_rate() {
        let at =
            |p| throughput(Bytes::new(1000), Duration::from_millis(50), loss(p)).unwrap().as_f64();
        assert!((at(1e-4) / at(4e-4) - 2.0).abs() < 1e-6);
    }

    #[test]
    fn no_loss_and_total_loss_are_rejected() {
        let (mss, rtt) = (Bytes::new(1000), Duration::from_millis(50));
        assert!(throughput(mss, rtt, Probability::ZERO).is_err());
        assert!(throughput(mss, rtt, loss(1.0)).is_err());
        assert!(throughput(mss, Duration::ZERO, loss(0.1)).is_err());
    }
}
