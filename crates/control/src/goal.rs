use std::str::FromStr;

use sweetspot_sizing::{Controller, ControllerConfig, Rledbat, Sobas};

/// The goal of the transfers of a path group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Goal {
    /// The path's full rate, without a standing queue.
    Throughput,
    /// Only the capacity that other traffic leaves (RFC 9840, with a delay target that decreases on loss).
    LessThanBestEffort,
}

impl FromStr for Goal {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Goal, &'static str> {
        match text {
            "throughput" => Ok(Goal::Throughput),
            "less-than-best-effort" => Ok(Goal::LessThanBestEffort),
            _ => Err(
                "expected throughput (the path's full rate without a standing queue) or less-than-best-effort (only the \
                 capacity that other traffic leaves)",
            ),
        }
    }
}

impl Goal {
    /// Its name on the command line and in policies.
    pub fn name(self) -> &'static str {
        match self {
            Goal::Throughput => "throughput",
            Goal::LessThanBestEffort => "less-than-best-effort",
        }
    }

    /// The controller for this goal.
    pub fn controller(self, config: &ControllerConfig) -> Box<dyn Controller + Send> {
        match self {
            Goal::Throughput => Box::new(Sobas::live(config)),
            Goal::LessThanBestEffort => Box::new(Rledbat::background(config)),
        }
    }

    /// The controller for a dry run: without slowdowns, because it could not measure their effect.
    pub fn rehearsal(self, config: &ControllerConfig) -> Box<dyn Controller + Send> {
        match self {
            Goal::Throughput => self.controller(config),
            Goal::LessThanBestEffort => Box::new(Rledbat::background(config).without_slowdowns()),
        }
    }
}
