use sweetspot_scenario::{Inputs, Scenario};
use sweetspot_theory::router::capacity_ratio::CapacityRatio;
use sweetspot_units::Rate;

use sweetspot_experiment::StudyError;

/// A row of the paper's Table I.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setup {
    /// Its scenario file, for readers to run.
    pub file: &'static str,
    text: &'static str,
}

macro_rules! setup {
    ($file:literal) => {
        Setup {
            file: concat!("scenarios/papers/", $file),
            text: include_str!(concat!("../../scenarios/papers/", $file)),
        }
    };
}

/// The eight rows of Table I, in the paper's order: four with Gamma = 0.1, four with 10.
pub const TABLE_1: [Setup; 8] = [
    setup!("router-pl-n2-u5.toml"),
    setup!("router-pl-n20-u5.toml"),
    setup!("router-pl-n2-u100.toml"),
    setup!("router-pl-n20-u100.toml"),
    setup!("router-ex-n1000-u25.toml"),
    setup!("router-ex-n20-u25.toml"),
    setup!("router-ex-n1000-u500.toml"),
    setup!("router-ex-n20-u500.toml"),
];

/// The testbed's experiments U_1000, U_1200, U_3000 and open loop (footnote 4).
pub const TESTBED: [Setup; 4] = [
    setup!("router-testbed-u1000.toml"),
    setup!("router-testbed-u1200.toml"),
    setup!("router-testbed-u3000.toml"),
    setup!("router-testbed-open.toml"),
];
/// The row of Figures 13 and 14, and of the PL half of Table II.
pub const POWER_LAW: Setup = TABLE_1[3];
/// The row of Figures 15 and 16.
pub const EXPONENTIAL: Setup = TABLE_1[4];
/// The row of the EX half of Table II.
pub const EXPONENTIAL_BUSY: Setup = TABLE_1[6];

impl Setup {
    /// The scenario.
    ///
    /// # Errors
    /// If its text is not a valid scenario, which a test rules out.
    pub fn scenario(&self) -> Result<Scenario, StudyError> {
        Ok(Scenario::parse(self.text)?)
    }

    /// The scenario with a transfer of one packet at its beginning, without which the simulator does
    /// not sample the load.
    ///
    /// # Errors
    /// If its text is not a valid scenario, which a test rules out.
    pub(super) fn sampled(&self) -> Result<Scenario, StudyError> {
        let transfer = "\n[[transfer]]\nsize = \"1500B\"\n";
        Ok(Scenario::parse(&format!("{}{transfer}", self.text))?)
    }
}

/// The input links of the first cross-traffic entry that has any.
pub fn inputs(scenario: &Scenario) -> Option<Inputs> {
    scenario.cross.iter().find_map(|cross| cross.inputs)
}

/// Gamma = C_out / C_in of a scenario with input links.
///
/// # Errors
/// If a rate is zero, which no scenario allows.
pub fn gamma(scenario: &Scenario) -> Result<CapacityRatio, StudyError> {
    let input = inputs(scenario).map_or(Rate::ZERO, |inputs| inputs.rate);
    Ok(CapacityRatio::new(scenario.path.narrow().rate, input)?)
}
