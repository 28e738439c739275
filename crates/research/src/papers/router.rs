//! Prasad, Dovrolis, Thottan: "Router Buffer Sizing for TCP Traffic and the Role of the Output/Input Capacity Ratio". The
//! simulations are in [`crate::router`].

use super::comparison::{Comparisons, EngineValue, PublishedComparison};
use super::figure::{Entry, Figure, Paper, Precision, Stage, curve_table};
use crate::router::{self, FigureData, StudyEffort, Testbed};
use sweetspot_experiment::StudyError;
use sweetspot_experiment::plot::{Axis, MarkPosition, Origin, Plot};
use sweetspot_experiment::router::Runner;

const FIGURE_2: Entry = Paper::Router.entry(
    "router-fig2",
    "Figures 2 to 10: the testbed's delay, use, medians, distributions, and throughput against size",
    figure_2).also(&[
        "router-fig3",
        "router-fig4",
        "router-fig5",
        "router-fig6",
        "router-fig7",
        "router-fig8",
        "router-fig9",
        "router-fig10",
    ]);
const FIGURE_11: Entry =
    Paper::Router.entry("router-fig11", "Figure 11: throughput under M/M/1/B", figure_11);
const FIGURE_13: Entry = Paper::Router
    .entry(
        "router-fig13",
        "Figures 13, 14 and 17: loss, delay and throughput for Gamma = 0.1",
        figure_13,
    )
    .also(&["router-fig14", "router-fig17"]);
const FIGURE_15: Entry = Paper::Router
    .entry("router-fig15", "Figures 15 and 16: loss and delay for Gamma = 10", figure_15)
    .also(&["router-fig16"]);
const SECTION_6B: Entry = Paper::Router.entry(
    "router-sec6b",
    "Section VI-B: which loss form holds, over the capacity ratio and the tail index",
    section_6b,
);
const FIGURE_18: Entry = Paper::Router.entry(
    "router-fig18",
    "Figure 18: throughput for Gamma = 10, simulated and by formula",
    figure_18,
);
const FIGURE_19: Entry =
    Paper::Router.entry("router-fig19", "Figure 19: what a wrong buffer costs", figure_19);

const RULES: Entry =
    Paper::Router.entry("router-rules", "Section II: related rules for a buffer", rules);

/// The paper's figures and tables, in order. Figures 1 and 12 are drawings of the setups; Tables I and II are in
/// docs/results/router.md.
pub(super) const ENTRIES: &[Entry] =
    &[RULES, FIGURE_2, FIGURE_11, FIGURE_13, FIGURE_15, SECTION_6B, FIGURE_18, FIGURE_19];

fn scale(stage: &Stage<'_>) -> StudyEffort {
    match stage.precision {
        Precision::Quick => StudyEffort::QUICK,
        Precision::Careful => StudyEffort::DOCUMENT,
    }
}

fn runner<'a>(stage: &Stage<'a>) -> Option<Runner<'a>> {
    let Stage { store, workers, .. } = *stage;
    Some(Runner { engine: stage.sim?, store, workers, watch: &|_, _| {} })
}

fn figure_2(stage: &Stage<'_>) -> Result<Figure, StudyError> {
    let about = format!(
        "`scenarios/papers/router-testbed-*.toml`: 1 Gbit/s, {} s each in place of 240.",
        scale(stage).testbed_seconds
    );
    let Some(runner) = runner(stage) else {
        return Ok(figure(stage, &FIGURE_2, &about, Vec::new()));
    };
    let testbed = Testbed::new(&runner, scale(stage))?;
    let mut figure = figure(stage, &FIGURE_2, &about, testbed.drawings()?);
    figure.comparisons = testbed
        .printed()
        .into_iter()
        .map(|line| PublishedComparison {
            what: line.what.to_owned(),
            unit: line.unit,
            published: line.published,
            ours: vec![EngineValue {
                origin: Origin::Sim,
                value: line.ours,
                deviation: String::new(),
            }],
        })
        .collect();
    Ok(figure)
}

fn figure_11(stage: &Stage<'_>) -> Result<Figure, StudyError> {
    let about = "Equations (4) and (5), and the best buffers of section V by equations (6) and (7). The paper prints whole per \
                 cents of the BDP, but for flows of 1 MB, for which its formula gives 16 % in place of the printed 15.";
    let mut figure = figure(stage, &FIGURE_11, about, vec![router::figure_11()?]);
    let mut published = Comparisons::of("router", "sec5")?;
    if stage.theory {
        for (case, buffer) in router::section_5()? {
            published.put(Origin::Theory, &[case], buffer.as_f64() / 1e3);
        }
    }
    figure.comparisons = published.finish();
    Ok(figure)
}

