use sweetspot_units::Duration;

/// The RTT without a queue, estimated by the minimum of all samples.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct MinRtt {
    base: Option<Duration>,
}

impl MinRtt {
    pub(crate) fn handle_sample(&mut self, rtt: Duration) {
        if rtt > Duration::ZERO {
            self.base = Some(self.base.map_or(rtt, |base| base.min(rtt)));
        }
    }

    /// The minimum so far; `None` before the first sample.
    pub(crate) fn get(&self) -> Option<Duration> {
        self.base
    }
}
