//! Yields to cross traffic that keeps a queue: the response of a less-than-best-effort upload.

use sweetspot_units::{Duration, Time};

use super::Upload;
use super::queue::target_queue;
use super::state::PacingState;
use super::trial::PaceTrial;
use crate::Reason;
use crate::target_delay::MIN_SEGMENTS;

/// An upload that halves its rate each round trip while there is a queue, and doubles it once the queue drains.
#[derive(Debug, Clone, Copy)]
pub(super) struct YieldingUpload {
    /// When the effect of the last rate is visible.
    until: Time,
    /// The queueing delay when the last rate was set.
    queue: Duration,
}

impl Upload {
    /// Begins to yield. A drain showed that the queue does not depend on this upload.
    pub(super) fn begin_yield(&mut self, now: Time, base: Duration) {
        let yielding = YieldingUpload { until: now, queue: Duration::MAX };
        self.transition_to(now, PacingState::Yielding(yielding), Reason::CrossTrafficQueue);
        self.check_yield(now, base);
    }

    /// Changes the rate by as much as LEDBAT++ at most changes a window (sections 4.2 and 4.4).
    pub(super) fn check_yield(&mut self, now: Time, base: Duration) {
        let (queue, tolerated) = (self.queue(base), self.tolerated());
        let (PacingState::Yielding(yielding), Some(pace), Some(background)) =
            (&mut self.state, self.pacing, self.background)
        else {
            return;
        };
        if now < yielding.until {
            return;
        }
        yielding.until = now + base + queue;
        let falls = queue < std::mem::replace(&mut yielding.queue, queue);
        let doubled = pace + pace;
        if queue > tolerated {
            let least = background.mss * MIN_SEGMENTS / (base + queue);
            self.pace(Some(pace.scaled(0.5).max(least)));
        } else if (falls || queue <= target_queue(base, pace)) && doubled < background.capacity {
            // At a low rate there are few ACKs, so the smoothed RTT falls slowly.
            self.pace(Some(doubled));
        } else {
            self.hold(now, pace, base, (PaceTrial::growing(now), Reason::QueueGone));
        }
    }
}
