use sweetspot_units::{Duration, Time};

use crate::Histogram;

/// Segments that a slow sender hands on at once at most: Linux makes none smaller (tcp_min_tso_segs).
const HANDED_ON: u32 = 2;
/// Segments that were handed on at once leave no further apart.
const AT_ONCE: Duration = Duration::from_micros(50);

/// How far apart full segments pass the capture: a link, a shaper or a sender that paces itself sets them apart
/// evenly; a window, or a program that writes a piece at a time, lets them go in bursts with pauses between.
#[derive(Debug, Default)]
pub struct Spacing {
    /// When the latest segments went that were handed on at once, their bytes and how many they are, if they were full.
    last: Option<(Time, u64, u32)>,
    /// Bits per second from each full segment, or pair, to the next, weighted with bytes, which bursts rule.
    by_bytes: Histogram,
    /// The same weighted with microseconds, which pauses rule.
    by_time: Histogram,
    short_bytes: u64,
    /// When the latest full segment went, and the least time from one to the next.
    latest: Option<Time>,
    min: Option<Duration>,
}

impl Spacing {
    /// New data passed.
    pub fn sent(&mut self, now: Time, bytes: u64, full: bool) {
        let before = std::mem::replace(&mut self.latest, full.then_some(now));
        let apart = before.filter(|_| full).map(|before| now.since(before));
        self.min = apart.into_iter().chain(self.min).min();
        if !full {
            self.last = None;
            self.short_bytes += bytes;
            return;
        }
        if let Some((then, before, count)) = &mut self.last {
            let apart = now.since(*then);
            if *count < HANDED_ON && apart <= AT_ONCE {
                *before += bytes;
                *count += 1;
                return;
            }
            let nanos = apart.as_nanos().max(1);
            let rate = (u128::from(*before) * 8_000_000_000 / u128::from(nanos)) as u64;
            self.by_bytes.add(rate, *before);
            self.by_time.add(rate, nanos / 1000);
        }
        self.last = Some((now, bytes, 1));
    }

    /// How long a full segment takes at the slowest device between the sender and the capture, if two went one behind
    /// the other; it took no longer.
    pub fn min(&self) -> Option<Duration> {
        self.min
    }

    /// Whether at least `bytes` passed and the middle four fifths of them, and of the time, have rates that differ by
    /// less than a quarter.
    pub fn is_even(&self, bytes: u64) -> bool {
        const WITHIN: f64 = 1.25;
        let even = |rates: &Histogram| {
            let quantile = |share| rates.quantile(share).map(|rate| rate as f64);
            quantile(0.1).zip(quantile(0.9)).is_some_and(|(low, high)| high <= low * WITHIN)
        };
        let full_bytes = self.by_bytes.total();
        full_bytes >= bytes.max(8 * self.short_bytes) && even(&self.by_bytes) && even(&self.by_time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spacing(gaps: impl Iterator<Item = u64>) -> Spacing {
        let (mut spacing, mut now) = (Spacing::default(), Time::ZERO);
        for gap in gaps {
            now += Duration::from_micros(gap);
            spacing.sent(now, 1448, true);
        }
        spacing
    }

    #[test]
    fn a_link_spaces_evenly_and_bursts_and_flights_do_not() {
        let segments = 200;
        let enough = 100 * 1448;
        assert!(spacing((0..segments).map(|n| 1000 + n % 50)).is_even(enough));
        // Two at once, which a shaper gets as one.
        assert!(spacing((0..segments).map(|n| if n % 2 == 0 { 2000 } else { 3 })).is_even(enough));
        // Four at once, as a program writes them.
        assert!(!spacing((0..segments).map(|n| if n % 4 == 0 { 4000 } else { 1 })).is_even(enough));
        // Ten as the bottleneck spaces them, then the rest of a round trip.
        let flights = (0..segments).map(|n| if n % 10 == 0 { 30_000 } else { 1000 });
        assert!(!spacing(flights).is_even(enough));
        assert!(!spacing((0..20).map(|_| 1000)).is_even(enough));
    }
}
