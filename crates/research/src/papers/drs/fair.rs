//! The paper's measure of fairness as a closed form: as long as no packet is lost, flows share the
//! link in proportion to the memory that they use (section II-A).

use sweetspot_scenario::Scenario;
use sweetspot_theory::TheoryError;
use sweetspot_theory::host::right_sizing::fair_share;
use sweetspot_units::{Bytes, Rate};

use super::kinds::{STATIC_WINDOW, count, kilopackets};

/// Thousands of packets per static and per dynamic flow with windows of [`STATIC_WINDOW`] and `max`;
/// `None` if the windows overflow the queue, which the measure does not cover.
pub(super) fn share(
    scenario: &Scenario,
    queue: u64,
    max: u64,
) -> Result<Option<(f64, f64)>, TheoryError> {
    if held(scenario, max) > scenario.path.bdp() + scenario.path.packet * queue {
        return Ok(None);
    }
    memory_shares(scenario, max).map(Some)
}

/// Thousands of packets per static and per dynamic flow, in proportion to their windows and ignoring
/// the queue.
pub(super) fn memory_shares(scenario: &Scenario, max: u64) -> Result<(f64, f64), TheoryError> {
    let rate = scenario.path.narrow().rate;
    let one = |window: u64| -> Result<f64, TheoryError> {
        let own = scenario.path.packet * window;
        let alone: Rate = own / scenario.path.rtt;
        let shared = fair_share(rate, own, held(scenario, max))?;
        Ok(kilopackets(scenario, alone.min(shared).as_f64()))
    };
    Ok((one(STATIC_WINDOW)?, one(max)?))
}

/// Total buffer memory of all flows.
fn held(scenario: &Scenario, max: u64) -> Bytes {
    let (fixed, dynamic) = (count(scenario, true), count(scenario, false));
    scenario.path.packet * (fixed * STATIC_WINDOW + dynamic * max)
}
