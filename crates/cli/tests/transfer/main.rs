//! Tests `sweetspot serve` and `sweetspot send` over loopback: transfers and refusals.

mod arriving;
mod budget;
mod durable;
mod expiry;
mod hostile;
mod moving;
mod older_kernels;
mod peer_text;
mod refusing;
mod running;
mod sending;
mod service;
mod strangers;
mod trees;
mod unrequested;
mod write_only;
