use sweetspot_units::{Bytes, Duration, Time};

/// Measures the bytes that arrive in a round trip: between two times at least one receiver RTT
/// apart.
#[derive(Debug, Default)]
pub(crate) struct Reception {
    total: Bytes,
    started: Option<(Time, Bytes)>,
}

/// One measurement of [`Reception`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Round {
    pub(crate) bytes: Bytes,
    /// The measured time: one round trip or a little more.
    pub(crate) lasted: Duration,
}

impl Reception {
    /// Sets the total of bytes that have arrived on the connection.
    pub(crate) fn handle_total(&mut self, total: Bytes) {
        self.total = total;
    }

    /// Begins a measurement now, unless one is in progress.
    pub(crate) fn begin(&mut self, now: Time) {
        self.started.get_or_insert((now, self.total));
    }

    /// Ends the measurement and begins the next, if it has lasted a round trip of `rtt`.
    pub(crate) fn poll_round(&mut self, now: Time, rtt: Duration) -> Option<Round> {
        let (since, before) = self.started?;
        let lasted = now.since(since);
        if lasted < rtt {
            return None;
        }
        self.started = Some((now, self.total));
        Some(Round { bytes: self.total.saturating_sub(before), lasted })
    }
}
