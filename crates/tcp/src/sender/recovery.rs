use sweetspot_units::Time;

use super::transmit::DUPLICATES;
use super::{Phase, Sender};
use crate::config::RecoveryStyle;
use crate::congestion::CongestionControl;

impl Sender {
    /// Whether the duplicate ACK just counted means a loss that is news.
    pub(super) fn finds_loss(&self) -> bool {
        // RFC 6582 section 3.2 step 2, ns-2 `bugFix_`: duplicates of an ACK that does not cover
        // more than the last recovery's end may stem from what that recovery sent again.
        if self.una <= self.recover && self.recover > 0 {
            return false;
        }
        self.dupacks == DUPLICATES
            || (self.style == RecoveryStyle::Sack
                && self.scoreboard.as_ref().is_some_and(|board| board.is_lost(self.una)))
    }

    /// Fast retransmit (ns-2 `dupack_action`, RFC 6675 section 5 step (4)).
    pub(super) fn enter_recovery(&mut self, now: Time) {
        self.statistics.recoveries += 1;
        self.recover = self.highest;
        let event = self.congestion_event(now);
        self.congestion.handle_recovery(&event);
        self.phase = Phase::Recovering;
        self.partial_seen = false;
        self.limited_credit = false;
        self.resend = Some(self.una);
        self.timed = None;
        self.restart_timer(now);
        match &mut self.scoreboard {
            Some(board) => board.handle_retransmission(self.una),
            // The three packets that the duplicates stand for have left the network.
            None => self.inflation = i64::from(DUPLICATES),
        }
    }
}
