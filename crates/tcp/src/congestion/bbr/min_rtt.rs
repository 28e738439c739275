use sweetspot_units::{Duration, Time};

use crate::congestion::AckSample;

/// RTprop: the lowest round-trip time of the last ten seconds (section 4.1.2).
#[derive(Debug, Clone, Default)]
pub(super) struct MinRtt {
    lowest: Option<(Duration, Time)>,
}

/// RTpropFilterLen.
const MIN_RTT_FILTER: Duration = Duration::from_secs(10);

impl MinRtt {
    pub(super) fn get(&self) -> Option<Duration> {
        self.lowest.map(|(rtt, _)| rtt)
    }

    /// BBRUpdateRTprop. Returns whether the estimate had expired.
    pub(super) fn handle_ack(&mut self, ack: &AckSample) -> bool {
        let expired = self.lowest.is_some_and(|(_, since)| ack.now > since + MIN_RTT_FILTER);
        if let Some(rtt) = ack.rtt
            && (expired || self.get().is_none_or(|lowest| rtt <= lowest))
        {
            self.lowest = Some((rtt, ack.now));
        }
        expired
    }

    /// Restarts the filter: draining the path confirmed the estimate.
    pub(super) fn confirm(&mut self, now: Time) {
        if let Some((_, since)) = &mut self.lowest {
            *since = now;
        }
    }
}
