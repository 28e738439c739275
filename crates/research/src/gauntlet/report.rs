use serde::Serialize;

use super::class::PathClass;
use super::measured::RunMeasured;
use super::plan::{GauntletPlan, GauntletVariant};
use super::population::Population;
use crate::welch::welch;
use sweetspot_statistics::{Sorted, mean, quantile};

/// The result of a comparison: the stable object that `sweetspot-research gauntlet --json` prints.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GauntletReport {
    /// The version of this format.
    pub sweetspot_gauntlet: u32,
    /// The program's version.
    pub version: String,
    /// The population.
    pub population: Population,
    /// The population's seed.
    pub seed: u64,
    /// Index of the first path.
    pub first_path: u64,
    /// Number of paths.
    pub paths: u64,
    /// Repetitions of each path.
    pub seeds: u64,
    /// Maximum measured time of a transfer, seconds.
    pub duration_s: f64,
    /// For every congestion control, the null variant first, then each sizing.
    pub variants: Vec<VariantResult>,
}

/// Result of one variant.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VariantResult {
    /// Its sizing, or `null`: the kernel's own sizing with other seeds.
    pub sizing: String,
    /// Its congestion control.
    pub congestion: &'static str,
    /// Results by class of path, without empty classes.
    pub classes: Vec<ClassSummary>,
    /// Results for each path.
    pub paths: Vec<PathComparison>,
}

/// Summary over the paths of a class.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClassSummary {
    /// The class.
    pub class: PathClass,
    /// Number of paths.
    pub paths: usize,
    /// Goodput relative to the kernel's, quantiles over paths.
    pub goodput: Quantiles,
    /// Goodput relative to the kernel's, mean over paths.
    pub goodput_mean: Option<f64>,
    /// Fraction of paths on which goodput is significantly more than 3 % below the kernel's; `None` with
    /// one seed.
    pub surely_worse: Option<f64>,
    /// Queueing delay relative to the kernel's, median over paths.
    pub delay_median: Option<f64>,
    /// Queueing delay summed over paths, relative to the kernel's sum.
    pub delay: Option<f64>,
    /// Packets retransmitted, relative to the kernel's number.
    pub retransmitted: Option<f64>,
    /// Retransmission timeouts, relative to the kernel's number.
    pub timeouts: Option<f64>,
    /// Cross traffic's goodput relative to its goodput with the kernel's sizing, quantiles over shared
    /// paths.
    pub rivals: Quantiles,
}

/// Quantiles of a ratio over paths; `None` if no path has the ratio.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Quantiles {
    /// The 1 % quantile.
    pub p1: Option<f64>,
    /// The 5 % quantile.
    pub p5: Option<f64>,
    /// The 25 % quantile.
    pub p25: Option<f64>,
    /// The median.
    pub p50: Option<f64>,
    /// The 75 % quantile.
    pub p75: Option<f64>,
    /// The 95 % quantile.
    pub p95: Option<f64>,
}

/// A variant compared with the kernel on one path, means over seeds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PathComparison {
    /// The path's index.
    pub path: u64,
    /// Its classes.
    pub classes: Vec<PathClass>,
    /// Goodput relative to the kernel's.
    pub goodput: f64,
    /// Whether goodput is significantly more than 3 % below the kernel's.
    pub surely_worse: Option<bool>,
    /// The variant's measurements.
    pub variant: RunMeasured,
    /// The kernel's measurements.
    pub kernel: RunMeasured,
}

/// The version of the report format.
const REPORT_FORMAT: u32 = 2;

/// Goodput ratio below which a variant counts as worse than the kernel.
const MIN_GOODPUT_RATIO: f64 = 0.97;

/// Significance threshold: Student's t for the degrees of freedom of a handful of seeds, at about 3 %,
/// one-sided.
const T_QUANTILE: f64 = -2.2;

impl GauntletReport {
    /// The report on the runs of `plan`; `measured` is in plan order.
    pub fn of(plan: &GauntletPlan, measured: &[RunMeasured]) -> GauntletReport {
        let settings = plan.settings();
        let durations = plan.paths.iter().map(|(_, scenario)| scenario.duration.as_secs_f64());
        let tested = plan
            .variants
            .iter()
            .enumerate()
            .filter(|(_, variant)| !matches!(variant, GauntletVariant::Kernel(_)));
        GauntletReport {
            sweetspot_gauntlet: REPORT_FORMAT,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            population: settings.population,
            seed: settings.seed,
            first_path: settings.paths.start,
            paths: plan.paths.len() as u64,
            seeds: plan.seeds(),
            duration_s: durations.fold(0.0, f64::max),
            variants: tested.map(|(i, _)| VariantResult::of(plan, measured, i)).collect(),
        }
    }
}

