use sweetspot_units::{Duration, Time};

use super::rounds::has_standing_queue;
use crate::Histogram;

/// The samples of one half of the RTT, in nanoseconds.
#[derive(Debug, Default)]
pub struct HalfTrips {
    min: Option<Duration>,
    latest: Option<Duration>,
    samples: Histogram,
    /// The handshake's sample, or a shorter one that two successive round trips confirmed.
    handshake: Option<Duration>,
    shorter: Shorter,
}

/// Samples clearly below the handshake's. If the capture's timestamp of data is late, the time to its acknowledgement seems short.
#[derive(Debug, Default)]
struct Shorter {
    count: u64,
    /// The latest round trip with such samples.
    round: Option<ShorterRound>,
    /// The minima of earlier ones.
    earlier: Histogram,
    /// The shortest sample.
    min: Option<Duration>,
    /// Whether more than half of the other round trips agree with the shortest.
    mostly_agree: bool,
}

/// A round trip with samples clearly below the handshake's.
#[derive(Debug, Clone, Copy)]
struct ShorterRound {
    /// Data sent before belong to it.
    until: Time,
    min: Duration,
    /// The minimum of the round trip before, if that was shorter, too.
    before: Option<Duration>,
    /// Whether the next round trip may follow it.
    is_latest: bool,
}

impl HalfTrips {
    /// Adds the handshake's sample, which no queue of this connection delayed.
    pub fn open(&mut self, sample: Duration) {
        self.handshake = Some(sample);
        self.add(sample);
    }

    /// Adds a sample.
    pub fn add(&mut self, sample: Duration) {
        self.record(sample);
        self.believe(sample);
    }

    /// Adds a sample of data that was acknowledged at `now`. A clearly shorter one than the handshake's counts as the minimum only if
    /// other round trips agree: the next one, or most of the shorter ones. Delays of the capture differ, but an empty path does not.
    pub fn add_acknowledged(&mut self, sample: Duration, now: Time) {
        self.record(sample);
        let sent = now - sample;
        if self.handshake.is_some_and(|first| has_standing_queue(first, sample)) {
            if let Some(repeated) = self.shorter.add(sample, sent, now) {
                self.believe(repeated);
                (self.handshake, self.shorter) = (Some(repeated), Shorter::default());
            }
        } else if self.shorter.ends_before(sent) {
            self.believe(sample);
        }
    }

    fn record(&mut self, sample: Duration) {
        self.latest = Some(sample);
        self.samples.add(sample.as_nanos(), 1);
    }

    fn believe(&mut self, sample: Duration) {
        self.min = Some(self.min.map_or(sample, |min| min.min(sample)));
    }

    /// The shortest sample, without those that contradict the handshake and the other round trips.
    pub fn min(&self) -> Option<Duration> {
        // A handshake that is longer than most samples was delayed itself.
        let handshake_was_slow = self.shorter.count * 2 > self.samples.total();
        let counts = handshake_was_slow || self.shorter.mostly_agree;
        self.shorter.min.filter(|_| counts).into_iter().chain(self.min).min()
    }

    /// The shortest sample, if it does not count as the minimum.
    pub fn contradicting(&self) -> Option<Duration> {
        let min = self.min()?;
        self.shorter.min.filter(|shorter| has_standing_queue(min, *shorter))
    }

    /// The latest sample.
    pub fn latest(&self) -> Option<Duration> {
        self.latest
    }

    /// The number of samples.
    pub fn count(&self) -> u64 {
        self.samples.total()
    }

    /// The quantile of the samples at `share`.
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        self.samples.quantile(share).map(Duration::from_nanos)
    }

    /// The mean of the samples.
    pub fn mean(&self) -> Option<Duration> {
        self.samples.mean().map(Duration::from_nanos)
    }

    /// Replaces all samples, which exceed the upper bound `max`, with that bound.
    pub fn bound(&mut self, max: Duration) {
        self.min = self.min.map(|min| min.min(max));
        self.latest = self.latest.map(|latest| latest.min(max));
        self.handshake = self.handshake.map(|first| first.min(max));
        self.samples = Histogram::default();
        self.samples.add(max.as_nanos(), 1);
        self.shorter = Shorter::default();
    }
}

