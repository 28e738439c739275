//! The testbed of section III: Figures 2 to 10.

use sweetspot_scenario::{Scenario, TrafficKind};
use sweetspot_statistics::{mean, mean_interval};
use sweetspot_units::Duration;

use super::analysis::{SimulatedBest, simulated};
use super::drawing::{FigureData, logarithmic, straight};
use super::effort::StudyEffort;
use super::setup::{Setup, TESTBED};
use super::simulations;
use sweetspot_experiment::StudyError;
use sweetspot_experiment::router::measure::{
    BufferMeasured, MedianThroughput, Runner, measure, run_all,
};
use sweetspot_experiment::router::run::{INTERVAL, Run};

/// The complete results for the testbed.
#[derive(Debug)]
pub struct Testbed {
    /// U_1000, U_1200, U_3000 and open loop.
    pub experiments: [Experiment; 4],
    /// U_1000 with a buffer of 4 MB, sampled for Figure 4.
    pub loads: Vec<Run>,
    /// U_1000 and U_1200 with a buffer of 4 MB and the number of users that the paper gives.
    pub as_printed: [BufferMeasured; 2],
}

/// One of the testbed's experiments.
#[derive(Debug)]
pub struct Experiment {
    /// The experiment.
    pub setup: Setup,
    /// The experiment's scenario.
    pub scenario: Scenario,
    /// Measurements, sorted by buffer.
    pub measured: Vec<BufferMeasured>,
}

/// A number that the paper prints about its testbed, with ours.
#[derive(Debug, Clone, PartialEq)]
pub struct Printed {
    /// The figure and quantity.
    pub what: &'static str,
    /// The unit.
    pub unit: &'static str,
    /// The number as printed.
    pub published: &'static str,
    /// Our number, with its 95 % interval.
    pub ours: String,
}

/// 30 kB to 38 MB, the ends of the paper's twenty buffers, in packets.
const BUFFERS: [u64; 10] = [20, 45, 100, 133, 300, 667, 1400, 2667, 8000, 25_333];
/// Figure 8's buffers: 30 kB and 38 MB as printed; the paper does not give the two in between.
const CDF_BUFFERS: [u64; 4] = [20, 133, 1400, 25_333];
/// Figure 4's buffer of 4 MB, in packets.
const SAMPLED_BUFFER: u64 = 2667;
const PACKET: f64 = 1500.0;

impl Testbed {
    /// Runs all experiments.
    ///
    /// # Errors
    /// If the engine cannot run an experiment.
    pub fn new(runner: &Runner<'_>, scale: StudyEffort) -> Result<Testbed, StudyError> {
        let [u1000, u1200, u3000, open] = TESTBED;
        let experiments = [
            Experiment::new(runner, u1000, scale)?,
            Experiment::new(runner, u1200, scale)?,
            Experiment::new(runner, u3000, scale)?,
            Experiment::new(runner, open, scale)?,
        ];
        let as_printed =
            [as_printed(runner, u1000, 1000, scale)?, as_printed(runner, u1200, 1200, scale)?];
        Ok(Testbed { experiments, loads: loads(runner, u1000, scale)?, as_printed })
    }

    fn saturated(&self) -> &Experiment {
        &self.experiments[2]
    }

    /// Figures 2 to 10.
    ///
    /// # Errors
    /// If a formula is not applicable.
    pub fn drawings(&self) -> Result<Vec<FigureData>, StudyError> {
        let [u1000, u1200, u3000, open] = &self.experiments;
        let mut all = vec![self.figure_2(), self.figure_3(), self.figure_4()];
        all.push(u1000.medians("router-fig5", "Figure 5: median throughput, U_1000"));
        all.push(u1200.medians("router-fig6", "Figure 6: median throughput, U_1200"));
        all.push(u3000.medians("router-fig7", "Figure 7: median throughput, U_3000"));
        all.push(open.medians("router-open", "Footnote 4: median throughput, open loop, 85 %"));
        let classes: [(&'static str, &'static str, super::simulations::ClassOf); 2] = [
            ("router-fig8-small", "Figure 8: small flows, U_3000", |run| &run.small),
            ("router-fig8-large", "Figure 8: large flows, U_3000", |run| &run.large),
        ];
        for (name, title, of) in classes {
            all.push(simulations::distributions(name, title, &u3000.at(&CDF_BUFFERS), of));
        }
        for (name, title, buffer) in [
            ("router-fig9", "Figure 9: throughput against flow size, B = 30 kB", BUFFERS[0]),
            ("router-fig10", "Figure 10: throughput against flow size, B = 38 MB", BUFFERS[9]),
        ] {
            for m in u3000.at(&[buffer]) {
                all.push(simulations::sizes(name, title, &u3000.scenario, m)?);
            }
        }
        Ok(all)
    }

