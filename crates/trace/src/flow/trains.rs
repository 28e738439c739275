use std::collections::VecDeque;

use sweetspot_units::{Rate, Time};

use crate::Histogram;

/// Segments of a train: fewer are timed badly where delays vary, which makes half of the trains seem faster than the path. It
/// must also fit into a third of what is under way, so that some trains do not reach over the pause between two flights.
const SEGMENTS: u64 = 32;
/// And never less than this.
const MIN_SEGMENTS: u64 = 2;
/// One segment in this many may be short.
const SHORT: u64 = 8;
/// Short segments remembered at once.
const REMEMBERED: usize = 256;

/// The rate at which the path delivers when it has something to deliver, from the spacing of
/// acknowledgements: whatever the average is, data that waits at the bottleneck leaves it back
/// to back. Only full segments tell: short ones leave when a program writes them.
#[derive(Debug, Default)]
pub struct Trains {
    first: Option<(Time, u64)>,
    /// Where short segments end.
    short: VecDeque<u64>,
    /// Up to here there were more of them than are remembered.
    unknown: u64,
    /// Bits per second, weighted with bytes.
    rates: Histogram,
}

impl Trains {
    /// A segment that is not full went, up to `end`.
    pub fn sent_short(&mut self, end: u64) {
        if self.short.len() < REMEMBERED {
            self.short.push_back(end);
        } else {
            self.unknown = end;
        }
    }

    /// An acknowledgement up to `una` with `flight` bytes in flight; in `recovery` its steps do not match the data's.
    pub fn acked(&mut self, now: Time, una: u64, flight: u64, mss: u64, recovery: bool) {
        let Some((begun, from)) = self.first.filter(|_| !recovery) else {
            self.first = (!recovery).then_some((now, una));
            return;
        };
        let bytes = una.saturating_sub(from);
        if bytes < (flight / 3).clamp(MIN_SEGMENTS * mss, SEGMENTS * mss) {
            return;
        }
        let nanos = now.since(begun).as_nanos();
        // One acknowledgement of most of what was under way came behind the pause, too.
        let apart = bytes <= flight / 2 + mss;
        if apart && nanos > 0 && self.is_full(from, una, mss) {
            self.rates.add((u128::from(bytes) * 8_000_000_000 / u128::from(nanos)) as u64, bytes);
        }
        self.first = Some((now, una));
    }

    /// Whether at most one segment in eight between `from` and `una` was short.
    fn is_full(&mut self, from: u64, una: u64, mss: u64) -> bool {
        let mut short = 0;
        while self.short.front().is_some_and(|end| *end <= una) {
            short += u64::from(self.short.pop_front() > Some(from));
        }
        from >= self.unknown && short <= (una - from) / mss.max(1) / SHORT
    }

    /// The rates of all trains in bits per second, weighted with their bytes.
    pub fn rates(&self) -> &Histogram {
        &self.rates
    }

    /// The rate that a quarter of the bytes exceed, if there were trains: slower trains reach
    /// over a pause, a few faster ones were pushed together on their way back.
    pub fn rate(&self) -> Option<Rate> {
        self.rates.quantile(0.75).map(Rate::from_bits_per_second)
    }
}
