//! No pacing: the upload is left to congestion control.

use sweetspot_units::{Duration, Rate, Time};

use super::Upload;
use super::state::PacingState;
use crate::Reason;
use crate::model::{Epoch, PACE_SHARE};

/// An unpaced upload, and its earlier rate under pacing.
#[derive(Debug, Clone, Copy)]
pub(super) struct OpenUpload {
    until: Time,
    held: Rate,
    /// Sum of the rates of the epochs, and their number.
    sum: Rate,
    epochs: u32,
}

impl OpenUpload {
    fn new(until: Time, held: Rate) -> OpenUpload {
        OpenUpload { until, held, sum: Rate::ZERO, epochs: 0 }
    }
}

impl Upload {
    /// Leaves the upload to congestion control, because cross traffic keeps a queue.
    pub(super) fn open(&mut self, now: Time, base: Duration) {
        let held = self.delivery_rate.over(base).unwrap_or(Rate::ZERO);
        let open = OpenUpload::new(self.retry_time(now), held);
        self.transition_to(now, PacingState::Open(open), Reason::CrossTrafficQueue);
        self.pace(None);
    }

    /// The time at which the upload will have lasted twice as long as now. After a failure an upload
    /// waits until then, so the number of attempts is at most the number of times that its duration
    /// doubles.
    fn retry_time(&self, now: Time) -> Time {
        now + now.since(self.began)
    }

    /// Measures again if pacing cost no more rate than intended.
    pub(super) fn reconsider(&mut self, now: Time, epoch: &Epoch) {
        let next = self.retry_time(now);
        let PacingState::Open(open) = &mut self.state else { return };
        open.sum = open.sum + epoch.rate;
        open.epochs += 1;
        if now < open.until {
            return;
        }
        let free = open.sum.scaled(f64::from(open.epochs).recip());
        if open.held >= free.scaled(PACE_SHARE) {
            let measuring = PacingState::Measuring { last: epoch.rate };
            return self.transition_to(now, measuring, Reason::TrialSucceeded);
        }
        *open = OpenUpload::new(next, open.held);
    }
}
