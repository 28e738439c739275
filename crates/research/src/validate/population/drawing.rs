use sweetspot_scenario::{Congestion, Scenario, ScenarioError};
use sweetspot_sizing::Sizing;
use sweetspot_units::Duration;

use crate::gauntlet::RandomStream;

/// How paths are drawn and run.
#[derive(Debug, Clone, PartialEq)]
pub struct PathDrawing {
    /// The seed, which determines the paths.
    pub seed: u64,
    /// Number of paths.
    pub paths: u64,
    /// Measured time of each run.
    pub duration: Duration,
    /// Congestion controls.
    pub congestions: Vec<Congestion>,
    /// Sizings.
    pub sizings: Vec<Sizing>,
    /// Whether each path is run with only one of the sizings, in rotation.
    pub alternate: bool,
}

/// One run of one path.
#[derive(Debug, Clone, PartialEq)]
pub struct PopulationRun {
    /// The path's number.
    pub path: u64,
    /// Its congestion control.
    pub congestion: Congestion,
    /// Its sizing.
    pub sizing: Sizing,
    /// The scenario to run.
    pub scenario: Scenario,
    /// The scenario as TOML.
    pub text: String,
}

/// Rates, Mbit/s, that an emulator handles accurately beside other work, from slow DSL upwards.
const MBIT: (f64, f64) = (2.0, 100.0);
/// RTTs, ms: from within a town to the other side of the world.
const RTT_MS: (f64, f64) = (5.0, 250.0);
/// Buffers in bandwidth-delay products.
const BUFFER_BDP: (f64, f64) = (0.1, 4.0);
const MIN_BUFFER_PACKETS: f64 = 10.0;
/// Fraction of paths with random loss, and the loss rates.
const LOSSY: f64 = 0.3;
const LOSS: (f64, f64) = (1e-5, 1e-2);
/// RTTs before the measurement, for the handshakes (in the lab TLS, too) and the first slow start.
const SETTLING_ROUND_TRIPS: f64 = 15.0;
const SHORTEST_SETTLING_S: f64 = 1.0;

impl PathDrawing {
    /// Path `path`, without its transfer.
    fn path(&self, path: u64) -> String {
        let stream = |quantity: &str| RandomStream::new(self.seed, path, quantity);
        let mbit = stream("validated rate").log_between(MBIT.0, MBIT.1);
        let rtt_ms = stream("validated rtt").log_between(RTT_MS.0, RTT_MS.1);
        let bdp = mbit * rtt_ms / 12.0;
        let buffer = bdp * stream("validated buffer").log_between(BUFFER_BDP.0, BUFFER_BDP.1);
        let buffer = buffer.round().max(MIN_BUFFER_PACKETS);
        let loss = if stream("validated loss").chance(LOSSY) {
            format!("loss = {:.7}\n", stream("validated loss rate").log_between(LOSS.0, LOSS.1))
        } else {
            String::new()
        };
        let warmup = (rtt_ms * 1e-3 * SETTLING_ROUND_TRIPS).max(SHORTEST_SETTLING_S);
        format!(
            "title = \"Path {path} of seed {}\"\nseed = {}\nwarmup = \"{warmup:.3}s\"\n\
             duration = \"{}s\"\n\n[path]\nrate = \"{mbit:.3}Mbit/s\"\nrtt = \"{rtt_ms:.3}ms\"\n\
             buffer = \"{buffer}pkt\"\npacket = \"1500B\"\nreverse = \"clean\"\n{loss}\n\
             [tcp]\nflavour = \"linux\"\n",
            self.seed,
            stream("validated seed").seed(),
            self.duration.as_secs_f64(),
        )
    }

    /// Every run, path by path.
    pub fn runs(&self) -> Result<Vec<PopulationRun>, ScenarioError> {
        let mut runs = Vec::new();
        for path in 0..self.paths {
            let body = self.path(path);
            for sizing in self.sizings_of(path) {
                for congestion in &self.congestions {
                    let text = format!(
                        "{body}\n[[transfer]]\ncongestion = \"{}\"\nsizing = \"{sizing}\"\n",
                        congestion.name()
                    );
                    let scenario = Scenario::parse(&text)?;
                    let (congestion, sizing) = (*congestion, *sizing);
                    runs.push(PopulationRun { path, congestion, sizing, scenario, text });
                }
            }
        }
        Ok(runs)
    }

    fn sizings_of(&self, path: u64) -> impl Iterator<Item = &Sizing> {
        let (turn, count) = (path as usize, self.sizings.len().max(1));
        let sizings = self.sizings.iter().enumerate();
        sizings
            .filter(move |(i, _)| !self.alternate || turn % count == *i)
            .map(|(_, sizing)| sizing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawing(alternate: bool) -> PathDrawing {
        PathDrawing {
            seed: 3,
            paths: 40,
            duration: Duration::from_secs(8),
            congestions: vec![Congestion::Cubic, Congestion::Reno, Congestion::Bbr],
            sizings: vec![Sizing::Kernel, Sizing::Sobas],
            alternate,
        }
    }

    #[test]
    fn a_drawing_runs_every_combination_or_alternates_sizings() {
        assert_eq!(drawing(false).runs().expect("they are scenarios").len(), 40 * 3 * 2);
        let runs = drawing(true).runs().expect("they are scenarios");
        assert_eq!(runs.len(), 40 * 3);
        assert!(runs.iter().all(|run| (run.path % 2 == 0) == (run.sizing == Sizing::Kernel)));
    }

    #[test]
    fn drawn_paths_stay_within_their_documented_ranges() {
        for run in drawing(true).runs().expect("they are scenarios") {
            let path = &run.scenario.path;
            let rate = path.narrow().rate.as_f64() / 1e6;
            assert!((MBIT.0..=MBIT.1).contains(&rate), "{rate}");
            assert!(path.narrow().buffer.in_packets(path.packet) >= MIN_BUFFER_PACKETS as u64);
            assert!(run.scenario.warmup >= Duration::from_secs(1));
        }
    }
}
