//! CPU time of each stage of a transfer by itself, and of a whole copy.

mod document;
mod work;

use std::path::Path;

use serde::{Deserialize, Serialize};

pub use document::markdown;

use super::transfer::{CopyDirection, LARGE_FILE_BYTES, Peers};

/// The bytes that each stage handles.
pub const BYTES: u64 = 1_000_000_000;

/// One end of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum End {
    Sender,
    Receiver,
}

/// One round: every stage by itself, then a copy in each direction. Rounds interleave stages and copies, so that both are
/// measured under the same conditions.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Round {
    /// CPU time of each stage by itself, s/GB.
    pub stages: Vec<(End, String, f64)>,
    /// CPU time of this end of `sweetspot copy` as sender and as receiver, including its ssh, s/GB.
    pub copies: [f64; 2],
    /// CPU time of a one-byte copy in each direction, s: the cost of starting both programs and ssh.
    pub starts: [f64; 2],
}

/// Measures one round in `scratch`.
pub fn round(peers: &Peers, scratch: &Path, program: &Path) -> Result<Round, String> {
    let stages = work::stages(scratch).map_err(|error| format!("a stage: {error}"))?;
    let per_gb = |bytes: u64| 1e9 / bytes as f64;
    let copy = |direction, bytes| peers.copy_cpu(direction, bytes, program);
    let large =
        |direction| copy(direction, LARGE_FILE_BYTES).map(|cpu| cpu * per_gb(LARGE_FILE_BYTES));
    let stage =
        |(end, name, seconds): (End, &str, f64)| (end, name.to_owned(), seconds * per_gb(BYTES));
    Ok(Round {
        stages: stages.into_iter().map(stage).collect(),
        copies: [large(CopyDirection::Push)?, large(CopyDirection::Pull)?],
        starts: [copy(CopyDirection::Push, 1)?, copy(CopyDirection::Pull, 1)?],
    })
}
