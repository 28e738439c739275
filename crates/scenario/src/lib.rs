//! Scenarios, outcomes and the engine interface: an [`Engine`] plays a [`Scenario`] and returns an
//! [`Outcome`]. docs/scenario.md describes the file format.

mod application;
mod engine;
mod error;
mod nearest;
mod outcome;
mod path;
mod reader;
mod scenario;
mod tcp;
mod traffic;
mod tree;
mod writer;

pub use application::{Application, ApplicationError, Pace, Pause};
pub use engine::{Engine, EngineError, FinishedFlow, NoRecorder, Recorder, Sample};
pub use error::{ScenarioError, SourceLocation};
pub use nearest::nearest;
pub use outcome::{
    AppliedFormula, BottleneckOutcome, ControllerEvent, CrossOutcome, Derivation, Outcome,
    TransferOutcome,
};
pub use path::{Change, Hop, Path, Queue, Reverse};
pub use scenario::{Scenario, Ties};
pub use tcp::{Congestion, Flavour, Tcp};
pub use traffic::{Cross, Inputs, Kind, Transfer};
