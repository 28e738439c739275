use std::collections::VecDeque;

use sweetspot_units::{Duration, Rate, Time};

use crate::Histogram;

/// The maximum number of segments in a train. Shorter trains are timed badly if delays vary, which makes half of them seem
/// faster than the path. A train must also fit into a third of the data in flight, so that some trains do not span the pause
/// between two flights.
const SEGMENTS: u64 = 32;
/// The minimum number of segments in a train.
const MIN_SEGMENTS: u64 = 2;
/// Behind this many segments, data waits in a queue.
const QUEUED: u64 = 2;
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
    /// The rates of those that waited in a queue.
    queued: Histogram,
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

    /// Handles an acknowledgement up to `una`, with `flight` bytes in flight; its data took `wait` longer than the fastest. In
    /// `recovery`, acknowledgements advance by other steps than the data did.
    pub fn acked(
        &mut self,
        now: Time,
        (una, wait): (u64, Duration),
        flight: u64,
        mss: u64,
        recovery: bool,
    ) {
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
            let rate = (u128::from(bytes) * 8_000_000_000 / u128::from(nanos)) as u64;
            self.rates.add(rate, bytes);
            let segments = u128::from(wait.as_nanos()) * u128::from(bytes / mss.max(1));
            if segments >= u128::from(QUEUED) * u128::from(nanos) {
                self.queued.add(rate, bytes);
            }
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

    /// The rates of the trains that waited for two segments or more at their end: a queue spaced them. A pacing sender may have
    /// spaced the others.
    pub fn queued(&self) -> &Histogram {
        &self.queued
    }

    /// The upper quartile of the rates by bytes, if there were trains. Slower trains span a pause, and in a few faster ones the
    /// acknowledgements were compressed on their way back.
    pub fn rate(&self) -> Option<Rate> {
        self.rates.quantile(0.75).map(Rate::from_bits_per_second)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1000;

    /// Flights of 30 segments every 100 ms, each segment sent `sent` and acknowledged `acked` microseconds after the one before
    /// it. The first waits for nothing.
    fn flights(sent: u64, acked: u64) -> Trains {
        let mut trains = Trains::default();
        let segments = 30;
        for flight in 0..20 {
            for n in 0..segments {
                let now = Time::ZERO + Duration::from_micros(flight * 100_000 + n * acked);
                let wait = Duration::from_micros(n * (acked - sent));
                let una = (flight * segments + n + 1) * MSS;
                trains.acked(now, (una, wait), (segments - n) * MSS, MSS, false);
            }
        }
        trains
    }

    /// A segment of 1000 bytes each millisecond is 8 Mbit/s, whoever spaces them; the histogram's error is 2 %.
    #[test]
    fn only_trains_slower_than_their_data_was_sent_show_a_queue() {
        for (sent, is_queued) in [(1000, false), (100, true)] {
            let trains = flights(sent, 1000);
            let rate = trains.rate().unwrap();
            assert!((rate.as_f64() / 8e6 - 1.0).abs() < 0.03, "{rate}");
            assert_eq!(trains.queued().total() > 0, is_queued, "{sent}");
        }
    }
}
