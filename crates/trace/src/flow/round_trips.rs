use std::collections::VecDeque;

use sweetspot_units::{Duration, Time};

use crate::Histogram;
use crate::packet::Timestamps;

/// Segments timed at once; where more are under way, not every one is timed.
const TIMED: usize = 512;
/// Clock values of the receiver remembered until the sender echoes them.
const CLOCKS: usize = 512;

/// The capture point, from one data sender's side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Vantage {
    /// At the sender: its answers to acknowledgements come at once.
    Sender,
    /// At the receiver: acknowledgements of data come at once.
    Receiver,
    /// In between.
    Middle,
    /// Neither the handshake nor timestamps tell.
    Unknown,
}

/// A segment that waits for its acknowledgement, by which a round trip is timed.
#[derive(Debug, Clone, Copy)]
struct TimedSegment {
    end: u64,
    sent: Time,
    clock: Option<u32>,
    /// Sent more than once: only an echo of its own clock tells which one was acknowledged (Karn;
    /// RFC 7323 §4).
    ambiguous: bool,
}

/// The two halves of the round trip: from the capture to the receiver and back, and from the
/// capture to the sender and back.
#[derive(Debug, Default)]
pub struct RoundTrips {
    timed: VecDeque<TimedSegment>,
    clocks: VecDeque<(u32, Time)>,
    last_echo: Option<u32>,
    /// Whether that was ever another one.
    echo_moved: bool,
    /// Whether sender and receiver are on the network of the capture.
    local: Option<[bool; 2]>,
    /// The way to the sender is known from how soon it answered requests alone.
    guessed: bool,
    /// Half trips to the receiver.
    pub down: HalfTrips,
    /// Half trips to the sender.
    pub up: HalfTrips,
}

/// Samples of a half, in nanoseconds.
#[derive(Debug, Default)]
pub struct HalfTrips {
    min: Option<Duration>,
    latest: Option<Duration>,
    samples: Histogram,
}

impl HalfTrips {
    /// Takes a sample.
    pub fn add(&mut self, sample: Duration) {
        self.min = Some(self.min.map_or(sample, |min| min.min(sample)));
        self.latest = Some(sample);
        self.samples.add(sample.as_nanos(), 1);
    }

    /// The shortest.
    pub fn min(&self) -> Option<Duration> {
        self.min
    }

    /// The one that `share` of all do not exceed.
    fn quantile(&self, share: f64) -> Option<Duration> {
        self.samples.quantile(share).map(Duration::from_nanos)
    }

    fn mean(&self) -> Option<Duration> {
        self.samples.mean().map(Duration::from_nanos)
    }

    /// None is longer than `max`: samples that were are void.
    fn bound(&mut self, max: Duration) {
        self.min = self.min.map(|min| min.min(max));
        self.samples = Histogram::default();
        self.samples.add(max.as_nanos(), 1);
    }
}

impl RoundTrips {
    /// Data up to `end` passed on its way to the receiver for the first time.
    pub fn sent(&mut self, end: u64, now: Time, timestamps: Option<Timestamps>) {
        if self.timed.len() < TIMED {
            let clock = timestamps.map(|t| t.value);
            self.timed.push_back(TimedSegment { end, sent: now, clock, ambiguous: false });
        }
    }

    /// Data between `start` and `end` passed once more.
    pub fn retransmitted(
        &mut self,
        start: u64,
        end: u64,
        now: Time,
        timestamps: Option<Timestamps>,
    ) {
        for segment in self.timed.iter_mut().filter(|m| start < m.end && m.end <= end) {
            *segment = TimedSegment {
                sent: now,
                clock: timestamps.map(|t| t.value),
                ambiguous: true,
                ..*segment
            };
        }
    }

    /// An acknowledgement passed on its way to the sender; the sample it gives.
    pub fn acked(
        &mut self,
        una: u64,
        now: Time,
        timestamps: Option<Timestamps>,
    ) -> Option<Duration> {
        let mut latest: Option<TimedSegment> = None;
        let mut ambiguous = false;
        while let Some(segment) = self.timed.front().copied().filter(|segment| segment.end <= una) {
            self.timed.pop_front();
            ambiguous |= segment.ambiguous;
            latest = Some(segment);
        }
        let segment = latest?;
        let echoed = segment.clock.is_some() && timestamps.map(|t| t.echo) == segment.clock;
        if ambiguous && !echoed {
            return None;
        }
        let sample = now.since(segment.sent);
        self.down.add(sample);
        Some(sample)
    }

    /// A segment of the receiver passed; remembers its clock until the sender echoes it.
    pub fn clock(&mut self, now: Time, timestamps: Option<Timestamps>) {
        let Some(Timestamps { value, .. }) = timestamps else { return };
        if self.clocks.back().is_some_and(|(last, _)| *last == value) {
            return;
        }
        if self.clocks.len() == CLOCKS {
            self.clocks.pop_front();
        }
        self.clocks.push_back((value, now));
    }

