use serde::Serialize;
use sweetspot_scenario::{Queue, Scenario};
use sweetspot_units::{Bytes, Duration, Probability};

/// What paths have in common; a path may be of several classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// Every path.
    All,
    /// Neither random loss nor jitter nor cross traffic.
    CleanAlone,
    /// The same with a drop-tail queue.
    CleanAloneDropTail,
    /// Jitter, and neither loss nor cross traffic.
    JitterOnly,
    /// Random loss, no cross traffic.
    RandomLoss,
    /// Cross traffic, no random loss.
    SharedClean,
    /// Cross traffic and random loss.
    SharedLossy,
    /// Paths on which every run of the kernel's lies within 5 % of their mean.
    Repeatable,
    /// Transfers of up to 10 MB.
    Small,
    /// Transfers of 10 MB to 100 MB.
    Medium,
    /// Transfers of more than 100 MB.
    Large,
    /// Paths whose rate changes.
    RateChange,
    /// Paths whose route changes.
    RouteChange,
}

const SMALL: Bytes = Bytes::new(10_000_000);
const MEDIUM: Bytes = Bytes::new(100_000_000);

impl Class {
    /// All there are, in the order of the tables.
    pub const ALL: [Class; 13] = [
        Class::All,
        Class::Repeatable,
        Class::CleanAlone,
        Class::CleanAloneDropTail,
        Class::JitterOnly,
        Class::RandomLoss,
        Class::SharedClean,
        Class::SharedLossy,
        Class::Small,
        Class::Medium,
        Class::Large,
        Class::RateChange,
        Class::RouteChange,
    ];

    /// As in tables.
    pub fn name(self) -> &'static str {
        match self {
            Class::All => "all",
            Class::CleanAlone => "clean-alone",
            Class::CleanAloneDropTail => "clean drop-tail",
            Class::JitterOnly => "jitter-only",
            Class::RandomLoss => "random-loss",
            Class::SharedClean => "shared-clean",
            Class::SharedLossy => "shared-lossy",
            Class::Repeatable => "repeatable",
            Class::Small => "up to 10 MB",
            Class::Medium => "up to 100 MB",
            Class::Large => "above 100 MB",
            Class::RateChange => "rate change",
            Class::RouteChange => "route change",
        }
    }

    /// Those that `scenario` is of, on which the kernel's runs lie so far from their mean.
    pub(super) fn of(scenario: &Scenario, spread: f64) -> Vec<Class> {
        let all = Class::ALL.into_iter();
        all.filter(|class| class.holds(scenario, spread)).collect()
    }

    fn holds(self, scenario: &Scenario, spread: f64) -> bool {
        let hops = &scenario.path.hops;
        let changes = &scenario.path.changes;
        let size = scenario.transfers.first().and_then(|transfer| transfer.size);
        let lossy = hops.iter().any(|hop| hop.loss > Probability::ZERO);
        let jittery = hops.iter().any(|hop| hop.jitter > Duration::ZERO);
        let shared = !scenario.cross.is_empty();
        let clean_alone = !(lossy || jittery || shared);
        match self {
            Class::All => true,
            Class::CleanAlone => clean_alone,
            Class::CleanAloneDropTail => {
                clean_alone && hops.iter().all(|hop| hop.queue == Queue::DropTail)
            }
            Class::JitterOnly => jittery && !lossy && !shared,
            Class::RandomLoss => lossy && !shared,
            Class::SharedClean => shared && !lossy,
            Class::SharedLossy => shared && lossy,
            Class::Repeatable => spread <= 0.05,
            Class::Small => size.is_some_and(|size| size <= SMALL),
            Class::Medium => size.is_some_and(|size| size > SMALL && size <= MEDIUM),
            Class::Large => size.is_some_and(|size| size > MEDIUM),
            Class::RateChange => changes.iter().any(|change| change.rate.is_some()),
            Class::RouteChange => changes.iter().any(|change| change.delay.is_some()),
        }
    }
}
