use core::fmt::Write;

use sweetspot_scenario::Engine;
use sweetspot_theory::router::capacity_ratio::Form;
use sweetspot_theory::router::fit::Estimate;
use sweetspot_theory::router::optimum::Best;

use super::analysis::{Objective, SimulatedBest, simulated};
use super::drawing::FigureData;
use super::measure::BufferMeasured;
use super::setup::{EXPONENTIAL_BUSY, POWER_LAW, Setup, gamma, inputs};
use super::study::{PlayedRow, Study, StudyEffort};
use crate::markdown::MarkdownTable;
use crate::{StudyError, Workers};

const NOTES: &str = include_str!("../../data/router_notes.md");

/// Plays everything and writes docs/results/router.md.
///
/// # Errors
/// If the engine cannot play a row of Table I.
pub fn document<E: Engine + Sync + ?Sized>(
    engine: &E,
    scale: StudyEffort,
    workers: Workers,
    watch: &(dyn Fn(&Setup, usize, usize) + Sync),
) -> Result<String, StudyError> {
    let study = Study::new(engine, scale, workers, watch)?;
    let mut text = String::from(
        "# Router buffers: the third paper's simulations, played again\n\n\
         Written by `sweetspot reproduce router-tables --out docs/results`; do not edit. Every row of Table I is a file in \
         `scenarios/papers/` that `sweetspot run` plays, e.g. `sweetspot sweep \
         scenarios/papers/router-pl-n20-u100.toml --over path.buffer=30pkt,80pkt,250pkt`.\n\n",
    );
    let _ = writeln!(
        text,
        "Scale: {} buffers from two packets to four times C T_o, {} seeds, {} s each after 20 s of \
         warm-up ({} s at 100 Mbit/s); the testbed's gigabit link {} s after 15 s.\n",
        scale.buffers,
        scale.seeds,
        scale.seconds,
        scale.seconds.div_ceil(3),
        scale.testbed_seconds
    );
    text.push_str(NOTES);
    text.push_str("\n## Table I: which form holds\n\n");
    text.push_str(&forms(&study.rows)?);
    text.push_str("\n## Table II: the best buffer\n\n");
    text.push_str(&table_2(&study.rows)?);
    text.push_str("\n## Best buffer of every row\n\n");
    text.push_str(&optima(&study.rows)?);
    text.push_str("\n## Figures\n\n");
    for figure in &study.drawings {
        text.push_str(&figure_table(figure));
    }
    Ok(text)
}

fn forms(rows: &[PlayedRow]) -> Result<String, StudyError> {
    let mut table = MarkdownTable::new(&[
        "scenario",
        "Gamma",
        "used",
        "cutoff",
        "points",
        "R2 PL",
        "R2 EX",
        "better (p)",
        "a",
        "b",
        "f",
    ]);
    for row in rows {
        let ratio = gamma(&row.scenario)?;
        let most = row.measured.iter().map(|m| m.utilisation).fold(0.0, f64::max);
        let (name, used) = (name(row), format!("{:.0} %", most * 100.0));
        let gamma = format!("{:.1}", ratio.gamma());
        let Ok(fits) = &row.fits else {
            let mut cells = vec![name, gamma, used];
            cells.resize(11, "-".to_owned());
            table.row(&cells);
            continue;
        };
        let form = expected(row)?;
        let loss = fits.loss(form);
        let comparison = match fits.comparison.better {
            Some(Form::PowerLaw) => "PL",
            Some(Form::Exponential) => "EX",
            None => "neither",
        };
        table.row(&[
            name,
            gamma,
            used,
            fits.cutoff.to_string(),
            fits.points.to_string(),
            format!("{:.3}", fits.comparison.power_law_r2),
            format!("{:.3}", fits.comparison.exponential_r2),
            format!("{comparison} ({:.2e})", fits.comparison.p_value),
            interval(loss.a),
            interval(loss.b),
            interval(fits.delay),
        ]);
    }
    let mut text = table.to_string();
    let failed = rows.iter().filter_map(|row| Some((row, row.fits.as_ref().err()?)));
    for (row, error) in failed {
        let _ = writeln!(text, "\n{}: no fit: {error}.", name(row));
    }
    text.push_str(
        "\na and b are those of the form that Gamma calls for, with 95 % intervals; \"better\" is \
         Williams' test at 5 %.\n",
    );
    Ok(text)
}

