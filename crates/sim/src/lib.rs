//! A packet-level simulator of TCP transfers.
//!
//! It computes how a transfer performs on a path and how it affects the path: goodput, round-trip
//! times, losses, queues. A [`Scenario`](sweetspot_scenario::Scenario) describes hops, cross traffic
//! and transfers. [`Simulator`] runs it packet by packet and returns an
//! [`Outcome`](sweetspot_scenario::Outcome). The scenario and its seed determine every byte of the
//! outcome.
//!
//! Endpoints come from `sweetspot_tcp`, queues and links from `sweetspot_path`, window controllers
//! from `sweetspot_sizing`. The crate is pure: it reads no clock and does not touch the operating
//! system.
//!
//! ```
//! use sweetspot_scenario::{Engine, NoRecorder, Scenario};
//! use sweetspot_sim::Simulator;
//!
//! let scenario = Scenario::parse(
//!     r#"
//!     warmup = "5s"
//!     duration = "10s"
//!     [path]
//!     rate = "10Mbit/s"
//!     rtt = "40ms"
//!     buffer = "50pkt"
//!     packet = "1500B"
//!     [[transfer]]
//!     sizing = "fixed:25pkt"
//! "#,
//! )?;
//! let outcome = Simulator.run(&scenario, &mut NoRecorder)?;
//! let transfer = &outcome.transfers[0];
//! // 25 packets of 1500 bytes per round trip of at least 40 ms: at most 7.5 Mbit/s.
//! assert!(transfer.goodput_bps > 6.5e6 && transfer.goodput_bps < 7.5e6);
//! assert_eq!(transfer.loss_rate, 0.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod access_link;
mod build;
mod engine;
mod event;
mod event_queue;
mod hosts;
mod index;
mod network;
mod observers;
mod outcome;
mod random;
pub mod scheduler;
mod world;

pub use engine::{Simulator, run_steered, run_with};
pub use hosts::ControllerMaker;
