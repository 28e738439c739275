use core::fmt::Write;

use sweetspot_theory::router::capacity_ratio::Form;
use sweetspot_theory::router::optimum::Best;
use sweetspot_units::{Percent, Significant};

use super::analysis::{Fits, Objective, SimulatedBest, simulated};
use super::bootstrap::BestOfSamples;
use super::drawing::FigureData;
use super::effort::StudyEffort;
use super::grid::{Grid, GridCell};
use super::regression::Regression;
use super::setup::{EXPONENTIAL_BUSY, POWER_LAW, Setup, gamma, inputs};
use super::study::{RunRow, Study};
use super::testbed::Testbed;
use crate::markdown::MarkdownTable;
use crate::page_abstract::Abstract;
use sweetspot_experiment::StudyError;
use sweetspot_experiment::router::measure::BufferMeasured;

const ABSTRACT: Abstract<'_> = Abstract {
    question: "can the results on router buffers by Prasad, Dovrolis and Thottan be reproduced?",
    method: "every row of Table I and every experiment of the testbed runs in the simulator, over a range of buffers.",
    result: "the section below lists the claims that hold and those that do not; tables and figures follow.",
    limitation: "simulated, with shorter runs than the paper's; the line on effort has the durations.",
    command: "`sweetspot-research reproduce router-tables --out docs/results`",
};

const NOTES: &str = include_str!("../../data/router_notes.md");

/// docs/results/router.md for the simulations; `made` names the program, machine and date.
///
/// # Errors
/// If a formula is not applicable.
pub fn document(study: &Study, scale: StudyEffort, made: &str) -> Result<String, StudyError> {
    let mut text = format!(
        "# Router buffers: the third paper's simulations, repeated\n\n{ABSTRACT}\
         {made} Do not edit. Every row of Table I and every experiment of the testbed is a file in \
         `scenarios/papers/` for `sweetspot run`, e.g. `sweetspot sweep \
         scenarios/papers/router-pl-n20-u100.toml --over path.buffer=30pkt,80pkt,250pkt`.\n\n",
    );
    let _ = writeln!(
        text,
        "Effort: Table I: {} buffers from two packets to four times C T_o, seeds 1 to {}, {} s each \
         after 20 s of warm-up ({} s at 100 Mbit/s). Testbed: the paper's gigabit, not scaled, ten \
         buffers, seeds 1 to {}, {} s after 15 s where the paper has 240 s after 60; Figure 4 {} s. \
         Section VI-B: {} buffers, seeds 1 to {}, {} s after 15 s.\n",
        scale.buffers,
        scale.seeds,
        scale.seconds,
        scale.seconds.div_ceil(3),
        scale.testbed_seeds,
        scale.testbed_seconds,
        scale.load_seconds,
        scale.grid_buffers,
        scale.grid_seeds,
        scale.grid_seconds,
    );
    text.push_str(NOTES);
    text.push_str("\n## The testbed: Figures 2 to 8\n\n");
    text.push_str(&testbed(&study.testbed));
    text.push_str("\n## Table I: which form holds\n\n");
    text.push_str(&forms(&study.rows)?);
    text.push_str("\n## Table II: the best buffer\n\n");
    text.push_str(&table_2(&study.rows)?);
    text.push_str("\n## Best buffer of every row\n\n");
    text.push_str(&optima(&study.rows)?);
    text.push_str("\n## Section VI-B: which form holds over the ratio and the tail\n\n");
    text.push_str(&section_6b(&study.grid));
    text.push_str("\n## Beyond the paper: a, b and f from what an operator can measure\n\n");
    text.push_str(&Regression::embedded()?.markdown());
    text.push_str("\n## Figures\n\n");
    for figure in &study.drawings {
        text.push_str(&figure_table(figure));
    }
    Ok(text)
}

fn testbed(testbed: &Testbed) -> String {
    let mut table = MarkdownTable::new(&["quantity", "unit", "paper", "here"]);
    for line in testbed.printed() {
        table.row(&[line.what, line.unit, line.published, &line.ours]);
    }
    format!(
        "{table}\nMeans over the seeds with 95 % intervals (Student's t); best buffers with those as good \
         within two standard errors.\n"
    )
}

fn forms(rows: &[RunRow]) -> Result<String, StudyError> {
    let mut table = MarkdownTable::new(&[
        "scenario",
        "Gamma",
        "used",
        "cutoff",
        "points",
        "R2 PL",
        "R2 EX",
        "better (p)",
        "of samples",
        "a",
        "b",
        "f",
    ]);
    for row in rows {
        let ratio = gamma(&row.scenario)?;
        let max = row.measured.iter().map(|m| m.utilisation).fold(0.0, f64::max);
        let mut cells =
            vec![name(row), format!("{:.1}", ratio.gamma()), format!("{:.0} %", max * 100.0)];
        match &row.fits {
            Ok(fits) => cells.extend(form_cells(row, fits)?),
            Err(_) => cells.resize(12, "-".to_owned()),
        }
        table.row(&cells);
    }
    let mut text = table.to_string();
    let failed = rows.iter().filter_map(|row| Some((row, row.fits.as_ref().err()?)));
    for (row, error) in failed {
        let _ = writeln!(text, "\n{}: no fit: {error}.", name(row));
    }
    text.push_str(
        "\na and b belong to the form that Gamma calls for. Cutoff, a, b and f with the 95 % \
         interval of 200 bootstrap samples of the seeds; \"better\" is Williams' test at 5 %, \"of samples\" the \
         share of those samples with the same result.\n",
    );
    Ok(text)
}

