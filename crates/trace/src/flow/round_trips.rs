use std::collections::VecDeque;

use sweetspot_units::{Duration, Time};

use super::half_trips::HalfTrips;
use crate::packet::Timestamps;

/// The maximum number of segments timed at once; if more are in flight, only some are timed.
const TIMED: usize = 512;
/// The maximum number of the receiver's TSvals that wait for their echo.
const CLOCKS: usize = 512;

/// The position of the capture, from the viewpoint of one data sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Vantage {
    /// At the sender, which answers acknowledgements at once.
    Sender,
    /// At the receiver, which acknowledges data at once.
    Receiver,
    /// Between the two.
    Middle,
    /// Unknown: neither the handshake nor timestamps show it.
    Unknown,
}

/// A segment that waits for its acknowledgement, to measure an RTT.
#[derive(Debug, Clone, Copy)]
struct TimedSegment {
    end: u64,
    sent: Time,
    clock: Option<u32>,
    /// Whether it was retransmitted. Then only an echo of its timestamp shows which transmission was acknowledged (Karn's
    /// algorithm; RFC 7323 §4).
    ambiguous: bool,
}

/// The RTT in two halves: from the capture to the receiver and back, and from the capture to the sender and back.
#[derive(Debug, Default)]
pub struct RoundTrips {
    timed: VecDeque<TimedSegment>,
    clocks: VecDeque<(u32, Time)>,
    last_echo: Option<u32>,
    /// Whether the sender has ever echoed a second timestamp.
    echo_moved: bool,
    /// Whether the sender and the receiver are on the network of the capture.
    local: Option<[bool; 2]>,
    /// Whether the sender's kernel is the one of the capture.
    sender_is_here: bool,
    /// Whether the half to the sender is known only from the time in which it answered requests.
    guessed: bool,
    /// The half to the receiver and back.
    pub down: HalfTrips,
    /// The half to the sender and back.
    pub up: HalfTrips,
}

impl RoundTrips {
    /// New data up to `end` passed the capture on their way to the receiver.
    pub fn sent(&mut self, end: u64, now: Time, timestamps: Option<Timestamps>) {
        if self.timed.len() < TIMED {
            let clock = timestamps.map(|t| t.value);
            self.timed.push_back(TimedSegment { end, sent: now, clock, ambiguous: false });
        }
    }

    /// Retransmitted data from `start` to `end` passed the capture.
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

