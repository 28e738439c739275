//! One scenario with many variants: every combination of the values of some keys, each with the same seeds.

mod fastest;
mod spread;

pub(crate) use fastest::is_as_fast;
pub use fastest::{Advantage, Fastest};
pub use spread::Spread;

use sweetspot_scenario::{Engine, EngineError, NoRecorder, Outcome, Scenario};
use sweetspot_statistics::mean;
use sweetspot_units::Duration;

use crate::{Over, StudyError, SweepError, Workers};

/// A scenario in which some keys take several values each. All variants have the same seeds (common random numbers),
/// so they differ only in these values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sweep {
    /// The scenario as written.
    pub text: String,
    /// Further overrides, as `KEY=VALUE`.
    pub overrides: Vec<String>,
    /// The keys and their values.
    pub over: Vec<Over>,
    /// Number of seeds, beginning with the scenario's own; zero counts as one.
    pub seeds: u64,
}

/// One combination of values.
#[derive(Debug, Clone, PartialEq)]
pub struct SweepVariant {
    /// The values as written, in the order of [`Sweep::over`].
    pub values: Vec<String>,
    /// The scenario with these values, with its own seed.
    pub scenario: Scenario,
}

/// One variant and its outcomes.
#[derive(Debug, Clone, PartialEq)]
pub struct SweepPoint {
    /// The values as written, in the order of [`Sweep::over`].
    pub values: Vec<String>,
    /// The outcomes, one per seed, in order of the seeds.
    pub outcomes: Vec<Outcome>,
}

/// A quantity of an outcome that is averaged over seeds.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    /// The quantity's name with its unit, as in the outcome's JSON.
    pub name: &'static str,
    /// The quantity of the transfer with this index.
    pub of: fn(&Outcome, usize) -> Option<f64>,
}

impl Metric {
    /// The columns of a sweep's table.
    pub const ALL: [Metric; 5] = [
        Metric { name: "goodput_bps", of: |o, i| o.transfers.get(i).map(|t| t.goodput_bps) },
        Metric { name: "rtt_mean_s", of: |o, i| o.transfers.get(i).map(|t| t.rtt_mean_s) },
        Metric { name: "loss_rate", of: |o, i| o.transfers.get(i).map(|t| t.loss_rate) },
        Metric { name: "queue_delay_mean_s", of: |o, _| Some(o.bottleneck.queue_delay_mean_s) },
        Metric { name: "utilisation", of: |o, _| Some(o.bottleneck.utilisation) },
    ];
}

impl SweepPoint {
    /// The mean RTT of the first transfer, over the seeds.
    pub fn rtt(&self) -> Option<Duration> {
        let first = |outcome: &Outcome| Some(outcome.transfers.first()?.rtt_mean_s);
        let rtts: Option<Vec<f64>> = self.outcomes.iter().map(first).collect();
        mean(&rtts?).map(Duration::from_secs_f64)
    }

    /// The spread over the seeds of a quantity of the transfer with this index.
    pub fn spread(&self, metric: Metric, transfer: usize) -> Option<Spread> {
        let values: Option<Vec<f64>> =
            self.outcomes.iter().map(|outcome| (metric.of)(outcome, transfer)).collect();
        Spread::of(&values?)
    }
}

impl Sweep {
    /// All combinations; the last key's values change fastest. Invalid values are reported here, before any run.
    pub fn variants(&self) -> Result<Vec<SweepVariant>, StudyError> {
        self.check()?;
        let mut combinations: Vec<Vec<String>> = vec![Vec::new()];
        for over in &self.over {
            combinations = combinations
                .iter()
                .flat_map(|before| {
                    over.values.iter().map(move |value| {
                        let mut values = before.clone();
                        values.push(value.clone());
                        values
                    })
                })
                .collect();
        }
        combinations.into_iter().map(|values| self.variant(values)).collect()
    }

    fn variant(&self, values: Vec<String>) -> Result<SweepVariant, StudyError> {
        let mut overrides = self.overrides.clone();
        let assigned = self.over.iter().zip(&values).map(|(over, v)| format!("{}={v}", over.key));
        overrides.extend(assigned);
        let scenario = Scenario::parse_with(&self.text, &overrides)?;
        Ok(SweepVariant { values, scenario })
    }

    /// The variant's values, by key.
    fn name(&self, variant: &SweepVariant) -> String {
        let values = self.over.iter().zip(&variant.values);
        values.map(|(over, value)| format!("{}={value}", over.key)).collect::<Vec<_>>().join(" ")
    }

    /// Fails if a key is set twice.
    fn check(&self) -> Result<(), SweepError> {
        for (i, over) in self.over.iter().enumerate() {
            if self.over[..i].iter().any(|before| before.key == over.key) {
                return Err(SweepError::SweptTwice(over.key.clone()));
            }
            let set = |assignment: &String| {
                assignment.split_once('=').is_some_and(|(key, _)| key.trim() == over.key)
            };
            if self.overrides.iter().any(set) {
                return Err(SweepError::SweptAndSet(over.key.clone()));
            }
        }
        Ok(())
    }

    /// Number of runs for this many variants.
    pub fn runs(&self, variants: usize) -> usize {
        variants * self.seeds.max(1) as usize
    }

    /// The scenarios of all runs of `variants`: each with every seed.
    pub fn scenarios(&self, variants: &[SweepVariant]) -> Vec<Scenario> {
        let seeded = |variant: &SweepVariant| {
            let scenario = variant.scenario.clone();
            (0..self.seeds.max(1))
                .map(move |i| Scenario { seed: scenario.seed + i, ..scenario.clone() })
        };
        variants.iter().flat_map(seeded).collect()
    }

    /// Runs `variants` (see [`Sweep::variants`]) with every seed.
    pub fn run<E: Engine + Sync + ?Sized>(
        &self,
        variants: &[SweepVariant],
        engine: &E,
        workers: Workers,
    ) -> Result<Vec<SweepPoint>, StudyError> {
        let seeds = self.seeds.max(1);
        let runs = self.scenarios(variants);
        let outcomes = workers.map(&runs, |scenario| engine.run(scenario, &mut NoRecorder));
        let name = |run: usize, error| match error {
            EngineError::NotCovered { .. } => {
                let point = self.name(&variants[run / seeds as usize]);
                StudyError::PointNotCovered { point, source: error }
            }
            other => other.into(),
        };
        let named = outcomes.into_iter().enumerate();
        let outcomes = named.map(|(run, outcome)| outcome.map_err(|error| name(run, error)));
        let outcomes = outcomes.collect::<Result<Vec<Outcome>, StudyError>>()?;
        let points = variants.iter().zip(outcomes.chunks(seeds as usize));
        let point = |(variant, outcomes): (&SweepVariant, &[Outcome])| SweepPoint {
            values: variant.values.clone(),
            outcomes: outcomes.to_vec(),
        };
        Ok(points.map(point).collect())
    }
}
