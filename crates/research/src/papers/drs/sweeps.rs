//! Figures 3 and 5 to 8: packets acknowledged as a function of maxwnd.

use sweetspot_scenario::{Engine, Scenario};
use sweetspot_sizing::Sizing;
use sweetspot_units::{Rate, Volume};

use super::super::comparison::Comparisons;
use super::super::figure::{Entry, Figure, Precision, Stage, curve_table};
use super::super::scenarios::{DRS_3, DRS_5, DRS_6, DRS_7, DRS_8, PaperScenario};
use super::fair::{memory_shares, share};
use super::kinds::{Kinds, count, dynamic};
use super::{ENTRY_3, ENTRY_5, ENTRY_6, ENTRY_7, ENTRY_8};
use crate::csv;
use sweetspot_experiment::StudyError;
use sweetspot_experiment::plot::{Axis, MarkPosition, Origin, Plot};
use sweetspot_experiment::run::run_all;

const WINDOWS: [u64; 14] = [50, 100, 150, 200, 250, 300, 350, 400, 450, 500, 550, 600, 650, 700];
const FAST_WINDOWS: [u64; 7] = [500, 1000, 2000, 4000, 6000, 6500, 7000];

/// The parameters of one of the figures.
struct SweepFigure {
    entry: &'static Entry,
    item: &'static str,
    scenario: PaperScenario,
    queues: &'static [u64],
    /// The values of maxwnd, packets.
    windows: &'static [u64],
    /// Upper end of the paper's y axis, thousands of packets.
    top: f64,
}

/// One static flow and one dynamic flow.
pub(super) fn figure_3(stage: &Stage<'_>) -> Result<Figure, StudyError> {
    let queues = &[100, 500];
    let (entry, scenario, windows) = (&ENTRY_3, DRS_3, &WINDOWS);
    SweepFigure { entry, item: "fig3", scenario, queues, windows, top: 1666.0 }.figure(stage)
}

/// Ten static flows and one dynamic flow.
pub(super) fn figure_5(stage: &Stage<'_>) -> Result<Figure, StudyError> {
    let queues = &[100, 500, 16_384];
    let (entry, scenario, windows) = (&ENTRY_5, DRS_5, &WINDOWS);
    SweepFigure { entry, item: "fig5", scenario, queues, windows, top: 1200.0 }.figure(stage)
}

/// Five static and five dynamic flows.
pub(super) fn figure_6(stage: &Stage<'_>) -> Result<Figure, StudyError> {
    let queues = &[100, 500, 16_384];
    let (entry, scenario, windows) = (&ENTRY_6, DRS_6, &WINDOWS);
    SweepFigure { entry, item: "fig6", scenario, queues, windows, top: 400.0 }.figure(stage)
}

/// Five static and five dynamic flows at ten times the rate.
pub(super) fn figure_7(stage: &Stage<'_>) -> Result<Figure, StudyError> {
    let queues = &[100, 16_384];
    let (entry, scenario, windows) = (&ENTRY_7, DRS_7, &FAST_WINDOWS);
    SweepFigure { entry, item: "fig7", scenario, queues, windows, top: 5000.0 }.figure(stage)
}

/// Ten dynamic flows.
pub(super) fn figure_8(stage: &Stage<'_>) -> Result<Figure, StudyError> {
    let queues = &[100, 16_384];
    let (entry, scenario, windows) = (&ENTRY_8, DRS_8, &WINDOWS);
    SweepFigure { entry, item: "fig8", scenario, queues, windows, top: 250.0 }.figure(stage)
}

impl SweepFigure {
    fn figure(&self, stage: &Stage<'_>) -> Result<Figure, StudyError> {
        let mut published = Comparisons::of("drs", self.item)?;
        let mut figure = self.entry.figure(format!(
            "`{}`; thousand packets acknowledged in 200 s, mean over the flows of a kind, as in \
             the paper. *Measured*: the receivers of the dynamic flows actually run Dynamic Right-Sizing, and \
             maxwnd is their host's maximum. Theory: the paper's measure of fairness, bandwidth in proportion to \
             memory, up to the overflow. ns-2.35 ran the same cases.",
            self.scenario.file,
        ));
        let truth = Truth::read()?;
        for queue in self.queues {
            let scenario = self.scenario.with(&[format!("path.buffer={queue}pkt")])?;
            let mut plot = Plot::new(
                format!("Q = {queue}"),
                Axis::new("maxwnd, packets")
                    .between(0.0, *self.windows.last().unwrap_or(&1) as f64),
                Axis::new("thousand packets acknowledged per flow").between(0.0, self.top),
            );
            if stage.theory {
                self.draw_theory(&mut plot, &scenario, *queue, &mut published)?;
            }
            if let Some(engine) = stage.sim {
                self.draw_simulation(engine, stage, &mut plot, &scenario, &mut published, *queue)?;
            }
            self.draw_truth(&mut plot, &scenario, *queue, &truth);
            self.mark(&mut plot, *queue, &published);
            let mut table = curve_table("maxwnd", &named(&plot), 1);
            table.title = format!("Q = {queue}: thousand packets per flow");
            figure.tables.push(table);
            figure.plots.push(plot);
        }
        figure.comparisons = published.finish();
        Ok(figure)
    }