/// The buffer sizing rules named in section II, applied to the testbed's link.
fn rules(_stage: &Stage<'_>) -> Result<Figure, StudyError> {
    let mut figure = RULES.figure(
        "Closed forms on the testbed's link, 1 Gbit/s and 85 ms (the mean of its round trips), for persistent flows with packets \
         of 1500 bytes. Loss: 1 %, in flow-proportional queueing (Morris) and as a constraint; queueing delay: 100 ms. The \
         paper's own rule does not depend on the number of flows.",
    );
    figure.tables.push(router::rules_table()?);
    Ok(figure)
}

fn figure_13(stage: &Stage<'_>) -> Result<Figure, StudyError> {
    row(stage, &FIGURE_13, router::POWER_LAW)
}

fn figure_15(stage: &Stage<'_>) -> Result<Figure, StudyError> {
    row(stage, &FIGURE_15, router::EXPONENTIAL)
}

fn section_6b(stage: &Stage<'_>) -> Result<Figure, StudyError> {
    let about = "Table I's link of 50 Mbit/s with a hundred inputs; R2 of both forms, fitted to the \
                 simulation.";
    let drawings = match runner(stage) {
        Some(runner) => router::Grid::new(&runner, scale(stage))?.drawings(),
        None => Vec::new(),
    };
    Ok(figure(stage, &SECTION_6B, about, drawings))
}

fn figure_18(stage: &Stage<'_>) -> Result<Figure, StudyError> {
    row(stage, &FIGURE_18, router::EXPONENTIAL_BUSY)
}

fn figure_19(stage: &Stage<'_>) -> Result<Figure, StudyError> {
    Ok(figure(stage, &FIGURE_19, "Equations (19) and (20).", vec![router::figure_19()?]))
}

fn row(stage: &Stage<'_>, entry: &Entry, setup: router::Setup) -> Result<Figure, StudyError> {
    let about = format!("`{}`; the formulas' parameters are fitted to the simulation.", setup.file);
    let drawings = match runner(stage) {
        Some(runner) => router::RunRow::new(&runner, setup, scale(stage))?.drawings()?,
        None => Vec::new(),
    };
    Ok(figure(stage, entry, &about, drawings))
}

fn figure(stage: &Stage<'_>, entry: &Entry, about: &str, drawings: Vec<FigureData>) -> Figure {
    let mut figure = entry.figure(about);
    for drawing in drawings {
        let plot = plot(&drawing, stage.theory);
        let mut table = curve_table(&plot.x.label, &plot.curves, 3);
        table.title = format!("{}: {}", drawing.title, drawing.y.label);
        figure.tables.push(table);
        figure.plots.push(plot);
    }
    figure
}

fn plot(drawing: &FigureData, theory: bool) -> Plot {
    let axis =
        |axis: router::FigureAxis| Axis { logarithmic: axis.logarithmic, ..Axis::new(axis.label) };
    let mut plot = Plot::new(drawing.title, axis(drawing.x), axis(drawing.y));
    let positive = |point: &&(f64, f64)| {
        (!drawing.x.logarithmic || point.0 > 0.0) && (!drawing.y.logarithmic || point.1 > 0.0)
    };
    for (group, curve) in drawing.curves.iter().enumerate() {
        if !curve.simulated && !theory {
            continue;
        }
        let origin = if curve.simulated { Origin::Sim } else { Origin::Theory };
        let points: Vec<(f64, f64)> = curve.points.iter().filter(positive).copied().collect();
        plot.curve(curve.label.clone(), origin, group, points);
    }
    // A separate colour for each mark: the paper's numbers do not belong to any of our curves.
    for (i, mark) in drawing.published.iter().enumerate() {
        let place = match (mark.x, mark.y) {
            (Some(x), Some(y)) => MarkPosition::Point(x, y),
            (Some(x), None) => MarkPosition::Span(x, x),
            (None, Some(y)) => MarkPosition::Level(y),
            (None, None) => continue,
        };
        plot.mark(format!("published: {}", mark.label), drawing.curves.len() + i, place);
    }
    plot
}
