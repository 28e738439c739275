use sweetspot_units::Duration;

/// TCP timestamps count milliseconds (Linux: `TCP_TS_HZ`). A shorter RTT cannot be measured, and there a limit is not worth its
/// cost. A receiving kernel's RTT samples may be too short by one tick, and are too short by half a tick on average. Since 6.16
/// a lower sample replaces their average at once.
pub const TIMESTAMP_TICK: Duration = Duration::from_millis(1);

/// Waiting time for a packet while the RTT is unknown: TCP's first retransmission timeout (RFC 6298, section 2.1). Also the
/// longest interval between probes of a slow transfer.
pub(crate) const SILENCE: Duration = Duration::from_secs(1);

/// RTTs over which a running average extends: the gain of RFC 6298, section 2, is 1/8. With 16 the mean delay rises from 0.875 to
/// 0.901 of the kernel's (population `drawn`, seed 5151; in [`InflightEstimator`](super::InflightEstimator)).
pub(super) const AVERAGED_ROUND_TRIPS: u64 = 8;

/// The recent RTT: its running average, and the range of samples in the current epoch.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RoundTrip {
    average: Option<Duration>,
    range: Option<(Duration, Duration)>,
    latest: Duration,
    /// The highest RTT that two consecutive samples reached.
    sustained: Duration,
}

impl RoundTrip {
    pub(crate) fn handle_sample(&mut self, rtt: Duration) {
        if rtt == Duration::ZERO {
            return;
        }
        let average = self.average.unwrap_or(rtt);
        let gain = 1.0 / AVERAGED_ROUND_TRIPS as f64;
        let moved = average.as_secs_f64() + gain * (rtt.as_secs_f64() - average.as_secs_f64());
        self.average = Some(Duration::from_secs_f64(moved));
        self.sustained = self.sustained.max(rtt.min(self.latest));
        self.latest = rtt;
        let (low, high) = self.range.unwrap_or((rtt, rtt));
        self.range = Some((low.min(rtt), high.max(rtt)));
    }

    pub(crate) fn average(&self) -> Option<Duration> {
        self.average
    }

    /// The latest RTT sample; zero before the first.
    pub(crate) fn latest(&self) -> Duration {
        self.latest
    }

    /// The highest RTT since the last call that two consecutive samples reached. A queue takes a round trip to drain; a host
    /// that paused gives a single late sample.
    pub(crate) fn take_sustained(&mut self) -> Duration {
        std::mem::take(&mut self.sustained)
    }

    /// The lowest and the highest sample since the last call.
    pub(crate) fn take_range(&mut self) -> Option<(Duration, Duration)> {
        self.range.take()
    }
}
