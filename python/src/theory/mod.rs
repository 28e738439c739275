//! The closed forms of `sweetspot_theory` on NumPy arrays.

mod arguments;
mod forms;

pub(crate) use forms::register;
