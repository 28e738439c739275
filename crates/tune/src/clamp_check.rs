use sweetspot_units::{Bytes, Duration, Time};

/// How far beyond its limit a window may be, besides a step of the largest window scale (RFC 7323
/// section 2.3), until it counts.
const BEYOND: f64 = 1.5;
const SCALE_STEP: Bytes = Bytes::new(1 << 14);

/// A window shrinks by what arrives: its right edge never retracts (RFC 9293 section 3.8.6). After
/// so many windows, and so much time, it would have.
const WINDOWS: u64 = 3;
const TIME: Duration = Duration::from_secs(2);

/// Whether a connection's window keeps to its limit. A kernel with other rules for the clamp, or one
/// that takes it and forgets it, shows here.
#[derive(Debug, Default)]
pub struct ClampCheck {
    /// Since when it is beyond, what has arrived in that time, and how large it was at most.
    beyond: Option<(Time, Bytes, Bytes)>,
}

impl ClampCheck {
    /// `arrived` came in since the last call, and the `window` was seen under `limit`: whether it is
    /// now sure that the limit is ignored.
    pub fn is_broken(&mut self, now: Time, limit: Bytes, window: Bytes, arrived: Bytes) -> bool {
        if window <= limit.scaled(BEYOND) + SCALE_STEP {
            self.beyond = None;
            return false;
        }
        let (since, sum, largest) = self.beyond.get_or_insert((now, Bytes::ZERO, Bytes::ZERO));
        *sum += arrived;
        *largest = window.max(*largest);
        *sum >= *largest * WINDOWS && now.since(*since) >= TIME
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Bytes = Bytes::new(500_000);

    /// Looks every 50 ms at what arrives at 10 MB/s, for ten seconds; when it was sure.
    fn sure(window: impl Fn(f64) -> u64) -> Option<f64> {
        let mut clamp_check = ClampCheck::default();
        let arrived = Bytes::new(500_000);
        (0..200).map(|n| f64::from(n) * 0.05).find(|t| {
            let now = Time::from_nanos((t * 1e9) as u64);
            clamp_check.is_broken(now, LIMIT, Bytes::new(window(*t)), arrived)
        })
    }

    #[test]
    fn a_window_that_stays_beyond_its_limit_is_found_out() {
        // 3 x 3 MB take 0.9 s at 10 MB/s: the two seconds decide.
        assert_eq!(sure(|_| 3_000_000), Some(2.0));
    }

    #[test]
    fn one_that_shrinks_with_what_arrives_keeps_to_it() {
        // From 6 MB down to the limit in 0.55 s.
        assert_eq!(sure(|t| 6_000_000_u64.saturating_sub((t * 1e7) as u64).max(500_000)), None);
    }

    #[test]
    fn one_that_is_overwritten_now_and_then_and_set_again_keeps_to_it() {
        assert_eq!(sure(|t| if t % 1.0 < 0.5 { 3_000_000 } else { 500_000 }), None);
    }

    #[test]
    fn a_step_of_the_window_scale_is_not_refusal() {
        let mut clamp_check = ClampCheck::default();
        let (limit, window) = (Bytes::new(6_000), Bytes::new(16_384));
        for s in 0..20 {
            let now = Time::from_nanos(s * 1_000_000_000);
            assert!(!clamp_check.is_broken(now, limit, window, Bytes::new(1 << 20)));
        }
    }
}
