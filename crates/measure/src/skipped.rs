//! Steps that a measurement skipped, with the reasons.

use core::fmt;

use serde::{Serialize, Serializer};

/// The purpose of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// The base RTT.
    BaseRtt,
    /// The base RTT at the end, to notice a change of the path.
    BaseRttAgain,
    /// The capacity, from trains of a few packets.
    RoughCapacity,
    /// The capacity, from long trains.
    Capacity,
    /// The available bandwidth, from sparse packets.
    Available,
    /// The available bandwidth, from packet pairs.
    AvailableByPairs,
    /// The available bandwidth, from streams.
    AvailableByStreams,
    /// Random loss.
    RandomLoss,
    /// The buffer and its queue discipline.
    Queue,
    /// The delay while TCP fills the path.
    Load,
    /// All later steps.
    Rest,
}

impl Purpose {
    /// The purpose as text.
    pub fn name(self) -> &'static str {
        match self {
            Purpose::BaseRtt => "base RTT",
            Purpose::BaseRttAgain => "base RTT again",
            Purpose::RoughCapacity => "rough capacity",
            Purpose::Capacity => "capacity",
            Purpose::Available => "available bandwidth",
            Purpose::AvailableByPairs => "available bandwidth by pairs",
            Purpose::AvailableByStreams => "available bandwidth by streams",
            Purpose::RandomLoss => "random loss",
            Purpose::Queue => "buffer and queue discipline",
            Purpose::Load => "goodput and delay under load",
            Purpose::Rest => "the other quantities",
        }
    }
}

/// A skipped step. In JSON, one string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// The purpose of the step.
    pub purpose: Purpose,
    /// The reason.
    pub why: String,
    /// Whether earlier steps found a value, so that only its accuracy suffers.
    pub is_cut_short: bool,
}

impl Skipped {
    /// The missing quantity as text.
    pub fn name(&self) -> String {
        let quantity = match self.purpose {
            Purpose::RoughCapacity if self.is_cut_short => Purpose::Capacity,
            purpose => purpose,
        };
        match self.is_cut_short {
            true => format!("more exact {}", quantity.name()),
            false => quantity.name().to_owned(),
        }
    }
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name(), self.why)
    }
}

impl Serialize for Skipped {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The skipped steps of a direction, or those for the RTT. Of several steps with one purpose, only the first counts.
#[derive(Debug, Clone, Default)]
pub(crate) struct SkippedSteps(Vec<Skipped>);

impl SkippedSteps {
    pub fn push(&mut self, purpose: Purpose, why: String) {
        if self.why(&[purpose]).is_none() {
            self.0.push(Skipped { purpose, why, is_cut_short: false });
        }
    }

    /// The reason why the first skipped step for one of these `purposes` was skipped.
    pub fn why(&self, purposes: &[Purpose]) -> Option<&str> {
        let found = self.0.iter().find(|skipped| purposes.contains(&skipped.purpose))?;
        Some(&found.why)
    }

    /// The reason why no step for these `purposes` was carried out.
    pub fn why_none(&self, purposes: &[Purpose]) -> Option<&str> {
        self.why(purposes).or(self.why(&[Purpose::Rest]))
    }

    pub fn list(&self) -> Vec<Skipped> {
        self.0.clone()
    }
}
