use sweetspot_units::Time;

use crate::limits::LONGEST_STALL;

/// Detects a peer that keeps its session alive but transfers nothing.
pub(crate) struct StallWatch<T> {
    progress: T,
    since: Time,
}

impl<T: PartialEq> StallWatch<T> {
    pub fn new(now: Time, progress: T) -> StallWatch<T> {
        StallWatch { progress, since: now }
    }

    /// Whether the progress has been the same for [`LONGEST_STALL`].
    pub fn is_stalled(&mut self, now: Time, progress: T) -> bool {
        if self.progress != progress {
            *self = StallWatch::new(now, progress);
        }
        now.since(self.since) >= LONGEST_STALL
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sweetspot_units::Duration;

    #[test]
    fn a_session_without_progress_for_a_day_is_stalled() {
        let at = |seconds| Time::ZERO + Duration::from_secs(seconds);
        let day = 24 * 3600;
        let mut watch = StallWatch::new(at(0), 0);
        assert!(!watch.is_stalled(at(day - 1), 0));
        // One byte restarts the 24 hours.
        assert!(!watch.is_stalled(at(day), 1));
        assert!(!watch.is_stalled(at(2 * day - 1), 1));
        assert!(watch.is_stalled(at(2 * day), 1));
    }
}
