//! The rate at which packets leave.

use sweetspot_units::{Duration, Rate, Time};

use super::Sender;
use crate::congestion::CongestionControl;

/// The longest gap between packets, at any pacing rate.
const LONGEST_GAP: Duration = Duration::from_secs(1);

/// The pacing limit, and the time at which the next packet may leave.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Pacer {
    /// The rate that the receiver requested, an upper bound.
    pub(super) requested: Option<Rate>,
    /// No packet leaves before this time.
    pub(super) release: Time,
}

impl Sender {
    /// Limits the rate on the wire to `rate`; `None` lifts the limit. As on Linux
    /// (SO_MAX_PACING_RATE), a sender that was limited once then continues to pace by its own
    /// window.
    pub fn set_pacing(&mut self, rate: Option<Rate>) {
        self.pacer.requested = rate;
        self.options.pacing |= rate.is_some();
        self.options.paced |= rate.is_some();
    }

    /// The requested pacing rate.
    pub fn pacing(&self) -> Option<Rate> {
        self.pacer.requested
    }

    /// The rate on the wire at which packets leave, if the sender paces.
    pub(super) fn pacing_rate(&self) -> Option<Rate> {
        let own = self.own_pacing_rate();
        match (self.pacer.requested, own) {
            (Some(requested), Some(own)) => Some(requested.min(own)),
            (requested, own) => requested.or(own),
        }
    }

    /// The pacing rate of the congestion control, or of the sender's own window.
    fn own_pacing_rate(&self) -> Option<Rate> {
        if let Some(rate) = self.congestion.pacing_rate() {
            return Some(rate);
        }
        if !self.options.pacing {
            return None;
        }
        Some(self.window_rate(self.rtt.smoothed()?))
    }

    /// Linux `tcp_update_pacing_rate`: twice the window per round trip while the window doubles,
    /// 1.2 times afterwards (sysctl tcp_pacing_ss_ratio, tcp_pacing_ca_ratio).
    pub(super) fn window_rate(&self, smoothed: Duration) -> Rate {
        let cwnd = self.congestion.cwnd();
        let factor = if cwnd < self.congestion.ssthresh() / 2.0 { 2.0 } else { 1.2 };
        self.options.packet.scaled(cwnd * factor) / smoothed
    }

    pub(super) fn pace(&mut self, now: Time) {
        if let Some(rate) = self.pacing_rate() {
            let gap = self.options.packet / rate;
            // A sender that is late by less than a gap catches up.
            let from = self.pacer.release.max(now - gap);
            self.pacer.release = from + gap.min(LONGEST_GAP);
        }
    }
}
