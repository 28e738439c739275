use core::ops::Range;

use sweetspot_scenario::{Congestion, Scenario};
use sweetspot_sizing::Sizing;
use sweetspot_units::Duration;

use super::drawn_path::DrawnPath;
use super::population::Population;
use sweetspot_experiment::StudyError;

/// The settings of a comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct GauntletSettings {
    /// The population from which paths are drawn.
    pub population: Population,
    /// The population's seed. The same seed gives the same paths.
    pub seed: u64,
    /// The range of path indices.
    pub paths: Range<u64>,
    /// Repetitions of each path, each with its own seed; zero counts as one.
    pub seeds: u64,
    /// Measured time of each transfer; `None` for the population's default.
    pub duration: Option<Duration>,
    /// Congestion controls; every sizing runs with each.
    pub congestions: Vec<Congestion>,
    /// Whether sizings must not switch the congestion control.
    pub congestion_fixed: bool,
    /// The sizings to compare.
    pub sizings: Vec<Sizing>,
}

/// The variants run on each path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GauntletVariant {
    /// The kernel's autotuning, the baseline of all comparisons.
    Kernel(Congestion),
    /// The kernel's autotuning with other seeds, to show the random variation.
    Null(Congestion),
    /// A sizing to compare with the baseline.
    Compared(Sizing, Congestion),
}

impl GauntletVariant {
    /// The variant's sizing.
    pub fn sizing(self) -> Sizing {
        match self {
            GauntletVariant::Kernel(_) | GauntletVariant::Null(_) => Sizing::Kernel,
            GauntletVariant::Compared(sizing, _) => sizing,
        }
    }

    /// The variant's congestion control.
    pub fn congestion(self) -> Congestion {
        match self {
            GauntletVariant::Kernel(congestion)
            | GauntletVariant::Null(congestion)
            | GauntletVariant::Compared(_, congestion) => congestion,
        }
    }

    /// The name in tables.
    pub fn name(self) -> String {
        match self {
            GauntletVariant::Null(_) => "null".to_owned(),
            other => other.sizing().to_string(),
        }
    }

    /// `tag`; `None` for the kernel's sizing, which does not change.
    pub(super) fn tag(self, tag: &str) -> Option<&str> {
        matches!(self, GauntletVariant::Compared(..)).then_some(tag)
    }
}

/// Every run of a comparison: paths, variants and repetitions, with the last changing fastest.
#[derive(Debug, Clone)]
pub struct GauntletPlan {
    pub(super) settings: GauntletSettings,
    pub(super) paths: Vec<(DrawnPath, Scenario)>,
    pub(super) variants: Vec<GauntletVariant>,
}

/// One run of a comparison.
#[derive(Debug, Clone, Copy)]
pub struct GauntletRun<'a> {
    path: &'a DrawnPath,
    scenario: &'a Scenario,
    variant: GauntletVariant,
    number: u64,
    fixed: bool,
}

impl GauntletPlan {
    /// Draws all paths.
    ///
    /// # Errors
    /// If a path is not a valid scenario.
    pub fn new(settings: GauntletSettings) -> Result<GauntletPlan, StudyError> {
        let mut paths = Vec::new();
        for index in settings.paths.clone() {
            let path = DrawnPath::new(settings.population, settings.seed, index, settings.duration);
            // Parsed from text, so that a written file replays the same run.
            let scenario = Scenario::parse(&path.text(Sizing::Kernel, Congestion::Cubic, 0))?;
            paths.push((path, scenario));
        }
        let mut variants = Vec::new();
        for congestion in settings.congestions.iter().copied() {
            variants
                .extend([GauntletVariant::Kernel(congestion), GauntletVariant::Null(congestion)]);
            let tested = |sizing: &Sizing| GauntletVariant::Compared(*sizing, congestion);
            variants.extend(settings.sizings.iter().map(tested));
        }
        Ok(GauntletPlan { settings, paths, variants })
    }

    /// The plan's settings.
    pub fn settings(&self) -> &GauntletSettings {
        &self.settings
    }

    /// The indices of the plan's paths.
    pub fn paths(&self) -> impl Iterator<Item = u64> {
        self.paths.iter().map(|(path, _)| path.index())
    }

    /// The same plan, restricted to some of its paths.
    #[must_use]
    pub fn restricted_to(&self, indices: &[u64]) -> GauntletPlan {
        let mut plan = self.clone();
        plan.paths.retain(|(path, _)| indices.contains(&path.index()));
        plan
    }

    /// Repetitions of each path.
    pub(super) fn seeds(&self) -> u64 {
        self.settings.seeds.max(1)
    }

    /// Every run, in order.
    pub fn runs(&self) -> impl Iterator<Item = GauntletRun<'_>> {
        self.paths.iter().flat_map(move |(path, scenario)| {
            self.variants.iter().flat_map(move |variant| {
                (0..self.seeds()).map(move |k| {
                    // The null's seeds follow the seeds shared by all other variants.
                    let null = matches!(variant, GauntletVariant::Null(_));
                    let number = if null { k + self.seeds() } else { k };
                    // The kernel's sizing never switches the congestion control.
                    let tested = matches!(variant, GauntletVariant::Compared(..));
                    let fixed = tested && self.settings.congestion_fixed;
                    GauntletRun { path, scenario, variant: *variant, number, fixed }
                })
            })
        })
    }
}

impl GauntletRun<'_> {
    /// The path's index.
    pub fn path(&self) -> u64 {
        self.path.index()
    }

    /// The variant.
    pub fn variant(&self) -> GauntletVariant {
        self.variant
    }

    /// The scenario.
    pub fn scenario(&self) -> Scenario {
        let mut scenario = self.scenario.clone();
        scenario.seed = self.path.scenario_seed(self.number);
        for transfer in &mut scenario.transfers {
            transfer.sizing = self.variant.sizing();
            transfer.congestion = self.variant.congestion();
            transfer.congestion_fixed = self.fixed;
        }
        scenario
    }

    /// The scenario as a file.
    pub fn text(&self) -> String {
        let (sizing, congestion) = (self.variant.sizing(), self.variant.congestion());
        self.path.written(sizing, congestion, self.fixed, self.number)
    }
}