    fn figure_2(&self) -> FigureData {
        let mut figure = FigureData::new(
            "router-fig2",
            "Figure 2: the longest wait in the buffer, U_3000",
            logarithmic("buffer, kB"),
            logarithmic("delay, ms"),
        );
        let all = &self.saturated().measured;
        let longest =
            |m: &BufferMeasured| m.runs.iter().map(|run| run.delay_max_s).fold(0.0, f64::max);
        figure.simulated("seen", all.iter().map(|m| (kilobytes(m), longest(m) * 1e3)));
        figure.formula("B / C", all.iter().map(|m| (kilobytes(m), kilobytes(m) * 8e-3)));
        figure
    }

    fn figure_3(&self) -> FigureData {
        let mut figure = FigureData::new(
            "router-fig3",
            "Figure 3: use of the link",
            logarithmic("buffer, kB"),
            straight("used, %"),
        );
        for experiment in &self.experiments {
            let points = experiment.measured.iter().map(|m| (kilobytes(m), m.utilisation * 100.0));
            figure.simulated(experiment.name(), points);
        }
        figure
    }

    fn figure_4(&self) -> FigureData {
        let mut figure = FigureData::new(
            "router-fig4",
            "Figure 4: share of the time under heavy load, U_1000, B = 4 MB",
            logarithmic("averaged over, s"),
            straight("share of the time, %"),
        );
        for level in [0.90, 0.95] {
            let label = format!("used more than {:.0} %", level * 100.0);
            let points = SPANS.iter().map(|span| {
                let shares = self.loads.iter().map(|run| heavy(&run.loads, *span, level));
                (*span, mean(&shares.collect::<Vec<f64>>()).unwrap_or(0.0) * 100.0)
            });
            figure.simulated(&label, points);
        }
        figure.mark("more than 95 %, at a mean of 68 %", Some(10.0), Some(7.0));
        figure
    }

    /// Every number that the paper prints about Figures 2 to 8, with ours.
    pub fn printed(&self) -> Vec<Printed> {
        let [u1000, u1200, u3000, open] = &self.experiments;
        let mut all = self.printed_use();
        all.extend(u1000.printed_best([
            ("Figure 5: best for small flows, U_1000", "less than large"),
            ("Figure 5: best for large flows, U_1000", ""),
        ]));
        all.extend(u1200.printed_best([
            ("Figure 6: best for small flows, U_1200", "above U_1000's"),
            ("Figure 6: best for large flows, U_1200", "above U_1000's"),
        ]));
        all.extend(u3000.printed_best([
            ("Figure 7: best for small flows, U_3000", "then falls"),
            ("Figure 7: best for large flows, U_3000", "above U_1200's"),
        ]));
        all.extend(u3000.printed_variation());
        all.extend(open.printed_best([
            ("Footnote 4: open loop, best for small flows", "no difference"),
            ("Footnote 4: open loop, best for large flows", "no difference"),
        ]));
        all.push(Printed {
            what: "Footnote 4: open loop uses, with enough buffer",
            unit: "%",
            published: "",
            ours: open.max_use(),
        });
        all
    }

    /// Figures 2 to 4: delay and link utilisation.
    fn printed_use(&self) -> Vec<Printed> {
        let [u1000, u1200, u3000, _] = &self.experiments;
        let [by_1000, by_1200] = self.as_printed.each_ref().map(|m| percent(m, |r| r.utilisation));
        let loads = BufferMeasured::of(SAMPLED_BUFFER, self.loads.clone());
        let used = percent(&loads, |run| run.utilisation);
        let heavy_load = percent(&loads, |run| heavy(&run.loads, 10.0, 0.95));
        let line = |what, unit, published, ours| Printed { what, unit, published, ours };
        vec![
            line("Figure 2: longest wait over B / C", "", "1", u3000.longest_wait()),
            line("Figure 3: U_1000 uses, with enough buffer", "%", "60-70", u1000.max_use()),
            line("Figure 3: U_1200 uses, with enough buffer", "%", "80-90", u1200.max_use()),
            line("Figure 3: use by 1000 users", "%", "60-70", by_1000),
            line("Figure 3: use by 1200 users", "%", "80-90", by_1200),
            line("Figure 3: U_3000 uses, with enough buffer", "%", "saturated", u3000.max_use()),
            line("Figure 3: least buffer for the most use, U_3000", "kB", ">= 200", u3000.enough()),
            line("Figure 3: least buffer for the most use, U_1000", "kB", "more", u1000.enough()),
            line("Figure 3: least buffer for the most use, U_1200", "kB", "more", u1200.enough()),
            line("Figure 4: mean use", "%", "68", used),
            line("Figure 4: time above 95 %, averaged over 10 s", "%", "7", heavy_load),
        ]
    }
}

