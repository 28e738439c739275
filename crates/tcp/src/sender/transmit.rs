use sweetspot_units::Time;

use super::{Phase, Sender};
use crate::config::RecoveryStyle;
use crate::congestion::CongestionControl;
use crate::segment::Segment;

impl Sender {
    /// The next packet to send now, until there is none.
    #[inline]
    pub fn poll_transmit(&mut self, now: Time) -> Option<Segment> {
        if self.is_paced() && self.pacer.release > now {
            return None;
        }
        if let Some(number) = self.resend.take() {
            return Some(self.emit(now, number));
        }
        let number = match self.phase {
            Phase::Recovering if self.style == RecoveryStyle::Sack => self.next_by_pipe()?,
            _ => self.next_by_window()?,
        };
        if number >= self.highest && self.options.slow_start_restart {
            self.restart_after_idle(now);
        }
        Some(self.emit(now, number))
    }

    /// Whether a packet could leave if pacing allowed it.
    pub(super) fn may_send(&self) -> bool {
        self.resend.is_some()
            || match self.phase {
                Phase::Recovering if self.style == RecoveryStyle::Sack => {
                    self.peek_by_pipe().is_some()
                }
                _ => self.peek_by_window().is_some(),
            }
    }

    #[inline]
    fn is_paced(&self) -> bool {
        self.options.pacing
            || self.pacer.asked.is_some()
            || self.congestion.pacing_rate().is_some()
    }

    /// In packets: cwnd, and what recovery adds to it.
    #[inline]
    pub(super) fn window(&self) -> u64 {
        // ns-2 `RenoTcpAgent::window`: int(cwnd_) + dupwnd_, no more than wnd_.
        let congestion = (self.congestion.cwnd() as i64 + self.inflation).max(1) as u64;
        congestion.min(self.options.send_buffer)
    }

    /// The next number that the window lets go.
    #[inline]
    fn next_by_window(&mut self) -> Option<u64> {
        self.skip_sacked();
        let number = self.peek_by_window();
        self.limited_credit = false;
        number
    }

    #[inline]
    fn peek_by_window(&self) -> Option<u64> {
        let limit = if self.dupacks == 0 || self.dupacks >= DUPLICATES {
            self.una + self.window()
        } else if self.limited_credit {
            // RFC 3042: one new packet for each of the first two duplicate ACKs.
            self.una + self.congestion.cwnd() as u64 + u64::from(self.dupacks)
        } else {
            return None;
        };
        (self.next < limit.min(self.right_edge).min(self.end)).then_some(self.next)
    }

    /// After a timeout, what the receiver holds already is not sent again.
    #[inline]
    fn skip_sacked(&mut self) {
        if let Some(board) = &self.scoreboard
            && self.phase == Phase::Timeout
        {
            self.next = board.first_missing(self.next);
        }
    }

    /// RFC 6675 section 5, step (C): while the pipe has room, NextSeg().
    fn next_by_pipe(&mut self) -> Option<u64> {
        let number = self.peek_by_pipe()?;
        if let Some(board) = &mut self.scoreboard
            && number < self.highest
        {
            board.handle_retransmission(number);
        }
        Some(number)
    }

    fn peek_by_pipe(&self) -> Option<u64> {
        let board = self.scoreboard.as_ref()?;
        if board.pipe(self.una, self.highest) >= self.congestion.cwnd() as u64 {
            return None;
        }
        let room = self.right_edge.min(self.end).min(self.una + self.options.send_buffer);
        board.next_hole(self.una).or_else(|| (self.highest < room).then_some(self.highest))
    }

    /// Sends `number` (ns-2 `TcpAgent::output`).
    #[inline]
    fn emit(&mut self, now: Time, number: u64) -> Segment {
        // Nothing was outstanding: RFC 6298 (5.1).
        if self.deadline == Time::MAX || self.una == self.highest {
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
        self.stamp(now, number);
        if self.is_paced() {
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
            Some(_) => u32::try_from(self.in_flight()).unwrap_or(u32::MAX),
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

    #[inline]
    fn restart_after_idle(&mut self, now: Time) {
        let idle = self.una == self.highest && self.phase != Phase::Opening;
        if idle && now.since(self.last_sent) > self.rtt.timeout() {
            self.congestion.handle_restart(now);
        }
    }
}

/// Duplicate ACKs that mean a loss (RFC 5681 section 3.2).
pub(super) const DUPLICATES: u32 = 3;
