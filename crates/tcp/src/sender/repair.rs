use super::ack::News;
use crate::config::RecoveryStyle;
use crate::congestion::{Algorithm, Prr};
use crate::scoreboard::Scoreboard;

/// What recovery by SACK keeps in mind: what arrived, and how many packets the next ACK let out.
#[derive(Debug, Clone)]
pub(super) struct Repair {
    pub board: Scoreboard,
    /// Whether the window comes down by proportional rate reduction.
    reduces: bool,
    reduction: Option<Reduction>,
}

/// A recovery in which the rate comes down in proportion.
#[derive(Debug, Clone, Copy)]
struct Reduction {
    prr: Prr,
    /// Packets that the last ACK let out and that have not left yet.
    allowed: u32,
}

impl Repair {
    /// `None` for styles that know no SACK.
    pub(super) fn new(style: RecoveryStyle, algorithm: Algorithm) -> Option<Repair> {
        let linux = style == RecoveryStyle::Linux;
        style.needs_sack().then(|| Repair {
            board: Scoreboard::new(linux),
            // Linux: a control with `cong_control`, as BBR's, sets its own window.
            reduces: linux && algorithm != Algorithm::Bbr,
            reduction: None,
        })
    }

    /// A recovery begins at `prior_cwnd` packets, to end at `ssthresh`.
    pub(super) fn begin(&mut self, prior_cwnd: u32, ssthresh: f64) {
        self.board.handle_recovery();
        let prr = || Prr::new(ssthresh, prior_cwnd);
        self.reduction = self.reduces.then(|| Reduction { prr: prr(), allowed: 0 });
    }

    /// An ACK of this recovery arrived, after which SND.UNA is `una`.
    pub(super) fn handle_ack(&mut self, una: u64, highest: u64, news: &News) {
        let Some(reduction) = &mut self.reduction else { return };
        if news.delivered == 0 {
            return;
        }
        let pipe = self.board.pipe(una, highest) as u32;
        let clean = news.acked > 0 && news.lost == 0;
        reduction.allowed = reduction.prr.handle_ack(news.delivered as u32, pipe, clean);
    }

    /// How many packets may leave now; `None`: the congestion window says.
    pub(super) fn allowance(&self) -> Option<u32> {
        self.reduction.map(|reduction| reduction.allowed)
    }

    /// One of them leaves.
    pub(super) fn spend(&mut self) {
        if let Some(reduction) = &mut self.reduction {
            reduction.allowed = reduction.allowed.saturating_sub(1);
            reduction.prr.handle_sent(1);
        }
    }

    /// Recovery is over.
    pub(super) fn end(&mut self) {
        self.reduction = None;
    }

    /// A timeout with all below `highest` sent.
    pub(super) fn handle_timeout(&mut self, highest: u64) {
        self.board.handle_timeout(highest);
        self.reduction = None;
    }
}