/// U_1000 with 4 MB for as long as the paper's run, sampled.
fn loads(runner: &Runner<'_>, setup: Setup, scale: StudyEffort) -> Result<Vec<Run>, StudyError> {
    let mut scenario = setup.sampled()?;
    scenario.duration = Duration::from_secs(scale.load_seconds);
    let narrow = scenario.path.bottleneck();
    scenario.path.hops[narrow].buffer = sweetspot_units::Volume::Packets(SAMPLED_BUFFER);
    let seeds = 0..scale.testbed_seeds;
    let runs: Vec<Scenario> =
        seeds.map(|i| Scenario { seed: scenario.seed + i, ..scenario.clone() }).collect();
    run_all(runner, &runs)
}

/// An experiment with the number of users that the paper gives, with one buffer.
fn as_printed(
    runner: &Runner<'_>,
    setup: Setup,
    users: u64,
    scale: StudyEffort,
) -> Result<BufferMeasured, StudyError> {
    let mut scenario = setup.scenario()?;
    scenario.duration = Duration::from_secs(scale.testbed_seconds);
    let entries = scenario.cross.len() as u64;
    for cross in &mut scenario.cross {
        if let TrafficKind::ClosedLoop { users: own, .. } = &mut cross.kind {
            *own = users / entries;
        }
    }
    let mut found = measure(runner, &scenario, &[SAMPLED_BUFFER], scale.testbed_seeds)?;
    Ok(found.remove(0))
}

/// Figure 4's averaging time scales, seconds.
const SPANS: [f64; 8] = [0.1, 0.3, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0];

/// The fraction of intervals of `span` seconds in which more than `level` of the link is used.
fn heavy(loads: &[f64], span: f64, level: f64) -> f64 {
    let each = libm::round(span / INTERVAL.as_secs_f64()).max(1.0) as usize;
    let spans: Vec<f64> = loads.chunks_exact(each).filter_map(mean).collect();
    spans.iter().filter(|load| **load > level).count() as f64 / spans.len().max(1) as f64
}

impl Experiment {
    fn new(
        runner: &Runner<'_>,
        setup: Setup,
        scale: StudyEffort,
    ) -> Result<Experiment, StudyError> {
        let mut scenario = setup.scenario()?;
        scenario.duration = Duration::from_secs(scale.testbed_seconds);
        let measured = measure(runner, &scenario, &BUFFERS, scale.testbed_seeds)?;
        Ok(Experiment { setup, scenario, measured })
    }

    fn name(&self) -> &str {
        self.scenario.title.rsplit(": ").next().unwrap_or_default()
    }

    fn at(&self, buffers: &[u64]) -> Vec<&BufferMeasured> {
        self.measured.iter().filter(|m| buffers.contains(&m.buffer)).collect()
    }

    fn medians(&self, name: &'static str, title: &'static str) -> FigureData {
        let mut figure = FigureData::new(
            name,
            title,
            logarithmic("buffer, kB"),
            logarithmic("throughput, kbit/s"),
        );
        type SizeClass = fn(&BufferMeasured) -> &MedianThroughput;
        let small: SizeClass = |m| &m.small;
        let large: SizeClass = |m| &m.large;
        for (label, of) in [("45 to 50 kB", small), ("more than 1000 kB", large)] {
            let some = self.measured.iter().filter(|m| of(m).flows > 0);
            figure.simulated(label, some.map(|m| (kilobytes(m), of(m).median_bps / 1e3)));
        }
        figure
    }

    /// The best buffers for small and for large flows; `published` has the name and printed value of each.
    fn printed_best(&self, published: [(&'static str, &'static str); 2]) -> Vec<Printed> {
        let ours = [self.best(|m| &m.small), self.best(|m| &m.large)];
        let lines = published.into_iter().zip(ours);
        lines
            .map(|((what, published), ours)| Printed { what, unit: "kB", published, ours })
            .collect()
    }

