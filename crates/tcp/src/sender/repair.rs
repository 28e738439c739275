use super::ack::AckProgress;
use crate::config::RecoveryStyle;
use crate::congestion::{Algorithm, Prr};
use crate::scoreboard::Scoreboard;

/// The state of SACK recovery: arrivals, and the packets that the next ACK releases.
#[derive(Debug, Clone)]
pub(super) struct Repair {
    pub board: Scoreboard,
    rule: PipeRule,
    pipe_state: PipeState,
}

/// How a recovery decides whether another packet may enter the network.
#[derive(Debug, Clone, Copy)]
enum PipeRule {
    /// SetPipe() of RFC 6675.
    Scoreboard,
    /// awnd of FACK.
    Forward,
    /// `pipe_` of ns-2's `Sack1`.
    Count,
    /// Proportional rate reduction.
    Reduction,
}

/// The state of a [`PipeRule`] in this recovery.
#[derive(Debug, Clone, Copy)]
enum PipeState {
    /// The pipe is computed from the scoreboard.
    Scoreboard,
    /// FACK's count is computed from the scoreboard.
    Forward,
    /// Packets sent less ACKs received. A lost packet has no ACK; its retransmission's ACK counts twice if it advances SND.UNA.
    Count(i64),
    /// Packets that the last ACK released and that have not left yet.
    Reduction { prr: Prr, allowed: u32 },
}

/// The sender's state at the start of a recovery.
pub(super) struct RecoveryStart {
    /// Packets sent and not cumulatively acknowledged, minus one for each duplicate ACK.
    pub in_flight: u64,
    /// The window before the recovery, packets.
    pub prior_cwnd: u32,
    /// The window at the end of the recovery, packets.
    pub ssthresh: f64,
}

impl PipeRule {
    /// The rule for a recovery style; `None` without SACK.
    fn of(style: RecoveryStyle, algorithm: Algorithm) -> Option<PipeRule> {
        match style {
            RecoveryStyle::Reno | RecoveryStyle::NewReno => None,
            RecoveryStyle::Fack => Some(PipeRule::Forward),
            RecoveryStyle::Sack1 => Some(PipeRule::Count),
            // Linux: a congestion control with `cong_control`, like BBR, sets its own window.
            RecoveryStyle::Linux if algorithm != Algorithm::Bbr => Some(PipeRule::Reduction),
            RecoveryStyle::Sack | RecoveryStyle::Linux => Some(PipeRule::Scoreboard),
        }
    }
}

impl Repair {
    /// The state for a recovery style; `None` without SACK.
    pub(super) fn new(style: RecoveryStyle, algorithm: Algorithm) -> Option<Repair> {
        let rule = PipeRule::of(style, algorithm)?;
        let board = Scoreboard::new(style == RecoveryStyle::Linux);
        Some(Repair { board, rule, pipe_state: PipeState::Scoreboard })
    }

    /// Switches to another congestion control. A recovery in progress keeps its rule.
    pub(super) fn switch(&mut self, style: RecoveryStyle, algorithm: Algorithm) {
        self.rule = PipeRule::of(style, algorithm).unwrap_or(self.rule);
    }

    /// Begins a recovery. The caller then passes its first ACK and its first retransmission.
    pub(super) fn begin(&mut self, at: &RecoveryStart) {
        self.board.handle_recovery();
        self.pipe_state = match self.rule {
            PipeRule::Scoreboard => PipeState::Scoreboard,
            PipeRule::Forward => PipeState::Forward,
            // ns-2 `dupack_action`: maxseq_ - highest_ack_ - NUMDUPACKS. There, the first ACK and the first retransmission do
            // not change the count. Here they cancel out, so the count is the same.
            PipeRule::Count => PipeState::Count(at.in_flight as i64),
            PipeRule::Reduction => {
                PipeState::Reduction { prr: Prr::new(at.ssthresh, at.prior_cwnd), allowed: 0 }
            }
        };
    }

    /// Handles an ACK of this recovery, after which SND.UNA is `una`.
    pub(super) fn handle_ack(&mut self, una: u64, highest: u64, progress: &AckProgress) {
        match &mut self.pipe_state {
            PipeState::Scoreboard | PipeState::Forward => {}
            PipeState::Count(pipe) => *pipe -= if progress.acked > 0 { 2 } else { 1 },
            PipeState::Reduction { prr, allowed } => {
                if progress.delivered == 0 {
                    return;
                }
                let pipe = self.board.pipe(una, highest) as u32;
                let clean = progress.acked > 0 && progress.lost == 0;
                *allowed = prr.handle_ack(progress.delivered as u32, pipe, clean);
            }
        }
    }

    /// Whether one more packet may leave with a window of `cwnd` packets.
    pub(super) fn has_room(&self, una: u64, highest: u64, cwnd: u64) -> bool {
        match self.pipe_state {
            PipeState::Scoreboard => self.board.pipe(una, highest) < cwnd,
            PipeState::Forward => self.board.forward_pipe(una, highest) < cwnd,
            PipeState::Count(pipe) => pipe < cwnd as i64,
            PipeState::Reduction { allowed, .. } => allowed > 0,
        }
    }

    /// Records that a packet leaves.
    pub(super) fn spend(&mut self) {
        match &mut self.pipe_state {
            PipeState::Scoreboard | PipeState::Forward => {}
            PipeState::Count(pipe) => *pipe += 1,
            PipeState::Reduction { prr, allowed } => {
                *allowed = allowed.saturating_sub(1);
                prr.handle_sent(1);
            }
        }
    }

    /// The recovery is over.
    pub(super) fn end(&mut self) {
        self.pipe_state = PipeState::Scoreboard;
    }

    /// Handles a timeout after all packets below `highest` were sent.
    pub(super) fn handle_timeout(&mut self, highest: u64) {
        self.board.handle_timeout(highest);
        self.pipe_state = PipeState::Scoreboard;
    }
}
