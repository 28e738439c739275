use std::collections::BTreeMap;

use sweetspot_statistics::HistogramBin;
use sweetspot_units::{Duration, Time};

/// The sender's limit at a time, as far as the wire shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hold {
    /// The connection was being opened.
    Opening,
    /// Everything was acknowledged and the window open, yet nothing was sent, though it was this
    /// side's turn.
    Idle,
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

/// Spans that are kept; where there are more, the shorter of two neighbours gives way.
const SPANS: usize = 2048;

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
    /// Books `time` that ended at `until`.
    pub fn book(&mut self, account: Account, time: Duration, until: Time) {
        if time > Duration::ZERO {
            self.span(account, time, until);
            let key = (account.hold, account.queue, rounded(account.rate));
            *self.nanos.entry(key).or_default() += time.as_nanos();
        }
    }

    fn span(&mut self, account: Account, time: Duration, to: Time) {
        let from = Time::from_nanos(to.as_nanos().saturating_sub(time.as_nanos()));
        let Some(spans) = &mut self.spans else { return };
        if let Some(last) = spans.last_mut()
            && last.account.hold == account.hold
            && last.account.queue == account.queue
            && rounded(last.account.rate) == rounded(account.rate)
            && from <= last.to
        {
            last.to = last.to.max(to);
            return;
        }
        spans.push(Span { from, to, account });
        if spans.len() >= 2 * SPANS {
            *spans = halve(spans);
        }
    }

    /// Records intervals from now on, which takes more memory.
    pub fn record(&mut self) {
        self.spans.get_or_insert_default();
    }

    /// The intervals of its life, in the order of time, coarser if it was long and changed often; empty unless recorded.
    pub fn spans(&self) -> &[Span] {
        self.spans.as_deref().unwrap_or_default()
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

/// Of each two neighbours the longer, lasting as long as both.
fn halve(spans: &[Span]) -> Vec<Span> {
    let longer = |a: &Span, b: &Span| {
        let lasts = |span: &Span| span.to.since(span.from);
        let account = if lasts(b) > lasts(a) { b.account } else { a.account };
        Span { from: a.from.min(b.from), to: a.to.max(b.to), account }
    };
    spans.chunks(2).map(|pair| longer(&pair[0], pair.last().unwrap_or(&pair[0]))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_that_follow_one_another_are_one_only_where_their_rates_are_alike() {
        let mut accounts = Accounts::default();
        accounts.record();
        let second = Duration::from_secs(1);
        // 3 % apart is one bin at most, a factor of two is not.
        let rates = [1_000_000, 1_000_000, 2_000_000];
        let mut until = Time::ZERO;
        for rate in rates {
            until += second;
            accounts.book(Account { hold: Hold::Growing, queue: true, rate }, second, until);
        }
        let lasting = |span: &Span| span.to.since(span.from);
        let spans: Vec<_> = accounts.spans().iter().map(lasting).collect();
        assert_eq!(spans, [second * 2, second]);
        assert_eq!(accounts.total(), second * 3);
    }
}
