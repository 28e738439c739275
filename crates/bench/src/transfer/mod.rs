//! Files moved beside scp and rsync, across emulated paths, and with interruptions.

mod content;
mod document;
mod faults;
mod paths;
mod peers;

pub use document::markdown;
pub use faults::{FaultResult, play_faults};
pub use paths::{PathResult, path_cases, play_path};
pub use peers::{LocalResult, Peers, local_cases};