fn form_cells(row: &RunRow, fits: &Fits) -> Result<[String; 9], StudyError> {
    let form = expected(row)?;
    let samples = row.bootstrap.as_ref();
    let value = |of: &dyn Fn(&Fits) -> f64| {
        let interval = samples.and_then(|samples| samples.interval(of));
        with_interval(of(fits), interval)
    };
    let share = |better| samples.map_or("-".to_owned(), |s| Percent(s.better(better)).to_string());
    let same = fits.comparison.better.map_or("-".to_owned(), share);
    Ok([
        value(&|fits| fits.cutoff as f64),
        fits.points.to_string(),
        format!("{:.3}", fits.comparison.power_law_r2),
        format!("{:.3}", fits.comparison.exponential_r2),
        format!("{} ({:.2e})", word(fits.comparison.better), fits.comparison.p_value),
        same,
        value(&|fits| fits.loss(form).a.value),
        value(&|fits| fits.loss(form).b.value),
        value(&|fits| fits.delay.value),
    ])
}

fn word(form: Option<Form>) -> &'static str {
    match form {
        Some(Form::PowerLaw) => "PL",
        Some(Form::Exponential) => "EX",
        None => "neither",
    }
}

/// The paper's values: case, setup, objective, and best buffer by simulation and by analysis.
const TABLE_2: [(&str, Setup, Objective, &str, &str); 4] = [
    ("PL-L", POWER_LAW, Objective::Long, "170 +- 10", "146"),
    ("PL-S", POWER_LAW, Objective::Short, "64 +- 2", "47"),
    ("EX-L", EXPONENTIAL_BUSY, Objective::Long, "30 +- 2", "0"),
    ("EX-S", EXPONENTIAL_BUSY, Objective::Short, "20 +- 2", "0"),
];

fn table_2(rows: &[RunRow]) -> Result<String, StudyError> {
    let mut table = MarkdownTable::new(&[
        "case",
        "paper, simulated",
        "here, simulated, up to C T_o (tied)",
        "here, simulated, any buffer (tied)",
        "paper, analysis",
        "here, analysis",
    ]);
    for (case, setup, objective, simulation, analysis) in TABLE_2 {
        let Some(row) = rows.iter().find(|row| row.setup == setup) else { continue };
        let bdp = row.scenario.path.bdp().get() / row.scenario.path.packet.get();
        let within = row.measured.partition_point(|m| m.buffer <= bdp);
        table.row(&[
            case,
            simulation,
            &found(by_simulation(&row.measured[..within], objective)),
            &found(by_simulation(&row.measured, objective)),
            analysis,
            &by_formula(row, objective)?,
        ]);
    }
    Ok(format!(
        "{table}\nPackets. \"tied\": buffers whose median throughput is within two standard errors of \
         the best; the paper takes the smallest of the best. \"None seen\": the largest buffer tried is among \
         the best, so there is no maximum to compare. Analysis with the 95 % interval of the \
         bootstrap.\n"
    ))
}

fn optima(rows: &[RunRow]) -> Result<String, StudyError> {
    let mut table = MarkdownTable::new(&[
        "scenario",
        "C T_o",
        "S, simulated (tied)",
        "S, analysis",
        "L, simulated (tied)",
        "L, analysis",
        "> 1000 kB, simulated (tied)",
    ]);
    for row in rows {
        let path = &row.scenario.path;
        table.row(&[
            name(row),
            format!("{:.1}", path.bdp().as_f64() / path.packet.as_f64()),
            found(by_simulation(&row.measured, Objective::Short)),
            by_formula(row, Objective::Short)?,
            found(by_simulation(&row.measured, Objective::Long)),
            by_formula(row, Objective::Long)?,
            found(simulated(&row.measured, |m| &m.large)),
        ]);
    }
    Ok(format!(
        "{table}\nA dash: fewer than 30 flows at every buffer. \"Unbounded\": by the formula, throughput grows \
         with the buffer without end; the share is the fraction of bootstrap samples with this result.\n"
    ))
}

/// The best buffer according to the simulation.
fn by_simulation(measured: &[BufferMeasured], objective: Objective) -> Option<SimulatedBest> {
    match objective {
        Objective::Short => simulated(measured, |m| &m.short),
        Objective::Long => simulated(measured, |m| &m.long),
    }
}

