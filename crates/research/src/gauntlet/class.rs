use serde::Serialize;
use sweetspot_path::QueueDiscipline;
use sweetspot_scenario::Scenario;
use sweetspot_units::{Bytes, Duration, Probability};

/// A class of paths; a path may belong to several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PathClass {
    /// Every path.
    All,
    /// Neither random loss nor jitter nor cross traffic.
    CleanAlone,
    /// Clean paths without cross traffic and with a drop-tail queue.
    CleanAloneDropTail,
    /// Jitter, but neither loss nor cross traffic.
    JitterOnly,
    /// Random loss, no cross traffic.
    RandomLoss,
    /// Cross traffic, no random loss.
    SharedClean,
    /// Cross traffic and random loss.
    SharedLossy,
    /// Paths on which every run with the kernel's sizing is within 5 % of their mean.
    Repeatable,
    /// Transfers of up to 10 MB.
    Small,
    /// Transfers of 10 MB to 100 MB.
    Medium,
    /// Transfers of more than 100 MB.
    Large,
    /// Paths with a changing rate.
    RateChange,
    /// Paths with a changing route.
    RouteChange,
}

const MAX_SMALL_BYTES: Bytes = Bytes::new(10_000_000);
const MEDIUM: Bytes = Bytes::new(100_000_000);

impl PathClass {
    /// All classes, in the order of the tables.
    pub const ALL: [PathClass; 13] = [
        PathClass::All,
        PathClass::Repeatable,
        PathClass::CleanAlone,
        PathClass::CleanAloneDropTail,
        PathClass::JitterOnly,
        PathClass::RandomLoss,
        PathClass::SharedClean,
        PathClass::SharedLossy,
        PathClass::Small,
        PathClass::Medium,
        PathClass::Large,
        PathClass::RateChange,
        PathClass::RouteChange,
    ];

    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            PathClass::All => "all",
            PathClass::CleanAlone => "clean-alone",
            PathClass::CleanAloneDropTail => "clean drop-tail",
            PathClass::JitterOnly => "jitter-only",
            PathClass::RandomLoss => "random-loss",
            PathClass::SharedClean => "shared-clean",
            PathClass::SharedLossy => "shared-lossy",
            PathClass::Repeatable => "repeatable",
            PathClass::Small => "up to 10 MB",
            PathClass::Medium => "up to 100 MB",
            PathClass::Large => "above 100 MB",
            PathClass::RateChange => "rate change",
            PathClass::RouteChange => "route change",
        }
    }

    /// The paths in the class, explained for readers of the tables.
    pub fn meaning(self) -> &'static str {
        match self {
            PathClass::All => "every path",
            PathClass::CleanAlone => "neither random loss nor jitter nor cross traffic",
            PathClass::CleanAloneDropTail => "the same, with a drop-tail queue",
            PathClass::JitterOnly => "jitter, neither random loss nor cross traffic",
            PathClass::RandomLoss => "random loss, no cross traffic",
            PathClass::SharedClean => "cross traffic, no random loss",
            PathClass::SharedLossy => "cross traffic and random loss",
            PathClass::Repeatable => "the kernel's runs lie within 5 % of their mean",
            PathClass::Small => "transfers of up to 10 MB",
            PathClass::Medium => "transfers of 10 MB to 100 MB",
            PathClass::Large => "transfers of more than 100 MB",
            PathClass::RateChange => "the rate changes",
            PathClass::RouteChange => "the route changes",
        }
    }

    /// The classes of `scenario`; `spread` is the maximum deviation of the kernel's runs from their
    /// mean.
    pub(super) fn of(scenario: &Scenario, spread: f64) -> Vec<PathClass> {
        let all = PathClass::ALL.into_iter();
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
            PathClass::All => true,
            PathClass::CleanAlone => clean_alone,
            PathClass::CleanAloneDropTail => {
                clean_alone && hops.iter().all(|hop| hop.queue == QueueDiscipline::DropTail)
            }
            PathClass::JitterOnly => jittery && !lossy && !shared,
            PathClass::RandomLoss => lossy && !shared,
            PathClass::SharedClean => shared && !lossy,
            PathClass::SharedLossy => shared && lossy,
            PathClass::Repeatable => spread <= 0.05,
            PathClass::Small => size.is_some_and(|size| size <= MAX_SMALL_BYTES),
            PathClass::Medium => size.is_some_and(|size| size > MAX_SMALL_BYTES && size <= MEDIUM),
            PathClass::Large => size.is_some_and(|size| size > MEDIUM),
            PathClass::RateChange => changes.iter().any(|change| change.rate.is_some()),
            PathClass::RouteChange => changes.iter().any(|change| change.delay.is_some()),
        }
    }
}
