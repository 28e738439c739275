//! Files moved beside scp and rsync, and across emulated paths.

mod document;
mod paths;
mod peers;

pub use document::markdown;
pub use paths::{PathResult, path_cases, play_path};
pub use peers::{LocalResult, Peers, local_cases};
