//! Judges a connection by the latest part of its time.

use std::collections::VecDeque;
use std::net::IpAddr;

use sweetspot_trace::Histogram;
use sweetspot_units::{Bytes, Duration, Time};

use super::period::{Period, Totals};
use super::sums::WindowsSeen;
use super::{Live, Sample};
use crate::{Class, Limits};

/// Number of possible beginnings of the latest part of the time. Its length is exact to half of their distance.
const GRAINS: u64 = 20;

/// Follows a connection from sample to sample like [`Live`], and judges the last [`length`](SlidingLive::between) of its time.
/// Until that has passed, [`period`](SlidingLive::period) equals [`Live::period`] for the same samples. If no data moved in that
/// time, it restarts at the latest sample, so that later data are judged by themselves.
#[derive(Debug, Clone)]
pub struct SlidingLive {
    live: Live,
    length: Duration,
    /// Possible beginnings of the latest part of the time, the oldest first. The first one is the current beginning.
    marks: VecDeque<Mark>,
    /// Windows and RTTs in the samples since the first mark.
    shown: VecDeque<Shown>,
    /// Time of the latest sample that found new data, or of the first sample.
    moved_at: Time,
}

/// The sums up to a moment.
#[derive(Debug, Clone, Copy)]
struct Mark {
    totals: Totals,
    /// The part of `totals.receiving` with a queue that was unproven then, and the number of that queue.
    unproven: Limits,
    queue: u64,
}

/// The windows and the round trip in a sample.
#[derive(Debug, Clone, Copy)]
struct Shown {
    at: Time,
    /// The RTT, if data moved since the previous sample.
    rtt: Option<Duration>,
    /// The windows advertised by this end and by the peer.
    windows: [Option<Bytes>; 2],
    /// The bytes that each of them had received.
    received: [Bytes; 2],
}

impl SlidingLive {
    /// A connection between these addresses, without samples yet. Its verdicts cover the last `length` between two samples, exact
    /// to a fortieth of `length` if samples come often enough, or the last interval if that is longer.
    pub fn between(local: IpAddr, remote: IpAddr, length: Duration) -> SlidingLive {
        SlidingLive {
            live: Live::between(local, remote),
            length,
            marks: VecDeque::new(),
            shown: VecDeque::new(),
            moved_at: Time::ZERO,
        }
    }

    /// Takes the next sample. Times must not decrease.
    pub fn handle(&mut self, sample: Sample) {
        let passed = self.live.last().map(|last| {
            let since = |now: Bytes, then: Bytes| now.saturating_sub(then);
            [since(sample.acked, last.acked), since(sample.received, last.received)]
        });
        let moved = passed.is_some_and(|[sent, received]| sent != received);
        let has_moved = passed.is_none_or(|passed| passed != [Bytes::ZERO; 2]);
        if has_moved {
            self.moved_at = sample.at;
        }
        let before = self.is_idle(sample.at).then(|| self.mark());
        self.live.handle(sample);
        if self.live.proves {
            self.attribute_proven_queue();
        }
        let rtt = self.live.rtt().filter(|_| moved);
        let windows = [sample.window, sample.peer_window];
        let received = [sample.received, sample.acked];
        let shown = Shown { at: sample.at, rtt, windows, received };
        let is_new = self.shown.back().is_none_or(|last| last.windows != shown.windows);
        if has_moved || is_new {
            self.shown.push_back(shown);
        }
        let grain = self.length / GRAINS;
        if self.marks.back().is_none_or(|mark| sample.at.since(mark.totals.at) >= grain) {
            self.marks.push_back(self.mark());
        }
        self.forget(sample.at, self.length.saturating_sub(grain / 2));
        if let Some(before) = before {
            self.forget_idle_time(before, sample.at);
        }
    }

    /// Whether no data has moved for longer than `length`.
    fn is_idle(&self, now: Time) -> bool {
        now.since(self.moved_at) > self.length
    }

    /// Forgets an idle time up to the sample `before` the latest one, so that thousands of idle connections need no memory for
    /// it.
    fn forget_idle_time(&mut self, before: Mark, now: Time) {
        self.marks.retain(|mark| mark.totals.at == now);
        self.marks.push_front(before);
        self.marks.shrink_to_fit();
        self.forget(now, now.since(before.totals.at));
        self.shown.shrink_to_fit();
    }

    /// The sums up to the latest sample.
    fn mark(&self) -> Mark {
        let Live { unproven, queues: queue, .. } = self.live;
        Mark { totals: self.live.totals(), unproven, queue }
    }

    /// Forgets all marks older than the newest one with at least `age`, and the samples before it.
    fn forget(&mut self, now: Time, age: Duration) {
        let is_old = |mark: &Mark| now.since(mark.totals.at) >= age;
        while self.marks.get(1).is_some_and(is_old) {
            self.marks.pop_front();
        }
        let Some(first) = self.marks.front() else { return };
        // The newest sample up to the mark has the windows at the mark.
        while self.shown.get(1).is_some_and(|shown| shown.at <= first.totals.at) {
            self.shown.pop_front();
        }
    }

    /// Once samples prove a queue, attributes its earlier time to the path, too, including the time before a mark.
    fn attribute_proven_queue(&mut self) {
        let queue = self.live.queues;
        for mark in self.marks.iter_mut().filter(|mark| mark.queue == queue) {
            let unproven = std::mem::take(&mut mark.unproven);
            mark.totals.receiving.attribute(&unproven, Class::Bandwidth);
        }
    }

    /// The connection over its whole time.
    pub fn live(&self) -> &Live {
        &self.live
    }

    /// Payload sent and received in the latest part of its time.
    pub fn payload(&self) -> [Bytes; 2] {
        let first = self.marks.front();
        first.map_or([Bytes::ZERO; 2], |first| self.live.totals().bytes_since(&first.totals))
    }

    /// The latest part of its time. The rules still use earlier facts: the capacity, the min RTT, and losses that still shape the
    /// congestion window.
    pub fn period(&self) -> Period {
        let Some(first) = self.marks.front() else { return Period::default() };
        let mut windows = [WindowsSeen::default(); 2];
        let mut round_trips = Histogram::default();
        for shown in &self.shown {
            for ((seen, window), received) in
                windows.iter_mut().zip(shown.windows).zip(shown.received)
            {
                seen.see(window, received, shown.at);
            }
            if let Some(rtt) = shown.rtt.filter(|_| shown.at > first.totals.at) {
                round_trips.add(rtt.as_micros(), 1);
            }
        }
        let median = round_trips.quantile(0.5).map(Duration::from_micros);
        self.live.since(&first.totals, windows, median)
    }
}
