//! The same file moved in several ways, one after the other, each over a fresh emulated path, by
//! the real programs and this machine's kernel.

pub mod build;
mod certify;
mod content;
pub mod machine;
mod play;
mod program;
pub mod scratch;
mod summary;
mod ticker;
mod variant;

pub use content::Content;
pub use play::{TransferStatus, VariantRunner};
pub use program::Program;
pub use ticker::Ticker;
pub use variant::{Variant, usual};

/// The path that the demonstration crosses and the benchmark begins with, as `emulate --path` takes it.
pub const DEMO_PATH: &str = "rate=100Mbit/s rtt=100ms buffer=125kB";
