//! Simulates the transfers of a capture.

use sweetspot_diagnose::Flow;
use sweetspot_diagnose::path::{Curve, Replay, Simulation};
use sweetspot_scenario::{Engine, Recorder, Sample, Scenario};
use sweetspot_sim::Simulator;
use sweetspot_units::{Bytes, Duration};

use crate::AnswerError;

/// Maximum number of segments simulated for one report, over both runs: about a second.
const MAX_SEGMENTS: u64 = 300_000;
/// Number of points on a curve.
const POINTS: u64 = 300;

/// Simulates `flows`, the largest first, within a time limit.
pub fn simulate(flows: &mut [Flow]) {
    let mut left = MAX_SEGMENTS;
    for flow in flows {
        flow.simulated = flow.replay.as_ref().map(|replay| match replay {
            Err(why) => Simulation::unknown(why.to_string()),
            Ok(replay) if 2 * replay.segments > left => Simulation::unknown(
                "it would take too long; --scenario writes the path to run it on",
            ),
            Ok(replay) => {
                left -= 2 * replay.segments;
                Simulation::of(replay, run)
            }
        });
    }
}

fn run(replay: &Replay, settings: &[String]) -> Result<(Duration, Curve), AnswerError> {
    let scenario = Scenario::parse_with(&replay.scenario, settings)?;
    let mut recorder = CurveRecorder {
        interval: (replay.took / POINTS).max(Duration::from_millis(1)),
        size: replay.size,
        curve: vec![(Duration::ZERO, Bytes::ZERO)],
    };
    let outcome = Simulator.run(&scenario, &mut recorder)?;
    let took = outcome.transfers.first().and_then(|transfer| transfer.completion_s);
    let took = took.map(Duration::from_secs_f64).ok_or(AnswerError::TooSlow(scenario.duration))?;
    let mut curve = recorder.curve;
    curve.retain(|(at, bytes)| *at < took && *bytes < replay.size);
    curve.push((took, replay.size));
    Ok((took, curve))
}

/// Bytes acknowledged over time.
struct CurveRecorder {
    interval: Duration,
    size: Bytes,
    curve: Curve,
}

impl Recorder for CurveRecorder {
    fn interval(&self) -> Option<Duration> {
        Some(self.interval)
    }

    fn record(&mut self, sample: &Sample) {
        if self.curve.last().is_some_and(|(_, bytes)| *bytes < self.size) {
            let at = Duration::from_secs_f64(sample.at_s);
            self.curve.push((at, Bytes::new(sample.acked_bytes)));
        }
    }
}
