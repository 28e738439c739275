//! Scenario files on the command line, and the options of runs.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::builder::RangedU64ValueParser;
use sweetspot_experiment::Workers;
use sweetspot_scenario::Scenario;

use crate::print::Shown;
use crate::text_file;
use crate::usage_error::UsageError;

/// A scenario file and overrides of its keys.
#[derive(Debug, clap::Args)]
pub struct ScenarioFile {
    /// A TOML file (man sweetspot-scenario; `-`: standard input), or @NAME of a scenario that comes with the program, such as @elephants
    #[arg(value_name = "SCENARIO")]
    path: PathBuf,
    /// Override a key of the scenario, such as path.buffer=625pkt or transfer.0.sizing=sobas
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub overrides: Vec<String>,
}

impl ScenarioFile {
    /// The scenario's text; an error names the file.
    pub fn text(&self) -> Result<String, Box<dyn std::error::Error>> {
        text_file::scenario(&self.path)
    }

    /// Fails if there is no such scenario, before other options are judged. Standard input is left to its reader.
    pub fn exists(&self) -> Result<(), Box<dyn std::error::Error>> {
        match text_file::is_standard_input(&self.path) {
            true => Ok(()),
            false => self.text().map(drop),
        }
    }

    /// The scenario, as [`read`] returns it.
    pub fn scenario(&self) -> Result<Scenario, Box<dyn std::error::Error>> {
        read(&self.path, &self.overrides, None)
    }

    /// Whether it is `@`, which asks for the names of the bundled scenarios.
    pub fn is_list(&self) -> bool {
        self.path == Path::new("@")
    }

    /// The files that the scenario is read from.
    pub fn files(&self) -> Vec<PathBuf> {
        text_file::scenario_files(&self.path)
    }

    /// The file and its overrides, as typed.
    pub fn name(&self) -> String {
        let set: String = self.overrides.iter().map(|set| format!(" --set {set}")).collect();
        format!("{}{set}", self.path.shown())
    }

    /// `error`, with the name of the file.
    pub fn blame(&self, error: &dyn std::fmt::Display) -> String {
        format!("{}: {error}", text_file::named(&self.path))
    }
}

/// Reads a scenario file, with `overrides` of its keys and an optional `seed` in place of its own. An error names the file. If
/// the file is valid without the overrides, the error is a usage error.
pub fn read(
    path: &Path,
    overrides: &[String],
    seed: Option<u64>,
) -> Result<Scenario, Box<dyn std::error::Error>> {
    let text = text_file::scenario(path)?;
    let mut scenario = Scenario::parse_with(&text, overrides).map_err(|error| {
        let words = format!("{}: {error}", text_file::named(path));
        if overrides.is_empty() || Scenario::parse(&text).is_err() {
            return Box::<dyn std::error::Error>::from(words);
        }
        UsageError::new(words).into()
    })?;
    if let Some(seed) = seed {
        scenario.seed = seed;
    }
    Ok(scenario)
}

/// Reads a scenario for its path and traffic alone, so it need not have a duration.
pub fn read_path(path: &Path) -> Result<Scenario, Box<dyn std::error::Error>> {
    read(path, &["duration=1s".to_owned()], None)
}

/// Reads a seed, exactly as a scenario's.
pub fn seed() -> RangedU64ValueParser {
    clap::value_parser!(u64).range(..1 << 53)
}

/// Number of simultaneous runs.
#[derive(Debug, clap::Args)]
pub struct Parallel {
    /// Number of simultaneous runs; the result does not depend on it [default: one per core]
    #[arg(long, value_name = "N")]
    workers: Option<NonZeroUsize>,
}

impl Parallel {
    /// The requested number, or one per core.
    pub fn workers(&self) -> Workers {
        self.workers.map_or_else(Workers::per_core, |count| Workers::new(count.get()))
    }
}
