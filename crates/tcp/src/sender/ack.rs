use sweetspot_units::{Deadline, Duration, Time};

use super::{RecoveryState, Sender};
use crate::config::RecoveryStyle;
use crate::congestion::{AckSample, Congestion, CongestionControl, Growth, RateSample};
use crate::scoreboard::DUP_THRESH;
use crate::segment::{Acknowledgement, Run};

/// The progress by one ACK, before the congestion control sees it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct AckProgress {
    /// Packets newly covered by the cumulative ACK.
    pub acked: u64,
    /// Packets newly known to have arrived.
    pub delivered: u64,
    /// Packets newly found to be lost.
    pub lost: u64,
    /// Whether cwnd was the limit when the ACK arrived.
    pub cwnd_limited: bool,
}

impl Sender {
    /// Handles an ACK that arrived with these SACK blocks.
    #[inline(always)]
    pub fn handle_ack(&mut self, now: Time, ack: &Acknowledgement, blocks: &[Run]) {
        if ack.next > self.highest || ack.next < self.una {
            return;
        }
        self.right_edge = self.right_edge.max(ack.next + u64::from(ack.window));
        if self.state == RecoveryState::Open
            && ack.next > self.una
            && !ack.congestion_echo
            && self.has_no_gaps(blocks)
            && matches!(self.congestion, Congestion::Reno(_))
        {
            self.handle_usual(now, ack);
        } else {
            self.handle_unusual(now, ack, blocks);
        }
        self.refresh();
    }

    /// Whether neither this ACK nor an earlier one reports a gap.
    #[inline]
    fn has_no_gaps(&self, blocks: &[Run]) -> bool {
        self.repair.as_ref().is_none_or(|repair| repair.board.is_idle() && blocks.is_empty())
    }

    /// Handles the usual case: a new ACK, nothing missing, and Reno's window.
    #[inline(always)]
    fn handle_usual(&mut self, now: Time, ack: &Acknowledgement) {
        let acked = (ack.next - self.una) as u32;
        let cwnd_limited = self.options.growth == Growth::PerPacket && self.is_cwnd_limited();
        self.advance(now, ack);
        if let Congestion::Reno(reno) = &mut self.congestion {
            // Reno needs few fields; the others are not computed.
            let (una, nxt) = (self.una, self.highest);
            let delivered = acked;
            let progress = AckSample { acked, delivered, cwnd_limited, ..AckSample::at(now) };
            reno.handle_ack(&AckSample { una, nxt, ..progress });
        }
    }

    fn handle_unusual(&mut self, now: Time, ack: &Acknowledgement, blocks: &[Run]) {
        let mut progress = AckProgress {
            acked: ack.next - self.una,
            delivered: ack.next - self.una,
            lost: 0,
            cwnd_limited: self.is_cwnd_limited(),
        };
        if self.repair.is_some() {
            self.read_scoreboard(now, ack, blocks, &mut progress);
        }
        if ack.congestion_echo {
            self.handle_congestion_echo(now);
        }
        if progress.acked > 0 {
            self.handle_new(now, ack, progress);
        } else if self.una < self.highest {
            self.handle_duplicate(now, ack, progress);
        }
    }

    /// Whether the congestion window limits the sender.
    #[inline]
    fn is_cwnd_limited(&self) -> bool {
        if self.options.growth == Growth::PerPacket {
            let doubles = || self.congestion.cwnd() < self.congestion.ssthresh();
            return self.usage.is_limited(self.cwnd, doubles);
        }
        self.flight() >= self.cwnd
    }

    /// Packets in flight, as the congestion control counts them.
    #[inline]
    pub(super) fn flight(&self) -> u64 {
        if self.repairs_by_pipe() { self.in_flight() } else { self.next - self.una }
    }

    #[inline]
    fn read_scoreboard(
        &mut self,
        now: Time,
        ack: &Acknowledgement,
        blocks: &[Run],
        progress: &mut AckProgress,
    ) {
        let Some(repair) = &mut self.repair else { return };
        let board = &mut repair.board;
        if board.is_idle() && blocks.is_empty() {
            self.deliver_stamps(now, ack, blocks);
            return;
        }
        let below = board.remove_below(ack.next);
        let lost_before = board.lost(ack.next);
        let sacked = board.handle_blocks(ack.next, blocks);
        let lost_again = board.handle_delivery(ack.next, ack.echo);
        progress.lost = board.lost(ack.next).saturating_sub(lost_before) + lost_again;
        // Packets SACKed earlier are not delivered again.
        progress.delivered = progress.acked - below + sacked;
        self.deliver_stamps(now, ack, blocks);
    }

    /// Passes the delivered packets' stamps to the rate estimator.
    fn deliver_stamps(&mut self, now: Time, ack: &Acknowledgement, blocks: &[Run]) {
        let una = self.una;
        let Some(stamps) = &mut self.stamps else { return };
        for run in blocks {
            for number in run.start.max(ack.next)..run.end {
                let slot = stamps.sent.get_mut((number - una) as usize);
                if let Some(stamp) = slot.and_then(Option::take) {
                    stamps.rate.handle_delivered(now, &stamp);
                }
            }
        }
        for _ in una..ack.next {
            if let Some(Some(stamp)) = stamps.sent.pop_front() {
                stamps.rate.handle_delivered(now, &stamp);
            }
        }
    }

    fn rate_sample(&mut self, now: Time, rtt: Duration) -> Option<RateSample> {
        let stamps = self.stamps.as_mut()?;
        let min_rtt = stamps.min_rtt.map_or(rtt, |min| min.min(rtt));
        stamps.min_rtt = Some(min_rtt);
        stamps.rate.poll_sample(now, min_rtt)
    }

