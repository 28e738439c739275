use super::ack::News;
use crate::config::RecoveryStyle;
use crate::congestion::{Algorithm, Prr};
use crate::scoreboard::Scoreboard;

/// What recovery by SACK keeps in mind: what arrived, and what the next ACK lets out.
#[derive(Debug, Clone)]
pub(super) struct Repair {
    pub board: Scoreboard,
    rule: Rule,
    gauge: Gauge,
}

/// How a recovery finds out whether there is room in the network.
#[derive(Debug, Clone, Copy)]
enum Rule {
    /// SetPipe() of RFC 6675.
    Scoreboard,
    /// `pipe_` of ns-2's `Sack1`.
    Count,
    /// Proportional rate reduction.
    Reduction,
}

/// Where that stands in this recovery.
#[derive(Debug, Clone, Copy)]
enum Gauge {
    /// The scoreboard is asked.
    Scoreboard,
    /// Packets sent less ACKs received. Of a lost packet no ACK tells; those of its retransmission
    /// count twice where they advance SND.UNA.
    Count(i64),
    /// Packets that the last ACK let out and that have not left yet.
    Reduction { prr: Prr, allowed: u32 },
}

/// Where a recovery begins.
pub(super) struct Beginning {
    /// Packets sent and not acknowledged cumulatively, without those that duplicate ACKs stand for.
    pub in_flight: u64,
    /// The window before, packets.
    pub prior_cwnd: u32,
    /// The window to end at, packets.
    pub ssthresh: f64,
}

impl Rule {
    /// `None` for styles that know no SACK.
    fn of(style: RecoveryStyle, algorithm: Algorithm) -> Option<Rule> {
        match style {
            RecoveryStyle::Reno | RecoveryStyle::NewReno => None,
            RecoveryStyle::Sack1 => Some(Rule::Count),
            // Linux: a control with `cong_control`, as BBR's, sets its own window.
            RecoveryStyle::Linux if algorithm != Algorithm::Bbr => Some(Rule::Reduction),
            RecoveryStyle::Sack | RecoveryStyle::Linux => Some(Rule::Scoreboard),
        }
    }
}

impl Repair {
    /// `None` for styles that know no SACK.
    pub(super) fn new(style: RecoveryStyle, algorithm: Algorithm) -> Option<Repair> {
        let rule = Rule::of(style, algorithm)?;
        let board = Scoreboard::new(style == RecoveryStyle::Linux);
        Some(Repair { board, rule, gauge: Gauge::Scoreboard })
    }

    /// Another congestion control takes over; what is being repaired goes on as it began.
    pub(super) fn switch(&mut self, style: RecoveryStyle, algorithm: Algorithm) {
        self.rule = Rule::of(style, algorithm).unwrap_or(self.rule);
    }

    /// A recovery begins; its first ACK and its first retransmission are told next.
    pub(super) fn begin(&mut self, at: &Beginning) {
        self.board.handle_recovery();
        self.gauge = match self.rule {
            Rule::Scoreboard => Gauge::Scoreboard,
            // ns-2 `dupack_action`: maxseq_ - highest_ack_ - NUMDUPACKS, which neither that ACK
            // nor that retransmission changes. Told of both, it comes to the same.
            Rule::Count => Gauge::Count(at.in_flight as i64),
            Rule::Reduction => {
                Gauge::Reduction { prr: Prr::new(at.ssthresh, at.prior_cwnd), allowed: 0 }
            }
        };
    }

    /// An ACK of this recovery arrived, after which SND.UNA is `una`.
    pub(super) fn handle_ack(&mut self, una: u64, highest: u64, news: &News) {
        match &mut self.gauge {
            Gauge::Scoreboard => {}
            Gauge::Count(pipe) => *pipe -= if news.acked > 0 { 2 } else { 1 },
            Gauge::Reduction { prr, allowed } => {
                if news.delivered == 0 {
                    return;
                }
                let pipe = self.board.pipe(una, highest) as u32;
                let clean = news.acked > 0 && news.lost == 0;
                *allowed = prr.handle_ack(news.delivered as u32, pipe, clean);
            }
        }
    }

    /// Whether one more packet may leave with a window of `cwnd`.
    pub(super) fn has_room(&self, una: u64, highest: u64, cwnd: u64) -> bool {
        match self.gauge {
            Gauge::Scoreboard => self.board.pipe(una, highest) < cwnd,
            Gauge::Count(pipe) => pipe < cwnd as i64,
            Gauge::Reduction { allowed, .. } => allowed > 0,
        }
    }

    /// One leaves.
    pub(super) fn spend(&mut self) {
        match &mut self.gauge {
            Gauge::Scoreboard => {}
            Gauge::Count(pipe) => *pipe += 1,
            Gauge::Reduction { prr, allowed } => {
                *allowed = allowed.saturating_sub(1);
                prr.handle_sent(1);
            }
        }
    }

    /// Recovery is over.
    pub(super) fn end(&mut self) {
        self.gauge = Gauge::Scoreboard;
    }

    /// A timeout with all below `highest` sent.
    pub(super) fn handle_timeout(&mut self, highest: u64) {
        self.board.handle_timeout(highest);
        self.gauge = Gauge::Scoreboard;
    }
}
