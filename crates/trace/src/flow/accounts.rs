use std::collections::BTreeMap;

use sweetspot_units::Duration;

use crate::histogram::{bin, middle};

/// What held the sender at a time, as far as the wire shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hold {
    /// The connection was being opened.
    Opening,
    /// Everything was acknowledged and the window open, yet nothing was sent.
    Idle,
    /// Data under way, room in the window, and pauses that no acknowledgement ended.
    Pausing,
    /// The advertised window was full, as large as it ever was.
    WindowFull,
    /// The advertised window was full, and small because data lay unread.
    WindowShut,
    /// The window grew by a quarter or more per round trip.
    Doubling,
    /// After a loss.
    AfterLoss,
    /// The window grew, slowly.
    Growing,
    /// The window stood still below what was advertised.
    Flat,
}

/// The circumstances in which time was spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Account {
    /// What held the sender.
    pub hold: Hold,
    /// Whether the round trip stood above its minimum: a queue.
    pub queue: bool,
    /// Bits per second delivered meanwhile, to 3 %.
    pub rate: u64,
}

/// The life of a stream, divided among accounts.
#[derive(Debug, Clone, Default)]
pub struct Accounts {
    nanos: BTreeMap<(Hold, bool, u16), u64>,
}

impl Accounts {
    /// Books `time`.
    pub fn book(&mut self, account: Account, time: Duration) {
        if time > Duration::ZERO {
            let key = (account.hold, account.queue, bin(account.rate));
            *self.nanos.entry(key).or_default() += time.as_nanos();
        }
    }

    /// Every account and its time.
    pub fn iter(&self) -> impl Iterator<Item = (Account, Duration)> + '_ {
        self.nanos.iter().map(|(&(hold, queue, rate), &nanos)| {
            (Account { hold, queue, rate: middle(rate) }, Duration::from_nanos(nanos))
        })
    }

    /// All time booked.
    pub fn total(&self) -> Duration {
        Duration::from_nanos(self.nanos.values().sum())
    }
}
