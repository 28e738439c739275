use std::collections::VecDeque;

use sweetspot_units::{Bytes, Duration, Time};

use super::round_trip::AVERAGED_ROUND_TRIPS;

/// Parts into which a round trip is divided. With eight parts, cross traffic loses 0.4 % at the first percentile (population
/// `drawn`, seed 5151).
const ROUND_TRIP_PARTS: u64 = 16;

/// The largest number of bytes that arrived in one RTT, or on average over several: about the sender's data in flight, or less.
#[derive(Debug, Default)]
pub(crate) struct InflightEstimator {
    /// Arrivals of the last RTT by part; the first part may begin earlier. Each entry holds its start and its bytes.
    arrivals: VecDeque<(Time, Bytes)>,
    /// The sum of `arrivals`, and the time of the latest one.
    sum: Bytes,
    latest: Option<Time>,
    largest: Bytes,
    /// Start of the average over several RTTs, and the bytes that arrived since then, repairs included. If repairs never end,
    /// the data behind a missing segment (an RTT or two) are a small part of these arrivals.
    average: Option<(Time, Bytes)>,
    /// Arrivals before this time are not counted, see [`InflightEstimator::handle_gap`].
    repaired: Time,
}

impl InflightEstimator {
    /// Counts arrivals on a path with the base RTT `base`.
    pub(crate) fn handle_arrival(&mut self, now: Time, bytes: Bytes, base: Duration) {
        // Data that arrive at the beginning of a span belong to the time before it.
        let (since, sum) =
            self.average.map_or((now, Bytes::ZERO), |(since, sum)| (since, sum + bytes));
        self.average = Some((since, sum));
        if now.since(since) >= base * AVERAGED_ROUND_TRIPS {
            self.largest = self.largest.max(sum / now.since(since) * base);
            self.average = Some((now, Bytes::ZERO));
        }
        if now < self.repaired || bytes == Bytes::ZERO {
            return;
        }
        // Data that a host sees in one sample may have arrived at any time since the previous sample.
        let Some(since) = self.latest.replace(now) else {
            // At the start, these are all data so far. After a gap, it is unknown when they began to arrive.
            if self.largest == Bytes::ZERO {
                self.largest = bytes;
            }
            return;
        };
        let part = base / ROUND_TRIP_PARTS;
        match self.arrivals.back_mut() {
            Some((since, sum)) if now.since(*since) < part => *sum += bytes,
            _ => self.arrivals.push_back((since, bytes)),
        }
        self.sum += bytes;
        // Keeps only as many parts as cover a round trip.
        while let (Some((_, first)), Some((second, _))) =
            (self.arrivals.front(), self.arrivals.get(1))
            && now.since(*second) >= base
        {
            self.sum -= *first;
            self.arrivals.pop_front();
        }
        let took = self.arrivals.front().map_or(base, |(since, _)| now.since(*since));
        self.largest = self.largest.max(self.sum / base.max(took) * base);
    }

    /// A segment is missing, on a path of round trip `base`. When its retransmission arrives, all data behind it become
    /// readable at once: more than was ever in flight.
    pub(crate) fn handle_gap(&mut self, now: Time, base: Duration) {
        self.repaired = now + base * 2;
        self.latest = None;
        self.arrivals.clear();
        self.sum = Bytes::ZERO;
    }

    pub(crate) fn largest(&self) -> Bytes {
        self.largest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_delayed_by_a_missing_segment_does_not_inflate_the_flight() {
        let base = Duration::from_millis(40);
        let mut inflight = InflightEstimator::default();
        // 1 kB in each ms; but data that arrive from 200 on are in order only at 270, all at once.
        for ms in 1..=400 {
            let now = Time::from_nanos(ms * 1_000_000);
            if (200..270).contains(&ms) {
                inflight.handle_gap(now, base);
            } else {
                let bytes = if ms == 270 { 71_000 } else { 1000 };
                inflight.handle_arrival(now, Bytes::new(bytes), base);
            }
        }
        // A part of 2.5 ms may be counted whole.
        assert!((40_000..=43_000).contains(&inflight.largest().get()), "{inflight:?}");
    }

    #[test]
    fn late_polling_does_not_inflate_the_flight() {
        let base = Duration::from_millis(40);
        for interval in [1, 7, 19, 20, 39, 40, 41, 90, 150] {
            let mut inflight = InflightEstimator::default();
            // 1 kB in each ms, from the first on.
            inflight.handle_arrival(Time::ZERO, Bytes::new(1000), base);
            for ms in (interval..1000).step_by(interval) {
                let now = Time::from_nanos(ms as u64 * 1_000_000);
                inflight.handle_arrival(now, Bytes::new(interval as u64 * 1000), base);
            }
            let largest = inflight.largest().get();
            // A part of 2.5 ms may be counted whole.
            assert!((37_000..=43_000).contains(&largest), "{largest} at {interval} ms");
        }
    }

    #[test]
    fn the_flight_is_estimated_despite_a_loss_in_every_rtt() {
        let base = Duration::from_millis(40);
        let mut inflight = InflightEstimator::default();
        // 1 kB in each ms; every 30 ms a segment is missing, and the data behind it wait for 45 ms.
        let mut waiting = 0;
        for ms in 1..=2000 {
            let now = Time::from_nanos(ms * 1_000_000);
            waiting += 1000;
            if ms % 30 == 0 {
                inflight.handle_gap(now, base);
            }
            if ms % 45 == 0 {
                inflight.handle_arrival(now, Bytes::new(std::mem::take(&mut waiting)), base);
            }
        }
        // 40 kB are in flight; over eight RTTs, a repair of 45 ms adds or removes a seventh.
        assert!((34_000..=46_000).contains(&inflight.largest().get()), "{inflight:?}");
    }
}
