//! Compares ways of sizing the window with this machine's kernel. The real programs transfer one
//! file in several variants, one after another, each over a fresh emulated path. The demo and
//! `bench lab` use this crate.
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

/// The path of the demonstration and of the benchmark's first part, in the notation of `emulate
/// --path`.
pub const DEMO_PATH: &str = "rate=100Mbit/s rtt=100ms buffer=125kB";