/// The best buffer according to the fitted formula.
fn by_formula(row: &RunRow, objective: Objective) -> Result<String, StudyError> {
    let Ok(fits) = &row.fits else { return Ok("-".to_owned()) };
    let form = expected(row)?;
    let samples = row.bootstrap.as_ref().map(|samples| samples.best(form, objective));
    let unbounded = samples.map_or(0.0, |samples| samples.unbounded);
    Ok(match fits.best(form, objective)? {
        Best::Zero if unbounded > 0.0 => format!("0; unbounded in {}", Percent(unbounded)),
        Best::Zero => "0".to_owned(),
        Best::At(buffer) => with_interval(libm::round(buffer.get()), samples.and_then(whole)),
        Best::Unbounded if samples.is_some() => format!("unbounded in {}", Percent(unbounded)),
        Best::Unbounded => "unbounded".to_owned(),
    })
}

fn whole(samples: BestOfSamples) -> Option<(f64, f64)> {
    samples.interval.map(|(low, high)| (libm::round(low), libm::round(high)))
}

/// The form expected for the row's Gamma.
fn expected(row: &RunRow) -> Result<Form, StudyError> {
    let ratio = gamma(&row.scenario)?.gamma();
    Ok(if ratio > 1.0 { Form::Exponential } else { Form::PowerLaw })
}

/// The row's scenario file and number of inputs.
fn name(row: &RunRow) -> String {
    let count = inputs(&row.scenario).map_or(0, |inputs| inputs.count);
    let file = row.setup.file.rsplit('/').next().unwrap_or_default();
    format!("`{}` (N_in = {count})", file.trim_end_matches(".toml"))
}

fn section_6b(grid: &Grid) -> String {
    let mut heads = vec!["tail index".to_owned()];
    heads.extend(Grid::GAMMAS.iter().map(|gamma| format!("Gamma = {gamma}")));
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    let mut table = MarkdownTable::new(&heads);
    for tail in Grid::TAILS {
        let mut cells = vec![tail.to_string()];
        let row = grid.cells.iter().filter(|cell| cell.tail_index == tail);
        cells.extend(row.map(cell));
        table.row(&cells);
    }
    format!(
        "R2 of PL / of EX, and which of the two fits better by Williams' test at 5 %, with the share of \
         bootstrap samples with the same result; \"neither\": the test is not significant. The link of 50 Mbit/s and \
         60 ms of Table I, a hundred inputs, one and a half times the users that fill it, buffers from two packets \
         to twice C T_o.\n\n{table}\n"
    )
}

fn cell(cell: &GridCell) -> String {
    let Ok(fits) = &cell.fits else { return "no fit".to_owned() };
    let r2 = format!("{:.3} / {:.3}", fits.comparison.power_law_r2, fits.comparison.exponential_r2);
    match (cell.better(), &cell.bootstrap) {
        (Some(form), Some(samples)) => {
            format!("{r2}: {} ({})", word(Some(form)), Percent(samples.better(form)))
        }
        (better, _) => format!("{r2}: {}", word(better)),
    }
}

fn found(best: Option<SimulatedBest>) -> String {
    match best {
        None => "-".to_owned(),
        Some(SimulatedBest { tied: (low, high), at_end: true, .. }) => {
            format!("none seen ({low}-{high})")
        }
        Some(SimulatedBest { best, tied: (low, high), .. }) => format!("{best} ({low}-{high})"),
    }
}

fn with_interval(value: f64, interval: Option<(f64, f64)>) -> String {
    let value = Significant::<3>(value);
    match interval {
        None => value.to_string(),
        Some((low, high)) => {
            format!("{value} ({}-{})", Significant::<3>(low), Significant::<3>(high))
        }
    }
}

/// A figure's numbers: one row per x value with a simulated point or, without simulations, per x
/// value of the formulas.
fn figure_table(figure: &FigureData) -> String {
    let mut heads = vec![figure.x.label];
    heads.extend(figure.curves.iter().map(|curve| curve.label.as_str()));
    let mut places: Vec<f64> =
        figure.curves.iter().flat_map(|curve| curve.points.iter().map(|point| point.0)).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    let every = places.len().div_ceil(MAX_ROWS).max(1);
    let mut table = MarkdownTable::new(&heads);
    for place in places.into_iter().step_by(every) {
        let mut cells = vec![Significant::<3>(place).to_string()];
        cells.extend(figure.curves.iter().map(|curve| {
            let point = curve.points.iter().find(|point| point.0 == place);
            point.map_or(String::new(), |point| Significant::<3>(point.1).to_string())
        }));
        table.row(&cells);
    }
    let mut text = format!(
        "### {}\n\n{} against {}.\n\n{table}\n",
        figure.title, figure.y.label, figure.x.label
    );
    for mark in &figure.published {
        let place = [
            mark.x.map(|x| format!("{} {}", figure.x.label, Significant::<3>(x))),
            mark.y.map(|y| format!("{} {}", figure.y.label, Significant::<3>(y))),
        ];
        let place: Vec<String> = place.into_iter().flatten().collect();
        let _ = writeln!(text, "Published: {}: {}.\n", mark.label, place.join(", "));
    }
    text
}

/// The maximum number of rows for a figure.
const MAX_ROWS: usize = 31;
