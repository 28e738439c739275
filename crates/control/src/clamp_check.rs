use std::fmt;

use sweetspot_units::{Bytes, Duration, Time};

/// A window is beyond its limit if it exceeds this multiple of the limit by more than one step of the largest window scale (RFC
/// 7323, section 2.3).
const WINDOW_TOLERANCE: f64 = 1.5;
const MAX_SCALE_STEP: Bytes = Bytes::new(1 << 14);

/// A window shrinks only as data arrive, because its right edge never moves back (RFC 9293, section 3.8.6). A limit that the
/// kernel obeys takes effect after this many windows of data and this time.
const MIN_WINDOWS_BEYOND: u64 = 3;
const MIN_TIME_BEYOND: Duration = Duration::from_secs(2);

/// Checks whether the kernel keeps a connection's window within its limit (TCP_WINDOW_CLAMP).
#[derive(Debug, Default)]
pub struct ClampCheck {
    /// When the window was first beyond its limit, the bytes that have arrived since, and the largest window since.
    beyond: Option<(Time, Bytes, Bytes)>,
}

impl ClampCheck {
    /// Handles a sample at `now`: the `window` under its `limit`, and the bytes that `arrived` since the last sample. Returns
    /// whether the kernel certainly ignores the limit.
    pub fn is_broken(&mut self, now: Time, limit: Bytes, window: Bytes, arrived: Bytes) -> bool {
        if window <= limit.scaled(WINDOW_TOLERANCE) + MAX_SCALE_STEP {
            self.beyond = None;
            return false;
        }
        let (since, sum, largest) = self.beyond.get_or_insert((now, Bytes::ZERO, Bytes::ZERO));
        *sum += arrived;
        *largest = window.max(*largest);
        *sum >= *largest * MIN_WINDOWS_BEYOND && now.since(*since) >= MIN_TIME_BEYOND
    }
}

/// A connection with a window beyond its limit, which the kernel ignores. The tuner leaves it alone from then on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IgnoredLimit {
    /// The connection's cookie.
    pub cookie: u64,
    /// The ignored limit.
    pub limit: Bytes,
    /// The advertised window, above the limit.
    pub window: Bytes,
}

impl fmt::Display for IgnoredLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let IgnoredLimit { limit, window, .. } = self;
        write!(
            f,
            "this kernel ignores the limit: it advertises {window} despite a limit of {limit}; not tuned"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Bytes = Bytes::new(500_000);

    /// Samples every 50 ms, at 10 MB/s, for ten seconds; returns the time of the verdict, in seconds.
    fn detection_time(window: impl Fn(f64) -> u64) -> Option<f64> {
        let mut clamp_check = ClampCheck::default();
        let arrived = Bytes::new(500_000);
        (0..200).map(|n| f64::from(n) * 0.05).find(|t| {
            let now = Time::from_nanos((t * 1e9) as u64);
            clamp_check.is_broken(now, LIMIT, Bytes::new(window(*t)), arrived)
        })
    }

    #[test]
    fn a_window_that_stays_above_its_limit_is_detected() {
        // 3 x 3 MB take 0.9 s at 10 MB/s, so the minimum of two seconds decides.
        assert_eq!(detection_time(|_| 3_000_000), Some(2.0));
    }

    #[test]
    fn a_window_that_shrinks_as_data_arrives_is_not_refusal() {
        // The window shrinks from 6 MB to the limit within 0.55 s.
        assert_eq!(
            detection_time(|t| 6_000_000_u64.saturating_sub((t * 1e7) as u64).max(500_000)),
            None
        );
    }

    #[test]
    fn an_occasionally_overwritten_clamp_is_not_refusal() {
        assert_eq!(detection_time(|t| if t % 1.0 < 0.5 { 3_000_000 } else { 500_000 }), None);
    }

    #[test]
    fn rounding_to_the_window_scale_is_not_refusal() {
        let mut clamp_check = ClampCheck::default();
        let (limit, window) = (Bytes::new(6_000), Bytes::new(16_384));
        for s in 0..20 {
            let now = Time::from_nanos(s * 1_000_000_000);
            assert!(!clamp_check.is_broken(now, limit, window, Bytes::new(1 << 20)));
        }
    }
}