/// What the paper prints: case, best by simulation and by analysis, and whom it serves.
const TABLE_2: [(&str, Setup, Objective, &str, &str); 4] = [
    ("PL-L", POWER_LAW, Objective::Long, "170 +- 10", "146"),
    ("PL-S", POWER_LAW, Objective::Short, "64 +- 2", "47"),
    ("EX-L", EXPONENTIAL_BUSY, Objective::Long, "30 +- 2", "0"),
    ("EX-S", EXPONENTIAL_BUSY, Objective::Short, "20 +- 2", "0"),
];

fn table_2(rows: &[PlayedRow]) -> Result<String, StudyError> {
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
         the best; the paper takes the smallest of the best.\n"
    ))
}

fn optima(rows: &[PlayedRow]) -> Result<String, StudyError> {
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
    Ok(format!("{table}\nA dash: fewer than 30 flows at every buffer.\n"))
}

/// The best buffer by simulation.
fn by_simulation(measured: &[BufferMeasured], objective: Objective) -> Option<SimulatedBest> {
    match objective {
        Objective::Short => simulated(measured, |m| &m.short),
        Objective::Long => simulated(measured, |m| &m.long),
    }
}

/// The best buffer by the fitted formulas.
fn by_formula(row: &PlayedRow, objective: Objective) -> Result<String, StudyError> {
    let form = expected(row)?;
    let best = row.fits.as_ref().ok().and_then(|fits| fits.best(form, objective).ok());
    Ok(match best {
        Some(Best::Zero) => "0".to_owned(),
        Some(Best::At(buffer)) => format!("{:.0}", buffer.get()),
        Some(Best::Unbounded) => "unbounded".to_owned(),
        None => "-".to_owned(),
    })
}

/// The form that the row's Gamma calls for.
fn expected(row: &PlayedRow) -> Result<Form, StudyError> {
    Ok(match gamma(&row.scenario)?.gamma() {
        gamma if gamma < 1.0 => Form::PowerLaw,
        _ => Form::Exponential,
    })
}

fn name(row: &PlayedRow) -> String {
    let links = inputs(&row.scenario).map_or(0, |inputs| inputs.count);
    let file = row.setup.file.rsplit('/').next().unwrap_or(row.setup.file);
    format!("`{}` (N_in = {links})", file.trim_end_matches(".toml"))
}

fn found(best: Option<SimulatedBest>) -> String {
    match best {
        None => "-".to_owned(),
        Some(SimulatedBest { best, tied: (low, high), .. }) => format!("{best} ({low}-{high})"),
    }
}

fn interval(estimate: Estimate) -> String {
    let Estimate { value, low, high } = estimate;
    format!("{} ({}-{})", short(value), short(low), short(high))
}

/// Three significant digits, whole numbers as they are.
fn short(number: f64) -> String {
    if number == libm::round(number) {
        return format!("{number:.0}");
    }
    let decimals = (2.0 - libm::floor(libm::log10(number.abs().max(1e-9)))).clamp(0.0, 6.0);
    format!("{number:.*}", decimals as usize)
}

/// A figure's numbers: one row per place on the axis across that has a simulated point, or, where
/// nothing was simulated, per place of the formulas.
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
        let mut cells = vec![short(place)];
        cells.extend(figure.curves.iter().map(|curve| {
            let point = curve.points.iter().find(|point| point.0 == place);
            point.map_or(String::new(), |point| short(point.1))
        }));
        table.row(&cells);
    }
    let mut text = format!(
        "### {}\n\n{} against {}.\n\n{table}\n",
        figure.title, figure.y.label, figure.x.label
    );
    for mark in &figure.published {
        let place = [
            mark.x.map(|x| format!("{} {}", figure.x.label, short(x))),
            mark.y.map(|y| format!("{} {}", figure.y.label, short(y))),
        ];
        let place: Vec<String> = place.into_iter().flatten().collect();
        let _ = writeln!(text, "Published: {}: {}.\n", mark.label, place.join(", "));
    }
    text
}

/// Largest number of rows of a figure's table.
const MAX_ROWS: usize = 31;
