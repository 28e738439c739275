//! The published matrix: the BBR team's nsperf tests and scenarios of the Common TCP Evaluation Suite, run with several
//! congestion controls and sizings. Reports the share of each flow and its cost to other flows.

mod cases;
mod document;

pub use cases::{MATRIX, MatrixCase, MatrixTest, Tested};
pub use document::{MatrixInfo, matrix_document, matrix_pictures};

use serde::{Deserialize, Serialize};
use sweetspot_scenario::{Congestion, Engine, NoRecorder, Outcome, Scenario};
use sweetspot_sizing::Sizing;
use sweetspot_statistics::mean;
use sweetspot_units::Duration;

use sweetspot_experiment::StudyError;

/// A variant under test: a congestion control and a sizing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MatrixVariant {
    /// Its name in tables and legends.
    pub name: &'static str,
    /// The sender's congestion control.
    pub congestion: Congestion,
    /// The receiver's sizing.
    pub sizing: Sizing,
}

/// All variants under test. The first is the reference.
pub const VARIANTS: [MatrixVariant; 5] = [
    MatrixVariant { name: "cubic", congestion: Congestion::Cubic, sizing: Sizing::Kernel },
    MatrixVariant { name: "bbr", congestion: Congestion::Bbr, sizing: Sizing::Kernel },
    MatrixVariant { name: "cubic+sobas", congestion: Congestion::Cubic, sizing: Sizing::Sobas },
    MatrixVariant { name: "bbr+sobas", congestion: Congestion::Bbr, sizing: Sizing::Sobas },
    MatrixVariant { name: "cubic+rledbat", congestion: Congestion::Cubic, sizing: Sizing::Rledbat },
];

/// The result of one case with one variant: means over its runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MatrixResult {
    /// The test's name.
    pub test: String,
    /// The case's name.
    pub case: String,
    /// The variant's name.
    pub variant: String,
    /// Total goodput of the flows under test in each run, bit/s.
    pub tested_runs_bps: Vec<f64>,
    /// Total goodput of all other flows in each run, bit/s; empty if there are none.
    pub others_runs_bps: Vec<f64>,
    /// Jain's fairness index over the flows under test.
    pub fairness: f64,
    /// Fraction of their packets that were retransmitted.
    pub retransmitted: f64,
    /// Their mean RTT, seconds.
    pub rtt_s: f64,
    /// Mean queueing delay at the bottleneck, seconds.
    pub queue_delay_s: f64,
}

/// Offset between the starts of two runs: not a multiple of any test's RTT, so that each run starts in another phase of the
/// other flows.
const START_SPACING: Duration = Duration::from_millis(37);

impl MatrixCase {
    /// The scenario with `variant`, cut to `longest`, for run number `run`.
    pub fn scenario(
        &self,
        test: &MatrixTest,
        variant: &MatrixVariant,
        longest: Option<Duration>,
        run: u64,
    ) -> Result<Scenario, StudyError> {
        let overrides: Vec<String> = self.set.iter().map(|set| (*set).to_owned()).collect();
        let mut scenario = Scenario::parse_with(test.text, &overrides)?;
        scenario.duration = longest.map_or(scenario.duration, |max| scenario.duration.min(max));
        scenario.seed += run;
        let later = START_SPACING * run;
        let first = scenario.transfers.len() - 1;
        if let Tested::Alike { flows, every } = self.tested {
            let like = scenario.transfers[first].clone();
            let more = (1..flows).map(|number| {
                let mut transfer = like.clone();
                transfer.start = like.start + (every + later) * number;
                transfer
            });
            scenario.transfers.extend(more);
        }
        for transfer in &mut scenario.transfers[first..] {
            transfer.congestion = variant.congestion;
            transfer.sizing = variant.sizing;
        }
        if self.tested == Tested::Last {
            scenario.transfers[first].start += later;
        }
        Ok(scenario)
    }
}

impl MatrixResult {
    /// Total goodput of the flows under test, bit/s.
    pub fn tested_bps(&self) -> f64 {
        mean(&self.tested_runs_bps).unwrap_or_default()
    }

    /// Total goodput of all other flows, bit/s; `None` if there are none.
    pub fn others_bps(&self) -> Option<f64> {
        mean(&self.others_runs_bps)
    }