    fn draw_theory(
        &self,
        plot: &mut Plot,
        scenario: &Scenario,
        queue: u64,
        published: &mut Comparisons,
    ) -> Result<(), StudyError> {
        let (mut fixed, mut changing) = (Vec::new(), Vec::new());
        for window in self.windows {
            let Some((static_flow, dynamic_flow)) = share(scenario, queue, *window)? else {
                continue;
            };
            fixed.push((*window as f64, static_flow));
            changing.push((*window as f64, dynamic_flow));
        }
        let max = *self.windows.last().unwrap_or(&1);
        if queue == 16_384 {
            let (fixed, changing) = memory_shares(scenario, max)?;
            published.put(Origin::Theory, &["over static"], changing / fixed);
            published.put(Origin::Theory, &["dynamic flow"], changing);
            published.put(Origin::Theory, &["static flow"], fixed);
        }
        if count(scenario, true) > 0 {
            plot.curve("static", Origin::Theory, 0, fixed);
        }
        plot.curve("dynamic", Origin::Theory, 1, changing);
        Ok(())
    }

    fn draw_simulation(
        &self,
        engine: &(dyn Engine + Sync),
        stage: &Stage<'_>,
        plot: &mut Plot,
        base: &Scenario,
        published: &mut Comparisons,
        queue: u64,
    ) -> Result<(), StudyError> {
        let limited = |w: &u64| dynamic(base, Sizing::Fixed(Volume::Packets(*w)), *w);
        let mut runs: Vec<Scenario> = self.windows.iter().map(limited).collect();
        // At 1 Gbit/s a run takes ten times as long.
        if self.item != "fig7" || stage.precision == Precision::Careful {
            runs.extend(self.windows.iter().map(|w| dynamic(base, Sizing::RightSizing, *w)));
        }
        let outcomes = run_all(engine, &runs, stage.workers)?;
        let results: Vec<Kinds> =
            runs.iter().zip(&outcomes).map(|(run, outcome)| Kinds::of(run, outcome)).collect();
        let names = [("static", "dynamic"), ("static, measured", "dynamic, measured")];
        for (i, (results, (fixed, changing))) in
            results.chunks(self.windows.len()).zip(names).enumerate()
        {
            let points = |of: fn(&Kinds) -> f64| {
                self.windows.iter().zip(results).map(|(w, r)| (*w as f64, of(r))).collect()
            };
            if count(base, true) > 0 {
                plot.curve(fixed, Origin::Sim, 3 * i, points(|kinds| kinds.fixed));
            }
            plot.curve(changing, Origin::Sim, 3 * i + 1, points(|kinds| kinds.dynamic));
        }
        self.compare(published, queue, &results[..self.windows.len()]);
        Ok(())
    }

    fn draw_truth(&self, plot: &mut Plot, scenario: &Scenario, queue: u64, truth: &Truth) {
        // ns-2 was run only for the paths of 100 Mbit/s.
        if scenario.path.narrow().rate != Rate::from_bits_per_second(100_000_000) {
            return;
        }
        let flows = (count(scenario, true), count(scenario, false));
        let known = |of: fn((f64, f64)) -> f64| {
            let known = self.windows.iter().filter_map(|window| {
                truth.find(flows, queue, *window).map(|found| (*window as f64, of(found)))
            });
            known.collect()
        };
        if flows.0 > 0 {
            plot.curve("static", Origin::Ns2, 0, known(|found| found.0));
        }
        plot.curve("dynamic", Origin::Ns2, 1, known(|found| found.1));
    }

