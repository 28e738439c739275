use sweetspot_units::{Duration, Time};

use crate::flow::counts::Counts;

/// Flights that must agree: of one alone the capture may have missed the acknowledgement that let it go.
const AGREE: usize = 3;

/// How far the sender can be at most, from what it sent before it can have heard of it.
#[derive(Debug, Default)]
pub struct Bounds {
    /// The latest, one of each flight.
    latest: [Option<Duration>; AGREE],
    learnt: Option<Time>,
}

impl Bounds {
    /// At `now` the sender acted on what passed the capture `most` ago; `at_once` if that was the first acknowledgement.
    /// Returns how far away it is at most, if that is known: a capture that missed packets, or has them in another order
    /// than they had, shows other acknowledgements than those that counted.
    pub fn learn(
        &mut self,
        now: Time,
        most: Duration,
        at_once: bool,
        counts: &Counts,
    ) -> Option<Duration> {
        if counts.unseen > 0 || counts.out_of_order > 0 {
            return None;
        }
        if at_once {
            return Some(most);
        }
        if self.learnt.is_none_or(|learnt| now.since(learnt) >= most / 2) {
            self.learnt = Some(now);
            self.latest.rotate_right(1);
            self.latest[0] = Some(most);
        }
        self.latest.iter().copied().min().flatten()?;
        self.latest.iter().flatten().copied().max()
    }
}
