//! Window-sizing controllers as sans-IO state machines.
//!
//! A [`Controller`] runs at the receiver of a bulk transfer, an [`Upload`] at its sender. It
//! takes measurements with their time ([`Input`]) and returns actions ([`Output`]). The same code
//! controls simulated receivers and real sockets. [`Driver`] is the loop around it: probes,
//! packet trains, timers.
//!
//! ```
//! use sweetspot_sizing::{ControllerConfig, Input, KnownPath, Output, Sizing};
//! use sweetspot_units::{Bytes, Duration, Rate, Time};
//!
//! let path = KnownPath::new(Rate::from_mbit_per_second(50), Duration::from_millis(100));
//! let config = ControllerConfig {
//!     mss: Bytes::new(1448),
//!     packet: Bytes::new(1500),
//!     max_window: Bytes::new(16 << 20),
//!     size: None,
//!     path: Some(path),
//! };
//! let sizing: Sizing = "bdp".parse()?;
//! let mut controller = sizing.controller(&config)?;
//! let data = Input::Data { bytes: Bytes::new(1448), unread: Bytes::ZERO };
//! controller.handle(Time::ZERO, &data);
//! // 50 Mbit/s x 100 ms = 625 kB.
//! let window = Some(Bytes::new(625_000));
//! assert_eq!(controller.poll_output(), Some(Output::Window(window)));
//! # Ok::<(), sweetspot_sizing::SizingError>(())
//! ```

mod advertised;
mod bdp;
mod choice;
mod config;
mod contract;
mod driver;
mod drs;
mod error;
mod fixed;
mod heffner;
mod known_path;
mod linux;
mod max_window;
mod measured_bdp;
mod model;
mod paper;
mod reason;
mod reception;
mod rledbat;
pub mod share;
mod sobas;
mod target_delay;
mod transitions;
mod upload;

pub use bdp::BdpDefinition;
pub use choice::Sizing;
pub use config::ControllerConfig;
pub use contract::{
    CongestionChoice, CongestionState, Controller, EventKind, Input, Needs, Output, Probe, Probing,
    SavedWindow, SenderReport, SizingEvent, SizingPhase, Train, TrainRequest,
};
pub use driver::{
    CONTROL_INTERVAL, Driver, Effect, InputSource, KernelView, PROBE_INTERVAL, PROBE_SIZE,
    ProbeAnswer, ProbeCounts, Prober, TrainCollector, TrainPacket,
};
pub use drs::RightSizing;
pub use error::SizingError;
pub use heffner::{Heffner, HeffnerVariant};
pub use known_path::{KnownPath, PATH_LIFETIME};
pub use linux::{LinuxAutotuning, LinuxRule};
pub use measured_bdp::{MeasuredBdp, StaticScheme};
pub use model::TIMESTAMP_TICK;
pub use paper::SobasPaper;
pub use reason::Reason;
pub use rledbat::Rledbat;
pub use sobas::Sobas;
pub use upload::Upload;
