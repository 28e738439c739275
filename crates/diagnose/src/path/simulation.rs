//! The simulation of a transfer, with and without its limit.

use std::fmt::Display;

use serde::Serialize;
use sweetspot_units::{Bytes, Duration};

use super::Replay;
use crate::quantities::seconds;

/// If the durations of the simulated transfer with its limit and the real one differ by more than this
/// factor, the path is not known well enough.
const MAX_DURATION_RATIO: f64 = 1.5;

/// Acknowledged bytes over time since the beginning of the transfer.
pub type Curve = Vec<(Duration, Bytes)>;

/// A simulated transfer, or the reason why it was not simulated.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Simulation {
    /// The transfer was simulated.
    Done(Simulated),
    /// The transfer was not simulated.
    Unknown {
        /// The reason.
        unknown: String,
    },
}

/// A transfer as the simulator runs it on the path that the capture shows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Simulated {
    /// The change from the capture.
    pub lifted: String,
    /// The duration in the capture.
    pub captured_s: f64,
    /// The simulated duration with the limit. If it is not near the capture's, the path is not known
    /// well enough.
    pub with_limit_s: f64,
    /// The simulated duration without the limit.
    pub without_limit_s: f64,
    /// Assumptions for values that the capture does not show.
    pub assumed: Vec<String>,
    /// Acknowledged bytes over time without the limit.
    #[serde(skip)]
    pub curve: Curve,
}

impl Simulation {
    /// No simulation, for the reason `why`.
    pub fn unknown(why: impl Into<String>) -> Simulation {
        Simulation::Unknown { unknown: why.into() }
    }

    /// Simulates `replay` with `run`, which returns the duration and the curve for given settings, or
    /// an error.
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
        if with > took * MAX_DURATION_RATIO || took > with * MAX_DURATION_RATIO {
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
