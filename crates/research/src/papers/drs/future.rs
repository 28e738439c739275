//! The paper's three solutions to loss bursts (section IV-B), the combinations that it plans to study (section V), and
//! connections split by a firewall (section II-A).

use sweetspot_scenario::{Outcome, Scenario};
use sweetspot_sizing::Sizing;
use sweetspot_units::Volume;

use super::super::figure::{Figure, Stage};
use super::super::scenarios::{DRS_2, DRS_3, DRS_6, PaperScenario, seeded};
use super::kinds::{Kinds, STATIC_WINDOW, dynamic};
use super::{ENTRY_FUTURE, ENTRY_SOLUTIONS, ENTRY_SPLIT};
use sweetspot_experiment::StudyError;
use sweetspot_experiment::plot::Table;
use sweetspot_experiment::run::{goodput, run_all};
use sweetspot_statistics as statistics;

/// A change, its settings, and the dynamic flows' sizing.
type Change = (&'static str, &'static [&'static str], Sizing);

const SOLUTIONS: [Change; 7] = [
    ("as in Figure 3", &[], Sizing::RightSizing),
    ("first: a queue of 500 packets", &["path.buffer=500pkt"], Sizing::RightSizing),
    ("second: a back-off to 0.75", &["tcp.backoff=0.75"], Sizing::RightSizing),
    ("second: a back-off to 0.875", &["tcp.backoff=0.875"], Sizing::RightSizing),
    ("second: Vegas", &["transfer.congestion=vegas"], Sizing::RightSizing),
    ("third: the heuristic over maxwnd", &[], Sizing::RightSizingLimited),
    ("third, with SACK", &["transfer.congestion=sack"], Sizing::RightSizingLimited),
];

const PLANS: [Change; 8] = [
    ("as in Figure 6", &[], Sizing::RightSizing),
    ("SACK", &["transfer.congestion=sack"], Sizing::RightSizing),
    ("FACK", &["transfer.congestion=fack"], Sizing::RightSizing),
    ("paced Reno", &["transfer.pacing=true"], Sizing::RightSizing),
    ("RED", &["path.queue=red"], Sizing::RightSizing),
    ("RED and ECN", &["path.queue=red", "tcp.ecn=true"], Sizing::RightSizing),
    ("BLUE", &["path.queue=blue"], Sizing::RightSizing),
    ("BLUE and ECN", &["path.queue=blue", "tcp.ecn=true"], Sizing::RightSizing),
];

/// maxwnd, packets.
const MAX: u64 = 700;

/// One static and one dynamic flow, with a queue of 100 packets.
pub(super) fn solutions(stage: &Stage<'_>) -> Result<Figure, StudyError> {
    let mut figure = ENTRY_SOLUTIONS.figure(format!(
        "`{}` with a queue of 100 packets, maxwnd = {MAX} and `drs`, changed as the first column says. The paper proposes \
         three solutions to the bursts of losses and runs the first one only. The second resets the congestion window to \
         another fraction of the one before the loss, or avoids losses as Vegas does; the third lowers maxwnd slightly where \
         performance degrades and the congestion window fluctuates (`drs:maxwnd`).",
        DRS_3.file
    ));
    figure.tables.extend(finished(stage, DRS_3, &SOLUTIONS, &[100])?);
    Ok(figure)
}

/// Five static and five dynamic flows.
pub(super) fn plans(stage: &Stage<'_>) -> Result<Figure, StudyError> {
    let mut figure = ENTRY_FUTURE.figure(format!(
        "`{}` with maxwnd = {MAX} and `drs`, changed as the first column says: the extensions and queues with which the paper \
         plans to study right-sizing. RED and BLUE mark packets of flows that support ECN. It prints no numbers.",
        DRS_6.file
    ));
    figure.tables.extend(finished(stage, DRS_6, &PLANS, &[100, 500])?);
    Ok(figure)
}

/// A table of all changes with each queue.
fn finished(
    stage: &Stage<'_>,
    base: PaperScenario,
    changes: &[Change],
    queues: &[u64],
) -> Result<Vec<Table>, StudyError> {
    let Some(engine) = stage.sim else { return Ok(Vec::new()) };
    let seeds = stage.precision.seeds(1, 4);
    let mut tables = Vec::new();
    for queue in queues {
        let mut runs: Vec<Scenario> = Vec::new();
        for (_, settings, sizing) in changes {
            let mut all = vec![format!("path.buffer={queue}pkt"), "ties=seeded".to_owned()];
            all.extend(settings.iter().map(|text| (*text).to_owned()));
            runs.extend(seeded(&dynamic(&base.with(&all)?, *sizing, MAX), seeds));
        }
        let outcomes = run_all(engine, &runs, stage.workers)?;
        let heads = [
            "changed",
            "dynamic, thousand packets",
            "static, thousand packets",
            "loss, %",
            "use, %",
        ];
        let title = format!("Q = {queue}, ± two standard errors over {seeds} seeds");
        let mut table = Table::new(&title, &heads);
        let seeds = seeds as usize;
        for ((name, _, _), (runs, outcomes)) in
            changes.iter().zip(runs.chunks(seeds).zip(outcomes.chunks(seeds)))
        {
            let kinds: Vec<Kinds> = (runs.iter().zip(outcomes))
                .map(|(run, outcome): (&Scenario, &Outcome)| Kinds::of(run, outcome))
                .collect();
            let cell = |of: fn(&Kinds) -> f64, digits: usize| {
                let values: Vec<f64> = kinds.iter().map(of).collect();
                let mean = statistics::mean(&values).unwrap_or_default();
                statistics::squared_error(&values).map_or(format!("{mean:.digits$}"), |squared| {
                    format!("{mean:.digits$} ± {:.digits$}", 2.0 * libm::sqrt(squared))
                })
            };
            table.rows.push(vec![
                (*name).to_owned(),
                cell(|kinds| kinds.dynamic, 0),
                cell(|kinds| kinds.fixed, 0),
                cell(|kinds| 100.0 * kinds.loss, 3),
                cell(|kinds| 100.0 * kinds.utilisation, 1),
            ]);
        }
        tables.push(table);
    }
    Ok(tables)
}

/// A path of 60 ms, split by a firewall in the middle.
pub(super) fn split(stage: &Stage<'_>) -> Result<Figure, StudyError> {
    let mut figure = ENTRY_SPLIT.figure(format!(
        "`{}`. A firewall splits the connection into two of 30 ms. Each leg is simulated alone; the slower one decides, because \
         the firewall's buffers are finite. The paper's claim: with static windows the firewall is the bottleneck whatever the \
         hosts have, and right-sizing in the firewall removes it.",
        DRS_2.file
    ));
    let Some(engine) = stage.sim else { return Ok(figure) };
    let fixed = Sizing::Fixed(Volume::Packets(STATIC_WINDOW));
    let rate = |rtt: u64, sizing: Sizing| -> Result<f64, StudyError> {
        let mut scenario =
            DRS_2.with(&[format!("path.rtt={rtt}ms"), "path.delay=5ms".to_owned()])?;
        for transfer in &mut scenario.transfers {
            transfer.sizing = sizing;
            transfer.tcp.max_window = Volume::Packets(MAX);
        }
        let outcomes = run_all(engine, &[scenario], stage.workers)?;
        Ok(outcomes.first().map_or(0.0, |outcome| goodput(outcome) / 1e6))
    };
    let (static_leg, dynamic_leg) = (rate(30, fixed)?, rate(30, Sizing::RightSizing)?);
    let mut table = Table::new("", &["connection", "goodput, Mbit/s"]);
    let rows = [
        ("not split, static hosts", rate(60, fixed)?),
        ("not split, dynamic hosts", rate(60, Sizing::RightSizing)?),
        ("split, everything static", static_leg),
        ("split, dynamic hosts, static firewall", dynamic_leg.min(static_leg)),
        ("split, everything dynamic", dynamic_leg),
    ];
    for (name, rate) in rows {
        table.rows.push(vec![name.to_owned(), format!("{rate:.1}")]);
    }
    figure.tables.push(table);
    Ok(figure)
}