    /// Data of the sender passed that echoes the receiver's clock for the first time: how long the
    /// echo took. That is a sample of the path, unless the sender paused.
    pub fn echo(&mut self, now: Time, timestamps: Option<Timestamps>) -> Option<Duration> {
        let echo = timestamps?.echo;
        let before = self.last_echo.replace(echo);
        if before == Some(echo) {
            return None;
        }
        self.echo_moved |= before.is_some();
        let index = self.clocks.iter().position(|(clock, _)| *clock == echo)?;
        let (_, sent) = self.clocks[index];
        self.clocks.drain(..=index);
        Some(now.since(sent))
    }

    /// Whether the sender still echoes the handshake though later clocks must have reached it: a device between the capture and
    /// the sender takes them off.
    pub fn echo_is_stuck(&self, now: Time) -> bool {
        const TRIPS: u64 = 4;
        let long = self.min().unwrap_or_default() * TRIPS;
        !self.echo_moved && self.clocks.front().is_some_and(|(_, at)| now.since(*at) > long)
    }

    /// Whether the sender, and the receiver, are on the network of the capture.
    pub fn place(&mut self, sender: bool, receiver: bool) {
        self.local = Some([sender, receiver]);
    }

    /// A request was answered after `took`: a sample of the round trip to the sender if there is no better one. Returns whether
    /// it was used.
    pub fn guess(&mut self, took: Duration) -> bool {
        self.guessed |= self.is_blind();
        if self.guessed {
            self.up.add(took);
        }
        self.guessed
    }

    /// Whether the round trip rests on how soon requests were answered, so that it may be shorter.
    pub fn is_guessed(&self) -> bool {
        self.guessed
    }

    /// Whether the way to the sender is long and how long is unknown.
    pub fn is_blind(&self) -> bool {
        self.up.min.is_none() && matches!(self.local, Some([false, _]))
    }

    /// The shortest round trip.
    pub fn min(&self) -> Option<Duration> {
        if self.is_blind() {
            return None;
        }
        sum(self.down.min(), self.up.min())
    }

    /// The sender reacted within `max` to a segment that passed the capture: the way there and back is no longer, whatever the
    /// handshake took.
    pub fn bound_up(&mut self, max: Duration) {
        if self.up.min.is_some_and(|min| min > max) {
            self.up.bound(max);
        }
    }

    /// The latest round trip, of the two halves' latest.
    pub fn latest(&self) -> Option<Duration> {
        if self.is_blind() {
            return None;
        }
        match self.vantage() {
            Vantage::Sender => sum(self.down.latest, self.up.min),
            Vantage::Receiver => sum(self.up.latest, self.down.min),
            _ => sum(self.down.latest, self.up.latest),
        }
    }

    /// The median round trip, of the half that varies and the least of the other.
    pub fn median(&self) -> Option<Duration> {
        self.quantile(0.5)
    }

    /// The round trip that `share` of all do not exceed, likewise; never below the least.
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        self.combine(|half| half.quantile(share))
    }

    /// The mean round trip, likewise.
    pub fn mean(&self) -> Option<Duration> {
        self.combine(HalfTrips::mean)
    }

    fn combine(&self, of: impl Fn(&HalfTrips) -> Option<Duration>) -> Option<Duration> {
        if self.is_blind() {
            return None;
        }
        let whole = match self.vantage() {
            Vantage::Sender => sum(of(&self.down), self.up.min()),
            Vantage::Receiver => sum(of(&self.up), self.down.min()),
            Vantage::Middle => sum(of(&self.down), of(&self.up)),
            Vantage::Unknown => of(&self.down).or(of(&self.up)),
        };
        whole.max(self.min())
    }

    /// When the data that ends at `end` passed, if it waits for its acknowledgement.
    pub fn passed(&self, end: u64) -> Option<Time> {
        let index = self.timed.binary_search_by_key(&end, |segment| segment.end).ok()?;
        self.timed.get(index).map(|segment| segment.sent)
    }

    /// How many acknowledgements gave a sample.
    pub fn samples(&self) -> u64 {
        self.down.samples.total()
    }

    /// The capture point.
    pub fn vantage(&self) -> Vantage {
        let (Some(down), Some(up)) = (self.down.min(), self.up.min()) else {
            // Routers count packets' time to live down.
            return match self.local {
                Some([true, false]) => Vantage::Sender,
                Some([false, true]) => Vantage::Receiver,
                Some([true, true] | [false, false]) | None => Vantage::Unknown,
            };
        };
        // A quarter: delayed acknowledgements and slow hosts blur the two ends.
        if up * 4 <= down {
            Vantage::Sender
        } else if down * 4 <= up {
            Vantage::Receiver
        } else {
            Vantage::Middle
        }
    }
}

fn sum(a: Option<Duration>, b: Option<Duration>) -> Option<Duration> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a + b),
        _ => a.or(b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As a damaged capture has them.
    #[test]
    fn round_trips_of_centuries_are_compared_like_others() {
        let mut trips = RoundTrips::default();
        trips.up.add(Duration::MAX);
        trips.down.add(Duration::from_millis(1));
        assert!(matches!(trips.vantage(), Vantage::Receiver));
    }
}
