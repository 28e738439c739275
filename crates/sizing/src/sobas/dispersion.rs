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

/// A pause that lasts so long ends a burst; several looks fit into it.
const PAUSE: Duration = Duration::from_millis(10);

/// The shortest time of a long stretch, ...
const LONG: Duration = Duration::from_millis(10);
/// ... how long one may be on however short a path, ...
const LONGEST_LONG: Duration = Duration::from_millis(20);
/// ... and which share of the flight's duration: then one lies within the burst, and what it shows is
/// the path and not the pause behind.
const WITHIN: f64 = 0.5;

/// The path's capacity from the transfer's own bursts: slow start sends each flight back to back,
/// so that it leaves the bottleneck as a packet train (section VII-A of the SOBAS paper sends one
/// on purpose). The highest rate over any stretch that is long enough.
///
/// What a busy host or a link held back for a moment comes faster than the path is, the more so the
/// shorter the stretch: a hold of d makes one of length l seem faster by d/l. So that as soon as the
/// flight is large enough for a longer stretch, that one counts.
#[derive(Debug)]
pub(super) struct Dispersion {
    least: Bytes,
    total: Bytes,
    latest: Time,
    short: Stretch,
    long: Stretch,
    /// Until when what arrives is no burst: a segment is missing, and when it comes all that waited
    /// behind it comes in order at once.
    repaired: Time,
}

/// Stretches that last about so long.
#[derive(Debug, Default)]
struct Stretch {
    arrivals: VecDeque<(Time, Bytes)>,
    highest: Option<Rate>,
}

impl Dispersion {
    pub(super) fn new(mss: Bytes) -> Dispersion {
        Dispersion {
            least: mss * LEAST_SEGMENTS,
            total: Bytes::ZERO,
            latest: Time::ZERO,
            short: Stretch::default(),
            long: Stretch::default(),
            repaired: Time::ZERO,
        }
    }

    /// `bytes` of payload arrived since the last call, on a path of round trip `base`; the largest
    /// `flight` so far.
    pub(super) fn handle_arrival(
        &mut self,
        now: Time,
        bytes: Bytes,
        base: Duration,
        flight: Bytes,
    ) {
        if now < self.repaired {
            return;
        }
        if now.since(self.latest) >= PAUSE {
            self.begin();
        }
        self.latest = now;
        let longest = base.scaled(LONGEST_SHARE).max(LONGEST);
        self.total += bytes;
        let at = (now, self.total);
        self.short.handle_arrival(at, self.least, SHORTEST, longest);
        let short = self.short.highest;
        let within = short.map_or(Duration::ZERO, |rate| (flight / rate).scaled(WITHIN));
        self.long.handle_arrival(at, self.least, LONG, longest.max(LONGEST_LONG).min(within));
    }

    /// A segment is missing, on a path of round trip `base`: within two it will have been sent again.
    pub(super) fn handle_gap(&mut self, now: Time, base: Duration) {
        self.repaired = now + base * 2;
        self.begin();
    }

    /// What came before is of another burst.
    fn begin(&mut self) {
        self.short.arrivals.clear();
        self.long.arrivals.clear();
    }

    /// The capacity, payload; `None` until a burst was long enough.
    pub(super) fn capacity(&self) -> Option<Rate> {
        let short = self.short.highest?;
        Some(self.long.highest.map_or(short, |long| long.min(short)))
    }

    /// The capacity is known better.
    pub(super) fn correct(&mut self, capacity: Rate) {
        (self.short.highest, self.long.highest) = (Some(capacity), None);
    }
}

impl Stretch {
    /// So much had arrived at a time; stretches count that bring `least` in `shortest` to `longest`.
    fn handle_arrival(
        &mut self,
        (now, total): (Time, Bytes),
        least: Bytes,
        shortest: Duration,
        longest: Duration,
    ) {
        self.arrivals.push_back((now, total));
        // The shortest one that is long enough: from its first arrival on, without it.
        while let Some((since, before)) = self.arrivals.front() {
            let (span, arrived) = (now.since(*since), total - *before);
            if span < shortest || arrived < least {
                break;
            }
            if span <= longest {
                self.highest = self.highest.max(Some(arrived / span));
            }
            self.arrivals.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: Duration = Duration::from_millis(40);

    /// Looks every 3 ms for 0.4 s at what arrives by a time in ms, of flights of that size.
    fn seen(arrived: fn(u64) -> u64, flight: u64, gap: Option<u64>) -> Option<Rate> {
        let mut dispersion = Dispersion::new(Bytes::new(1448));
        for ms in (3..400).step_by(3) {
            let now = Time::from_nanos(ms * 1_000_000);
            if gap == Some(ms) {
                dispersion.handle_gap(now, BASE);
            }
            let bytes = Bytes::new(arrived(ms) - arrived(ms - 3));
            dispersion.handle_arrival(now, bytes, BASE, Bytes::new(flight));
        }
        dispersion.capacity()
    }

    fn capacity(arrived: fn(u64) -> u64, gap: Option<u64>) -> Option<Rate> {
        seen(arrived, 0, gap)
    }

    /// 100 Mbit/s for 36 of each 40 ms, but that what arrives from 10 to 14 ms comes at 14.
    #[test]
    fn what_was_held_back_for_a_moment_is_seen_through_once_flights_are_long() {
        let held = |ms: u64| {
            let (round, at) = (ms / 40, (ms % 40).min(36));
            (round * 36 + if (10..14).contains(&at) { 10 } else { at }) * 12_500
        };
        // Looks at 13 and 19 ms see 9 ms of the path in 6: 150 Mbit/s.
        let short = seen(held, 0, None).map_or(0.0, Rate::as_f64);
        assert!((short - 150e6).abs() < 1e6, "{short}");
        // A flight of 450 kB lasts 24 ms at that, half of which are a stretch of 10, with looks every
        // 3 ms of 12: from 13 to 25 it sees 15 ms of the path, 125 Mbit/s.
        let long = seen(held, 450_000, None).map_or(0.0, Rate::as_f64);
        assert!((99e6..=126e6).contains(&long), "{long}");
    }

    /// 15 ms of each 40: what lasts longer than the burst has a pause in it.
    #[test]
    fn no_pause_is_taken_for_a_slow_path() {
        let bursts = |ms: u64| (ms / 40 * 15 + (ms % 40).min(15)) * 12_500;
        let seen = seen(bursts, 187_500, None).map_or(0.0, Rate::as_f64);
        assert!((99e6..=101e6).contains(&seen), "{seen}");
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
