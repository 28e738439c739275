//! TCP sockets: what the kernel knows of them ([`Info`]), what may be set ([`options`]), the
//! receive window as an actuator ([`WindowActuator`]), and connections that only load a path
//! ([`Flow`]).

mod actuator;
mod clamp_method;
pub(crate) mod flow;
mod info;
pub mod options;

pub use actuator::WindowActuator;
pub use clamp_method::ClampMethod;
pub use flow::{Flow, FlowOptions, Listener};
pub use info::{AccEcn, Info};
