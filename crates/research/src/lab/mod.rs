//! The benchmark on emulated paths: its results, its targets, and its document.

mod document;
mod targets;

pub use document::markdown;

use serde::{Deserialize, Serialize};
use sweetspot_units::{Bytes, Duration, Rate};

use sweetspot_report::DemoOutcome;
use sweetspot_report::wire;

/// The content of the document.
#[derive(Debug, Clone, PartialEq)]
pub struct LabBench {
    /// The command that repeats the benchmark.
    pub command: String,
    /// The build of the program that was measured.
    pub build: String,
    /// The path of the demonstration, which has its own targets.
    pub demo: Option<Cell>,
    /// The measured cells of the path matrix.
    pub matrix: Vec<Cell>,
    /// The total number of cells in the matrix.
    pub matrix_size: usize,
    /// The output of the emulator's self-test.
    pub self_test: Option<String>,
    /// The section of hand-written notes ([`notes`](crate::notes)).
    pub notes: String,
}

/// One path and its results.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// Its name, e.g. `100Mbit/s-20ms-1.0BDP`.
    pub name: String,
    /// The results of the variants, without their series.
    pub outcome: DemoOutcome,
    /// Variants without a result.
    pub not_measured: Vec<String>,
    /// Another program on the same path, for comparison of CPU time.
    pub reference: Option<ReferenceTransfer>,
}

/// The cost of the same transfer with another program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReferenceTransfer {
    /// Its name and version.
    pub program: String,
    /// Its congestion control.
    pub congestion: String,
    /// Payload transferred.
    #[serde(rename = "size_bytes", with = "wire")]
    pub size: Bytes,
    /// Its goodput.
    #[serde(rename = "goodput_bps", with = "wire")]
    pub goodput: Rate,
    /// CPU time of the sender.
    #[serde(rename = "sender_cpu_s", with = "wire")]
    pub sender_cpu: Duration,
    /// CPU time of the receiver.
    #[serde(rename = "receiver_cpu_s", with = "wire")]
    pub receiver_cpu: Duration,
}

/// CPU seconds per 10^9 bytes of payload.
fn cpu_per_gb(cpu: Duration, payload: Bytes) -> f64 {
    cpu.as_secs_f64() / (payload.as_f64() / 1e9)
}
