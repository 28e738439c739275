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
    /// The command that repeats this.
    pub command: String,
    /// When it ended, UTC, as RFC 3339 writes it.
    pub date: String,
    /// Processor and number of them.
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
    /// As `sweetspot emulate --path` takes it.
    pub spec: String,
    /// Bottleneck rate C in the direction of the data, in IP packets.
    #[serde(rename = "rate_bps", with = "wire")]
    pub rate: Rate,
    /// The rate of TCP payload at rate C.
    #[serde(rename = "payload_capacity_bps", with = "wire")]
    pub payload_capacity: Rate,
    /// Propagation both ways, T_m.
    #[serde(rename = "rtt_s", with = "wire")]
    pub rtt: Duration,
    /// The bottleneck's buffer B; a buffer counted in packets as bytes of full packets.
    #[serde(rename = "buffer_bytes", with = "wire")]
    pub buffer: Bytes,
    /// C x T_m.
    #[serde(rename = "bdp_bytes", with = "wire")]
    pub bdp: Bytes,
    /// Seed of random loss and jitter.
    pub seed: u64,
}

impl PathFacts {
    /// The facts of `path`.
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

    /// How long a full buffer delays the packet behind it: B / C.
    pub fn longest_wait(&self) -> Duration {
        self.buffer / self.rate
    }
}

/// The file that every variant moved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FileFacts {
    /// Its size.
    #[serde(rename = "size_bytes", with = "wire")]
    pub size: Bytes,
    /// The seed of its content; `null` for a file of the user's.
    pub seed: Option<u64>,
}

/// One way of moving the file, and its result. A missing measurement is `null`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct VariantOutcome {
    /// How the window was sized, e.g. `sobas`.
    pub sizing: String,
    /// The sender's congestion control, e.g. `cubic`.
    pub congestion: String,
    /// Payload over the time from the first byte asked for to the last one received.
    #[serde(rename = "goodput_bps", with = "wire")]
    pub goodput: Option<Rate>,
    /// Goodput over the path's payload capacity, 0 to 1.
    pub share_of_capacity: Option<f64>,
    /// Duration of the content's transfer.
    #[serde(rename = "seconds", with = "wire")]
    pub duration: Option<Duration>,
    /// Data segments sent, retransmissions among them.
    pub segments: Option<u64>,
    /// Retransmitted segments.
    pub retransmitted_segments: Option<u64>,
    /// Packets dropped by the bottleneck's full buffer, in the direction of the data.
    pub bottleneck_drops: Option<u64>,
    /// Median round-trip time.
    #[serde(rename = "rtt_median_s", with = "wire")]
    pub rtt_median: Option<Duration>,
    /// The round-trip time that 99 of 100 stayed below.
    #[serde(rename = "rtt_p99_s", with = "wire")]
    pub rtt_p99: Option<Duration>,
    /// When goodput over half a second first reached 90 % of the payload capacity.
    #[serde(rename = "seconds_to_90_percent", with = "wire")]
    pub time_to_90_percent: Option<Duration>,
    /// CPU time of the sending program, user and system.
    #[serde(rename = "sender_cpu_s", with = "wire")]
    pub sender_cpu: Option<Duration>,
    /// CPU time of the receiving program.
    #[serde(rename = "receiver_cpu_s", with = "wire")]
    pub receiver_cpu: Option<Duration>,
    /// Whether the file that arrived, read back from the disk, is the file that was sent.
    pub hash_ok: bool,
    /// The emulator's certificate of this run.
    pub certificate: Option<Certificate>,
    /// Why it failed; `null` when it did not.
    pub failure: Option<String>,
    /// The run over time.
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

    /// Its name as it is typed, e.g. `kernel+bbr`.
    pub fn name(&self) -> String {
        format!("{}+{}", self.sizing, self.congestion)
    }

    /// Retransmitted over sent segments, 0 to 1.
    pub fn retransmitted_share(&self) -> Option<f64> {
        let (again, all) = (self.retransmitted_segments?, self.segments?);
        (all > 0).then(|| again as f64 / all as f64)
    }

    /// Why this run's numbers cannot be trusted, if the emulator says so.
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
    /// Why not, where not.
    pub reasons: Vec<String>,
    /// Half of the packets were released this late or less, in the worse direction.
    #[serde(rename = "lateness_p50_s", with = "wire")]
    pub lateness_p50: Duration,
    /// 99 of 100 packets were released this late or less.
    #[serde(rename = "lateness_p99_s", with = "wire")]
    pub lateness_p99: Duration,
    /// The largest lateness.
    #[serde(rename = "lateness_max_s", with = "wire")]
    pub lateness_max: Duration,
    /// Packets lost on the path, by cause, e.g. `("up: buffer full", 184)`.
    pub drops: Vec<(String, u64)>,
    /// The whole certificate as the emulator prints it.
    pub text: String,
    /// The whole certificate as JSON: histogram, rates, queue.
    pub emulator: serde_json::Value,
}
