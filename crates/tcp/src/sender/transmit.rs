use sweetspot_units::Time;

use super::{RecoveryState, Sender};
use crate::config::RecoveryStyle;
use crate::congestion::{CongestionControl, Growth};
use crate::scoreboard::DUP_THRESH;
use crate::segment::Segment;

impl Sender {
    /// The next packet to send now, until there is none.
    #[inline(always)]
    pub fn poll_transmit(&mut self, now: Time) -> Option<Segment> {
        let repairing = self.dupacks > 0 || self.state > RecoveryState::Open;
        if self.options.paced && self.pacer.release > now && (repairing || self.burst == 0) {
            return None;
        }
        if repairing {
            self.burst = 0;
            return self.poll_repair(now);
        }
        if self.next >= self.limit {
            return None;
        }
        if self.options.paced && self.options.offload {
            self.continue_segment();
        }
        if self.options.slow_start_restart && self.una == self.highest {
            self.restart_after_idle(now);
        }
        Some(self.emit(now, self.next))
    }

    /// The next packet while losses are suspected or repaired.
    fn poll_repair(&mut self, now: Time) -> Option<Segment> {
        // Pacing may delay a retransmission until its packet is acknowledged.
        let resend = self.resend.take().filter(|number| *number >= self.una);
        let number = if let Some(number) = resend {
            self.note_by_pipe(now, number);
            number
        } else if self.repairs_by_pipe() {
            let number = self.peek_by_pipe()?;
            self.note_by_pipe(now, number);
            number
        } else {
            self.skip_sacked();
            let number = self.peek_by_window();
            self.limited_credit = false;
            number?
        };
        Some(self.emit(now, number))
    }

    /// Whether a packet could leave if pacing allowed it.
    pub(super) fn may_send(&self) -> bool {
        let next =
            || if self.repairs_by_pipe() { self.peek_by_pipe() } else { self.peek_by_window() };
        self.resend.is_some() || next().is_some()
    }

    /// The next number that the window allows.
    fn peek_by_window(&self) -> Option<u64> {
        let limit = if self.dupacks == 0 || self.dupacks >= DUP_THRESH {
            self.limit
        } else if self.limited_credit {
            // RFC 3042: one new packet for each of the first two duplicate ACKs.
            let limit = self.una + self.cwnd + u64::from(self.dupacks);
            limit.min(self.right_edge).min(self.end).min(self.una + self.options.send_buffer)
        } else {
            return None;
        };
        (self.next < limit).then_some(self.next)
    }

    /// After a timeout, does not retransmit packets that the receiver already has. ns-2's `Sack1` retransmits them.
    fn skip_sacked(&mut self) {
        if let Some(repair) = &self.repair
            && self.state == RecoveryState::Loss
            && self.style != RecoveryStyle::Sack1
        {
            self.next = repair.board.first_missing(self.next);
        }
    }

    /// Sends `number` (ns-2 `TcpAgent::output`).
    #[inline(always)]
    fn emit(&mut self, now: Time, number: u64) -> Segment {
        // Nothing was outstanding: RFC 6298 (5.1).
        if !self.retransmission.is_set() || self.una == self.highest {
            self.restart_timer(now);
        }
        self.statistics.sent += 1;
        let retransmitted = number < self.highest;
        if retransmitted {
            self.statistics.retransmitted += 1;
        } else {
            self.highest = number + 1;
            if self.timed.is_none() {
                self.timed = Some((number, now));
            }
        }
        if number == self.next || !retransmitted {
            self.next = number + 1;
        }
        if !retransmitted && self.options.growth == Growth::PerPacket {
            self.usage.handle_sent(self.una, self.next, self.flight(), self.cwnd);
        }
        self.stamp(now, number);
        if self.options.paced {
            self.pace(now);
        }
        self.last_sent = now;
        let window_reduced = core::mem::take(&mut self.window_reduced);
        Segment { number, retransmitted, window_reduced }
    }

    #[inline]
    fn stamp(&mut self, now: Time, number: u64) {
        let in_flight = match self.stamps {
            None => return,
            Some(_) => self.packets_in_flight(),
        };
        let at = (number - self.una) as usize;
        if let Some(stamps) = &mut self.stamps {
            let stamp = stamps.rate.handle_sent(now, in_flight);
            if stamps.sent.len() <= at {
                stamps.sent.resize(at + 1, None);
            }
            stamps.sent[at] = Some(stamp);
        }
    }

    fn restart_after_idle(&mut self, now: Time) {
        if self.state != RecoveryState::SynSent && now.since(self.last_sent) > self.rtt.timeout() {
            self.congestion.handle_restart(now);
            self.refresh();
        }
    }
}
