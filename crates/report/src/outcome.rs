use serde::{Deserialize, Serialize};
use sweetspot_path::PathSpec;
use sweetspot_units::{Bytes, Duration, Rate};

use crate::series::Series;
use crate::wire;

/// The result of a demonstration: the content of `outcome.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DemoOutcome {
    /// Sweetspot's version.
    pub version: String,
    /// The command that repeats this demonstration.
    pub command: String,
    /// The time when it ended, in UTC (RFC 3339).
    pub date: String,
    /// The processor model and the number of processors.
    pub machine: String,
    /// The kernel with the measured TCP.
    pub kernel: String,
    /// The path.
    pub path: PathFacts,
    /// The file.
    pub file: FileFacts,
    /// The variants, in the order of their runs.
    pub variants: Vec<VariantOutcome>,
}

/// The emulated path and quantities derived from it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PathFacts {
    /// The path in the syntax of `sweetspot emulate --path`.
    pub spec: String,
    /// The bottleneck rate C in the direction of the data, counting IP packets.
    #[serde(rename = "rate_bps", with = "wire")]
    pub rate: Rate,
    /// The rate of TCP payload when packets use all of C.
    #[serde(rename = "payload_capacity_bps", with = "wire")]
    pub payload_capacity: Rate,
    /// The propagation RTT, T_m.
    #[serde(rename = "rtt_s", with = "wire")]
    pub rtt: Duration,
    /// The bottleneck's buffer B. If it is limited in packets, the bytes of that many full packets.
    #[serde(rename = "buffer_bytes", with = "wire")]
    pub buffer: Bytes,
    /// The bandwidth-delay product, C x T_m.
    #[serde(rename = "bdp_bytes", with = "wire")]
    pub bdp: Bytes,
    /// The seed of random loss and jitter.
    pub seed: u64,
}

impl PathFacts {
    /// Derives the facts of `path`.
    pub fn of(path: &PathSpec) -> PathFacts {
        PathFacts {
            spec: path.to_string(),
            rate: path.up.rate,
            payload_capacity: path.payload_capacity(),
            rtt: path.rtt(),
            buffer: path.up.buffer.in_bytes(path.mtu),
            bdp: path.bdp(),
            seed: path.seed,
        }
    }

    /// The delay behind a full buffer: B / C.
    pub fn longest_wait(&self) -> Duration {
        self.buffer / self.rate
    }
}

/// The file that every variant transferred.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FileFacts {
    /// Its size.
    #[serde(rename = "size_bytes", with = "wire")]
    pub size: Bytes,
    /// The seed of its content; `null` for the user's own file.
    pub seed: Option<u64>,
}

/// One way of moving the file, and its result. A missing measurement is `null`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct VariantOutcome {
    /// The sizing of the window, e.g. `sobas`.
    pub sizing: String,
    /// The sender's congestion control, e.g. `cubic`.
    pub congestion: String,
    /// Payload divided by the time from the request for the first byte to the arrival of the last.
    #[serde(rename = "goodput_bps", with = "wire")]
    pub goodput: Option<Rate>,
    /// Goodput over the path's payload capacity, 0 to 1.
    pub share_of_capacity: Option<f64>,
    /// Duration of the content's transfer.
    #[serde(rename = "seconds", with = "wire")]
    pub duration: Option<Duration>,
    /// Data segments sent, including retransmissions.
    pub segments: Option<u64>,
    /// Retransmitted segments.
    pub retransmitted_segments: Option<u64>,
    /// Packets that the bottleneck's full buffer dropped, in the direction of the data.
    pub bottleneck_drops: Option<u64>,
    /// The median RTT.
    #[serde(rename = "rtt_median_s", with = "wire")]
    pub rtt_median: Option<Duration>,
    /// The 99th percentile of the RTT.
    #[serde(rename = "rtt_p99_s", with = "wire")]
    pub rtt_p99: Option<Duration>,
    /// The time at which goodput over half a second first reached 90 % of the payload capacity.
    #[serde(rename = "seconds_to_90_percent", with = "wire")]
    pub time_to_90_percent: Option<Duration>,
    /// CPU time of the sending program, user and system.
    #[serde(rename = "sender_cpu_s", with = "wire")]
    pub sender_cpu: Option<Duration>,
    /// CPU time of the receiving program.
    #[serde(rename = "receiver_cpu_s", with = "wire")]
    pub receiver_cpu: Option<Duration>,
    /// Whether the received file, read back from disk, equals the file sent.
    pub hash_ok: bool,
    /// The emulator's certificate for this run.
    pub certificate: Option<Certificate>,
    /// The reason for a failure; `null` without one.
    pub failure: Option<String>,
    /// The time series of the run.
    pub series: Series,
}

impl VariantOutcome {
    /// A variant without results.
    pub fn new(sizing: impl Into<String>, congestion: impl Into<String>) -> VariantOutcome {
        VariantOutcome {
            sizing: sizing.into(),
            congestion: congestion.into(),
            ..VariantOutcome::default()
        }
    }

    /// The variant's name as typed on the command line, e.g. `kernel+bbr`.
    pub fn name(&self) -> String {
        format!("{}+{}", self.sizing, self.congestion)
    }

    /// Retransmitted segments as a share of the segments sent, 0 to 1.
    pub fn retransmitted_share(&self) -> Option<f64> {
        let (again, all) = (self.retransmitted_segments?, self.segments?);
        (all > 0).then(|| again as f64 / all as f64)
    }

    /// The emulator's reason to distrust this run, if there is one.
    pub fn distrust(&self) -> Option<String> {
        let certificate = self.certificate.as_ref()?;
        if certificate.trust {
            return None;
        }
        Some(match certificate.reasons.as_slice() {
            [] => "the emulation was not accurate enough".to_owned(),
            reasons => reasons.join("; "),
        })
    }
}

/// The emulator's certificate: how accurately the path matched its specification.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Certificate {
    /// Whether the run can be trusted.
    pub trust: bool,
    /// The reasons to distrust it.
    pub reasons: Vec<String>,
    /// Median lateness of released packets, in the worse direction.
    #[serde(rename = "lateness_p50_s", with = "wire")]
    pub lateness_p50: Duration,
    /// 99th percentile of the lateness.
    #[serde(rename = "lateness_p99_s", with = "wire")]
    pub lateness_p99: Duration,
    /// The largest lateness of a packet.
    #[serde(rename = "lateness_max_s", with = "wire")]
    pub lateness_max: Duration,
    /// Packets lost on the path, by cause, e.g. `("up: buffer full", 184)`.
    pub drops: Vec<(String, u64)>,
    /// The whole certificate as printed by the emulator.
    pub text: String,
    /// The whole certificate as JSON, with histogram, rates and queue.
    pub emulator: serde_json::Value,
}
