//! Laws of the path's elements.

mod elements;
mod spec;
mod traces;
mod variation;
