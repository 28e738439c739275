use serde::{Deserialize, Serialize};
use sweetspot_sizing::ProbeCounts;
use sweetspot_units::{Bytes, Duration};

use crate::protocol::{ReceiverSummary, SenderSummary};

/// What one transfer came to: the object that `--json` prints, on either end.
///
/// Both ends exchange what they counted, so the two objects differ only in `role`, `seconds`,
/// `goodput_bps`, `cpu_seconds` and `peer`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Which end this is.
    pub role: Role,
    /// The other end's address.
    pub peer: String,
    /// The file's name at the receiver.
    pub name: String,
    /// The sizing that ruled, as `--sizing` spells it.
    pub sizing: String,
    /// The sender's congestion control, read back from its socket. Nothing, as with the two counts
    /// of segments, where the sender went away after the content was safe but before its closing.
    pub congestion: Option<String>,
    /// Bytes of content.
    pub bytes: u64,
    /// From the start of the connection (the sender's connect, the receiver's accept) until the
    /// content was verified at the receiver and acknowledged.
    pub seconds: f64,
    /// Content over `seconds`, bits per second.
    pub goodput_bps: f64,
    /// Segments with payload that the sender sent, retransmissions included.
    pub segments: Option<u64>,
    /// Of those, retransmissions (`tcpi_total_retrans`).
    pub retransmitted_segments: Option<u64>,
    /// Least round-trip time while content flowed.
    pub rtt_min_s: Option<f64>,
    /// Median round-trip time while content flowed.
    pub rtt_median_s: Option<f64>,
    /// 99th percentile of the round-trip times while content flowed.
    pub rtt_p99_s: Option<f64>,
    /// Who measured the round-trip times.
    pub rtt_source: RttSource,
    /// What became of the periodic probes.
    pub probes: Probes,
    /// The last window that the receiver advertised while content flowed.
    pub window_final_bytes: Option<u64>,
    /// BLAKE3 of the content, hexadecimal.
    pub hash: String,
    /// Whether both ends found the same hash. A transfer in which they did not has no outcome but
    /// an error, so this is always true where it stands.
    pub hash_ok: bool,
    /// Limits of either host that were in the way, each naming its sysctl.
    pub limits: Vec<String>,
    /// How the receiver's window was steered; nothing where it was left to the kernel.
    pub clamp_method: Option<String>,
    /// User and system CPU time of this end's process during the transfer.
    pub cpu_seconds: f64,
}

impl Outcome {
    /// The outcome as one end sees it, from what both counted.
    pub(crate) fn new(
        end: End<'_>,
        summary: ReceiverSummary,
        closing: Option<SenderSummary>,
    ) -> Outcome {
        let seconds = end.took.as_secs_f64();
        let rtt = |i: usize| summary.rtt_s.map(|rtt| rtt[i]);
        let (congestion, segments, retransmitted, sender_limits) = match closing {
            Some(c) => {
                (Some(c.congestion), Some(c.segments), Some(c.retransmitted_segments), c.limits)
            }
            None => (None, None, None, Vec::new()),
        };
        Outcome {
            role: end.role,
            peer: end.peer.to_string(),
            name: end.name.to_owned(),
            sizing: end.sizing.to_owned(),
            congestion,
            bytes: end.bytes.get(),
            seconds,
            goodput_bps: (end.bytes / end.took).as_f64(),
            segments,
            retransmitted_segments: retransmitted,
            rtt_min_s: rtt(0),
            rtt_median_s: rtt(1),
            rtt_p99_s: rtt(2),
            rtt_source: summary.rtt_source,
            probes: summary.probes,
            window_final_bytes: summary.window_final_bytes,
            hash: summary.hash,
            hash_ok: true,
            limits: [summary.limits, sender_limits].concat(),
            clamp_method: summary.clamp_method,
            cpu_seconds: end.cpu.as_secs_f64(),
        }
    }
}

/// What one end knows without the other.
pub(crate) struct End<'a> {
    pub role: Role,
    pub peer: std::net::SocketAddr,
    pub name: &'a str,
    pub sizing: &'a str,
    pub bytes: Bytes,
    pub took: Duration,
    pub cpu: Duration,
}

/// An end of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// `sweetspot send`.
    Sender,
    /// `sweetspot serve`.
    Receiver,
}

/// Who measured round-trip times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RttSource {
    /// The periodic probes.
    Probes,
    /// The receiving kernel (`tcpi_rcv_rtt`): probes were off, the sizing does without, or UDP did
    /// not pass.
    Kernel,
    /// Nobody: the transfer was over too soon.
    Nobody,
}

/// What became of the periodic probes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Probes {
    /// Sent by the receiver.
    pub sent: u64,
    /// Answers that came back.
    pub answered: u64,
    /// Answers lost on the way from the sender: the path that the content takes.
    pub lost_forward: u64,
    /// Probes lost on the way to the sender.
    pub lost_reverse: u64,
    /// Whether the kernel's estimate had to stand in, because no answer came for a while.
    pub fallback: bool,
}

impl From<ProbeCounts> for Probes {
    fn from(counts: ProbeCounts) -> Probes {
        let ProbeCounts { sent, answered, lost_forward, lost_reverse, fallback } = counts;
        Probes { sent, answered, lost_forward, lost_reverse, fallback }
    }
}
