use std::fmt;
use std::sync::Arc;

use sweetspot_units::{Bytes, Duration, Rate, Time};

use crate::trace_error::TraceError;

/// Rates, each valid from its time until the next, read from a CSV file with lines of `seconds,rate`. Times are relative
/// to the first line's. The last rate is valid for as long as the one before it, and then the trace repeats. A rate of
/// zero is an outage. A packet leaves when the integral of the rate since its service began has reached its size.
#[derive(Debug, Clone, PartialEq)]
pub struct RateTrace {
    steps: Arc<[RateStep]>,
    period: Duration,
    start: Time,
    /// The unused part of the last packet's last nanosecond, and the end of that nanosecond.
    spare: (Time, u128),
}

/// A rate and the time from which it is valid.
#[derive(Debug, Clone, Copy, PartialEq)]
struct RateStep {
    from: Duration,
    rate: Rate,
    /// The work that the link can do from the start of the period until `from`, in bit/s x ns.
    sent_before: u128,
}

/// Bit/s x ns in a byte.
const BYTE: u128 = 8_000_000_000;
const FASTEST: Rate = Rate::from_mbit_per_second(1_000_000);
/// Duration of a trace's only rate; its value has no effect.
const ONLY_STEP: Duration = Duration::from_secs(1);

impl RateTrace {
    /// Parses the trace in `text`.
    pub fn parse(text: &str) -> Result<RateTrace, TraceError> {
        let mut lines: Vec<(Duration, Rate)> = Vec::new();
        let mut first_s = None;
        for (index, written) in text.lines().enumerate() {
            let (line, written) = (index + 1, written.trim());
            if written.is_empty() || written.starts_with('#') {
                continue;
            }
            let read = read_line(written);
            // A heading has no number in the place of the time.
            let is_heading =
                first_s.is_none() && !written.starts_with(|c: char| c.is_ascii_digit());
            if read.is_none() && is_heading {
                continue;
            }
            let wrong = || TraceError::NotARate { line, text: written.to_owned() };
            let (seconds, rate) = read.ok_or_else(wrong)?;
            let since = seconds - *first_s.get_or_insert(seconds);
            if lines.last().is_some_and(|(last, _)| since <= last.as_secs_f64()) {
                return Err(TraceError::Backwards(line));
            }
            lines.push((Duration::from_secs_f64(since), rate));
        }
        RateTrace::new(&lines).ok_or(TraceError::NeverSends)
    }

    /// A trace of rates and the times from which they are valid, in the order of time, starting at 0; `None` if their
    /// mean is below 1 bit/s.
    pub fn new(rates: &[(Duration, Rate)]) -> Option<RateTrace> {
        let last_step = match rates {
            [.., (before, _), (last, _)] => *last - *before,
            _ => ONLY_STEP,
        };
        let ends = rates.iter().skip(1).map(|(from, _)| *from);
        let period = rates.last()?.0 + last_step;
        let mut sent_before = 0;
        let steps = rates.iter().zip(ends.chain([period])).map(|((from, rate), until)| {
            let step = RateStep { from: *from, rate: *rate, sent_before };
            sent_before += work(*rate, until.saturating_sub(*from));
            step
        });
        let steps: Arc<[RateStep]> = steps.collect();
        let trace = RateTrace { steps, period, start: Time::ZERO, spare: (Time::ZERO, 0) };
        (trace.mean_rate() > Rate::ZERO).then_some(trace)
    }

    /// The same trace with `start` as its time 0.
    #[must_use]
    pub fn starting_at(&self, start: Time) -> RateTrace {
        RateTrace { steps: self.steps.clone(), period: self.period, start, spare: (start, 0) }
    }

    /// The mean rate of a period.
    pub fn mean_rate(&self) -> Rate {
        self.mean_rate_between(Duration::ZERO, self.period)
    }