    /// Runs a case as many times as its test requires.
    pub fn run(
        engine: &dyn Engine,
        (test, case): (&MatrixTest, &MatrixCase),
        variant: &MatrixVariant,
        longest: Option<Duration>,
    ) -> Result<MatrixResult, StudyError> {
        let results: Vec<MatrixResult> = (0..test.runs)
            .map(|run| {
                let scenario = case.scenario(test, variant, longest, run)?;
                let outcome = engine.run(&scenario, &mut NoRecorder)?;
                Ok(MatrixResult::of((test, case), variant, &outcome))
            })
            .collect::<Result<_, StudyError>>()?;
        let mean_of = |of: fn(&MatrixResult) -> f64| {
            results.iter().map(of).sum::<f64>() / results.len() as f64
        };
        let runs =
            |of: fn(&MatrixResult) -> &Vec<f64>| results.iter().flat_map(of).copied().collect();
        Ok(MatrixResult {
            test: test.name.to_owned(),
            case: case.name.to_owned(),
            variant: variant.name.to_owned(),
            tested_runs_bps: runs(|result| &result.tested_runs_bps),
            others_runs_bps: runs(|result| &result.others_runs_bps),
            fairness: mean_of(|result| result.fairness),
            retransmitted: mean_of(|result| result.retransmitted),
            rtt_s: mean_of(|result| result.rtt_s),
            queue_delay_s: mean_of(|result| result.queue_delay_s),
        })
    }

    fn of(
        (test, case): (&MatrixTest, &MatrixCase),
        variant: &MatrixVariant,
        outcome: &Outcome,
    ) -> MatrixResult {
        let flows = match case.tested {
            Tested::Last => 1,
            Tested::Alike { flows, .. } => flows as usize,
        };
        let (competing, tested) = outcome.transfers.split_at(outcome.transfers.len() - flows);
        let rates = || tested.iter().map(|transfer| transfer.goodput_bps);
        let total: f64 = rates().sum();
        let squares: f64 = rates().map(|rate| rate * rate).sum();
        let crossing: f64 = outcome.cross.iter().map(|cross| cross.goodput_bps).sum();
        let beside = competing.iter().map(|transfer| transfer.goodput_bps).sum::<f64>() + crossing;
        let alone = competing.is_empty() && outcome.cross.is_empty();
        let mean = |of: fn(&sweetspot_scenario::TransferOutcome) -> f64| {
            tested.iter().map(of).sum::<f64>() / flows as f64
        };
        MatrixResult {
            test: test.name.to_owned(),
            case: case.name.to_owned(),
            variant: variant.name.to_owned(),
            tested_runs_bps: vec![total],
            others_runs_bps: (!alone).then_some(beside).into_iter().collect(),
            fairness: if squares > 0.0 { total * total / (flows as f64 * squares) } else { 0.0 },
            retransmitted: mean(|transfer| transfer.loss_rate),
            rtt_s: mean(|transfer| transfer.rtt_mean_s),
            queue_delay_s: outcome.bottleneck.queue_delay_mean_s,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_applies_the_sizing_only_to_the_tested_flows() {
        for test in &MATRIX {
            for case in test.cases {
                for variant in &VARIANTS {
                    let scenario = case.scenario(test, variant, None, 0).expect(case.name);
                    let flows = match case.tested {
                        Tested::Last => 1,
                        Tested::Alike { flows, .. } => flows as usize,
                    };
                    let (competing, tested) =
                        scenario.transfers.split_at(scenario.transfers.len() - flows);
                    assert!(tested.iter().all(|transfer| transfer.sizing == variant.sizing));
                    assert!(competing.iter().all(|transfer| transfer.sizing == Sizing::Kernel));
                }
            }
        }
    }

    /// Two seconds, plus 37 ms for each earlier run.
    #[test]
    fn each_run_has_its_own_seed_and_start_of_the_tested_flow() {
        let test = MATRIX.iter().find(|test| test.name == "coexist").expect("it is there");
        let run = |run| test.cases[0].scenario(test, &VARIANTS[0], None, run).expect("a scenario");
        let (first, third) = (run(0), run(2));
        let starts = |scenario: &Scenario| {
            scenario.transfers.iter().map(|transfer| transfer.start).collect::<Vec<_>>()
        };
        assert_eq!(starts(&third)[0], starts(&first)[0]);
        assert_eq!(starts(&third)[1], starts(&first)[1] + Duration::from_millis(74));
        assert_eq!(third.seed, first.seed + 2);
    }

    #[test]
    fn buffers_are_the_published_multiples_of_the_bdp() {
        // nsperf: int(bw * rtt / (1514 * 8) * bdp_of_buf).
        let of = |mbit: f64, ms: f64, bdp: f64| (mbit * ms * 1e3 / (1514.0 * 8.0) * bdp) as u64;
        let buffer = |test: &MatrixTest, case: &MatrixCase| {
            let scenario = case.scenario(test, &VARIANTS[0], None, 0).expect("it is a scenario");
            scenario.path.narrow().buffer.in_packets(scenario.path.packet)
        };
        for (name, mbit, ms) in [("coexist", 50.0, 30.0), ("bufferbloat", 50.0, 30.0)] {
            let test = MATRIX.iter().find(|test| test.name == name).expect("it is there");
            for case in test.cases {
                assert_eq!(buffer(test, case), of(mbit, ms, case.x), "{name} {}", case.name);
            }
        }
        let shallow = MATRIX.iter().find(|test| test.name == "shallow").expect("it is there");
        assert_eq!(buffer(shallow, &shallow.cases[0]), of(1000.0, 100.0, 0.02));
    }
}
