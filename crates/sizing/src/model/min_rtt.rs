use sweetspot_units::Duration;

/// The round trip without a queue: the least that was seen.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct MinRtt {
    base: Option<Duration>,
}

impl MinRtt {
    /// A round trip of `rtt` was seen.
    pub(crate) fn handle_sample(&mut self, rtt: Duration) {
        if rtt > Duration::ZERO {
            self.base = Some(self.base.map_or(rtt, |base| base.min(rtt)));
        }
    }

    /// The round trip without a queue, as far as it is known.
    pub(crate) fn get(&self) -> Option<Duration> {
        self.base
    }
}
