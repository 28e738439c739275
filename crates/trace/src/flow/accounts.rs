use std::collections::BTreeMap;

use sweetspot_statistics::HistogramBin;
use sweetspot_units::{Duration, Time};

use super::elapsed::Elapsed;

/// The sender's limit at a time, as far as the wire shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hold {
    /// The connection was being opened.
    Opening,
    /// Everything was acknowledged and the window open, yet nothing was sent, though it was this
    /// side's turn.
    Idle,
    /// The same behind a full segment, in a window of unknown scale: it may have been full.
    IdleOrFull,
    /// No packet passed, and the sender's limit is unknown, because its distance is.
    Unseen,
    /// Nothing was under way, and it was the other side's turn to send.
    Waiting,
    /// Data in flight, room in the window, and bursts that began behind a small message of the receiver, not behind its
    /// acknowledgements: a window above TCP.
    Granted,
    /// Nothing was under way in either direction for long, or ever again.
    Quiet,
    /// Repeated retransmissions got no answer.
    Silent,
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
    /// After retransmissions of segments that the receiver dropped when it took its window back.
    TakenBack,
    /// The window grew, slowly.
    Growing,
    /// The window stayed below the advertised one.
    Flat,
}

/// The circumstances in which time was spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Account {
    /// The sender's limit.
    pub hold: Hold,
    /// Whether the round trip stood above its minimum: a queue.
    pub queue: bool,
    /// Bits per second delivered meanwhile, to 3 %.
    pub rate: u64,
}

/// A piece of a stream's life that one account had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Its first moment.
    pub from: Time,
    /// Its last.
    pub to: Time,
    /// The circumstances.
    pub account: Account,
}

/// A rate to 3 %, so that there are few accounts.
fn rounded(rate: u64) -> u64 {
    HistogramBin::of::<5>(rate).middle()
}

/// The life of a stream, divided among accounts.
#[derive(Debug, Clone, Default)]
pub struct Accounts {
    nanos: BTreeMap<(Hold, bool, u64), u64>,
    spans: Option<Vec<Span>>,
}

impl Accounts {
    /// Books `elapsed`.
    pub fn book(&mut self, account: Account, elapsed: &Elapsed) {
        if elapsed.time() == Duration::ZERO {
            return;
        }
        let account = Account { rate: rounded(account.rate), ..account };
        let key = (account.hold, account.queue, account.rate);
        *self.nanos.entry(key).or_default() += elapsed.time().as_nanos();
        if let Some(spans) = &mut self.spans {
            spans.extend(elapsed.pieces().iter().map(|&(from, to)| Span { from, to, account }));
        }
    }

    /// Records intervals from now on.
    pub fn record(&mut self) {
        self.spans.get_or_insert_default();
    }

    /// Whether it records intervals.
    pub fn records(&self) -> bool {
        self.spans.is_some()
    }

    /// The intervals booked since they were last taken, which are no others' time; empty unless recorded.
    pub fn take_spans(&mut self) -> Vec<Span> {
        self.spans.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Every account and its time.
    pub fn iter(&self) -> impl Iterator<Item = (Account, Duration)> + '_ {
        self.nanos.iter().map(|(&(hold, queue, rate), &nanos)| {
            (Account { hold, queue, rate }, Duration::from_nanos(nanos))
        })
    }

    /// The time in which the sender's limit was one of `holds`.
    pub fn held(&self, holds: &[Hold]) -> Duration {
        let held = self.nanos.iter().filter(|((hold, ..), _)| holds.contains(hold));
        Duration::from_nanos(held.map(|(_, nanos)| nanos).sum())
    }

    /// All time booked.
    pub fn total(&self) -> Duration {
        Duration::from_nanos(self.nanos.values().sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_has_the_rate_by_which_its_time_is_booked() {
        let mut accounts = Accounts::default();
        accounts.record();
        let second = Duration::from_secs(1);
        let mut from = Time::ZERO;
        // 3 % apart is one bin at most, a factor of two is not.
        for rate in [1_000_000, 1_000_000, 2_000_000] {
            let elapsed = Elapsed::between(from, from + second, true);
            from += second;
            accounts.book(Account { hold: Hold::Growing, queue: true, rate }, &elapsed);
        }
        let spans = accounts.take_spans();
        let time = |account: Account| {
            let alike = spans.iter().filter(|span| span.account == account);
            Duration::from_nanos(alike.map(|span| span.to.since(span.from).as_nanos()).sum())
        };
        let times: Vec<_> = accounts.iter().map(|(account, _)| time(account)).collect();
        assert_eq!(times, [second * 2, second]);
        assert_eq!(accounts.total(), second * 3);
        assert!(accounts.take_spans().is_empty());
    }
}
