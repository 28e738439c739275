use sweetspot_units::{Duration, Time};

use crate::flow::counts::Counts;

/// The number of flights that must agree, because the capture may miss the acknowledgement that released a single flight.
const AGREE: usize = 3;

/// An upper bound of the time to the sender and back, from data that the sender can only have sent after it received an
/// acknowledgement.
#[derive(Debug, Default)]
pub struct Bounds {
    /// The latest bounds, at most one per flight.
    latest: [Option<Duration>; AGREE],
    learnt: Option<Time>,
}

impl Bounds {
    /// Handles a reaction of the sender at `now` to a segment that passed the capture `max` ago; `at_once` if this was the
    /// first acknowledgement. Returns the upper bound, if known. It is unknown if the capture missed or reordered packets: then
    /// other acknowledgements may have released the data.
    pub fn learn(
        &mut self,
        now: Time,
        max: Duration,
        at_once: bool,
        counts: &Counts,
    ) -> Option<Duration> {
        if counts.unseen > 0 || counts.out_of_order > 0 {
            return None;
        }
        if at_once {
            return Some(max);
        }
        if self.learnt.is_none_or(|learnt| now.since(learnt) >= max / 2) {
            self.learnt = Some(now);
            self.latest.rotate_right(1);
            self.latest[0] = Some(max);
        }
        self.latest.iter().copied().min().flatten()?;
        self.latest.iter().flatten().copied().max()
    }
}
