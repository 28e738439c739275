use sweetspot_units::Time;

use super::ack::AckProgress;
use super::repair::RecoveryStart;
use super::{RecoveryState, Sender};
use crate::config::RecoveryStyle;
use crate::congestion::CongestionControl;
use crate::scoreboard::DUP_THRESH;

impl Sender {
    /// Whether the latest duplicate ACK indicates a loss not known before.
    pub(super) fn finds_loss(&self) -> bool {
        match &self.repair {
            // RFC 6675 section 5: "HighACK is greater than or equal to the new value of
            // RecoveryPoint".
            Some(repair) => {
                self.una >= self.recover
                    && (self.dupacks == DUP_THRESH
                        || repair.board.is_lost(self.una)
                        || self.style == RecoveryStyle::Fack
                            && repair.board.reaches(self.una + u64::from(DUP_THRESH)))
            }
            // RFC 6582 section 3.2 step 2, ns-2 `bugFix_`: duplicates of an ACK that does not cover more than the last
            // recovery's end may stem from that recovery's retransmissions.
            None => (self.una > self.recover || self.recover == 0) && self.dupacks == DUP_THRESH,
        }
    }

    /// Fast retransmit (ns-2 `dupack_action`, RFC 6675 section 5 step (4)).
    pub(super) fn enter_recovery(&mut self, now: Time, progress: &AckProgress) {
        self.statistics.recoveries += 1;
        self.recover = self.highest;
        let prior_cwnd = self.cwnd as u32;
        let event = self.congestion_event(now);
        self.congestion.handle_recovery(&event);
        self.state = RecoveryState::Recovery;
        self.partial_seen = false;
        self.limited_credit = false;
        // Retransmitted regardless of the packets in flight (RFC 6675 section 5, step (4.3)).
        self.resend = Some(self.una);
        self.timed = None;
        self.restart_timer(now);
        match &mut self.repair {
            Some(repair) => {
                repair.begin(&RecoveryStart {
                    in_flight: (self.highest - self.una).saturating_sub(u64::from(DUP_THRESH)),
                    prior_cwnd,
                    ssthresh: self.congestion.ssthresh(),
                });
                self.reduce(progress);
            }
            // The three packets that the duplicates stand for have left the network.
            None => self.inflation = i64::from(DUP_THRESH),
        }
    }

    /// Proportional rate reduction: computes how many packets an ACK of a recovery releases.
    #[inline]
    pub(super) fn reduce(&mut self, progress: &AckProgress) {
        if let Some(repair) = &mut self.repair {
            repair.handle_ack(self.una, self.highest, progress);
        }
    }

    /// Whether the scoreboard decides which packets to send.
    #[inline]
    pub(super) fn repairs_by_pipe(&self) -> bool {
        match self.style {
            RecoveryStyle::Reno | RecoveryStyle::NewReno => false,
            RecoveryStyle::Sack | RecoveryStyle::Fack | RecoveryStyle::Sack1 => {
                self.state == RecoveryState::Recovery
            }
            RecoveryStyle::Linux => {
                matches!(self.state, RecoveryState::Recovery | RecoveryState::Loss)
            }
        }
    }

    /// RFC 6675 section 5, step (C): the next packet while the pipe is below the window.
    pub(super) fn peek_by_pipe(&self) -> Option<u64> {
        let repair = self.repair.as_ref()?;
        if !repair.has_room(self.una, self.highest, self.cwnd) {
            return None;
        }
        let room = self.right_edge.min(self.end).min(self.una + self.options.send_buffer);
        let new = || (self.highest < room).then_some(self.highest);
        let doubtful = || repair.board.next_doubtful(self.una);
        if matches!(self.style, RecoveryStyle::Sack1 | RecoveryStyle::Fack) {
            // ns-2 `GetNextRetran`, and FACK: any hole below sacked packets.
            return doubtful().or_else(new);
        }
        let next = repair.board.next_hole(self.una).or_else(new);
        if self.style == RecoveryStyle::Linux {
            return next;
        }
        let rescue = || repair.board.next_rescue(self.una, self.highest);
        next.or_else(doubtful).or_else(rescue)
    }

    /// Records that `number` is sent under the pipe rule.
    pub(super) fn note_by_pipe(&mut self, now: Time, number: u64) {
        let Some(repair) = &mut self.repair else { return };
        if number >= self.highest {
            repair.spend();
            return;
        }
        let board = &mut repair.board;
        let rescue =
            board.next_hole(self.una).or_else(|| board.next_doubtful(self.una)) != Some(number);
        if rescue {
            // "HighRxt MUST NOT be updated" (RFC 6675 section 4).
            board.handle_rescue(self.recover);
            return;
        }
        board.handle_retransmission(now, number);
        repair.spend();
        if self.style == RecoveryStyle::Linux && number == self.una {
            // Linux `tcp_xmit_retransmit_queue`: rearm_rto for the head of the queue.
            self.restart_timer(now);
        }
    }
}
