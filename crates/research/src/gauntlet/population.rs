use core::str::FromStr;

use serde::Serialize;
use sweetspot_units::Duration;

/// A population of random paths. Populations with the same seed share their base paths and differ in their
/// additions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Population {
    /// Constant paths with a transfer of 20 s.
    Drawn,
    /// Transfers of 1 MB to 1 GB, for at most 60 s.
    Sizes,
    /// Transfers of 60 s and of 300 s.
    Long,
    /// Paths with a changing rate, route or cross traffic.
    Changes,
    /// Several transfers with the same sizing, which start one after the other.
    Transfers,
    /// A second transfer after a first one, on paths that may change in between. Only the second is evaluated.
    Again,
}

/// The name of no population.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown population {0}; known are {known}", known = names())]
pub struct UnknownPopulation(String);

fn names() -> String {
    Population::ALL.map(Population::name).join(", ")
}

impl Population {
    /// All populations.
    pub const ALL: [Population; 6] = [
        Population::Drawn,
        Population::Sizes,
        Population::Long,
        Population::Changes,
        Population::Transfers,
        Population::Again,
    ];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Population::Drawn => "drawn",
            Population::Sizes => "sizes",
            Population::Long => "long",
            Population::Changes => "changes",
            Population::Transfers => "transfers",
            Population::Again => "again",
        }
    }

    /// Default measured times; each path draws one of the two.
    pub(super) fn usual_durations(self) -> (Duration, Duration) {
        let both = |seconds| (Duration::from_secs(seconds), Duration::from_secs(seconds));
        match self {
            Population::Drawn => both(20),
            Population::Sizes | Population::Again => both(60),
            Population::Long => (Duration::from_secs(60), Duration::from_secs(300)),
            Population::Changes | Population::Transfers => both(30),
        }
    }
}

impl FromStr for Population {
    type Err = UnknownPopulation;

    fn from_str(text: &str) -> Result<Population, UnknownPopulation> {
        let found = Population::ALL.into_iter().find(|population| population.name() == text);
        found.ok_or_else(|| UnknownPopulation(text.to_owned()))
    }
}
