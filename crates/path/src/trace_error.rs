use sweetspot_units::Duration;
use thiserror::Error;

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
        /// The line's text.
        text: String,
    },
    /// A time lies before the one above it.
    #[error(
        "line {0} of the trace: its time is before that of the line above; sort the lines by time"
    )]
    Backwards(usize),
    /// A line is no time and rate.
    #[error(
        "line {line} of the trace: \"{text}\" is not a time in seconds and a rate up to 1 Tbit/s, such as 0.5,12Mbit/s"
    )]
    NotARate {
        /// The line, from 1.
        line: usize,
        /// The line's text.
        text: String,
    },
    /// The mean rate of lines with rates is below 1 bit/s, the smallest rate.
    #[error(
        "the trace has no time with a rate, or its mean rate is below 1 bit/s; write lines such as 0.5,12Mbit/s"
    )]
    NeverSends,
    /// The mean rate of lines with opportunities is below 1 bit/s. Holds the period.
    #[error(
        "the trace's mean rate is below 1 bit/s: it has {opportunities} x 1504 bytes in {}; lower its last time, the period",
        .period
    )]
    TooSlow {
        /// The number of lines.
        opportunities: usize,
        /// The last time.
        period: Duration,
    },
    /// It has no line, or all are of time 0.
    #[error("the trace has no period: its last line must be a time above 0")]
    Empty,
}