    /// Marks the published numbers that are points or heights in this picture.
    fn mark(&self, plot: &mut Plot, queue: u64, published: &Comparisons) {
        let last = *self.windows.last().unwrap_or(&1) as f64;
        // 200 s of 1500-byte packets: 1 Mbit/s is 16.67 thousand packets.
        let packets = |mbps: f64| mbps * 200.0 / 12.0;
        let mut point = |label: &str, group, words: &[&str], scale: &dyn Fn(f64) -> f64| {
            if let Some(number) = published.published(words) {
                plot.mark(label, group, MarkPosition::Point(last, scale(number)));
            }
        };
        match (self.item, queue) {
            ("fig3", 500) => point("published, dynamic", 1, &["dynamic goodput"], &packets),
            ("fig6", 16_384) => {
                point("published, dynamic", 1, &["dynamic flow"], &|n| n);
                point("published, static", 0, &["static flow"], &|n| n);
            }
            _ => {}
        }
        if let (true, Some(window)) =
            (self.item == "fig3" && queue == 100, published.published(&["losses start"]))
        {
            plot.mark("published: losses start", 1, MarkPosition::Span(window, window));
        }
    }

    fn compare(&self, published: &mut Comparisons, queue: u64, results: &[Kinds]) {
        let (Some(first), Some(last)) = (results.first(), results.last()) else { return };
        let mbps = |kilopackets: f64| kilopackets * 12.0 / 200.0;
        match (self.item, queue) {
            ("fig3", 500) => {
                published.put(Origin::Sim, &["dynamic goodput"], mbps(last.dynamic));
                published.put(Origin::Sim, &["static flow"], mbps(first.fixed));
            }
            ("fig3", 100) => {
                if let Some(at) = results.iter().position(|kinds| kinds.loss > 0.0) {
                    published.put(Origin::Sim, &["losses start"], self.windows[at] as f64);
                }
            }
            (_, 100 | 500) => {
                let case = format!("Q={queue}");
                match drop(results) {
                    Some(at) => {
                        published.put(Origin::Sim, &[&case, "drop"], self.windows[at] as f64)
                    }
                    None => published.put_text(Origin::Sim, &[&case, "drop"], "nowhere"),
                }
            }
            (_, 16_384) => {
                published.put(Origin::Sim, &["over static"], last.dynamic / last.fixed);
                published.put(Origin::Sim, &["utilisation"], last.utilisation * 100.0);
                published.put(Origin::Sim, &["dynamic flow"], last.dynamic);
                published.put(Origin::Sim, &["static flow"], last.fixed);
            }
            _ => {}
        }
    }
}

/// Index of the first window with which dynamic flows get a tenth less than with the window before.
fn drop(results: &[Kinds]) -> Option<usize> {
    results.windows(2).position(|pair| pair[1].dynamic < 0.9 * pair[0].dynamic).map(|at| at + 1)
}

/// The curves for a table, with the engine added to their names.
fn named(plot: &Plot) -> Vec<sweetspot_experiment::plot::Curve> {
    let named = |curve: &sweetspot_experiment::plot::Curve| {
        let label = format!("{}, {}", curve.label, curve.origin.name());
        sweetspot_experiment::plot::Curve { label, ..curve.clone() }
    };
    plot.curves.iter().map(named).collect()
}

/// ns-2's results for the same scenarios.
struct Truth(Vec<Ns2Run>);

/// One run of ns-2.
struct Ns2Run {
    flows: (u64, u64),
    queue: u64,
    window: u64,
    /// Thousands of packets acknowledged per static and per dynamic flow.
    acknowledged: (f64, f64),
}

impl Truth {
    fn read() -> Result<Truth, StudyError> {
        let text = include_str!("../../../data/drs_ns2.csv");
        let table = csv::ReferenceTable::parse("drs_ns2.csv", text)?;
        let rows = table.rows().map(|row| {
            Ok(Ns2Run {
                flows: (row.integer("static_flows")?, row.integer("dynamic_flows")?),
                queue: row.integer("queue_pkt")?,
                window: row.integer("max_window_pkt")?,
                acknowledged: (row.number("static_kpkt")?, row.number("dynamic_kpkt")?),
            })
        });
        Ok(Truth(rows.collect::<Result<_, StudyError>>()?))
    }

    fn find(&self, flows: (u64, u64), queue: u64, window: u64) -> Option<(f64, f64)> {
        let same = |run: &&Ns2Run| (run.flows, run.queue, run.window) == (flows, queue, window);
        self.0.iter().find(same).map(|run| run.acknowledged)
    }
}