    /// Figure 8: the variation of both classes with the smallest and largest buffers.
    fn printed_variation(&self) -> Vec<Printed> {
        let (min, max) = (self.measured.first(), self.measured.last());
        let line = |what, published, m: Option<&BufferMeasured>, of: simulations::ClassOf| {
            let ours = m.map_or("-".to_owned(), |m| seeded(m, |run| of(run).variation));
            Printed { what, unit: "", published, ours }
        };
        vec![
            line("Figure 8: variation of small flows, 30 kB", "0.94", min, |run| &run.small),
            line("Figure 8: variation of small flows, 38 MB", "0.25", max, |run| &run.small),
            line("Figure 8: variation of large flows, 30 kB", "0.75", min, |run| &run.large),
            line("Figure 8: variation of large flows, 38 MB", "1.06", max, |run| &run.large),
        ]
    }

    /// Link utilisation with the largest buffer.
    fn max_use(&self) -> String {
        self.measured.last().map_or("-".to_owned(), |m| percent(m, |run| run.utilisation))
    }

    /// The maximum queueing delay relative to B / C, if the buffer filled up.
    fn longest_wait(&self) -> String {
        let ratios: Vec<f64> = self
            .measured
            .iter()
            .filter(|m| m.loss > 0.0)
            .map(|m| {
                let longest = m.runs.iter().map(|run| run.delay_max_s).fold(0.0, f64::max);
                longest * 1e3 / (kilobytes(m) * 8e-3)
            })
            .collect();
        let min = ratios.iter().copied().fold(f64::INFINITY, f64::min);
        let max = ratios.iter().copied().fold(0.0, f64::max);
        format!("{min:.2} to {max:.2} over {} buffers that overflow", ratios.len())
    }

    /// The smallest buffer with a link utilisation within one per cent of the best.
    fn enough(&self) -> String {
        let max = self.measured.iter().map(|m| m.utilisation).fold(0.0, f64::max);
        let enough = self.measured.iter().find(|m| m.utilisation >= 0.99 * max);
        enough.map_or("-".to_owned(), |m| format!("{:.0}", kilobytes(m)))
    }

    /// The best buffer, and those equally good within the error.
    fn best(&self, of: impl Fn(&BufferMeasured) -> &MedianThroughput) -> String {
        let Some(SimulatedBest { best, tied, at_end, .. }) = simulated(&self.measured, of) else {
            return "-".to_owned();
        };
        let kb = |packets: u64| packets as f64 * PACKET / 1e3;
        let end = if at_end { ", the largest tried" } else { "" };
        format!("{:.0} ({:.0}-{:.0}{end})", kb(best), kb(tied.0), kb(tied.1))
    }
}

fn kilobytes(m: &BufferMeasured) -> f64 {
    m.buffer as f64 * PACKET / 1e3
}

/// The mean over the seeds with its 95 % interval.
fn seeded(m: &BufferMeasured, of: impl Fn(&Run) -> f64) -> String {
    let values: Vec<f64> = m.runs.iter().map(of).collect();
    match mean_interval(&values) {
        None => format!("{:.2} (one seed)", mean(&values).unwrap_or(0.0)),
        Some((center, half)) => format!("{center:.2} ({:.2}-{:.2})", center - half, center + half),
    }
}

fn percent(m: &BufferMeasured, of: impl Fn(&Run) -> f64) -> String {
    let values: Vec<f64> = m.runs.iter().map(|run| of(run) * 100.0).collect();
    match mean_interval(&values) {
        None => format!("{:.1} (one seed)", mean(&values).unwrap_or(0.0)),
        Some((center, half)) => format!("{center:.1} ({:.1}-{:.1})", center - half, center + half),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heavy_load_is_the_share_of_loaded_spans() {
        // Ten intervals of 0.1 s; spans of 0.2 s have means 1, 0.9, 0.5, 1, 0.96.
        let loads = [1.0, 1.0, 0.8, 1.0, 0.0, 1.0, 1.0, 1.0, 0.96, 0.96];
        assert!((heavy(&loads, 0.2, 0.95) - 0.6).abs() < 1e-12);
        assert!((heavy(&loads, 0.1, 0.95) - 0.8).abs() < 1e-12);
        assert_eq!(heavy(&[], 1.0, 0.95), 0.0);
    }
}
