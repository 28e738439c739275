use std::sync::Arc;

use sweetspot_units::{Bytes, Duration, Rate, Time};
use thiserror::Error;

/// When a link of varying capacity may send, in the format of Mahimahi's `mm-link`: a line per opportunity, each the
/// time in whole milliseconds at which up to 1504 bytes may leave. The trace repeats, with its last time as the period.
/// What an opportunity has left when the queue is empty is lost; a packet may take several.
#[derive(Debug, Clone)]
pub struct DeliveryTrace {
    /// In order; the last is the period.
    times: Arc<[Duration]>,
    start: Time,
    /// Opportunities that are over, with those of earlier periods.
    over: u64,
    /// What the opportunity under way has left, and when it was.
    under_way: (Time, Bytes),
}

/// What an opportunity carries: PACKET_SIZE of Mahimahi's link_queue.hh.
const OPPORTUNITY: Bytes = Bytes::new(1504);

/// Why a trace is refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TraceError {
    /// A line is no time.
    #[error(
        "line {line} of the trace: \"{text}\" is not a whole number of milliseconds; each line is the time at which 1504 bytes may leave"
    )]
    NotATime {
        /// The line, from 1.
        line: usize,
        /// What stands there.
        text: String,
    },
    /// A time lies before the one above it.
    #[error(
        "line {0} of the trace: its time lies before the line above it; sort the lines by time"
    )]
    Backwards(usize),
    /// It has no line, or all are of time 0.
    #[error("the trace is empty: its last line must be a time above 0, which is its period")]
    Empty,
}

impl DeliveryTrace {
    /// The trace in `text`.
    pub fn parse(text: &str) -> Result<DeliveryTrace, TraceError> {
        let mut times: Vec<Duration> = Vec::new();
        for (index, written) in text.lines().enumerate() {
            let (line, written) = (index + 1, written.trim());
            if written.is_empty() {
                continue;
            }
            let millis: u32 = written
                .parse()
                .map_err(|_| TraceError::NotATime { line, text: written.to_owned() })?;
            let time = Duration::from_millis(millis.into());
            if times.last().is_some_and(|last| time < *last) {
                return Err(TraceError::Backwards(line));
            }
            times.push(time);
        }
        if times.last().is_none_or(|last| *last == Duration::ZERO) {
            return Err(TraceError::Empty);
        }
        let (start, under_way) = (Time::ZERO, (Time::ZERO, Bytes::ZERO));
        Ok(DeliveryTrace { times: times.into(), start, over: 0, under_way })
    }

    /// The same trace, whose time 0 is `start`.
    #[must_use]
    pub fn starting_at(&self, start: Time) -> DeliveryTrace {
        DeliveryTrace { times: self.times.clone(), start, over: 0, under_way: (start, Bytes::ZERO) }
    }

    /// The mean rate of a period.
    pub fn mean_rate(&self) -> Rate {
        OPPORTUNITY * self.times.len() as u64 / self.period()
    }

    fn period(&self) -> Duration {
        self.times.last().copied().unwrap_or(Duration::ZERO)
    }

    /// When opportunity `number` is, counted from 0 over all periods.
    fn time_of(&self, number: u64) -> Time {
        let count = self.times.len() as u64;
        self.start + self.period() * (number / count) + self.times[(number % count) as usize]
    }

    /// When a packet of `size` that nothing waits before from `start` on has left.
    pub(crate) fn handle_service(&mut self, start: Time, size: Bytes) -> Time {
        if self.under_way.0 < start {
            self.skip_to(start);
        }
        let mut unsent = size;
        while unsent > self.under_way.1 {
            unsent -= self.under_way.1;
            self.under_way = (self.time_of(self.over), OPPORTUNITY);
            self.over += 1;
        }
        self.under_way.1 -= unsent;
        self.under_way.0
    }

    /// Lets the opportunities up to `now` pass unused.
    fn skip_to(&mut self, now: Time) {
        self.under_way.1 = Bytes::ZERO;
        let (count, period) = (self.times.len() as u64, self.period().as_nanos());
        let elapsed = now.since(self.start).as_nanos();
        // In whole periods first: a link may idle for long.
        self.over = self.over.max(elapsed / period * count);
        while self.time_of(self.over) <= now {
            self.over += 1;
        }
    }
}
