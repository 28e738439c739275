//! Laws of the path's elements.

mod chain;
mod elements;
mod spec;
mod traces;
mod variation;
