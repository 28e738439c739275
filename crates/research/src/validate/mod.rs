//! Compares the outcomes of several engines on one scenario: their values, the gap between them,
//! and the assumptions that do not hold.

mod findings;
mod population;
mod standing;
mod text;

use sweetspot_scenario::{Outcome, Scenario};

pub use findings::{BrokenAssumption, findings};
pub use population::{
    Agreement, ComparedValue, EnginePair, PathDrawing, PopulationInfo, PopulationRun, RunValues,
    population_document, population_text,
};
pub use standing::{AgreementBounds, BoundCheck, STANDING, StandingScenario};

/// Engines agree if their values differ by less than this, the difference between two runs on the
/// same kernel.
const AGREEMENT: f64 = 0.03;

/// The engines' results for one scenario.
#[derive(Debug, Clone, PartialEq)]
pub struct EngineComparison {
    /// The scenario's title.
    pub scenario: String,
    /// The engines, in column order.
    pub engines: Vec<String>,
    /// The compared quantities.
    pub rows: Vec<ComparedQuantity>,
    /// Assumptions that do not hold and explain gaps.
    pub findings: Vec<BrokenAssumption>,
}

/// The values of one quantity by engine.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparedQuantity {
    /// Its name and unit.
    pub name: String,
    /// One value per engine; `None` if an engine has none.
    pub values: Vec<Option<f64>>,
    /// Whether it counts towards the engines' agreement.
    pub compared: bool,
}

impl ComparedQuantity {
    /// The largest value divided by the smallest, minus one; `None` if there are fewer than two
    /// values or one is zero.
    pub fn gap(&self) -> Option<f64> {
        let known: Vec<f64> = self.values.iter().flatten().copied().collect();
        let min = known.iter().copied().fold(f64::INFINITY, f64::min);
        let max = known.iter().copied().fold(0.0, f64::max);
        (known.len() > 1 && min > 0.0).then(|| max / min - 1.0)
    }

    /// Whether it is zero for some engines but not for all.
    fn is_zero_for_some(&self) -> bool {
        let known = || self.values.iter().flatten();
        known().any(|value| *value == 0.0) && known().any(|value| *value != 0.0)
    }
}

impl EngineComparison {
    /// Compares `outcomes`, all for `scenario`.
    pub fn of(scenario: &Scenario, outcomes: &[Outcome]) -> EngineComparison {
        let mut rows = Vec::new();
        let mut add = |name: String, compared: bool, of: &dyn Fn(&Outcome) -> Option<f64>| {
            rows.push(ComparedQuantity {
                name,
                compared,
                values: outcomes.iter().map(of).collect(),
            });
        };
        for i in 0..scenario.transfers.len() {
            let transfer = |of: fn(&sweetspot_scenario::TransferOutcome) -> f64| {
                move |outcome: &Outcome| outcome.transfers.get(i).map(of).filter(|v| v.is_finite())
            };
            add(format!("transfer {i}: goodput Mbit/s"), true, &transfer(|t| t.goodput_bps / 1e6));
            add(format!("transfer {i}: mean RTT ms"), true, &transfer(|t| t.rtt_mean_s * 1e3));
            add(format!("transfer {i}: loss %"), false, &transfer(|t| t.loss_rate * 100.0));
            let window = transfer(|t| t.window_final_bytes as f64 / 1e3);
            add(format!("transfer {i}: window kB"), false, &window);
        }
        for (i, cross) in scenario.cross.iter().enumerate() {
            let of = |of: fn(&sweetspot_scenario::CrossOutcome) -> f64| {
                move |outcome: &Outcome| outcome.cross.get(i).map(of).filter(|v| v.is_finite())
            };
            let kind = cross.kind.name();
            add(format!("cross {i} ({kind}): Mbit/s"), true, &of(|c| c.goodput_bps / 1e6));
            add(format!("cross {i} ({kind}): loss %"), false, &of(|c| c.loss_rate * 100.0));
        }
        let link = |of: fn(&sweetspot_scenario::BottleneckOutcome) -> f64| {
            move |outcome: &Outcome| Some(of(&outcome.bottleneck)).filter(|v| v.is_finite())
        };
        add("bottleneck: used %".to_owned(), true, &link(|b| b.utilisation * 100.0));
        add("bottleneck: loss %".to_owned(), false, &link(|b| b.loss_rate * 100.0));
        add("bottleneck: queued packets".to_owned(), false, &link(|b| b.queue_mean_packets));
        EngineComparison {
            scenario: scenario.title.clone(),
            engines: outcomes.iter().map(|outcome| outcome.engine.clone()).collect(),
            rows,
            findings: findings(scenario, outcomes),
        }
    }

