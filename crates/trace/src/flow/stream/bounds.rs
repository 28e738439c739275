use sweetspot_units::{Duration, Time};

use crate::flow::counts::Counts;

/// Flights that must agree: of one alone the capture may have missed the acknowledgement that let it go.
const AGREE: usize = 3;

/// An upper bound of the distance to the sender, from data that it sent before it can have received an acknowledgement.
#[derive(Debug, Default)]
pub struct Bounds {
    /// The latest, one of each flight.
    latest: [Option<Duration>; AGREE],
    learnt: Option<Time>,
}

impl Bounds {
    /// At `now` the sender reacted to a segment that passed the capture `max` ago; `at_once` if that was the first
    /// acknowledgement. Returns the upper bound of its distance, if known: a capture that missed or reordered packets shows
    /// other acknowledgements than those that counted.
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
