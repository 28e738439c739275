use std::collections::VecDeque;

use sweetspot_path::{Discipline, Link, Propagation};
use sweetspot_scenario::{Change, Path};
use sweetspot_units::{Duration, Time};

use super::Packet;

/// The changes that are to be made at a hop. They are made between two packets: a packet in service
/// is sent at the old rate, and no event is moved.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    upcoming: VecDeque<Change>,
    /// When the last packet comes out. On a shorter route none overtakes it.
    latest: Time,
}

impl Changes {
    /// The changes at hop `index` of `path`.
    pub(crate) fn of(path: &Path, index: usize) -> Changes {
        let own = path.changes.iter().filter(|change| change.hop == index);
        Changes { upcoming: own.copied().collect(), latest: Time::ZERO }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.upcoming.is_empty()
    }

    /// Makes the changes that are due at `now`, when the link sends nothing or has just ended.
    pub(crate) fn apply(
        &mut self,
        now: Time,
        link: &mut Link<Packet, Discipline<Packet>>,
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

    /// The least propagation that a packet which has not left the link can have.
    pub(crate) fn least(&self, propagation: &Propagation) -> Duration {
        let delays = self.upcoming.iter().filter_map(|change| change.delay);
        delays.fold(propagation.delay(), Duration::min)
    }

    /// When the next packet comes out that would do so at `out` if it were alone.
    pub(crate) fn in_order(&mut self, out: Time) -> Time {
        self.latest = self.latest.max(out);
        self.latest
    }
}
