use crate::histogram::Histogram;

/// What is kept of a transfer that is measured by itself.
#[derive(Debug, Default)]
pub(crate) struct Target {
    /// Round trips of its packets within the measured interval.
    pub rtt: Histogram,
}
