//! The paper's claims without a figure about other queues, traffic and congestion controls (sections
//! III, IV-B, V).

use sweetspot_scenario::{Outcome, Scenario};
use sweetspot_sizing::Sizing;
use sweetspot_units::Volume;

use super::super::figure::{Figure, Stage};
use super::super::scenarios::{DRS_6, seeded};
use super::ENTRY_REMARKS;
use super::kinds::{Kinds, dynamic};
use sweetspot_experiment::StudyError;
use sweetspot_experiment::plot::Table;
use sweetspot_experiment::run::run_all;
use sweetspot_statistics as statistics;

/// The change, its settings, and the paper's claim.
type Remark = (&'static str, &'static [&'static str], &'static str);

const REMARKS: [Remark; 7] = [
    ("as in Figure 6", &[], ""),
    ("RED", &["path.queue=red"], "no noticeable change (III)"),
    (
        "UDP both ways, 10 %",
        &["cross=[{kind=\"poisson\",count=10,rate=\"1Mbit/s\"}]"],
        "no significant change by reverse traffic (III)",
    ),
    ("Poisson sources", &["transfer.writer=poisson=100Mbit/s"], "no significant change (III)"),
    ("Pareto sources", &["transfer.writer=pareto=100Mbit/s"], "no significant change (III)"),
    ("Vegas", &["transfer.congestion=vegas"], "better than Reno, depends less on the queue (V)"),
    (
        "Vegas, paced",
        &["transfer.congestion=vegas", "transfer.pacing=true"],
        "does not depend on the queue (V)",
    ),
];

const QUEUES: [u64; 2] = [100, 500];
/// maxwnd, packets.
const MAX: u64 = 650;

const HEADS: [&str; 6] = [
    "changed",
    "dynamic, Q = 100",
    "dynamic, Q = 500",
    "static, Q = 100",
    "static, Q = 500",
    "the paper",
];

/// Five static and five dynamic flows, each remark with two queues.
pub(super) fn table(stage: &Stage<'_>) -> Result<Figure, StudyError> {
    let seeds = stage.precision.seeds(1, 4);
    let mut figure = ENTRY_REMARKS.figure(format!(
        "`{}` with maxwnd = {MAX}, changed as the first column says: thousand packets acknowledged per flow of a \
         kind, ± two standard errors over {seeds} seeds (`ties = \"seeded\"`). The paper prints no numbers here. Sources at the link's rate always have data: the window is the limit, not they.",
        DRS_6.file
    ));
    let Some(engine) = stage.sim else { return Ok(figure) };
    let mut runs: Vec<Scenario> = Vec::new();
    for (_, overrides, _) in REMARKS {
        for queue in QUEUES {
            let mut all = vec![format!("path.buffer={queue}pkt"), "ties=seeded".to_owned()];
            all.extend(overrides.iter().map(|text| (*text).to_owned()));
            let scenario = dynamic(&DRS_6.with(&all)?, Sizing::Fixed(Volume::Packets(MAX)), MAX);
            runs.extend(seeded(&scenario, seeds));
        }
    }
    let outcomes = run_all(engine, &runs, stage.workers)?;
    let seeds = seeds as usize;
    let mut table = Table::new("", &HEADS);
    let finished = runs.chunks(2 * seeds).zip(outcomes.chunks(2 * seeds));
    for ((name, _, paper), (runs, outcomes)) in REMARKS.iter().zip(finished) {
        let cell = |queue: usize, of: fn(&Kinds) -> f64| {
            let range = queue * seeds..(queue + 1) * seeds;
            let kinds = runs[range.clone()].iter().zip(&outcomes[range]);
            mean(kinds.map(|(run, outcome): (&Scenario, &Outcome)| of(&Kinds::of(run, outcome))))
        };
        table.rows.push(vec![
            (*name).to_owned(),
            cell(0, |kinds| kinds.dynamic),
            cell(1, |kinds| kinds.dynamic),
            cell(0, |kinds| kinds.fixed),
            cell(1, |kinds| kinds.fixed),
            (*paper).to_owned(),
        ]);
    }
    figure.tables.push(table);
    Ok(figure)
}

fn mean(values: impl Iterator<Item = f64>) -> String {
    let values: Vec<f64> = values.collect();
    let mean = statistics::mean(&values).unwrap_or_default();
    match statistics::squared_error(&values) {
        Some(squared) => format!("{mean:.0} ± {:.0}", 2.0 * libm::sqrt(squared)),
        None => format!("{mean:.0}"),
    }
}
