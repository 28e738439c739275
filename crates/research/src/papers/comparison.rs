use serde::Serialize;

use crate::csv::ReferenceTable;
use crate::markdown::deviation;
use sweetspot_experiment::StudyError;
use sweetspot_experiment::plot::Origin;
use sweetspot_statistics as statistics;
use sweetspot_units::Significant;

/// A published number, and our engines' values for it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PublishedComparison {
    /// The case and the quantity.
    pub what: String,
    /// Its unit.
    pub unit: &'static str,
    /// The number as printed.
    pub published: &'static str,
    /// Our engines' values, in the order of the runs.
    pub ours: Vec<EngineValue>,
}

impl PublishedComparison {
    /// Relative deviation from the published number: the simulator's or, if it has no number, the first engine's
    /// that has one.
    pub fn distance(&self) -> Option<f64> {
        let known = |ours: &EngineValue| ours.deviation.trim_end_matches('%').trim().parse().ok();
        let simulated = self.ours.iter().filter(|ours| ours.origin == Origin::Sim);
        let percent: f64 = simulated.chain(&self.ours).find_map(known)?;
        Some(percent.abs() / 100.0)
    }
}

/// One engine's value for a published number.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EngineValue {
    /// The engine.
    pub origin: Origin,
    /// Its number.
    pub value: String,
    /// Deviation from the published number, signed, in percent; empty if it is not a number.
    pub deviation: String,
}

/// The numbers that a paper prints for one figure or table, with the engines' values added so far.
#[derive(Debug, Clone)]
pub(super) struct Comparisons(Vec<ComparisonLine>);

#[derive(Debug, Clone)]
struct ComparisonLine {
    case: &'static str,
    quantity: &'static str,
    unit: &'static str,
    value: &'static str,
    ours: Vec<EngineValue>,
}

impl Comparisons {
    /// The published numbers of `item` in `paper`, without engine values.
    pub(super) fn of(paper: &str, item: &str) -> Result<Comparisons, StudyError> {
        let table =
            ReferenceTable::parse("published.csv", include_str!("../../data/published.csv"))?;
        let mut lines = Vec::new();
        for row in table.rows() {
            if row.text("paper")? == paper && row.text("item")? == item {
                lines.push(ComparisonLine {
                    case: row.text("case")?,
                    quantity: row.text("quantity")?,
                    unit: row.text("unit")?,
                    value: row.text("value")?,
                    ours: Vec::new(),
                });
            }
        }
        Ok(Comparisons(lines))
    }

    /// Adds an engine's number to the row with all these words in its case and quantity.
    pub(super) fn put(&mut self, origin: Origin, words: &[&str], ours: f64) {
        for line in self.matching(words) {
            let theirs = line.value.parse::<f64>();
            line.ours.push(EngineValue {
                origin,
                value: Significant::<3>(ours).to_string(),
                deviation: theirs.map_or(String::new(), |theirs| deviation(ours, theirs)),
            });
        }
    }

    /// Adds the mean over seeds, with two standard errors if there are enough seeds.
    pub(super) fn put_mean(&mut self, origin: Origin, words: &[&str], samples: &[f64]) {
        let Some(mean) = statistics::mean(samples) else { return };
        for line in self.matching(words) {
            let theirs = line.value.parse::<f64>();
            line.ours.push(EngineValue {
                origin,
                value: with_error(mean, statistics::squared_error(samples)),
                deviation: theirs.map_or(String::new(), |theirs| deviation(mean, theirs)),
            });
        }
    }

    /// Adds an engine's text to the row with all these words in its case and quantity.
    pub(super) fn put_text(&mut self, origin: Origin, words: &[&str], ours: &str) {
        for line in self.matching(words) {
            let value = ours.to_owned();
            line.ours.push(EngineValue { origin, value, deviation: String::new() });
        }
    }

    /// The published number of the row that contains all these words, for a mark in the picture.
    pub(super) fn published(&self, words: &[&str]) -> Option<f64> {
        self.0.iter().find(|line| line.holds(words)).and_then(|line| line.value.parse().ok())
    }

    /// All rows, in table order.
    pub(super) fn finish(self) -> Vec<PublishedComparison> {
        let comparison = |line: ComparisonLine| PublishedComparison {
            what: format!("{}: {}", line.case.replace("; ", ", "), line.quantity),
            unit: line.unit,
            published: line.value,
            ours: line.ours,
        };
        self.0.into_iter().map(comparison).collect()
    }

    fn matching(&mut self, words: &[&str]) -> impl Iterator<Item = &mut ComparisonLine> {
        self.0.iter_mut().filter(move |line| line.holds(words))
    }
}

impl ComparisonLine {
    fn holds(&self, words: &[&str]) -> bool {
        words.iter().all(|word| self.case.contains(word) || self.quantity.contains(word))
    }
}

/// A mean with twice its standard error.
fn with_error(mean: f64, squared_error: Option<f64>) -> String {
    let mean = Significant::<3>(mean);
    squared_error.map_or(mean.to_string(), |squared| {
        format!("{mean} ± {}", Significant::<3>(2.0 * libm::sqrt(squared)))
    })
}
