use serde::{Deserialize, Serialize};
use sweetspot_sizing::ProbeCounts;

/// The source of the round-trip times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RttSource {
    /// The periodic probes.
    Probes,
    /// The receiving kernel (`tcpi_rcv_rtt`): probes were off, the sizing does not use them, or UDP was blocked.
    Kernel,
    /// No source: the transfer was too short.
    Unmeasured,
}

/// The number of periodic probes sent, answered and lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ProbeSummary {
    /// Probes sent by the receiver.
    pub sent: u64,
    /// Answers that arrived.
    pub answered: u64,
    /// Answers lost on the way from the sender, in the direction of the content.
    pub lost_forward: u64,
    /// Probes lost on the way to the sender.
    pub lost_reverse: u64,
    /// Whether the kernel's estimate replaced the probes, because no answer arrived for a while.
    pub fallback: bool,
}

impl From<ProbeCounts> for ProbeSummary {
    fn from(counts: ProbeCounts) -> ProbeSummary {
        let ProbeCounts { sent, answered, lost_forward, lost_reverse, fallback } = counts;
        ProbeSummary { sent, answered, lost_forward, lost_reverse, fallback }
    }
}
