//! What goes into an engine and what comes out of it: [`Scenario`], [`Outcome`], and the
//! [`Engine`] between them. The format is described in docs/scenario.md.

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
