use std::collections::VecDeque;

use sweetspot_units::{Bytes, Duration, Rate, Time};

/// The shortest time over which a rate is believed: a few looks at the connection, and longer than
/// interrupts are held back.
const SHORTEST: Duration = Duration::from_millis(5);

/// ... and the share of a round trip, or the time, that a burst lasts at most: over longer stretches
/// the rate is that of one flight after the other, which is the window's and not the path's.
const LONGEST_SHARE: f64 = 0.5;
const LONGEST: Duration = Duration::from_millis(10);

/// ... and the least that must have arrived in it, in segments, so that the first and the last
/// one cut in half do not matter.
const LEAST_SEGMENTS: u64 = 20;

/// The path's capacity from the transfer's own bursts: slow start sends each flight back to back,
/// so that it leaves the bottleneck as a packet train (section VII-A of the SOBAS paper sends one
/// on purpose). The highest rate over any stretch that is long enough.
#[derive(Debug)]
pub(super) struct Dispersion {
    least: Bytes,
    arrivals: VecDeque<(Time, Bytes)>,
    total: Bytes,
    highest: Option<Rate>,
    /// Until when what arrives is no burst: a segment is missing, and when it comes all that waited
    /// behind it comes in order at once.
    repaired: Time,
}

impl Dispersion {
    pub(super) fn new(mss: Bytes) -> Dispersion {
        Dispersion {
            least: mss * LEAST_SEGMENTS,
            arrivals: VecDeque::new(),
            total: Bytes::ZERO,
            highest: None,
            repaired: Time::ZERO,
        }
    }

    /// `bytes` of payload arrived since the last call, on a path of round trip `base`.
    pub(super) fn handle_arrival(&mut self, now: Time, bytes: Bytes, base: Duration) {
        let longest = base.scaled(LONGEST_SHARE).max(LONGEST);
        if now < self.repaired {
            return;
        }
        self.total += bytes;
        self.arrivals.push_back((now, self.total));
        // The shortest stretch that is long enough: from its first arrival on, without it.
        while let Some((since, before)) = self.arrivals.front() {
            let (span, arrived) = (now.since(*since), self.total - *before);
            if span < SHORTEST || arrived < self.least {
                break;
            }
            if span <= longest {
                let rate = arrived / span;
                self.highest = Some(self.highest.map_or(rate, |highest| highest.max(rate)));
            }
            self.arrivals.pop_front();
        }
    }

    /// A segment is missing, on a path of round trip `base`: within two it will have been sent again.
    pub(super) fn handle_gap(&mut self, now: Time, base: Duration) {
        self.repaired = now + base * 2;
        self.arrivals.clear();
    }

    /// The capacity, payload; `None` until a burst was long enough.
    pub(super) fn capacity(&self) -> Option<Rate> {
        self.highest
    }

    /// The capacity is known better.
    pub(super) fn correct(&mut self, capacity: Rate) {
        self.highest = Some(capacity);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: Duration = Duration::from_millis(40);

    /// Looks every 3 ms for 0.4 s at what arrives by a time in ms.
    fn capacity(arrived: fn(u64) -> u64, gap: Option<u64>) -> Option<Rate> {
        let mut dispersion = Dispersion::new(Bytes::new(1448));
        for ms in (3..400).step_by(3) {
            let now = Time::from_nanos(ms * 1_000_000);
            if gap == Some(ms) {
                dispersion.handle_gap(now, BASE);
            }
            dispersion.handle_arrival(now, Bytes::new(arrived(ms) - arrived(ms - 3)), BASE);
        }
        dispersion.capacity()
    }

    #[test]
    fn a_burst_tells_the_path_and_one_flight_after_the_other_does_not() {
        // Ten milliseconds of each forty at 100 Mbit/s.
        let bursts = |ms: u64| (ms / 40 * 10 + (ms % 40).min(10)) * 12_500;
        let seen = capacity(bursts, None).map_or(0.0, Rate::as_f64);
        assert!((80e6..=100e6).contains(&seen), "{seen}");
        // 20 kB in each round trip are 4 Mbit/s of window on whatever path: 29 kB take two of them.
        assert_eq!(capacity(|ms| ms / 40 * 20_000, None), None);
    }

    #[test]
    fn what_waited_behind_a_missing_segment_is_no_burst() {
        // 4 kB/ms, but what arrives from 200 on is in order only at 240, all at once: 160 kB in 6 ms.
        let repaired = |ms: u64| if (200..240).contains(&ms) { 800_000 } else { 4_000 * ms };
        let blind = capacity(repaired, None).map_or(0.0, Rate::as_f64);
        let seen = capacity(repaired, Some(201)).map_or(0.0, Rate::as_f64);
        assert!(blind > 100e6, "{blind}");
        assert!((seen - 32e6).abs() < 1e6, "{seen}");
    }
}
