//! TCP sockets: what the kernel knows of them ([`Info`]), what may be set ([`options`]), and the
//! receive window as an actuator ([`WindowActuator`]).

mod actuator;
mod info;
pub mod options;
mod recipe;

pub use actuator::WindowActuator;
pub use info::{AccEcn, Info};
pub use recipe::Recipe;