impl Shorter {
    /// Adds a sample of data sent at `sent`. Returns the minimum of two successive round trips that agree.
    fn add(&mut self, sample: Duration, sent: Time, now: Time) -> Option<Duration> {
        self.count += 1;
        let min = self.min.map_or(sample, |min| min.min(sample));
        self.min = Some(min);
        let round = match self.round {
            Some(round) if sent < round.until => {
                ShorterRound { min: round.min.min(sample), ..round }
            }
            last => {
                if let Some(last) = last {
                    self.earlier.add(last.min.as_nanos(), 1);
                }
                let before = last.filter(|round| round.is_latest).map(|round| round.min);
                ShorterRound { until: now, min: sample, before, is_latest: true }
            }
        };
        let is_first = round.until == now;
        self.round = Some(round);
        if is_first || sample == min {
            self.mostly_agree = self.mostly_agrees(round.min, min);
        }
        round.before.filter(|before| agree(*before, round.min)).map(|before| before.min(round.min))
    }

    /// Whether data sent at `sent` do not belong to the latest of these round trips. The next one then does not follow it.
    fn ends_before(&mut self, sent: Time) -> bool {
        let Some(round) = &mut self.round else { return true };
        round.is_latest &= sent < round.until;
        sent >= round.until
    }

    /// Whether more than half of the round trips other than the shortest one, of `min`, agree with it. The latest is `latest`.
    fn mostly_agrees(&self, latest: Duration, min: Duration) -> bool {
        let earlier = self.earlier.iter().filter(|(n, _)| agree(Duration::from_nanos(*n), min));
        let agreeing = earlier.map(|(_, count)| count).sum::<u64>() + u64::from(agree(latest, min));
        2 * agreeing.saturating_sub(1) > self.earlier.total()
    }
}

/// Whether neither of two RTTs shows a queue beside the other.
fn agree(a: Duration, b: Duration) -> bool {
    !has_standing_queue(a.max(b), a.min(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// A path of 40 ms according to its handshake, and samples of data sent and acknowledged at these milliseconds.
    fn after(samples: &[(u64, u64)]) -> HalfTrips {
        let mut trips = HalfTrips::default();
        trips.open(ms(40));
        for (sent, acked) in samples {
            trips.add_acknowledged(ms(acked - sent), Time::ZERO + ms(*acked));
        }
        trips
    }

    /// Of three flights at 60 ms, the capture sees the second one 38 ms late: its samples begin at 22 ms, and grow as the queue
    /// spaces the acknowledgements. None of them shows the path, even those just below the handshake.
    #[test]
    fn a_late_timestamp_of_data_does_not_shorten_the_path() {
        let late = after(&[(40, 100), (138, 160), (138, 170), (138, 177), (160, 220), (220, 280)]);
        assert_eq!((late.min(), late.contradicting()), (Some(ms(40)), Some(ms(22))));
        // Another one that is late by 46 ms does not confirm it.
        let twice = after(&[(40, 100), (138, 160), (160, 220), (266, 280), (280, 340)]);
        assert_eq!((twice.min(), twice.contradicting()), (Some(ms(40)), Some(ms(14))));
    }

    /// Cross traffic delayed the handshake by 20 ms, and left later: two round trips of 20 ms show the path without it.
    #[test]
    fn a_queue_that_empties_later_shows_the_shorter_path() {
        let samples = [(40, 100), (100, 160), (160, 220), (220, 240), (240, 260), (260, 300)];
        let emptied = after(&samples);
        assert_eq!((emptied.min(), emptied.contradicting()), (Some(ms(20)), None));
    }

    /// The RTT varies, as on a radio link: two round trips, apart from each other, take 26 and 27 ms.
    #[test]
    fn varying_round_trips_that_agree_on_the_shortest_show_the_path() {
        let varying = after(&[(40, 66), (70, 112), (120, 170), (200, 227), (230, 270), (280, 320)]);
        assert_eq!((varying.min(), varying.contradicting()), (Some(ms(26)), None));
    }

    #[test]
    fn most_samples_outweigh_a_slow_handshake() {
        // Three samples, with the handshake: 10 and 12 ms are more than half.
        let short = after(&[(40, 50), (90, 102)]);
        assert_eq!((short.min(), short.contradicting()), (Some(ms(10)), None));
    }
}
