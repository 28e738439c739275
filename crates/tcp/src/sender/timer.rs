//! The retransmission timer, which also probes a closed window.

use sweetspot_units::{Deadline, Time};

use super::{RecoveryState, Sender};
use crate::congestion::{CongestionControl, CongestionEvent};

impl Sender {
    /// The earliest timer; `None` if none is set.
    #[inline]
    pub fn poll_timeout(&self) -> Option<Time> {
        self.deadline().time()
    }

    /// [`Sender::poll_timeout`] as a [`Deadline`].
    #[inline]
    pub fn deadline(&self) -> Deadline {
        // The SYN leaves when the caller polls; nothing is due before.
        if self.options.paced && self.highest > 0 && self.may_send() {
            return self.retransmission.min(self.pacer.release.into());
        }
        self.retransmission
    }

    /// The time of [`Sender::poll_timeout`] has come.
    pub fn handle_timeout(&mut self, now: Time) {
        if !self.retransmission.has_passed(now) {
            return;
        }
        if self.una == self.highest && self.state != RecoveryState::SynSent {
            return self.probe_window(now);
        }
        self.statistics.timeouts += 1;
        // All data in flight count as lost (RFC 6298 (5.4) goes back to the oldest).
        let event = CongestionEvent { in_flight: 0, ..self.congestion_event(now) };
        self.congestion.handle_timeout(&event);
        self.rtt.back_off();
        self.timed = None;
        self.recover = self.highest;
        // Go back to the oldest unacknowledged packet (RFC 6298 (5.4)).
        self.next = self.una;
        self.dupacks = 0;
        self.inflation = 0;
        self.resend = None;
        self.limited_credit = false;
        if self.state != RecoveryState::SynSent {
            self.state = RecoveryState::Loss;
        }
        if let Some(repair) = &mut self.repair {
            repair.handle_timeout(self.highest);
        }
        self.restart_timer(now);
        self.refresh();
    }

    /// RFC 9293 section 3.8.6.1: sends a packet beyond a closed window, because the one ACK that opens the
    /// window may be lost. The interval doubles each time.
    fn probe_window(&mut self, now: Time) {
        self.rtt.back_off();
        self.restart_timer(now);
        self.limit = self.next + 1;
    }

    #[inline]
    pub(super) fn restart_timer(&mut self, now: Time) {
        self.retransmission = (now + self.rtt.timeout()).into();
    }
}
