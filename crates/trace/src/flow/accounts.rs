use std::collections::BTreeMap;

use sweetspot_statistics::HistogramBin;
use sweetspot_units::{Duration, Time};

use super::elapsed::Elapsed;

/// The sender's limit at a time, as far as the packets show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hold {
    /// The connection was being opened.
    Opening,
    /// All data were acknowledged and the window was open. It was this side's turn, but it sent nothing.
    Idle,
    /// Like `Idle`, but after a full segment, in a window of unknown scale: the window may have been full.
    IdleOrFull,
    /// No packet passed, and the limit is unknown because the distance to the sender is.
    Unseen,
    /// No data were in flight, and it was the other side's turn to send.
    Waiting,
    /// Data were in flight and the window had room, but bursts began after a small message of the receiver, not after its
    /// acknowledgements. So there is a window above TCP.
    Granted,
    /// No data were in flight in either direction for a long time, or until the end.
    Quiet,
    /// Repeated retransmissions got no answer.
    Silent,
    /// Data were in flight and the window had room, but the sender paused, and no acknowledgement ended its pauses.
    Pausing,
    /// The advertised window was full, and as large as it ever was.
    WindowFull,
    /// The advertised window was full, and small because the receiver had unread data.
    WindowShut,
    /// The flight grew by at least a quarter per round trip.
    Doubling,
    /// The sender recovered from a loss.
    AfterLoss,
    /// The sender retransmitted segments that the receiver had dropped when it shrank its window.
    TakenBack,
    /// The flight grew more slowly.
    Growing,
    /// The flight stayed below the advertised window and did not grow.
    Flat,
}

/// The circumstances in which time was spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Account {
    /// The sender's limit.
    pub hold: Hold,
    /// Whether the RTT was above its minimum, which shows a queue.
    pub queue: bool,
    /// The delivery rate in bits per second, rounded to 3 %.
    pub rate: u64,
}

/// An interval in which one account applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The beginning of the interval.
    pub from: Time,
    /// The end of the interval.
    pub to: Time,
    /// The circumstances.
    pub account: Account,
}

/// Rounds a rate to 3 %, which keeps the number of accounts small.
fn rounded(rate: u64) -> u64 {
    HistogramBin::of::<5>(rate).middle()
}

/// The time of a stream, divided among accounts.
#[derive(Debug, Clone, Default)]
pub struct Accounts {
    nanos: BTreeMap<(Hold, bool, u64), u64>,
    spans: Option<Vec<Span>>,
}

impl Accounts {
    /// Adds `elapsed` to `account`.
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

    /// Records intervals from now on, besides their total.
    pub fn record(&mut self) {
        self.spans.get_or_insert_default();
    }

    /// Whether intervals are recorded.
    pub fn records(&self) -> bool {
        self.spans.is_some()
    }

    /// The intervals booked since the last call, without overlaps; empty unless they are recorded.
    pub fn take_spans(&mut self) -> Vec<Span> {
        self.spans.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// All accounts, each with its time.
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

    /// The total of all booked time.
    pub fn total(&self) -> Duration {
        Duration::from_nanos(self.nanos.values().sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_booked_under_the_rate_of_its_interval() {
        let mut accounts = Accounts::default();
        accounts.record();
        let second = Duration::from_secs(1);
        let mut from = Time::ZERO;
        // Rates within 3 % share a bin; a factor of two separates them.
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