    /// The quantity with the largest gap, and that gap, among the compared quantities or among the
    /// others.
    pub fn largest_gap(&self, compared: bool) -> Option<(&ComparedQuantity, f64)> {
        let rows = self.rows.iter().filter(|row| row.compared == compared);
        let gaps = rows.filter_map(|row| Some((row, row.gap()?)));
        gaps.max_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// The result in sentences derived from the rows.
    pub fn summary(&self) -> String {
        let others = self.differences(false).map_or(String::new(), |differ| {
            format!(" Losses, windows and queues are not judged; they differ {differ}.")
        });
        let is_zero = self.zero_for_some(true).is_some();
        match (self.largest_gap(true), self.differences(true)) {
            (_, None) => "One engine alone: there is nothing to compare.".to_owned(),
            (Some((_, gap)), _) if gap <= AGREEMENT && !is_zero => format!(
                "The engines agree within {:.1} % in rates, round trips and utilisation.{others}",
                gap * 100.0
            ),
            (_, Some(differ)) if self.findings.is_empty() => format!(
                "The engines differ {differ}, and no known difference between them explains it.{others}"
            ),
            (_, Some(differ)) => {
                format!("The engines differ {differ}.{others} What broke or may have broken:")
            }
        }
    }

    /// A quantity that is zero for some engines but not for all, which no gap in per cent can show.
    fn zero_for_some(&self, compared: bool) -> Option<&ComparedQuantity> {
        self.rows.iter().find(|row| row.compared == compared && row.is_zero_for_some())
    }

    /// The largest differences among the compared quantities or among the others.
    fn differences(&self, compared: bool) -> Option<String> {
        let by = self.largest_gap(compared);
        let by = by.map(|(row, gap)| format!("by up to {:.1} % ({})", gap * 100.0, row.name));
        let zero = self.zero_for_some(compared).map(|row| format!("from zero ({})", row.name));
        let both: Vec<String> = by.into_iter().chain(zero).collect();
        (!both.is_empty()).then(|| both.join(" or "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quantity(values: &[Option<f64>]) -> ComparedQuantity {
        ComparedQuantity { name: "goodput".into(), values: values.to_vec(), compared: true }
    }

    #[test]
    fn a_gap_spans_the_smallest_to_the_largest_known_value() {
        let gap = quantity(&[Some(10.0), None, Some(11.0), Some(12.5)]).gap();
        assert_eq!(gap, Some(0.25));
        assert_eq!(quantity(&[Some(10.0), None]).gap(), None);
        assert_eq!(quantity(&[Some(0.0), Some(1.0)]).gap(), None);
    }

    #[test]
    fn the_summary_follows_from_the_rows_and_names_the_worst() {
        let of = |rows: &[ComparedQuantity]| {
            let engines = vec!["sim".into(), "lab".into()];
            let (scenario, rows, findings) = (String::new(), rows.to_vec(), Vec::new());
            EngineComparison { scenario, engines, rows, findings }.summary()
        };
        let close = quantity(&[Some(1.0), Some(1.02)]);
        let agree = "The engines agree within 2.0 % in rates, round trips and utilisation.";
        assert_eq!(of(std::slice::from_ref(&close)), agree);
        let far = quantity(&[Some(1.0), Some(1.5)]);
        let queue = ComparedQuantity { name: "queue".into(), compared: false, ..far.clone() };
        let also =
            "Losses, windows and queues are not judged; they differ by up to 50.0 % (queue).";
        assert_eq!(of(&[close.clone(), queue]), format!("{agree} {also}"));
        let words = of(&[close, far]);
        assert!(words.contains("up to 50.0 % (goodput), and no known difference"), "{words}");
        let words = of(&[quantity(&[Some(0.0), Some(1.0)])]);
        assert!(words.starts_with("The engines differ from zero (goodput), and no"), "{words}");
        let none = ComparedQuantity { compared: false, ..quantity(&[Some(0.0), Some(1.0)]) };
        assert!(of(&[quantity(&[Some(1.0), Some(1.0)]), none]).ends_with("from zero (goodput)."));
    }
}
