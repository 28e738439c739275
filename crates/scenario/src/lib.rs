//! Scenarios, outcomes and the engine interface: an [`Engine`] runs a [`Scenario`] and returns an
//! [`Outcome`]. docs/scenario.md describes the file format.
//!
//! ```
//! use sweetspot_scenario::Scenario;
//! use sweetspot_units::Bytes;
//!
//! let scenario = Scenario::parse(
//!     r#"
//!     title = "One transfer alone"
//!     warmup = "5s"
//!     duration = "10s"
//!     [path]
//!     rate = "50Mbit/s"
//!     rtt = "100ms"
//!     buffer = "313pkt"
//!     packet = "1000B"
//!     [[transfer]]
//!     sizing = "sobas"
//!     "#,
//! )?;
//! assert_eq!(scenario.path.bdp(), Bytes::new(625_000));
//! # Ok::<(), sweetspot_scenario::ScenarioError>(())
//! ```

mod application;
mod engine;
mod error;
mod files;
mod hop;
mod outcome;
mod path;
mod reader;
mod scenario;
mod schedule;
mod tcp;
mod traffic;
mod tree;
mod writer;

pub use application::{Application, ApplicationError, Pace, Pause};
pub use engine::{Engine, EngineError, EngineResult, FinishedFlow, NoRecorder, Recorder, Sample};
pub use error::{ScenarioError, SourceLocation};
pub use files::with_files;
pub use hop::{PathDirection, TracedHop};
pub use outcome::{
    AppliedFormula, BottleneckOutcome, ControllerEvent, CrossOutcome, Derivation, Outcome,
    SocketMemoryOutcome, TransferOutcome, time_under_way,
};
pub use path::{Change, HopChain, Path, Reverse};
pub use scenario::{Scenario, Ties};
pub use schedule::Schedule;
pub use sweetspot_path::nearest;
pub use tcp::{Congestion, Flavour, Tcp};
pub use traffic::{Cross, Inputs, TrafficKind, Transfer};
