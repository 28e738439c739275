//! The same file moved in several ways, one after the other, each over a fresh emulated path, by
//! this very program and this machine's kernel.

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
pub use play::{Arena, Progress};
pub use program::Program;
pub use ticker::Ticker;
pub use variant::{Variant, usual};
