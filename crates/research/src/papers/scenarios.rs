use sweetspot_scenario::Scenario;

use sweetspot_experiment::StudyError;

/// A scenario from scenarios/papers/.
#[derive(Debug, Clone, Copy)]
pub(super) struct PaperScenario {
    /// Its scenario file, for readers to run.
    pub file: &'static str,
    text: &'static str,
}

macro_rules! paper_scenario {
    ($file:literal) => {
        PaperScenario {
            file: concat!("scenarios/papers/", $file),
            text: include_str!(concat!("../../scenarios/papers/", $file)),
        }
    };
}

pub(super) const TRANSFER_1: PaperScenario = paper_scenario!("sobas-fig1.toml");
pub(super) const TRANSFER_8_ONE_HOP: PaperScenario = paper_scenario!("sobas-fig8-one-hop.toml");
pub(super) const TRANSFER_10: PaperScenario = paper_scenario!("sobas-fig10.toml");
pub(super) const HEFFNER_1: PaperScenario = paper_scenario!("heffner-fig1.toml");
pub(super) const HEFFNER_2: PaperScenario = paper_scenario!("heffner-fig2.toml");
pub(super) const HEFFNER_4: PaperScenario = paper_scenario!("heffner-fig4.toml");
pub(super) const HEFFNER_SLOW: PaperScenario = paper_scenario!("heffner-slow.toml");
pub(super) const BLOG_2: PaperScenario = paper_scenario!("blog-table2.toml");
pub(super) const FIGURE_3: PaperScenario = paper_scenario!("sobas-fig3-pareto.toml");
pub(super) const FIGURE_4: PaperScenario = paper_scenario!("sobas-fig4-elephants.toml");
pub(super) const FIGURE_5: PaperScenario = paper_scenario!("sobas-fig5-mice.toml");
pub(super) const FIGURE_6: PaperScenario = paper_scenario!("sobas-fig6-congested-elephants.toml");
pub(super) const FIGURE_7: PaperScenario = paper_scenario!("sobas-fig7-congested-mice.toml");
pub(super) const TABLE_1: [(u64, PaperScenario); 3] = [
    (30, paper_scenario!("sobas-table1-30.toml")),
    (70, paper_scenario!("sobas-table1-70.toml")),
    (100, paper_scenario!("sobas-table1-100.toml")),
];
pub(super) const DRS_2: PaperScenario = paper_scenario!("drs-fig2.toml");
pub(super) const DRS_3: PaperScenario = paper_scenario!("drs-fig3.toml");
pub(super) const DRS_5: PaperScenario = paper_scenario!("drs-fig5.toml");
pub(super) const DRS_6: PaperScenario = paper_scenario!("drs-fig6.toml");
pub(super) const DRS_7: PaperScenario = paper_scenario!("drs-fig7.toml");
pub(super) const DRS_8: PaperScenario = paper_scenario!("drs-fig8.toml");
pub(super) const DRS_MEMORY: PaperScenario = paper_scenario!("drs-memory.toml");
pub(super) const DRS_MEMORY_LAB: PaperScenario = paper_scenario!("drs-memory-lab.toml");

impl PaperScenario {
    /// The scenario with some keys overridden.
    pub(super) fn with(self, overrides: &[String]) -> Result<Scenario, StudyError> {
        Ok(Scenario::parse_with(self.text, overrides)?)
    }
}

/// `scenario` with `seeds` different seeds, beginning with its own.
pub(super) fn seeded(scenario: &Scenario, seeds: u64) -> Vec<Scenario> {
    (0..seeds).map(|i| Scenario { seed: scenario.seed + i, ..scenario.clone() }).collect()
}
