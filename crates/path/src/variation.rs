use std::collections::VecDeque;

use sweetspot_units::{Duration, Rate, Time};

use crate::{Discipline, Link, Packet, Propagation, Trace};

/// The variation of a direction over time.
#[derive(Debug, Clone, Default)]
pub struct Variation {
    /// A trace that the link follows, regardless of its rate.
    pub trace: Option<Trace>,
    /// Changes of rate or delay, in the order of time.
    pub changes: Vec<Change>,
}

/// A link's rate or propagation changes at a time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// The time of the change, relative to time 0.
    pub at: Duration,
    /// The new rate; `None`: unchanged. A packet in transmission is sent at the old rate.
    pub rate: Option<Rate>,
    /// The new one-way propagation delay; `None`: unchanged.
    pub delay: Option<Duration>,
}

/// Applies changes between two packets: a packet in service is sent at the old rate, and no event is
/// moved.
#[derive(Debug, Default)]
pub struct Changes {
    upcoming: VecDeque<Change>,
    /// Exit time of the last packet, so that none overtakes it on a shorter route.
    latest: Time,
}

impl Changes {
    /// These changes, in the order of time.
    pub fn new(changes: impl IntoIterator<Item = Change>) -> Changes {
        Changes { upcoming: changes.into_iter().collect(), latest: Time::ZERO }
    }

    /// Replaces the remaining changes by these; their time 0 is `start`.
    pub(crate) fn replace(&mut self, start: Time, changes: &[Change]) {
        let start = start.since(Time::ZERO);
        let shifted = changes.iter().map(|change| Change { at: start + change.at, ..*change });
        self.upcoming = shifted.collect();
    }

    /// Whether no changes remain.
    pub fn is_empty(&self) -> bool {
        self.upcoming.is_empty()
    }

    /// Applies the changes due at `now`, when the link is idle or has just finished a packet.
    pub(crate) fn apply<P: Packet>(
        &mut self,
        now: Time,
        link: &mut Link<P, Discipline<P>>,
        propagation: &mut Propagation,
    ) {
        let due = |change: &&Change| Time::ZERO + change.at <= now;
        while let Some(change) = self.upcoming.front().filter(due).copied() {
            self.upcoming.pop_front();
            if let Some(rate) = change.rate {
                link.set_rate(now, rate);
            }
            if let Some(delay) = change.delay {
                propagation.set_delay(delay);
            }
        }
    }

    /// The shortest propagation delay of a packet that has not left the link.
    pub(crate) fn min(&self, propagation: &Propagation) -> Duration {
        let delays = self.upcoming.iter().filter_map(|change| change.delay);
        delays.fold(propagation.delay(), Duration::min)
    }

    /// The exit time of the next packet, which would leave at `out` if it were alone.
    pub(crate) fn in_order(&mut self, out: Time) -> Time {
        self.latest = self.latest.max(out);
        self.latest
    }
}
