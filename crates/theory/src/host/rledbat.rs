//! rLEDBAT (RFC 9840): a receiver that keeps the window small enough for a short standing queue,
//! and yields to cross traffic.

use sweetspot_units::{Bytes, Duration};

use crate::error::require;
use crate::path::Path;
use crate::{Result, TheoryError};

/// LEDBAT++'s target queueing delay (draft-irtf-iccrg-ledbat-plus-plus §4.1), the default of RFC
/// 9840.
pub const TARGET_DELAY: Duration = Duration::from_millis(60);

/// RFC 6817 §2.4.2: the target must not exceed 100 ms.
const LARGEST_TARGET: Duration = Duration::from_millis(100);

/// The equilibrium of a less-than-best-effort flow that is alone on its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Equilibrium {
    /// Its window: C (T_m + target).
    pub window: Bytes,
    /// The queue that it keeps: C x target.
    pub standing_queue: Bytes,
}

// RFC 9840 §4, RFC 6817 §2.4.2: the window grows while queueing delay is below the target and
// shrinks above it, so it rests where C x target is queued.
/// The equilibrium of a flow with `target` on `path`.
///
/// # Errors
/// If `target` is zero or above RFC 6817's 100 ms, or if the path's buffer cannot hold it. In the
/// latter case losses come before the target, and the flow behaves like an ordinary one.
pub fn equilibrium(path: &Path, target: Duration) -> Result<Equilibrium> {
    let allowed = target > Duration::ZERO && target <= LARGEST_TARGET;
    require(allowed, "target", target, "above zero and at most 100 ms (RFC 6817)")?;
    let standing_queue = path.capacity() * target;
    if standing_queue > path.buffer() {
        let because = "the buffer holds less than the target delay, so losses come first and \
                       the flow competes like any other; choose a smaller target";
        return Err(TheoryError::NotCovered { because });
    }
    Ok(Equilibrium { window: path.bdp().saturating_add(standing_queue), standing_queue })
}

// draft-irtf-iccrg-ledbat-plus-plus §4.2: GAIN = 1 / min(16, ceil(2 TARGET / base)).
/// Segments per RTT by which the window grows on an idle path: one on long paths, fewer on short
/// ones, at least 1/16.
///
/// # Errors
/// If `base_rtt` is zero.
pub fn gain(base_rtt: Duration, target: Duration) -> Result<f64> {
    require(base_rtt > Duration::ZERO, "base RTT", base_rtt, "it must be above zero")?;
    let steps = (target * 2).as_nanos().div_ceil(base_rtt.as_nanos());
    Ok(1.0 / steps.clamp(1, 16) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sweetspot_units::Rate;

    fn path(buffer: u64) -> Path {
        let rtt = Duration::from_millis(40);
        Path::new(Rate::from_mbit_per_second(100), rtt, Bytes::new(buffer)).unwrap()
    }

    #[test]
    fn a_flow_settles_with_its_target_queued() {
        // 100 Mbit/s: 40 ms = 500 kB, 60 ms = 750 kB.
        let equilibrium = equilibrium(&path(1_000_000), TARGET_DELAY).unwrap();
        assert_eq!(equilibrium.standing_queue, Bytes::new(750_000));
        assert_eq!(equilibrium.window, Bytes::new(1_250_000));
    }

    #[test]
    fn a_buffer_below_the_target_is_not_covered() {
        let e = equilibrium(&path(700_000), TARGET_DELAY).unwrap_err();
        assert!(matches!(e, TheoryError::NotCovered { .. }));
        // 5 ms are 62.5 kB, which fits.
        assert!(equilibrium(&path(700_000), Duration::from_millis(5)).is_ok());
    }

    #[test]
    fn the_gain_is_smaller_on_short_paths() {
        // 120 ms / 20 ms = 6; / 7 ms = 17.1 -> 18 -> 16; / 120 ms = 1; / 200 ms -> 1.
        let at = |ms| gain(Duration::from_millis(ms), TARGET_DELAY).unwrap();
        assert_eq!([20, 7, 120, 200].map(at), [1.0 / 6.0, 1.0 / 16.0, 1.0, 1.0]);
        assert!(gain(Duration::ZERO, TARGET_DELAY).is_err());
    }

    #[test]
    fn targets_beyond_the_standard_are_rejected() {
        assert!(equilibrium(&path(10_000_000), Duration::from_millis(101)).is_err());
        assert!(equilibrium(&path(10_000_000), Duration::ZERO).is_err());
    }
}
