//! Window-sizing controllers as sans-IO state machines.
//! A [`Controller`] sits at the receiver of a bulk transfer ([`Upload`]: at its sender). It takes
//! measurements with their time ([`Input`]) and returns what to do ([`Output`]). The same code
//! drives simulated receivers and real sockets. [`Driver`] is the loop around it: probes, packet
//! trains, timers.

mod advertised;
mod bdp;
mod choice;
mod contract;
mod driver;
mod drs;
mod fixed;
mod heffner;
mod known_path;
mod linux;
mod model;
mod paper;
mod reception;
mod rledbat;
mod sobas;
mod upload;

pub use bdp::BdpDefinition;
pub use choice::{ControllerConfig, Sizing, SizingError};
pub use contract::{
    CongestionChoice, CongestionState, Controller, Event, EventKind, Input, Needs, Output, Phase,
    Probe, Probing, Reason, SenderReport, Train, TrainRequest,
};
pub use driver::{
    Answer, CONTROL_INTERVAL, Driver, Effect, KernelView, Means, PROBE_INTERVAL, PROBE_SIZE,
    ProbeCounts, Prober, TrainCollector, TrainPacket,
};
pub use drs::RightSizing;
pub use heffner::{Announced, Heffner};
pub use known_path::KnownPath;
pub use linux::{LinuxAutotuning, LinuxRule};
pub use paper::SobasPaper;
pub use rledbat::Rledbat;
pub use sobas::Sobas;
pub use upload::Upload;
