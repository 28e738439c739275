//! The simulation of a transfer, with its limit and without.

use std::fmt::Display;

use serde::Serialize;
use sweetspot_units::{Bytes, Duration};

use super::Replay;
use crate::quantities::seconds;

/// The simulated transfer with its limit takes as long as the real one to this factor, or the
/// path is not known well enough.
const FACTOR: f64 = 1.5;

/// Acknowledged bytes over time since the beginning of the transfer.
pub type Curve = Vec<(Duration, Bytes)>;

/// A transfer run again, or why it was not.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Simulation {
    /// It was run.
    Done(Simulated),
    /// It was not.
    Unknown {
        /// Why.
        unknown: String,
    },
}

/// A transfer as the simulator runs it on the path that the capture shows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Simulated {
    /// The change from the capture.
    pub lifted: String,
    /// How long it took in the capture.
    pub captured_s: f64,
    /// The simulated duration with its limit: near the capture's, or the path is not known well enough.
    pub with_limit_s: f64,
    /// How long it takes without the limit.
    pub without_limit_s: f64,
    /// Values that the capture does not show, and the assumptions in their place.
    pub assumed: Vec<String>,
    /// Acknowledged bytes over time without the limit.
    #[serde(skip)]
    pub curve: Curve,
}

impl Simulation {
    /// Why nothing was run.
    pub fn unknown(why: impl Into<String>) -> Simulation {
        Simulation::Unknown { unknown: why.into() }
    }

    /// Runs `replay` by `run`, which gives the time and the curve of the settings that it is
    /// told, or why it cannot.
    pub fn of<E: Display>(
        replay: &Replay,
        mut simulate: impl FnMut(&Replay, &[String]) -> Result<(Duration, Curve), E>,
    ) -> Simulation {
        let mut both = || {
            Ok::<_, E>((
                simulate(replay, &replay.with_limit)?,
                simulate(replay, &replay.without_limit)?,
            ))
        };
        let ((with, _), (without, curve)) = match both() {
            Ok(both) => both,
            Err(why) => return Simulation::unknown(why.to_string()),
        };
        let (took, with) = (replay.took.as_secs_f64(), with.as_secs_f64());
        if with > took * FACTOR || took > with * FACTOR {
            return Simulation::unknown(format!(
                "the path is not known well enough: with the limit the simulated transfer takes \
                 {with:.1} s and not {took:.1} s"
            ));
        }
        Simulation::Done(Simulated {
            lifted: replay.lifted.clone(),
            captured_s: took,
            with_limit_s: with,
            without_limit_s: without.as_secs_f64(),
            assumed: replay.assumed.clone(),
            curve,
        })
    }
}

impl Simulated {
    /// The simulation as a sentence.
    pub fn words(&self) -> String {
        format!(
            "Simulated with {}: {} instead of {} (with the limit the simulator takes {}). Assumed: {}.",
            self.lifted,
            seconds(self.without_limit_s),
            seconds(self.captured_s),
            seconds(self.with_limit_s),
            self.assumed.join("; ")
        )
    }
}
