//! TCP as sans-IO state machines.

pub mod congestion;
