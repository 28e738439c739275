use sweetspot_units::{Duration, Rate, Time};

/// The most connections of one transfer.
pub const MAX_STREAMS: u32 = 16;

/// A doubled number of connections has to bring this much more to be doubled again. Connections that are each
/// held down by something of their own bring twice as much; a path that is full brings nothing.
const LEAST_GAIN: f64 = 1.25;

/// How many connections a transfer uses.
///
/// One connection carries a path unless something holds each connection down by itself: its window at the
/// host's limit, or random losses under a loss-based congestion control. Then twice as many carry twice as much,
/// until the path is full; so the number is doubled while the cause is there, and while doubling paid the last
/// time.
///
/// ```
/// use sweetspot_protocol::StreamCount;
/// use sweetspot_units::{Duration, Rate, Time};
///
/// let mut streams = StreamCount::new(None);
/// let second = |n| Time::ZERO + Duration::from_secs(n);
/// let rtt = Duration::from_millis(100);
/// assert_eq!(streams.update(second(0), rtt, Rate::ZERO, false), None);
/// assert_eq!(streams.update(second(3), rtt, Rate::from_mbit_per_second(10), true), Some(2));
/// // Two connections bring no more than one did: it stays at two.
/// assert_eq!(streams.update(second(9), rtt, Rate::from_mbit_per_second(10), true), None);
/// ```
#[derive(Debug, Clone)]
pub struct StreamCount {
    count: u32,
    fixed: bool,
    /// When the present number may be judged.
    due: Time,
    /// The rate before the last doubling.
    before: Option<Rate>,
    /// Doubling did not pay.
    settled: bool,
}

impl StreamCount {
    /// One connection at first, or as many as were `chosen`.
    pub fn new(chosen: Option<u32>) -> StreamCount {
        StreamCount {
            count: chosen.unwrap_or(1).clamp(1, MAX_STREAMS),
            fixed: chosen.is_some(),
            due: Time::ZERO,
            before: None,
            settled: false,
        }
    }

    /// How many there are to be.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The recent `rate` over all connections, and whether each is `held_down` by something of its own. Returns the
    /// new number when it changes.
    pub fn update(&mut self, now: Time, rtt: Duration, rate: Rate, held_down: bool) -> Option<u32> {
        if self.due == Time::ZERO {
            self.due = now + settling(rtt);
        }
        if self.fixed || self.settled || now < self.due || !held_down {
            return None;
        }
        let paid = self.before.is_none_or(|before| rate.as_f64() >= before.as_f64() * LEAST_GAIN);
        if !paid || self.count >= MAX_STREAMS {
            self.settled = true;
            return None;
        }
        self.before = Some(rate);
        self.count = (self.count * 2).min(MAX_STREAMS);
        self.due = now + settling(rtt) * 2;
        Some(self.count)
    }
}

/// The time in which a connection shows what it can carry: slow start takes some ten round trips.
fn settling(rtt: Duration) -> Duration {
    (rtt * 15).clamp(Duration::from_secs(1), Duration::from_secs(10))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    /// Plays connections that carry `each` up to a path of `full`; returns the final number.
    fn play(each: f64, full: f64, held_down: impl Fn(f64) -> bool) -> u32 {
        let mut streams = StreamCount::new(None);
        for tick in 0..600 {
            let rate = (each * f64::from(streams.count())).min(full);
            let now = Time::ZERO + Duration::from_millis(100) * (tick + 1);
            streams.update(now, RTT, Rate::from_f64(rate), held_down(rate));
        }
        streams.count()
    }

    #[test]
    fn enough_connections_fill_the_path_and_hardly_more() {
        // 4 MiB of window at 200 ms carry some 90 Mbit/s of 300: four are enough.
        assert_eq!(play(90e6, 300e6, |rate| rate < 300e6), 4);
        // Losses go on when the path is full: one doubling too many shows that it does not pay.
        assert_eq!(play(20e6, 90e6, |_| true), 8);
    }

    #[test]
    fn one_connection_stays_one_where_nothing_holds_it_down() {
        assert_eq!(play(50e6, 100e6, |_| false), 1);
    }

    #[test]
    fn a_number_that_was_chosen_stays() {
        let mut streams = StreamCount::new(Some(3));
        let late = Time::ZERO + Duration::from_secs(100);
        assert_eq!(streams.update(late, RTT, Rate::from_mbit_per_second(1), true), None);
        assert_eq!(streams.count(), 3);
    }
}
