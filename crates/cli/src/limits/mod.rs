//! Flows of known cause, played in the lab, and what the classifier says of them.

mod cause;
mod play;
mod watch;

pub use cause::{Cause, Plan, plans};
pub use play::{Played, play};