impl VariantResult {
    fn of(plan: &GauntletPlan, measured: &[RunMeasured], index: usize) -> VariantResult {
        let variant = plan.variants[index];
        let place = |sought: GauntletVariant| plan.variants.iter().position(|c| *c == sought);
        let kernel = place(GauntletVariant::Kernel(variant.congestion())).unwrap_or(0);
        let null = place(GauntletVariant::Null(variant.congestion())).unwrap_or(0);
        let seeds = plan.seeds() as usize;
        let runs = |path: usize, variant: usize| {
            let first = (path * plan.variants.len() + variant) * seeds;
            &measured[first..first + seeds]
        };
        let paths = plan.paths.iter().enumerate().map(|(i, (path, scenario))| {
            let classes = PathClass::of(scenario, spread(runs(i, null), runs(i, kernel)));
            PathComparison::of(path.index(), classes, runs(i, index), runs(i, kernel))
        });
        let paths: Vec<PathComparison> = paths.collect();
        let summaries = PathClass::ALL.into_iter().map(|class| ClassSummary::of(class, &paths));
        VariantResult {
            sizing: variant.name(),
            congestion: variant.congestion().name(),
            classes: summaries.filter(|summary| summary.paths > 0).collect(),
            paths,
        }
    }

    /// The paths with the lowest goodput ratios, the lowest first.
    pub fn worst(&self, count: usize) -> Vec<&PathComparison> {
        let mut paths: Vec<&PathComparison> = self.paths.iter().collect();
        paths.sort_by(|a, b| a.goodput.total_cmp(&b.goodput));
        paths.truncate(count);
        paths
    }
}

/// Maximum deviation of the kernel's runs from their mean, relative to the mean.
fn spread(null: &[RunMeasured], kernel: &[RunMeasured]) -> f64 {
    let goodputs = || null.iter().chain(kernel).map(|run| run.goodput_bps);
    let mean = goodputs().sum::<f64>() / (null.len() + kernel.len()) as f64;
    goodputs().map(|goodput| (goodput / mean - 1.0).abs()).fold(0.0, f64::max)
}

/// `part / whole`; `None` if `whole` is not above zero.
fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

/// Goodput relative to the kernel's; 1 if the kernel's is zero.
fn over(variant: &RunMeasured, kernel: &RunMeasured) -> f64 {
    ratio(variant.goodput_bps, kernel.goodput_bps).unwrap_or(1.0)
}

impl PathComparison {
    /// Queueing delay relative to the kernel's; `None` if the kernel's is zero.
    pub fn delay(&self) -> Option<f64> {
        ratio(self.variant.delay_s, self.kernel.delay_s)
    }

    /// Cross traffic's goodput relative to its goodput with the kernel's sizing; `None` without cross
    /// traffic.
    pub fn rivals(&self) -> Option<f64> {
        ratio(self.variant.rivals_bps, self.kernel.rivals_bps)
    }

    fn of(
        path: u64,
        classes: Vec<PathClass>,
        runs: &[RunMeasured],
        kernel: &[RunMeasured],
    ) -> PathComparison {
        let goodputs: Vec<f64> = runs.iter().map(|run| run.goodput_bps).collect();
        let tolerated: Vec<f64> =
            kernel.iter().map(|run| run.goodput_bps * MIN_GOODPUT_RATIO).collect();
        let (variant, kernel) = (RunMeasured::mean(runs), RunMeasured::mean(kernel));
        PathComparison {
            path,
            classes,
            goodput: over(&variant, &kernel),
            surely_worse: welch(&goodputs, &tolerated).map(|t| t < T_QUANTILE),
            variant,
            kernel,
        }
    }
}

impl ClassSummary {
    fn of(class: PathClass, all: &[PathComparison]) -> ClassSummary {
        let paths: Vec<&PathComparison> =
            all.iter().filter(|path| path.classes.contains(&class)).collect();
        let goodputs: Vec<f64> = paths.iter().map(|path| path.goodput).collect();
        let sums = |of: fn(&RunMeasured) -> f64| {
            let sum = |side: fn(&PathComparison) -> &RunMeasured| {
                paths.iter().map(|path| of(side(path))).sum::<f64>()
            };
            ratio(sum(|path| &path.variant), sum(|path| &path.kernel))
        };
        let delays: Vec<f64> = paths.iter().filter_map(|path| path.delay()).collect();
        let rivals: Vec<f64> = paths.iter().filter_map(|path| path.rivals()).collect();
        let worse: Option<Vec<f64>> = paths
            .iter()
            .map(|path| path.surely_worse.map(|worse| f64::from(u8::from(worse))))
            .collect();
        ClassSummary {
            class,
            paths: paths.len(),
            goodput: Quantiles::of(&goodputs),
            goodput_mean: mean(&goodputs),
            surely_worse: worse.and_then(|worse| mean(&worse)),
            delay_median: quantile(&delays, 0.5),
            delay: sums(|run| run.delay_s),
            retransmitted: sums(|run| run.retransmitted),
            timeouts: sums(|run| run.timeouts),
            rivals: Quantiles::of(&rivals),
        }
    }
}

impl Quantiles {
    fn of(values: &[f64]) -> Quantiles {
        let sorted: Sorted = values.iter().copied().collect();
        let at = |p| sorted.quantile(p);
        Quantiles {
            p1: at(0.01),
            p5: at(0.05),
            p25: at(0.25),
            p50: at(0.5),
            p75: at(0.75),
            p95: at(0.95),
        }
    }
}