    /// An acknowledgement passed the capture on its way to the sender. Returns the RTT sample, if any.
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
        self.down.add_acknowledged(sample, now);
        Some(sample)
    }

    /// A segment of the receiver passed the capture: remembers its TSval until the sender echoes it.
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

    /// Data of the sender passed the capture. If they echo a TSval for the first time, returns the time since that TSval
    /// passed. This is an RTT sample, unless the sender paused.
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

    /// Whether the sender still echoes the handshake's timestamp, although later ones must have reached it: a device between
    /// the capture and the sender removes timestamps.
    pub fn echo_is_stuck(&self, now: Time) -> bool {
        const TRIPS: u64 = 4;
        let long = self.min().unwrap_or_default() * TRIPS;
        !self.echo_moved && self.clocks.front().is_some_and(|(_, at)| now.since(*at) > long)
    }

    /// Sets whether the sender and the receiver are on the network of the capture.
    pub fn place(&mut self, sender: bool, receiver: bool) {
        self.local = Some([sender, receiver]);
    }

    /// The sender is on the host of the capture.
    pub fn place_sender_here(&mut self) {
        self.sender_is_here = true;
    }

    /// Handles a request that was answered after `took`: without a better sample, this is one of the half to the sender.
    /// Returns whether it was used.
    pub fn guess(&mut self, took: Duration) -> bool {
        self.guessed |= self.is_blind();
        if self.guessed {
            self.up.add(took);
        }
        self.guessed
    }

    /// Whether the RTT was estimated from the time until requests were answered, so it may be shorter.
    pub fn is_guessed(&self) -> bool {
        self.guessed
    }

    /// Whether the sender is on another network and its distance is unknown.
    pub fn is_blind(&self) -> bool {
        self.up.min().is_none() && !self.sender_is_here && matches!(self.local, Some([false, _]))
    }

    /// The min RTT.
    pub fn min(&self) -> Option<Duration> {
        if self.is_blind() {
            return None;
        }
        sum(self.down.min(), self.up.min())
    }

    /// Handles an upper bound: the sender reacted within `max` after a segment passed the capture. The half to the sender is no
    /// longer than that, even if the handshake took longer.
    pub fn bound_up(&mut self, max: Duration) {
        if self.up.min().is_some_and(|min| min > max) {
            self.up.bound(max);
        }
    }

    /// The latest RTT, from the latest samples of both halves.
    pub fn latest(&self) -> Option<Duration> {
        if self.is_blind() {
            return None;
        }
        match self.vantage() {
            Vantage::Sender => sum(self.down.latest(), self.up.min()),
            Vantage::Receiver => sum(self.up.latest(), self.down.min()),
            _ => sum(self.down.latest(), self.up.latest()),
        }
    }

    /// The shortest sample, if it contradicts the handshake and the round trips after it: the capture's timestamps may be late.
    pub fn contradicting(&self) -> Option<Duration> {
        if self.is_blind() {
            return None;
        }
        sum(Some(self.down.contradicting()?), self.up.min())
    }

    /// The median RTT: the median of the half that varies, plus the minimum of the other.
    pub fn median(&self) -> Option<Duration> {
        self.quantile(0.5)
    }

    /// The quantile of the RTT at `share`, computed like the median, but at least the min RTT.
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        self.combine(|half| half.quantile(share))
    }

    /// The mean RTT, computed like the median.
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

    /// When the data that end at `end` passed the capture, if they still wait for their acknowledgement.
    pub fn passed(&self, end: u64) -> Option<Time> {
        let index = self.timed.binary_search_by_key(&end, |segment| segment.end).ok()?;
        self.timed.get(index).map(|segment| segment.sent)
    }

    /// The number of acknowledgements that gave an RTT sample.
    pub fn samples(&self) -> u64 {
        self.down.count()
    }

    /// The capture point.
    pub fn vantage(&self) -> Vantage {
        let (Some(down), Some(up)) = (self.down.min(), self.up.min()) else {
            // Routers decrement the TTL, so it shows which side is near.
            return match self.local {
                _ if self.sender_is_here => Vantage::Sender,
                Some([true, false]) => Vantage::Sender,
                Some([false, true]) => Vantage::Receiver,
                Some([true, true] | [false, false]) | None => Vantage::Unknown,
            };
        };
        // A factor of four, because delayed acknowledgements and slow hosts blur the difference.
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

    /// A handshake's half of 50 ms is too long if the sender reacted within 2 ms. With 2 ms to the receiver, the RTT is 4 ms.
    #[test]
    fn a_bound_on_the_half_to_the_sender_holds_for_the_latest_round_trip() {
        let mut trips = RoundTrips::default();
        trips.up.add(Duration::from_millis(50));
        trips.down.add(Duration::from_millis(2));
        trips.bound_up(Duration::from_millis(2));
        assert_eq!(trips.latest(), Some(Duration::from_millis(4)));
    }

    /// The TTLs look alike behind a bridge, and no timestamp shows how far the sender is. Its own kernel knows.
    #[test]
    fn a_sender_on_this_host_has_a_whole_round_trip() {
        let mut trips = RoundTrips::default();
        trips.down.add(Duration::from_millis(40));
        assert_eq!(trips.vantage(), Vantage::Unknown);
        trips.place_sender_here();
        assert_eq!(trips.vantage(), Vantage::Sender);
        assert_eq!(trips.latest(), Some(Duration::from_millis(40)));
    }

    /// Such RTTs occur in damaged captures.
    #[test]
    fn rtts_of_centuries_are_compared_without_overflow() {
        let mut trips = RoundTrips::default();
        trips.up.add(Duration::MAX);
        trips.down.add(Duration::from_millis(1));
        assert!(matches!(trips.vantage(), Vantage::Receiver));
    }
}
