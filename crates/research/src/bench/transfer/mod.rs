//! The benchmark of transfers: compared with scp and rsync, across emulated and random paths, and
//! with interruptions.

mod content;
mod document;
mod drawn;
mod faults;
mod paths;
mod peers;

pub use content::LARGE_FILE_BYTES;
pub use document::{Results, markdown};
pub use drawn::{DrawnResult, drawn_cases};
pub use faults::{FaultResult, run_faults};
pub use paths::{TransferResult, path_cases, run_path};
pub use peers::{CopyDirection, LocalCase, LocalResult, Peers, local_cases};
