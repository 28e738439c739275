use std::collections::VecDeque;

use sweetspot_units::{Duration, Time};

use crate::Histogram;
use crate::packet::Timestamps;

/// Segments timed at once; where more are under way, not every one is timed.
const MARKS: usize = 512;
/// Clock values of the receiver remembered until the sender echoes them.
const CLOCKS: usize = 512;

/// Where a capture was taken, as seen from one sender of data.
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

/// A segment that waits for its acknowledgement.
#[derive(Debug, Clone, Copy)]
struct Mark {
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
    marks: VecDeque<Mark>,
    clocks: VecDeque<(u32, Time)>,
    last_echo: Option<u32>,
    /// Half trips to the receiver.
    pub down: HalfTrips,
    /// Half trips to the sender.
    pub up: HalfTrips,
}

/// Samples of a half, in nanoseconds.
#[derive(Debug, Default)]
pub struct HalfTrips {
    least: Option<Duration>,
    samples: Histogram,
}

impl HalfTrips {
    /// Takes a sample.
    pub fn add(&mut self, sample: Duration) {
        self.least = Some(self.least.map_or(sample, |least| least.min(sample)));
        self.samples.add(sample.as_nanos(), 1);
    }

    /// The shortest.
    pub fn least(&self) -> Option<Duration> {
        self.least
    }

    fn median(&self) -> Option<Duration> {
        self.samples.quantile(0.5).map(Duration::from_nanos)
    }
}

impl RoundTrips {
    /// Data up to `end` passed on its way to the receiver for the first time.
    pub fn sent(&mut self, end: u64, now: Time, timestamps: Option<Timestamps>) {
        if self.marks.len() < MARKS {
            let clock = timestamps.map(|t| t.value);
            self.marks.push_back(Mark { end, sent: now, clock, ambiguous: false });
        }
    }

    /// Data between `start` and `end` passed once more.
    pub fn resent(&mut self, start: u64, end: u64, now: Time, timestamps: Option<Timestamps>) {
        for mark in self.marks.iter_mut().filter(|m| start < m.end && m.end <= end) {
            *mark =
                Mark { sent: now, clock: timestamps.map(|t| t.value), ambiguous: true, ..*mark };
        }
    }

    /// An acknowledgement passed on its way to the sender; the sample it gives.
    pub fn acked(
        &mut self,
        una: u64,
        now: Time,
        timestamps: Option<Timestamps>,
    ) -> Option<Duration> {
        let mut latest: Option<Mark> = None;
        let mut ambiguous = false;
        while let Some(mark) = self.marks.front().copied().filter(|mark| mark.end <= una) {
            self.marks.pop_front();
            ambiguous |= mark.ambiguous;
            latest = Some(mark);
        }
        let mark = latest?;
        let echoed = mark.clock.is_some() && timestamps.map(|t| t.echo) == mark.clock;
        if ambiguous && !echoed {
            return None;
        }
        let sample = now.since(mark.sent);
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
    /// echo took. That is a sample of the path, unless the sender `paused`.
    pub fn echo(
        &mut self,
        now: Time,
        timestamps: Option<Timestamps>,
        paused: bool,
    ) -> Option<Duration> {
        let echo = timestamps?.echo;
        if self.last_echo.replace(echo) == Some(echo) {
            return None;
        }
        let index = self.clocks.iter().position(|(clock, _)| *clock == echo)?;
        let (_, sent) = self.clocks[index];
        self.clocks.drain(..=index);
        let took = now.since(sent);
        if !paused {
            self.up.add(took);
        }
        Some(took)
    }

    /// The shortest round trip.
    pub fn least(&self) -> Option<Duration> {
        sum(self.down.least(), self.up.least())
    }

    /// The median round trip, of the half that varies and the least of the other.
    pub fn median(&self) -> Option<Duration> {
        match self.vantage() {
            Vantage::Sender => self.down.median(),
            Vantage::Receiver => sum(self.up.median(), self.down.least()),
            Vantage::Middle => sum(self.down.median(), self.up.median()),
            Vantage::Unknown => self.down.median(),
        }
    }

    /// How many acknowledgements gave a sample.
    pub fn samples(&self) -> u64 {
        self.down.samples.total()
    }

    /// Where the capture was taken.
    pub fn vantage(&self) -> Vantage {
        let (Some(down), Some(up)) = (self.down.least(), self.up.least()) else {
            return Vantage::Unknown;
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
