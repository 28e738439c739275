use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use sweetspot_scenario::Scenario;
use sweetspot_study::Workers;

/// A scenario and what a study changes in it.
#[derive(Debug, clap::Args)]
pub struct ScenarioFile {
    /// The scenario, a TOML file; docs/scenario.md describes it
    path: PathBuf,
    /// Another value for a key, e.g. path.buffer=625pkt or transfer.0.sizing=sobas
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub overrides: Vec<String>,
}

impl ScenarioFile {
    /// The text; an error names the file.
    pub fn text(&self) -> Result<String, String> {
        text(&self.path)
    }

    /// The scenario; an error names the file.
    pub fn scenario(&self) -> Result<Scenario, String> {
        Scenario::parse_with(&self.text()?, &self.overrides).map_err(|error| self.blame(&error))
    }

    /// The file and what is set besides, as typed.
    pub fn name(&self) -> String {
        let set: String = self.overrides.iter().map(|set| format!(" --set {set}")).collect();
        format!("{}{set}", self.path.display())
    }

    /// `error` with the file it is about.
    pub fn blame(&self, error: &dyn std::fmt::Display) -> String {
        format!("{}: {error}", self.path.display())
    }
}

/// No scenario is longer; a device may never end.
const MOST_BYTES: u64 = 16 << 20;

fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "more than 16 MiB"));
    }
    Ok(bytes)
}

/// What a scenario file says; an error names the file.
pub fn text(path: &Path) -> Result<String, String> {
    let bytes = bytes(path)
        .map_err(|error| format!("{}: {error}; name a scenario file", path.display()))?;
    String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = good.iter().filter(|byte| **byte == b'\n').count() + 1;
        format!("{}: line {line}: this is no UTF-8; save the file as that", path.display())
    })
}

/// How many runs go on at the same time.
#[derive(Debug, clap::Args)]
pub struct Parallel {
    /// Runs at the same time; the result does not depend on it [default: one per core]
    #[arg(long, value_name = "N")]
    workers: Option<usize>,
}

impl Parallel {
    pub fn workers(&self) -> Workers {
        let cores = || std::thread::available_parallelism().map_or(1, |n| n.get());
        Workers::new(self.workers.unwrap_or_else(cores))
    }
}
