//! Files moved beside scp and rsync, across emulated and drawn paths, and with interruptions.

mod content;
mod document;
mod drawn;
mod faults;
mod paths;
mod peers;

pub use document::{Results, markdown};
pub use drawn::{DrawnResult, drawn_cases};
pub use faults::{FaultResult, play_faults};
pub use paths::{TransferResult, path_cases, play_path};
pub use peers::{CopyDirection, LocalResult, Peers, local_cases};
