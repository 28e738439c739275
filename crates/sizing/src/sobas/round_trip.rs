use sweetspot_units::Duration;

/// Gain of the running average: RFC 6298's 1/8.
const GAIN: f64 = 0.125;

/// What is known of the round trip: its running average, its extremes, and the range of the
/// samples of the present epoch.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RoundTrip {
    average: Option<Duration>,
    base: Option<Duration>,
    highest: Duration,
    range: Option<(Duration, Duration)>,
}

impl RoundTrip {
    /// A sample.
    pub(super) fn handle_sample(&mut self, rtt: Duration) {
        if rtt == Duration::ZERO {
            return;
        }
        let average = self.average.unwrap_or(rtt);
        let moved = average.as_secs_f64() + GAIN * (rtt.as_secs_f64() - average.as_secs_f64());
        self.average = Some(Duration::from_secs_f64(moved));
        self.base = Some(self.base.map_or(rtt, |b| b.min(rtt)));
        self.highest = self.highest.max(rtt);
        let (low, high) = self.range.unwrap_or((rtt, rtt));
        self.range = Some((low.min(rtt), high.max(rtt)));
    }

    /// The round trip without a queue is known to be no longer than this.
    pub(super) fn handle_minimum(&mut self, rtt: Duration) {
        if rtt > Duration::ZERO {
            self.base = Some(self.base.map_or(rtt, |b| b.min(rtt)));
        }
    }

    /// The running average.
    pub(super) fn average(&self) -> Option<Duration> {
        self.average
    }

    /// The round trip without our own queue.
    pub(super) fn base(&self) -> Option<Duration> {
        self.base
    }

    /// How much longer than without our own queue it has ever been.
    pub(super) fn spread(&self) -> Duration {
        self.highest.saturating_sub(self.base.unwrap_or(self.highest))
    }

    /// The lowest and the highest sample since the last call.
    pub(super) fn take_range(&mut self) -> Option<(Duration, Duration)> {
        self.range.take()
    }
}
