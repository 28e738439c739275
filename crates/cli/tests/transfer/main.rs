//! `sweetspot serve` and `sweetspot send` over loopback: what is moved, and what is refused.

mod durable;
mod hostile;
mod moving;
mod raw;
mod refusing;
mod running;
mod service;
mod trees;
