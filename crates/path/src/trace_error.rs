use sweetspot_units::Duration;
use thiserror::Error;

/// Why a trace is rejected.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TraceError {
    /// A line is not a time.
    #[error(
        "line {line} of the trace: \"{text}\" is not a whole number of milliseconds; each line is the time at which 1504 bytes may leave"
    )]
    NotATime {
        /// The line's number, from 1.
        line: usize,
        /// The line's text.
        text: String,
    },
    /// A line has an earlier time than the one above it.
    #[error(
        "line {0} of the trace: its time is before that of the line above; sort the lines by time"
    )]
    Backwards(usize),
    /// A line is not a time and a rate.
    #[error(
        "line {line} of the trace: \"{text}\" is not a time in seconds and a rate up to 1 Tbit/s, such as 0.5,12Mbit/s"
    )]
    NotARate {
        /// The line's number, from 1.
        line: usize,
        /// The line's text.
        text: String,
    },
    /// The mean of the rates is below 1 bit/s, the smallest rate.
    #[error(
        "the trace has no time with a rate, or its mean rate is below 1 bit/s; write lines such as 0.5,12Mbit/s"
    )]
    NeverSends,
    /// The opportunities have a mean rate below 1 bit/s.
    #[error(
        "the trace's mean rate is below 1 bit/s: it has {opportunities} x 1504 bytes in {}; lower its last time, the period",
        .period
    )]
    TooSlow {
        /// The number of lines.
        opportunities: usize,
        /// The last time, which is the period.
        period: Duration,
    },
    /// The trace has no lines, or all of its times are 0.
    #[error("the trace has no period: its last line must be a time above 0")]
    Empty,
}
