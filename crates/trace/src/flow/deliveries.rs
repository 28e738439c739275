//! The payload acknowledged over time, in a bounded number of intervals.

use sweetspot_units::{Bytes, Duration, Rate, Time};

/// The shortest interval.
const SHORTEST: Duration = Duration::from_millis(100);
/// The maximum number of intervals. If more time passes, pairs of intervals are merged.
const INTERVALS: u64 = 64;
/// The minimum number of intervals that shows a constant rate.
const ENOUGH: usize = 4;
/// Intervals count as equal if their rate is at least this share of the upper quartile. A repair acknowledges up to
/// one RTT of data late. These are an eighth of an interval's data, and may count in the next interval.
const SAME: f64 = 0.75;

/// Payload acknowledged in consecutive intervals. Their boundaries are multiples of their width since the clock's zero, so the
/// series of several streams can be added.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Deliveries {
    /// The width is [`SHORTEST`], doubled this many times.
    doublings: u32,
    /// The index of the first interval since the clock's zero.
    first: u64,
    bytes: Vec<u64>,
}

impl Deliveries {
    /// Adds `bytes` acknowledged at `now`.
    pub fn add(&mut self, now: Time, bytes: u64) {
        if self.bytes.is_empty() {
            self.first = now.as_nanos() / self.width().as_nanos();
        }
        while self.offset(now) >= INTERVALS {
            self.widen();
        }
        let at = self.offset(now) as usize;
        self.bytes.resize(self.bytes.len().max(at + 1), 0);
        self.bytes[at] += bytes;
    }

    /// The sum of all `series`, with the widest of their intervals.
    pub fn together<'a>(series: impl Iterator<Item = &'a Deliveries> + Clone) -> Deliveries {
        let mut sum = Deliveries {
            doublings: series.clone().map(|each| each.doublings).max().unwrap_or(0),
            ..Deliveries::default()
        };
        let mut pieces: Vec<(Time, u64)> = series.flat_map(Deliveries::pieces).collect();
        pieces.sort_unstable();
        pieces.into_iter().for_each(|(at, bytes)| sum.add(at, bytes));
        sum
    }

    /// The rate from `from` to `to`, if it was constant: intervals of equal rate carried nine tenths of the bytes. Each
    /// interval has at least eight `round_trip`s, which hides the gaps of repairs.
    pub fn constant_rate(&self, [from, to]: [Time; 2], round_trip: Duration) -> Option<Rate> {
        let mut coarse = self.clone();
        while coarse.width() < round_trip * 8 {
            coarse.widen();
        }
        let width = coarse.width();
        let whole = coarse.pieces().filter(|(at, _)| *at >= from && *at + width <= to);
        let mut bytes: Vec<u64> = whole.map(|(_, bytes)| bytes).filter(|n| *n > 0).collect();
        bytes.sort_unstable();
        if bytes.len() < ENOUGH {
            return None;
        }
        let total: u64 = bytes.iter().sum();
        // A few intervals contain the late acknowledgement of a repair, which covers earlier data.
        let usual = bytes[bytes.len() * 3 / 4] as f64;
        let alike: Vec<u64> = bytes.into_iter().filter(|n| *n as f64 >= SAME * usual).collect();
        let carried: u64 = alike.iter().sum();
        let time = width * alike.len() as u64;
        (10 * carried >= 9 * total).then(|| Bytes::new(carried) / time)
    }

    /// The beginning of each interval, and its bytes.
    fn pieces(&self) -> impl Iterator<Item = (Time, u64)> + '_ {
        let width = self.width().as_nanos();
        (self.first..).zip(&self.bytes).map(move |(n, bytes)| (Time::from_nanos(n * width), *bytes))
    }

    fn width(&self) -> Duration {
        SHORTEST * (1 << self.doublings)
    }

    /// The index of the interval at `now`, relative to the first one. If the clock went back, the first interval counts.
    fn offset(&self, now: Time) -> u64 {
        (now.as_nanos() / self.width().as_nanos()).saturating_sub(self.first)
    }

    fn widen(&mut self) {
        let mut wider = vec![0; self.bytes.len() / 2 + 1];
        for (n, bytes) in (self.first..).zip(&self.bytes) {
            wider[(n / 2 - self.first / 2) as usize] += bytes;
        }
        (self.first, self.bytes) = (self.first / 2, wider);
        self.doublings += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn series(bytes: impl Iterator<Item = (u64, u64)>) -> Deliveries {
        let mut deliveries = Deliveries::default();
        bytes.for_each(|(ms, bytes)| deliveries.add(Time::from_nanos(ms * MS), bytes));
        deliveries
    }

    fn rate(deliveries: &Deliveries, ms: u64) -> Option<Rate> {
        let all = [Time::ZERO, Time::from_nanos(ms * MS)];
        deliveries.constant_rate(all, Duration::from_millis(10))
    }

    #[test]
    fn two_complementary_rates_sum_to_a_constant_rate() {
        // 10 kB and 30 kB per 100 ms alternate in one series, and 30 kB and 10 kB in the other. Their sum of 40 kB per 100 ms
        // is 3.2 Mbit/s.
        let wave = |turn: u64| {
            series(
                (0..40).map(move |n| (n * 100, if (n / 4) % 2 == turn { 10_000 } else { 30_000 })),
            )
        };
        let both = [wave(0), wave(1)];
        assert_eq!(both.each_ref().map(|one| rate(one, 4000)), [None; 2]);
        let together = Deliveries::together(both.iter());
        assert_eq!(rate(&together, 4000), Some(Rate::from_bits_per_second(3_200_000)));
    }

    #[test]
    fn memory_is_bounded_and_no_byte_is_lost() {
        // 100 bytes every 10 ms for 100 s, and the same again a day later.
        let steady = (0..10_000).map(|n| (n * 10, 100));
        let deliveries = series(steady.clone());
        assert!(deliveries.bytes.len() as u64 <= INTERVALS);
        assert_eq!(rate(&deliveries, 100_000), Some(Rate::from_bits_per_second(80_000)));
        let later = series(steady.chain([(86_400_000, 7)]));
        assert!(later.bytes.len() as u64 <= INTERVALS);
        assert_eq!(later.bytes.iter().sum::<u64>(), 1_000_007);
    }
}
