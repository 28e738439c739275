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
    /// The bytes of the pieces, weighted with bytes.
    sizes: Histogram,
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
            self.sizes.add(*before, *before);
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

    /// The rate, in bits per second, at which pieces of different sizes follow one another, each after the time of its bytes:
    /// so does a link, a shaper, or a sender that paces itself (bbr), as captured before the network card divides them. A program
    /// that writes by a clock leaves as much time behind small writes as behind large ones. At least `bytes` must have passed.
    pub fn pace(&self, bytes: u64) -> Option<f64> {
        const WITHIN: f64 = 1.3;
        const DIFFERENT: f64 = 4.0;
        let at = |of: &Histogram, share| of.quantile(share).map(|value| value as f64);
        let middle = |rates: &Histogram| {
            let (low, high) = at(rates, 0.25).zip(at(rates, 0.75))?;
            at(rates, 0.5).filter(|_| high <= low * WITHIN)
        };
        let (small, large) = at(&self.sizes, 0.1).zip(at(&self.sizes, 0.9))?;
        let (by_bytes, by_time) = middle(&self.by_bytes).zip(middle(&self.by_time))?;
        let agree = by_bytes.max(by_time) <= by_bytes.min(by_time) * WITHIN;
        let enough = self.by_bytes.total() >= bytes.max(8 * self.short_bytes);
        (enough && agree && large >= small * DIFFERENT).then_some(by_bytes)
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

    /// Pieces of 2, 2, 2, 2, 18 and 18 segments, each `gap(its segments)` microseconds before the next.
    fn pieces(gap: fn(u64) -> u64) -> Spacing {
        let (mut spacing, mut now) = (Spacing::default(), Time::ZERO);
        for segments in [2, 2, 2, 2, 18, 18].into_iter().cycle().take(200) {
            spacing.sent(now, 1448 * segments, true);
            now += Duration::from_micros(gap(segments));
        }
        spacing
    }

    #[test]
    fn pieces_that_take_the_time_of_their_bytes_keep_a_pace_and_those_of_a_clock_do_not() {
        // 1448 bytes each 200 us are 57.9 Mbit/s; histograms are 2 % off.
        let pace = pieces(|segments| 200 * segments).pace(100 * 1448);
        assert!(pace.is_some_and(|pace| (pace / 57.92e6 - 1.0).abs() < 0.03), "{pace:?}");
        assert_eq!(pieces(|_| 2400).pace(100 * 1448), None);
        // Writes of one size by a clock tell nothing of their pace.
        assert_eq!(spacing((0..200).map(|_| 1000)).pace(100 * 1448), None);
        // Ten at a link's rate, and then a pause.
        let flights = (0..200).map(|n| if n % 10 == 0 { 30_000 } else { 1000 });
        assert_eq!(spacing(flights).pace(100 * 1448), None);
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
