use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use sweetspot_units::{Bytes, Duration, Rate, Time};

use crate::rate_trace::RateTrace;
use crate::trace_error::TraceError;

/// The capacity of a link over time.
#[derive(Debug, Clone, PartialEq)]
pub enum Trace {
    /// Times at which packets may leave.
    Deliveries(DeliveryTrace),
    /// Rates at which packets leave.
    Rates(RateTrace),
}

impl Trace {
    /// Parses the trace in `text`: a CSV of rates if it has columns, otherwise Mahimahi's format.
    pub fn parse(text: &str) -> Result<Trace, TraceError> {
        if text.contains([',', ';', '\t']) {
            RateTrace::parse(text).map(Trace::Rates)
        } else {
            DeliveryTrace::parse(text).map(Trace::Deliveries)
        }
    }

    /// The same trace with `start` as its time 0.
    #[must_use]
    pub fn starting_at(&self, start: Time) -> Trace {
        match self {
            Trace::Deliveries(trace) => Trace::Deliveries(trace.starting_at(start)),
            Trace::Rates(trace) => Trace::Rates(trace.starting_at(start)),
        }
    }

    /// The mean rate of a period.
    pub fn mean_rate(&self) -> Rate {
        match self {
            Trace::Deliveries(trace) => trace.mean_rate(),
            Trace::Rates(trace) => trace.mean_rate(),
        }
    }

    /// The mean rate between two times, relative to the trace's time 0.
    pub fn mean_rate_between(&self, from: Duration, until: Duration) -> Rate {
        match self {
            Trace::Deliveries(trace) => trace.mean_rate_between(from, until),
            Trace::Rates(trace) => trace.mean_rate_between(from, until),
        }
    }

    /// The departure time of a packet of `size` that is at the head of the queue from `start` on.
    #[inline]
    pub(crate) fn handle_service(&mut self, start: Time, size: Bytes) -> Time {
        match self {
            Trace::Deliveries(trace) => trace.handle_service(start, size),
            Trace::Rates(trace) => trace.handle_service(start, size),
        }
    }
}

/// The text of a file that [`Trace::parse`] parses to the same trace.
impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trace::Deliveries(trace) => trace.fmt(f),
            Trace::Rates(trace) => trace.fmt(f),
        }
    }
}

impl FromStr for Trace {
    type Err = TraceError;

    fn from_str(text: &str) -> Result<Trace, TraceError> {
        Trace::parse(text)
    }
}

impl From<DeliveryTrace> for Trace {
    fn from(trace: DeliveryTrace) -> Trace {
        Trace::Deliveries(trace)
    }
}

impl From<RateTrace> for Trace {
    fn from(trace: RateTrace) -> Trace {
        Trace::Rates(trace)
    }
}

/// The send opportunities of a link of varying capacity, in the format of Mahimahi's `mm-link`. Each line is an opportunity:
/// the time in whole milliseconds at which up to 1504 bytes may leave. The trace repeats, with its last time as the period. The
/// rest of an opportunity is lost if the queue is empty; a packet may need several.
#[derive(Debug, Clone, PartialEq)]
pub struct DeliveryTrace {
    /// The times in order; the last one is the period.
    times: Arc<[Duration]>,
    start: Time,
    /// The number of past opportunities, in all periods.
    next_opportunity: u64,
    /// The current opportunity's unused bytes, and its time.
    in_progress: (Time, Bytes),
}

/// The bytes of an opportunity: PACKET_SIZE of Mahimahi's link_queue.hh.
const OPPORTUNITY: Bytes = Bytes::new(1504);

impl DeliveryTrace {
    /// Parses the trace in `text`.
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
        let (start, in_progress) = (Time::ZERO, (Time::ZERO, Bytes::ZERO));
        let trace = DeliveryTrace { times: times.into(), start, next_opportunity: 0, in_progress };
        if trace.mean_rate() == Rate::ZERO {
            let (opportunities, period) = (trace.times.len(), trace.period());
            return Err(TraceError::TooSlow { opportunities, period });
        }
        Ok(trace)
    }

    /// The same trace with `start` as its time 0.
    #[must_use]
    pub fn starting_at(&self, start: Time) -> DeliveryTrace {
        DeliveryTrace {
            times: self.times.clone(),
            start,
            next_opportunity: 0,
            in_progress: (start, Bytes::ZERO),
        }
    }

    /// The mean rate of a period.
    pub fn mean_rate(&self) -> Rate {
        OPPORTUNITY * self.times.len() as u64 / self.period()
    }

    /// The mean rate between two times, relative to the trace's time 0.
    pub fn mean_rate_between(&self, from: Duration, until: Duration) -> Rate {
        let elapsed = until.saturating_sub(from).max(Duration::from_nanos(1));
        OPPORTUNITY * (self.count_by(until) - self.count_by(from.min(until))) / elapsed
    }

    /// Number of opportunities up to and including `time` after the start.
    fn count_by(&self, time: Duration) -> u64 {
        let (periods, within) = (
            time.as_nanos() / self.period().as_nanos(),
            Duration::from_nanos(time.as_nanos() % self.period().as_nanos()),
        );
        let in_period = self.times.partition_point(|at| *at <= within) as u64;
        periods * self.times.len() as u64 + in_period
    }

    fn period(&self) -> Duration {
        self.times.last().copied().unwrap_or(Duration::ZERO)
    }

    /// The time of opportunity `number`, counted from 0 over all periods.
    fn time_of(&self, number: u64) -> Time {
        let count = self.times.len() as u64;
        self.start + self.period() * (number / count) + self.times[(number % count) as usize]
    }

    /// The departure time of a packet of `size` that is at the head of the queue from `start` on.
    pub(crate) fn handle_service(&mut self, start: Time, size: Bytes) -> Time {
        if self.in_progress.0 < start {
            self.skip_to(start);
        }
        let mut unsent = size;
        while unsent > self.in_progress.1 {
            unsent -= self.in_progress.1;
            self.in_progress = (self.time_of(self.next_opportunity), OPPORTUNITY);
            self.next_opportunity += 1;
        }
        self.in_progress.1 -= unsent;
        self.in_progress.0
    }

    /// Skips the opportunities up to `now` without using them.
    fn skip_to(&mut self, now: Time) {
        self.in_progress.1 = Bytes::ZERO;
        let (count, period) = (self.times.len() as u64, self.period().as_nanos());
        let elapsed = now.since(self.start).as_nanos();
        // Skip whole periods first: a link may be idle for a long time.
        self.next_opportunity = self.next_opportunity.max(elapsed / period * count);
        while self.time_of(self.next_opportunity) <= now {
            self.next_opportunity += 1;
        }
    }
}

/// The text of a file that [`DeliveryTrace::parse`] parses to the same trace.
impl fmt::Display for DeliveryTrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.times.iter().try_for_each(|time| writeln!(f, "{}", time.as_nanos() / 1_000_000))
    }
}
