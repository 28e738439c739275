//! The simulator's benchmark: its cases, its runs, and its document.

mod benchmark;
mod case;
mod document;
mod ns3;

pub use benchmark::{SpeedBenchmark, simulate};
pub use case::{Scheduler, SpeedCase};
pub use document::{MeasurementInfo, SpeedResults, document};
pub use ns3::build as build_ns3;

use serde::{Deserialize, Serialize};

use sweetspot_statistics::median;

/// Cost of one run of one program.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct RunCost {
    /// Packets forwarded by the links between routers, in both directions.
    pub packets: f64,
    /// Wall time of the run, excluding reading the scenario.
    pub wall_s: f64,
    /// Peak memory of the process, kB.
    pub peak_kb: f64,
}

/// All runs of one program on one case.
#[derive(Debug, Clone)]
pub struct RunCosts(pub Vec<RunCost>);

impl RunCosts {
    /// Median packets per second.
    pub fn packets_per_second(&self) -> f64 {
        self.median(|cost| cost.packets / cost.wall_s)
    }

    /// Median wall time.
    pub fn wall_s(&self) -> f64 {
        self.median(|cost| cost.wall_s)
    }

    /// Minimum and maximum wall time.
    pub fn range_s(&self) -> (f64, f64) {
        let times = || self.0.iter().map(|cost| cost.wall_s);
        (times().fold(f64::INFINITY, f64::min), times().fold(0.0, f64::max))
    }

    /// Median nanoseconds per packet.
    pub fn nanos_per_packet(&self) -> f64 {
        self.median(|cost| cost.wall_s * 1e9 / cost.packets)
    }

    /// Peak memory, MB.
    pub fn peak_mb(&self) -> f64 {
        self.median(|cost| cost.peak_kb / 1e3)
    }

    fn median(&self, of: impl Fn(&RunCost) -> f64) -> f64 {
        median(self.0.iter().map(of)).unwrap_or(f64::NAN)
    }
}

/// The time of the same runs when distributed in different ways, seconds.
#[derive(Debug, Clone, Copy)]
pub struct Sharing {
    /// On one worker.
    pub one: f64,
    /// On two workers of one process.
    pub two: f64,
    /// In two parallel processes, which share nothing.
    pub processes: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_slow_run_does_not_move_the_median() {
        let cost = |wall_s| RunCost { packets: 10.0, wall_s, peak_kb: 2000.0 };
        let costs = RunCosts(vec![cost(1.0), cost(50.0), cost(2.0)]);
        assert_eq!(costs.wall_s(), 2.0);
        assert_eq!(costs.packets_per_second(), 5.0);
        assert_eq!(costs.range_s(), (1.0, 50.0));
        assert_eq!(costs.peak_mb(), 2.0);
    }
}