    /// The cumulative ACK advances (ns-2 `recv_newack_helper`).
    #[inline]
    fn handle_new(&mut self, now: Time, ack: &Acknowledgement, progress: AckProgress) {
        if self.state == RecoveryState::SynSent {
            self.advance(now, ack);
            // The handshake's ACK does not grow the window.
            self.state = RecoveryState::Open;
            return;
        }
        match self.state {
            RecoveryState::Recovery
                if ack.next < self.recover && self.style != RecoveryStyle::Reno =>
            {
                self.handle_partial(now, ack);
                self.reduce(&progress);
            }
            RecoveryState::Recovery => {
                self.state = RecoveryState::Open;
                self.inflation = 0;
                self.resend = None;
                self.advance(now, ack);
                if let Some(repair) = &mut self.repair {
                    repair.end();
                    // New data sent during recovery are at the end; sending continues after them.
                    self.next = self.highest;
                }
                self.congestion.handle_recovered(now);
            }
            RecoveryState::Loss => {
                self.advance(now, ack);
                if self.una >= self.recover {
                    self.state = RecoveryState::Open;
                    if self.style == RecoveryStyle::Linux {
                        self.next = self.highest;
                    }
                }
            }
            _ => self.advance(now, ack),
        }
        self.update_congestion(now, ack, progress);
    }

    /// Advances SND.UNA and everything that depends on it (ns-2 `newack`).
    #[inline]
    fn advance(&mut self, now: Time, ack: &Acknowledgement) {
        self.dupacks = 0;
        self.una = ack.next;
        self.next = self.next.max(ack.next);
        if self.options.timestamps {
            self.rtt.handle_timestamp(now, ack.echo);
            self.rtt.end_backoff();
            self.timed = None;
        } else if let Some((number, sent)) = self.timed
            && ack.next > number
        {
            self.timed = None;
            self.rtt.handle_timed(now, sent);
        }
        // RFC 6298 (5.2), (5.3). The timer also probes a closed window.
        let closed = self.right_edge == self.una && self.end > self.una;
        if self.una == self.highest && !closed {
            self.retransmission = Deadline::NEVER;
        } else {
            self.restart_timer(now);
        }
    }

    /// Handles a new ACK that does not reach the end of the recovery.
    fn handle_partial(&mut self, now: Time, ack: &Acknowledgement) {
        // RFC 6582 section 4: the first partial ACK alone restarts the timer ("impatient"),
        // RFC 6675: every one does.
        if !self.partial_seen || self.repair.is_some() {
            self.partial_seen = true;
            self.restart_timer(now);
        }
        let covered = ack.next - self.una;
        self.una = ack.next;
        // A paced retransmission may have been acknowledged before it left.
        self.resend = self.resend.filter(|number| *number >= ack.next);
        self.next = self.next.max(ack.next);
        if let Some((number, _)) = self.timed
            && ack.next > number
        {
            self.timed = None;
            self.rtt.end_backoff();
        }
        if self.style == RecoveryStyle::NewReno {
            // RFC 6582 section 3.2 step 3: retransmit the first hole, deflate the window by the acknowledged packets, add back
            // one packet.
            self.inflation -= covered as i64 - 1;
            self.resend = Some(self.una);
        }
    }

    /// Handles a duplicate ACK while packets are outstanding.
    fn handle_duplicate(&mut self, now: Time, ack: &Acknowledgement, progress: AckProgress) {
        // RFC 6675 section 4: with SACK, only an ACK that reports something new counts.
        if self.repair.is_some() && progress.delivered == 0 {
            self.update_congestion(now, ack, progress);
            return;
        }
        self.dupacks += 1;
        self.limited_credit = self.options.limited_transmit && self.dupacks < DUP_THRESH;
        match self.state {
            RecoveryState::Recovery => {
                self.inflation += 1;
                self.reduce(&progress);
            }
            _ if self.finds_loss() => self.enter_recovery(now, &progress),
            _ => {}
        }
        self.update_congestion(now, ack, progress);
    }

    #[inline]
    fn update_congestion(&mut self, now: Time, ack: &Acknowledgement, progress: AckProgress) {
        let recovering = self.state == RecoveryState::Recovery;
        if let Congestion::Reno(reno) = &mut self.congestion {
            if progress.acked > 0 && !recovering {
                reno.handle_ack(&AckSample {
                    acked: progress.acked as u32,
                    delivered: progress.delivered as u32,
                    cwnd_limited: progress.cwnd_limited,
                    una: self.una,
                    nxt: self.highest,
                    ..AckSample::at(now)
                });
            }
            return;
        }
        let rtt = now.since(ack.echo);
        let rate = self.rate_sample(now, rtt);
        let event = AckSample {
            now,
            acked: progress.acked as u32,
            delivered: progress.delivered as u32,
            rtt: Some(rtt),
            lost: progress.lost as u32,
            una: self.una,
            nxt: self.highest,
            in_flight: self.in_flight() as u32,
            cwnd_limited: progress.cwnd_limited,
            recovering,
            paced: self.options.paced,
            rate,
        };
        self.congestion.handle_ack(&event);
    }

    /// RFC 3168 section 6.1.2: reacts to an echo once per window of data.
    #[cold]
    fn handle_congestion_echo(&mut self, now: Time) {
        if self.una >= self.ecn_recover && self.state == RecoveryState::Open {
            self.ecn_recover = self.highest;
            let event = self.congestion_event(now);
            self.congestion.handle_ecn(&event);
            self.window_reduced = true;
        }
    }
}
