use std::fmt;
use std::str::FromStr;

use clap::ValueEnum;
use clap::builder::PossibleValue;
use sweetspot_scenario::{Scenario, ScenarioError};

/// A case of the benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpeedCase {
    /// Twenty window-limited transfers in each direction.
    Elephants,
    /// 2000 users in each direction that send a few packets and sleep.
    Mice,
    /// One fast SACK flow.
    Sack,
    /// This many transfers, each with its share of the link.
    Flows(u64),
}

/// The simulator's event queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Scheduler {
    /// The simulator's own choice
    Usual,
    /// The timing wheel
    Wheel,
    /// The heap with four children per node
    Heap,
    /// The standard library's heap
    BinaryHeap,
}

impl fmt::Display for Scheduler {
    /// Its name on the command line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.to_possible_value();
        f.write_str(value.as_ref().map_or("", PossibleValue::get_name))
    }
}

impl SpeedCase {
    /// The scenario.
    pub fn scenario(self) -> Result<Scenario, ScenarioError> {
        match self {
            SpeedCase::Elephants => {
                Scenario::parse(include_str!("../../../../../scenarios/elephants.toml"))
            }
            SpeedCase::Mice => {
                Scenario::parse(include_str!("../../../../../bench/scenarios/mice.toml"))
            }
            SpeedCase::Sack => {
                Scenario::parse(include_str!("../../../../../bench/scenarios/sack.toml"))
            }
            SpeedCase::Flows(count) => {
                let text = include_str!("../../../../../bench/scenarios/flows.toml");
                // Two million data packets, if that takes more than a second: a flow sends ten per
                // 100 ms.
                let duration = (2_000_000 / (100 * count)).max(1);
                let overrides = [
                    format!("cross.0.count={count}"),
                    format!("path.rate={count}Mbit/s"),
                    // The sum of all windows, so nothing is ever dropped.
                    format!("path.buffer={}pkt", 10 * count),
                    format!("duration={duration}s"),
                ];
                Scenario::parse_with(text, &overrides)
            }
        }
    }

    /// Seconds that it simulates.
    pub fn seconds(self) -> Result<f64, ScenarioError> {
        let scenario = self.scenario()?;
        Ok((scenario.warmup + scenario.duration).as_secs_f64())
    }

    /// Simulated time for ns-3, seconds: about ten seconds of wall time.
    pub fn ns3_seconds(self) -> f64 {
        match self {
            SpeedCase::Elephants | SpeedCase::Flows(_) => 30.0,
            SpeedCase::Mice => 15.0,
            SpeedCase::Sack => 2.0,
        }
    }
}

impl fmt::Display for SpeedCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SpeedCase::Elephants => f.write_str("elephants"),
            SpeedCase::Mice => f.write_str("mice"),
            SpeedCase::Sack => f.write_str("sack"),
            SpeedCase::Flows(count) => write!(f, "flows-{count}"),
        }
    }
}

impl FromStr for SpeedCase {
    type Err = String;

    fn from_str(text: &str) -> Result<SpeedCase, String> {
        let flows = || text.strip_prefix("flows-")?.parse().ok().filter(|n| *n > 0);
        match text {
            "elephants" => Ok(SpeedCase::Elephants),
            "mice" => Ok(SpeedCase::Mice),
            "sack" => Ok(SpeedCase::Sack),
            _ => flows()
                .map(SpeedCase::Flows)
                .ok_or_else(|| format!("no case {text}; give elephants, mice, sack or flows-1000")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_printed_scheduler_parses_back() {
        for scheduler in Scheduler::value_variants() {
            assert_eq!(
                <Scheduler as ValueEnum>::from_str(&scheduler.to_string(), false).as_ref(),
                Ok(scheduler)
            );
        }
    }

    #[test]
    fn every_case_has_a_valid_scenario_and_parses_back() {
        for case in [
            SpeedCase::Elephants,
            SpeedCase::Mice,
            SpeedCase::Sack,
            SpeedCase::Flows(10),
            SpeedCase::Flows(100_000),
        ] {
            assert!(case.scenario().is_ok(), "{case}: {:?}", case.scenario());
            assert_eq!(case.to_string().parse(), Ok(case));
        }
        assert!("flows-0".parse::<SpeedCase>().is_err());
    }
}
