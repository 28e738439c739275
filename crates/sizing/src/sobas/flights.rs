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
}

impl Flights {
    /// Counts what arrived; whether the flight is known by now, which takes a round trip.
    pub(super) fn handle_arrival(&mut self, now: Time, bytes: Bytes, round: Duration) -> bool {
        let since = *self.since.get_or_insert(now);
        self.arrivals.push_back((now, bytes));
        self.sum += bytes;
        while let Some((at, bytes)) = self.arrivals.front().copied()
            && now.since(at) >= round
        {
            self.sum -= bytes;
            self.arrivals.pop_front();
        }
        self.largest = self.largest.max(self.sum);
        now.since(since) >= round
    }

    /// The largest one.
    pub(super) fn largest(&self) -> Bytes {
        self.largest
    }
}
