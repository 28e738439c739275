//! TCP sockets: what the kernel knows of them ([`Info`]), what may be set ([`options`]), the
//! receive window as an actuator ([`WindowActuator`]), and connections that only load a path
//! ([`Flow`]).

mod actuator;
pub(crate) mod flow;
mod info;
pub mod options;
mod recipe;

pub use actuator::WindowActuator;
pub use flow::{Door, Flow, FlowOptions};
pub use info::{AccEcn, Info};
pub use recipe::Recipe;
