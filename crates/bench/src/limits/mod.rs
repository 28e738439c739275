//! Flows of known cause, played in the lab, and what the classifier says of them.

mod cause;
mod document;
mod judged;
mod observe;
mod play;
mod watch;

pub use cause::{Plan, plans};
pub use document::markdown;
pub use judged::{Judged, judge};
pub use play::play;
