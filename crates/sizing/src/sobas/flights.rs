use std::collections::VecDeque;

use sweetspot_units::{Bytes, Duration, Time};

/// The largest number of bytes that arrived in any one round trip: what the sender has in flight.
#[derive(Debug, Default)]
pub(super) struct Flights {
    since: Option<Time>,
    /// What arrived in the last round trip, and its sum.
    arrivals: VecDeque<(Time, Bytes)>,
    sum: Bytes,
    largest: Bytes,
    /// Until when what arrives was not in flight together: see [`Flights::handle_gap`].
    repaired: Time,
}

impl Flights {
    /// Counts what arrived; whether the flight is known by now, which takes a round trip.
    pub(super) fn handle_arrival(&mut self, now: Time, bytes: Bytes, round: Duration) -> bool {
        let counts = self.counts(now, round);
        if now < self.repaired {
            return counts;
        }
        self.arrivals.push_back((now, bytes));
        self.sum += bytes;
        while let Some((at, bytes)) = self.arrivals.front().copied()
            && now.since(at) >= round
        {
            self.sum -= bytes;
            self.arrivals.pop_front();
        }
        self.largest = self.largest.max(self.sum);
        counts
    }

    /// Whether a round trip has gone by since the first look, so that the flight is known.
    pub(super) fn counts(&mut self, now: Time, round: Duration) -> bool {
        now.since(*self.since.get_or_insert(now)) >= round
    }

    /// A segment is missing, on a path of round trip `base`. When it has been sent again, all that
    /// waited behind it arrives in order at once: more than was in flight at any time.
    pub(super) fn handle_gap(&mut self, now: Time, base: Duration) {
        self.repaired = now + base * 2;
        self.arrivals.clear();
        self.sum = Bytes::ZERO;
    }

    /// The largest one.
    pub(super) fn largest(&self) -> Bytes {
        self.largest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waited_behind_a_missing_segment_was_not_in_flight_together() {
        let base = Duration::from_millis(40);
        let mut flights = Flights::default();
        // 1 kB in each ms; but what arrives from 200 on is in order only at 270, all at once.
        for ms in 1..=400 {
            let now = Time::from_nanos(ms * 1_000_000);
            if (200..270).contains(&ms) {
                flights.handle_gap(now, base);
                flights.handle_arrival(now, Bytes::ZERO, base);
            } else {
                let bytes = if ms == 270 { 71_000 } else { 1000 };
                flights.handle_arrival(now, Bytes::new(bytes), base);
            }
        }
        assert_eq!(flights.largest(), Bytes::new(40_000));
    }
}
