//! A path that others congest: section VI of the paper, left to congestion control.

use sweetspot_units::{Duration, Time};

use super::ramp::Ramp;
use super::{DOMINANT, Sobas, State};
use crate::EventKind;
use crate::sobas::epoch::Epoch;

/// Pace in congestion windows per round trip: Linux's tcp_pacing_ss_ratio. What slow start adds until
/// the sender hears of it passes, and a window is not sent at once, of which a full buffer would take
/// so much that only a timeout helped.
const PACING_OVER_CWND: f64 = 2.0;

impl Sobas {
    /// Whether a queue stands though the transfer has yet to send what could make one: then no
    /// bandwidth is available (section VI), and limits would only hold back what has to compete.
    pub(super) fn meets_congestion(&self, epoch: &Epoch, base: Duration) -> bool {
        self.has_queue(epoch.rtt, base) && !self.matters()
    }

    /// Lifts every limit.
    pub(super) fn leave_to_congestion_control(&mut self, now: Time) {
        self.limits.lift(now);
        self.limits.emit(now, EventKind::Congested);
        self.state = State::Congested;
    }

    /// Judges an epoch on a congested path.
    pub(super) fn compete(&mut self, now: Time, epoch: &Epoch) {
        let over = !self.congestion.is_congested() && !epoch.stalled;
        if over && self.has_share(DOMINANT) {
            self.limit_by_estimate(now);
            self.state = State::Ramping(Ramp::new(epoch.rate));
            return;
        }
        if let Some((cwnd, rtt)) = epoch.cwnd.zip(self.round_trip.average()) {
            self.limits.pace((cwnd / rtt).scaled(PACING_OVER_CWND));
        }
    }
}
