//! Compares ways of sizing the window on this machine's kernel. The real programs move one file in
//! several variants, each in turn over a fresh emulated path. The demo and `bench lab` use this
//! crate.
//!
//! ```
//! use sweetspot_comparison::Variant;
//! use sweetspot_sizing::Sizing;
//!
//! let variant: Variant = "kernel+bbr".parse()?;
//! assert_eq!((variant.sizing, variant.congestion.as_str()), (Sizing::Kernel, "bbr"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod certify;
mod content;
mod error;
pub mod machine;
mod program;
mod run;
pub mod scratch;
mod summary;
mod ticker;
mod variant;

pub use content::Content;
pub use error::ComparisonError;
pub use program::Program;
pub use run::{TransferStatus, VariantRunner};
pub use ticker::Ticker;
pub use variant::{Variant, VariantError, usual};

/// The path that the demonstration crosses and the benchmark begins with, as `emulate --path` takes
/// it.
pub const DEMO_PATH: &str = "rate=100Mbit/s rtt=100ms buffer=125kB";
