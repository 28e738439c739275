use sweetspot_units::{Duration, Time};

use crate::Histogram;

/// The maximum number of segments that a slow sender passes to its device at once: Linux builds no smaller bursts
/// (tcp_min_tso_segs).
const HANDED_ON: u32 = 2;
/// Segments that were passed on at once leave within this time.
const AT_ONCE: Duration = Duration::from_micros(50);

/// The distances in time at which full segments pass the capture. A link, a shaper or a pacing sender spaces them evenly. A
/// window, or a program that writes piece by piece, sends them in bursts with pauses in between.
#[derive(Debug, Default)]
pub struct Spacing {
    /// The latest piece (segments that were passed on at once), if they were full: its time, bytes and number of segments.
    last: Option<(Time, u64, u32)>,
    /// The rate from each piece to the next in bits per second, weighted by bytes, which makes bursts dominate.
    by_bytes: Histogram,
    /// The same rates weighted by microseconds, which makes pauses dominate.
    by_time: Histogram,
    /// The sizes of the pieces in bytes, weighted by bytes.
    sizes: Histogram,
    short_bytes: u64,
    /// The time of the latest segment if it was full, and the minimum time between two full segments.
    latest: Option<Time>,
    min: Option<Duration>,
}

impl Spacing {
    /// Handles new data that passed the capture.
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

    /// The minimum time between two full segments in a row: an upper bound of the time that a full segment takes at the slowest
    /// device between sender and capture.
    pub fn min(&self) -> Option<Duration> {
        self.min
    }

    /// Whether at least `bytes` passed at an even rate: the middle four fifths of the rates, by bytes and by time, differ by at
    /// most a quarter.
    pub fn is_even(&self, bytes: u64) -> bool {
        const WITHIN: f64 = 1.25;
        let even = |rates: &Histogram| {
            let quantile = |share| rates.quantile(share).map(|rate| rate as f64);
            quantile(0.1).zip(quantile(0.9)).is_some_and(|(low, high)| high <= low * WITHIN)
        };
        let full_bytes = self.by_bytes.total();
        full_bytes >= bytes.max(8 * self.short_bytes) && even(&self.by_bytes) && even(&self.by_time)
    }

    /// The rate, in bits per second, if pieces of different sizes each take a time in proportion to their bytes, and at least
    /// `bytes` passed. This is the case behind a link or shaper, or with a pacing sender (BBR), captured before the network
    /// card splits the pieces. A program that writes at fixed times leaves the same time after small writes as after large
    /// ones.
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

    /// Pieces of 2, 2, 2, 2, 18 and 18 segments; each precedes the next by `gap(its segments)` microseconds.
    fn pieces(gap: fn(u64) -> u64) -> Spacing {
        let (mut spacing, mut now) = (Spacing::default(), Time::ZERO);
        for segments in [2, 2, 2, 2, 18, 18].into_iter().cycle().take(200) {
            spacing.sent(now, 1448 * segments, true);
            now += Duration::from_micros(gap(segments));
        }
        spacing
    }

    #[test]
    fn pieces_timed_by_size_are_paced_and_clocked_ones_are_not() {
        // 1448 bytes every 200 us are 57.9 Mbit/s; the histogram's error is 2 %.
        let pace = pieces(|segments| 200 * segments).pace(100 * 1448);
        assert!(pace.is_some_and(|pace| (pace / 57.92e6 - 1.0).abs() < 0.03), "{pace:?}");
        assert_eq!(pieces(|_| 2400).pace(100 * 1448), None);
        // Equal writes at fixed times do not show a rate.
        assert_eq!(spacing((0..200).map(|_| 1000)).pace(100 * 1448), None);
        // Ten segments at a link's rate, followed by a pause.
        let flights = (0..200).map(|n| if n % 10 == 0 { 30_000 } else { 1000 });
        assert_eq!(spacing(flights).pace(100 * 1448), None);
    }

    #[test]
    fn links_space_segments_evenly_but_bursts_and_flights_do_not() {
        let segments = 200;
        let enough = 100 * 1448;
        assert!(spacing((0..segments).map(|n| 1000 + n % 50)).is_even(enough));
        // Two segments at once, which a shaper receives as one.
        assert!(spacing((0..segments).map(|n| if n % 2 == 0 { 2000 } else { 3 })).is_even(enough));
        // Four segments at once, as a program writes them.
        assert!(!spacing((0..segments).map(|n| if n % 4 == 0 { 4000 } else { 1 })).is_even(enough));
        // Ten segments at the bottleneck's rate, then a pause for the rest of the RTT.
        let flights = (0..segments).map(|n| if n % 10 == 0 { 30_000 } else { 1000 });
        assert!(!spacing(flights).is_even(enough));
        assert!(!spacing((0..20).map(|_| 1000)).is_even(enough));
    }
}
