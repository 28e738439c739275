//! The paper's two kinds of flows, and their throughput in thousands of packets.

use sweetspot_scenario::{Outcome, Scenario};
use sweetspot_sizing::Sizing;
use sweetspot_units::Volume;

/// The static window in packets: 64 kB.
pub(super) const STATIC_WINDOW: u64 = 44;
const STATIC: Sizing = Sizing::Fixed(Volume::Packets(STATIC_WINDOW));

/// A run's results per kind of flow: mean thousands of packets acknowledged; zero if there are no
/// flows of that kind.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Kinds {
    pub fixed: f64,
    pub dynamic: f64,
    pub utilisation: f64,
    /// Loss rate of all packets that reached the router.
    pub loss: f64,
}

impl Kinds {
    pub(super) fn of(scenario: &Scenario, outcome: &Outcome) -> Kinds {
        let mean = |fixed: bool| {
            let rates = rates(scenario, outcome, fixed);
            let count = rates.len().max(1) as f64;
            kilopackets(scenario, rates.iter().sum::<f64>() / count)
        };
        let link = &outcome.bottleneck;
        let (utilisation, loss) = (link.utilisation, link.loss_rate);
        Kinds { fixed: mean(true), dynamic: mean(false), utilisation, loss }
    }
}

/// Thousands of packets acknowledged by each flow of a kind, such as `108 112 113 112 108`.
pub(super) fn each(scenario: &Scenario, outcome: &Outcome, fixed: bool) -> String {
    let numbers = rates(scenario, outcome, fixed)
        .into_iter()
        .map(|rate| format!("{:.0}", kilopackets(scenario, rate)));
    numbers.collect::<Vec<_>>().join(" ")
}

/// The ratio of the largest to the smallest flow of a kind.
pub(super) fn spread_of(scenario: &Scenario, outcome: &Outcome, fixed: bool) -> f64 {
    let rates = rates(scenario, outcome, fixed);
    let min = rates.iter().copied().fold(f64::INFINITY, f64::min);
    rates.iter().copied().fold(0.0, f64::max) / min.max(1.0)
}

fn rates(scenario: &Scenario, outcome: &Outcome, fixed: bool) -> Vec<f64> {
    let of = scenario.transfers.iter().zip(&outcome.transfers);
    let of = of.filter(|(transfer, _)| (transfer.sizing == STATIC) == fixed);
    of.map(|(_, flow)| flow.goodput_bps).collect()
}

/// `scenario` with another sizing for the dynamic flows; their host allows `max` packets.
pub(super) fn dynamic(scenario: &Scenario, sizing: Sizing, max: u64) -> Scenario {
    let mut scenario = scenario.clone();
    for transfer in &mut scenario.transfers {
        if transfer.sizing != STATIC {
            transfer.sizing = sizing;
            transfer.tcp.max_window = Volume::Packets(max);
        }
    }
    scenario
}

/// The number of flows of a kind.
pub(super) fn count(scenario: &Scenario, fixed: bool) -> u64 {
    scenario.transfers.iter().filter(|t| (t.sizing == STATIC) == fixed).count() as u64
}

/// A rate, converted to thousands of packets over the measured time.
pub(super) fn kilopackets(scenario: &Scenario, bps: f64) -> f64 {
    bps * scenario.duration.as_secs_f64() / 8.0 / scenario.path.packet.as_f64() / 1e3
}
