//! A connection judged by the latest part of its time, however long it is followed.

use std::collections::VecDeque;
use std::net::IpAddr;

use sweetspot_trace::Histogram;
use sweetspot_units::{Bytes, Duration, Time};

use super::period::{Period, Totals};
use super::sums::WindowsSeen;
use super::{Live, Sample};
use crate::{Class, Limits};

/// Number of moments at which the latest part of the time can begin: its length is exact to half of their distance.
const GRAINS: u64 = 20;

/// Follows a connection from sample to sample as [`Live`] does, and judges the last [`length`](SlidingLive::between) of its
/// time. Until that has passed, [`period`](SlidingLive::period) equals [`Live::period`] of the same samples. If no data moved in all
/// of it, the time begins anew at the latest sample: the next data are judged by themselves.
#[derive(Debug, Clone)]
pub struct SlidingLive {
    live: Live,
    length: Duration,
    /// Where the latest part of the time may begin, the oldest first. The first one is where it does.
    marks: VecDeque<Mark>,
    /// Windows and round trips in the samples since then.
    shown: VecDeque<Shown>,
    /// The latest sample that found data moved, or the first one.
    moved_at: Time,
}

/// The sums up to a moment.
#[derive(Debug, Clone, Copy)]
struct Mark {
    totals: Totals,
    /// Of `totals.receiving`, the time of a queue that was unproven then, and which queue that is.
    unproven: Limits,
    queue: u64,
}

/// The windows and the round trip in a sample.
#[derive(Debug, Clone, Copy)]
struct Shown {
    at: Time,
    /// The round trip if data went since the sample before.
    rtt: Option<Duration>,
    /// The windows that this end and the peer advertised.
    windows: [Option<Bytes>; 2],
}

impl SlidingLive {
    /// A connection between these addresses, without samples yet. Its verdicts cover the last `length`, from one sample to another:
    /// exact to a fortieth of `length` if samples come often enough, and the last interval if that is longer.
    pub fn between(local: IpAddr, remote: IpAddr, length: Duration) -> SlidingLive {
        SlidingLive {
            live: Live::between(local, remote),
            length,
            marks: VecDeque::new(),
            shown: VecDeque::new(),
            moved_at: Time::ZERO,
        }
    }

    /// Takes the next sample; times must not go back.
    pub fn handle(&mut self, sample: Sample) {
        let passed = self.live.last().map(|last| {
            let since = |now: Bytes, then: Bytes| now.saturating_sub(then);
            [since(sample.acked, last.acked), since(sample.received, last.received)]
        });
        let moved = passed.is_some_and(|[sent, received]| sent != received);
        if passed.is_none_or(|passed| passed != [Bytes::ZERO; 2]) {
            self.moved_at = sample.at;
        }
        let before = self.rests(sample.at).then(|| self.mark());
        self.live.handle(sample);
        if self.live.proves {
            self.attribute_proven_queue();
        }
        let rtt = self.live.rtt().filter(|_| moved);
        let shown = Shown { at: sample.at, rtt, windows: [sample.window, sample.peer_window] };
        let is_new = self.shown.back().is_none_or(|last| last.windows != shown.windows);
        if rtt.is_some() || is_new {
            self.shown.push_back(shown);
        }
        let grain = self.length / GRAINS;
        if self.marks.back().is_none_or(|mark| sample.at.since(mark.totals.at) >= grain) {
            self.marks.push_back(self.mark());
        }
        self.forget(sample.at, self.length.saturating_sub(grain / 2));
        if let Some(before) = before {
            self.forget_rest(before, sample.at);
        }
    }

    /// Whether no data moved for longer than the length.
    fn rests(&self, now: Time) -> bool {
        now.since(self.moved_at) > self.length
    }

    /// Forgets a rest up to the sample `before` the latest one: thousands of idle connections then need no memory for it.
    fn forget_rest(&mut self, before: Mark, now: Time) {
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

    /// Forgets all but the newest mark that is at least `age` old, and what was shown before it.
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

    /// A queue that later samples prove stood before, too: also in what came before a mark.
    fn attribute_proven_queue(&mut self) {
        let queue = self.live.queues;
        for mark in self.marks.iter_mut().filter(|mark| mark.queue == queue) {
            let unproven = std::mem::take(&mut mark.unproven);
            mark.totals.receiving.attribute(&unproven, Class::Bandwidth);
        }
    }

    /// All that is known of the connection.
    pub fn live(&self) -> &Live {
        &self.live
    }

    /// Payload that was sent and received in the latest part of its time.
    pub fn payload(&self) -> [Bytes; 2] {
        let first = self.marks.front();
        first.map_or([Bytes::ZERO; 2], |first| self.live.totals().bytes_since(&first.totals))
    }

    /// The latest part of its time. Rules keep what they learned before it: capacity, least round trip, losses that still
    /// shape the congestion window.
    pub fn period(&self) -> Period {
        let Some(first) = self.marks.front() else { return Period::default() };
        let mut windows = [WindowsSeen::default(); 2];
        let mut round_trips = Histogram::default();
        for shown in &self.shown {
            for (seen, window) in windows.iter_mut().zip(shown.windows) {
                seen.see(window, shown.at);
            }
            if let Some(rtt) = shown.rtt.filter(|_| shown.at > first.totals.at) {
                round_trips.add(rtt.as_micros(), 1);
            }
        }
        let median = round_trips.quantile(0.5).map(Duration::from_micros);
        self.live.since(&first.totals, windows, median)
    }
}
