//! Experiments on this machine's own kernel, across an emulated path between network namespaces.
//!
//! Every experiment runs in an isolated process tree ([`isolated`]) that ends as a unit and changes
//! no setting of the host. It returns the emulator's [`Certificate`].
//!
//! [`Lab`] is an engine: it runs a scenario in real time. The measured transfers run the code of
//! `sweetspot send` and `sweetspot serve`; cross traffic uses the kernel's TCP and UDP.
//!
//! ```no_run
//! use sweetspot_lab::Lab;
//! use sweetspot_scenario::Scenario;
//!
//! let scenario = Scenario::parse(&std::fs::read_to_string("scenario.toml")?)?;
//! let run = Lab.run(&scenario)?;
//! println!("{} bit/s", run.outcome.transfers[0].goodput_bps);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod certificate;
mod engine;
mod error;
mod isolated;
mod plan;
mod scratch;
pub mod settings;
mod traffic;

pub use certificate::Certificate;
pub use engine::{Lab, LabRun, LabSeriesRow};
pub use error::{Doing, LabError};
pub use isolated::isolated;
