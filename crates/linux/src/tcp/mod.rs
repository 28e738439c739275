//! TCP sockets: the kernel's statistics ([`Info`]), options ([`options`]), limits on the receive window
//! ([`WindowActuator`]), a sender's reports and congestion control ([`SenderCongestion`]), and connections that only
//! load a path ([`Flow`]).

mod actuator;
mod clamp_method;
mod clamp_trial;
pub(crate) mod flow;
mod info;
pub mod options;
mod sender;

pub use actuator::WindowActuator;
pub use clamp_method::ClampMethod;
pub use flow::{Flow, FlowOptions, Listener};
pub use info::Info;
pub use sender::{MIN_PACE, Pacing, SenderCongestion, sender_report};
