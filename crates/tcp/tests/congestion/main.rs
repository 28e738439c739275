//! Laws of the congestion controls.

mod bbr;
mod contract;
mod cubic;
mod delivery_rate;
mod harness;
mod hystart;
mod linux_cubic;
mod lp;
mod prr;
mod reno;
mod vegas;
