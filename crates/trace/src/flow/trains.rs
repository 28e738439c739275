use std::collections::VecDeque;

use sweetspot_units::{Rate, Time};

use crate::Histogram;

/// The maximum number of segments in a train. Shorter trains are timed badly if delays vary, which makes half of them seem
/// faster than the path. A train must also fit into a third of the data in flight, so that some trains do not span the pause
/// between two flights.
const SEGMENTS: u64 = 32;
/// The minimum number of segments in a train.
const MIN_SEGMENTS: u64 = 2;
/// At most one segment in this many may be short.
const SHORT: u64 = 8;
/// The maximum number of short segments remembered.
const REMEMBERED: usize = 256;

/// Estimates the path's delivery rate from the spacing of acknowledgements, independent of the average rate: data that wait at
/// the bottleneck leave it back to back. Only full segments count, because short ones depend on the program's writes.
#[derive(Debug, Default)]
pub struct Trains {
    first: Option<(Time, u64)>,
    /// The ends of short segments.
    short: VecDeque<u64>,
    /// Up to this position, more short segments were sent than are remembered.
    unknown: u64,
    /// The rates of trains in bits per second, weighted by bytes.
    rates: Histogram,
}

impl Trains {
    /// Handles a segment up to `end` that is not full.
    pub fn sent_short(&mut self, end: u64) {
        if self.short.len() < REMEMBERED {
            self.short.push_back(end);
        } else {
            self.unknown = end;
        }
    }

    /// Handles an acknowledgement up to `una`, with `flight` bytes in flight. In `recovery`, acknowledgements advance by other
    /// steps than the data did.
    pub fn acked(&mut self, now: Time, una: u64, flight: u64, mss: u64, recovery: bool) {
        let Some((started, from)) = self.first.filter(|_| !recovery) else {
            self.first = (!recovery).then_some((now, una));
            return;
        };
        let bytes = una.saturating_sub(from);
        if bytes < (flight / 3).clamp(MIN_SEGMENTS * mss, SEGMENTS * mss) {
            return;
        }
        let nanos = now.since(started).as_nanos();
        // A single acknowledgement for most of the data in flight came after the pause, so the pause would count.
        let apart = bytes <= flight / 2 + mss;
        if apart && nanos > 0 && self.is_full(from, una, mss) {
            self.rates.add((u128::from(bytes) * 8_000_000_000 / u128::from(nanos)) as u64, bytes);
        }
        self.first = Some((now, una));
    }

    /// Whether at most one segment in eight from `from` to `una` was short.
    fn is_full(&mut self, from: u64, una: u64, mss: u64) -> bool {
        let mut short = 0;
        while self.short.front().is_some_and(|end| *end <= una) {
            short += u64::from(self.short.pop_front() > Some(from));
        }
        from >= self.unknown && short <= (una - from) / mss.max(1) / SHORT
    }

    /// The rates of all trains in bits per second, weighted by bytes.
    pub fn rates(&self) -> &Histogram {
        &self.rates
    }

    /// The upper quartile of the rates by bytes, if there were trains. Slower trains span a pause, and in a few faster ones the
    /// acknowledgements were compressed on their way back.
    pub fn rate(&self) -> Option<Rate> {
        self.rates.quantile(0.75).map(Rate::from_bits_per_second)
    }
}
