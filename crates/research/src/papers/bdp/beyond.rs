//! The paper's future work (section VIII): SOBAS without probes, over several connections, with active queue
//! management, competing with other congestion controls, and across several bottlenecks.

use sweetspot_scenario::{Outcome, Scenario};
use sweetspot_sizing::Sizing;

use super::super::figure::{Figure, Stage};
use super::super::scenarios::{TABLE_1, seeded};
use super::ENTRY_BEYOND;
use sweetspot_experiment::StudyError;
use sweetspot_experiment::plot::Table;
use sweetspot_experiment::run::run_all;
use sweetspot_statistics as statistics;

/// A condition, and the changes that it makes to Table I's scenario.
type Condition = (&'static str, &'static [&'static str]);

const CONDITIONS: [Condition; 8] = [
    ("30 % load", &[]),
    ("70 % load", &[]),
    ("100 % load", &[]),
    ("70 %, RED", &["path.hop.1.queue=red"]),
    ("70 %, CoDel", &["path.hop.1.queue=codel"]),
    ("70 %, FQ-CoDel", &["path.hop.1.queue=fq-codel"]),
    ("70 %, elephants by BBR", &["cross.0.congestion=bbr", "cross.0.flavour=linux"]),
    ("70 %, three tight links", &["path.hop.0.rate=50Mbit/s", "path.hop.2.rate=50Mbit/s"]),
];

const SIZINGS: [Sizing; 4] = [Sizing::Max, Sizing::SobasPaper, Sizing::Sobas, Sizing::SobasLive];
const SEVERAL: usize = 4;

/// The results for each condition and sizing.
pub(super) fn table(stage: &Stage<'_>) -> Result<Figure, StudyError> {
    let seeds = stage.precision.seeds(1, 4);
    let mut figure = ENTRY_BEYOND.figure(format!(
        "Table I's scenarios at B_t = C T_m = 625 packets, changed as the condition says; goodput of the transfer in \
         Mbit/s and, in brackets, the queueing delay of the tight link in ms. `max` never limits the window, \
         `sobas:live` works without probes. *Four connections*: their goodputs summed. Seeds: {seeds}, ± two standard \
         errors. The paper has no numbers: it names these conditions as open, and parallel connections as future work (section VIII)."
    ));
    let Some(engine) = stage.sim else { return Ok(figure) };
    let mut cases: Vec<(String, Scenario)> = Vec::new();
    for (name, overrides) in CONDITIONS {
        let load = match name.split(' ').next() {
            Some("30") => 0,
            Some("100") => 2,
            _ => 1,
        };
        let overrides: Vec<String> = overrides.iter().map(|text| (*text).to_owned()).collect();
        cases.push((name.to_owned(), TABLE_1[load].1.with(&overrides)?));
    }
    let mut several = TABLE_1[1].1.with(&[])?;
    several.transfers = vec![several.transfers[0].clone(); SEVERAL];
    cases.push(("70 %, four connections".to_owned(), several));
    let runs: Vec<Scenario> = cases
        .iter()
        .flat_map(|(_, scenario)| {
            SIZINGS.iter().flat_map(|sizing| seeded(&all_with(scenario, *sizing), seeds))
        })
        .collect();
    let outcomes = run_all(engine, &runs, stage.workers)?;
    let mut heads = vec!["condition".to_owned()];
    heads.extend(SIZINGS.iter().map(ToString::to_string));
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    let mut table = Table::new("", &heads);
    for ((name, _), of) in cases.iter().zip(outcomes.chunks(SIZINGS.len() * seeds as usize)) {
        let cells = of.chunks(seeds as usize).map(cell);
        table.rows.push([name.clone()].into_iter().chain(cells).collect());
    }
    figure.tables.push(table);
    Ok(figure)
}

fn all_with(scenario: &Scenario, sizing: Sizing) -> Scenario {
    let mut scenario = scenario.clone();
    for transfer in &mut scenario.transfers {
        transfer.sizing = sizing;
    }
    scenario
}

/// Goodput with its error, and the queueing delay.
fn cell(outcomes: &[Outcome]) -> String {
    let together =
        |outcome: &Outcome| outcome.transfers.iter().map(|t| t.goodput_bps).sum::<f64>() / 1e6;
    let rates: Vec<f64> = outcomes.iter().map(together).collect();
    let delays: Vec<f64> = outcomes.iter().map(|o| o.bottleneck.queue_delay_mean_s * 1e3).collect();
    let mean = statistics::mean(&rates).unwrap_or_default();
    let delay = statistics::mean(&delays).unwrap_or_default();
    match statistics::squared_error(&rates) {
        Some(squared) => format!("{mean:.1} ± {:.1} ({delay:.0})", 2.0 * libm::sqrt(squared)),
        None => format!("{mean:.1} ({delay:.0})"),
    }
}