    /// The mean rate between two times, relative to the trace's time 0.
    pub fn mean_rate_between(&self, from: Duration, until: Duration) -> Rate {
        let elapsed = until.saturating_sub(from).as_nanos();
        let sent = self.sent_by(until.as_nanos()).saturating_sub(self.sent_by(from.as_nanos()));
        Rate::from_bits_per_second((sent / u128::from(elapsed.max(1))) as u64)
    }

    /// The work that the link can do by `nanos` nanoseconds after the start.
    fn sent_by(&self, nanos: u64) -> u128 {
        let (periods, within) = (nanos / self.period.as_nanos(), nanos % self.period.as_nanos());
        let at = self.steps.partition_point(|step| step.from.as_nanos() <= within).max(1) - 1;
        let step = &self.steps[at];
        let since = Duration::from_nanos(within - step.from.as_nanos());
        self.per_period() * u128::from(periods) + step.sent_before + work(step.rate, since)
    }

    fn per_period(&self) -> u128 {
        let Some(last) = self.steps.last() else { return 0 };
        last.sent_before + work(last.rate, self.period.saturating_sub(last.from))
    }

    /// The first nanosecond after the start by which the link can have done this much work, which is above zero.
    fn time_of(&self, sent: u128) -> u64 {
        let (periods, within) =
            ((sent - 1) / self.per_period(), (sent - 1) % self.per_period() + 1);
        // The last of the steps that begin before this much work was done is the one that completes it. Its rate is not
        // zero, because the next step begins with more work done.
        let at = self.steps.partition_point(|step| step.sent_before < within).max(1) - 1;
        let step = &self.steps[at];
        let needed = (within - step.sent_before).div_ceil(u128::from(step.rate.bits_per_second()));
        let nanos = periods * u128::from(self.period.as_nanos()) + needed;
        u64::try_from(nanos).unwrap_or(u64::MAX).saturating_add(step.from.as_nanos())
    }

    /// The departure time of a packet of `size` that is at the head of the queue from `start` on.
    pub(crate) fn handle_service(&mut self, start: Time, size: Bytes) -> Time {
        // Directly after another packet, the link continues within the same nanosecond.
        let spare = if self.spare.0 == start { self.spare.1 } else { 0 };
        let sent_before_start =
            self.sent_by(start.since(self.start).as_nanos()).saturating_sub(spare);
        let sent = sent_before_start + u128::from(size.get().max(1)) * BYTE;
        let nanos = self.time_of(sent);
        let ends = self.start + Duration::from_nanos(nanos);
        self.spare = (ends, self.sent_by(nanos) - sent);
        ends
    }
}

/// The canonical text, which [`RateTrace::parse`] parses to the same trace.
impl fmt::Display for RateTrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "time_s,rate_bps")?;
        for RateStep { from, rate, .. } in self.steps.iter() {
            let (seconds, nanos) =
                (from.as_nanos() / 1_000_000_000, from.as_nanos() % 1_000_000_000);
            writeln!(f, "{seconds}.{nanos:09},{}", rate.bits_per_second())?;
        }
        Ok(())
    }
}

/// The work of a link of `rate` in `time`.
fn work(rate: Rate, time: Duration) -> u128 {
    u128::from(rate.bits_per_second()) * u128::from(time.as_nanos())
}

/// Parses a time in seconds, and a rate with its unit or in bits per second.
fn read_line(line: &str) -> Option<(f64, Rate)> {
    let (time, rate) = line.split_once([',', ';', '\t'])?;
    let seconds: f64 = time.trim().trim_end_matches('s').parse().ok()?;
    let rate = rate.trim();
    let rate = match rate.parse::<f64>() {
        Ok(bits) if bits >= 0.0 => Rate::from_f64(bits),
        Ok(_) => return None,
        Err(_) => rate.parse::<Rate>().ok()?,
    };
    // A float represents whole nanoseconds exactly up to 2^53.
    ((0.0..1e10).contains(&seconds) && rate <= FASTEST).then_some((seconds, rate))
}
