//! The same file moved in several ways, one after the other, each over a fresh emulated path, by
//! this very program and this machine's kernel.

mod certify;
mod contender;
mod content;
pub mod machine;
mod play;
mod program;
pub mod scratch;
mod summary;
mod ticker;

pub use contender::{Contender, usual};
pub use content::Content;
pub use play::{Arena, Progress};
pub use program::Program;
pub use ticker::Ticker;
