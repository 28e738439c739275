use std::fs;
use std::path::Path;
use std::process::Command;

use sweetspot_linux::clock;
use sweetspot_scenario::{Engine, NoRecorder, Scenario};
use sweetspot_sim::scheduler::{Obvious, QuadHeap, Wheel};
use sweetspot_sim::{Simulator, run_with};
use sweetspot_study::Workers;

use super::{Case, Lap, Laps, Scheduler};

/// Plays a case in this process.
pub fn play(case: Case, scheduler: Scheduler) -> Result<Lap, Box<dyn std::error::Error>> {
    let scenario = case.scenario()?;
    let begun = clock::now();
    let outcome = match scheduler {
        Scheduler::Usual => Simulator.run(&scenario, &mut NoRecorder)?,
        Scheduler::Wheel => run_with(&scenario, &mut NoRecorder, || Wheel::of(&scenario.path)),
        Scheduler::Heap => run_with(&scenario, &mut NoRecorder, QuadHeap::default),
        Scheduler::Obvious => run_with(&scenario, &mut NoRecorder, Obvious::default),
    };
    let wall_s = clock::now().since(begun).as_secs_f64();
    let status = fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak_kb = peak.and_then(|words| words.trim().trim_end_matches(" kB").parse().ok());
    let packets = outcome.packets_forwarded as f64;
    Ok(Lap { packets, wall_s, peak_kb: peak_kb.unwrap_or(f64::NAN) })
}

/// Runs programs one after the other, each in a process of its own.
pub struct Race<'a> {
    /// This program.
    pub program: &'a Path,
    /// Our Tcl for ns-2.
    pub script: &'a Path,
    /// How often each runs.
    pub repetitions: usize,
}

impl Race<'_> {
    /// This simulator, with each of `schedulers` in turn.
    pub fn schedulers(&self, case: Case, schedulers: &[Scheduler]) -> Result<Vec<Laps>, String> {
        let mut laps = vec![Laps(Vec::new()); schedulers.len()];
        for _ in 0..self.repetitions {
            for (scheduler, laps) in schedulers.iter().zip(&mut laps) {
                laps.0.push(self.ours(case, *scheduler)?);
            }
        }
        Ok(laps)
    }

    /// This simulator and ns-2 in turn; why the second is missing, if it is.
    pub fn against_ns2(&self, case: Case) -> Result<(Laps, Result<Laps, String>), String> {
        let mut ours = Laps(Vec::new());
        let mut theirs = Ok(Laps(Vec::new()));
        for _ in 0..self.repetitions {
            ours.0.push(self.ours(case, Scheduler::Usual)?);
            theirs = theirs.and_then(|mut laps: Laps| {
                laps.0.push(self.ns2(case)?);
                Ok(laps)
            });
        }
        Ok((ours, theirs))
    }

    fn ours(&self, case: Case, scheduler: Scheduler) -> Result<Lap, String> {
        say!("{case}, scheduler {scheduler:?} ...");
        let output = Command::new(self.program)
            .args(["bench-sim", "--play", &case.to_string(), "--scheduler"])
            .arg(format!("{scheduler:?}").to_lowercase())
            .output()
            .map_err(|e| e.to_string())?;
        if !output.status.success() {
            let why = String::from_utf8_lossy(&output.stderr);
            return Err(format!("{case} failed: {}", why.trim()));
        }
        serde_json::from_slice(&output.stdout).map_err(|e| format!("{case}: {e}"))
    }

    fn ns2(&self, case: Case) -> Result<Lap, String> {
        say!("{case}, ns-2 ...");
        let count = if case == Case::Mice { "2000" } else { "20" };
        let end = case.seconds().map_err(|e| e.to_string())?;
        let output = Command::new("ns")
            .arg(self.script)
            .args([&case.to_string(), count, &end.to_string()])
            .output()
            .map_err(|e| format!("ns: {e}; apt-get install ns2"))?;
        let said = String::from_utf8_lossy(&output.stdout);
        let number = |key: &str| {
            let word = said.split_whitespace().find_map(|word| word.strip_prefix(key));
            word.and_then(|word| word.parse().ok())
                .ok_or_else(|| format!("ns: no {key} in {:?}", said.trim()))
        };
        let (packets, wall_s) = (number("packets=")?, number("wall_s=")?);
        Ok(Lap { packets, wall_s, peak_kb: number("peak_kb=")? })
    }

    /// How long `count` runs with different seeds take on so many workers, seconds: medians.
    pub fn workers(&self, count: u64, workers: &[usize]) -> Result<Vec<f64>, String> {
        let base = Case::Elephants.scenario().map_err(|e| e.to_string())?;
        let scenarios: Vec<Scenario> =
            (1..=count).map(|seed| Scenario { seed, ..base.clone() }).collect();
        let mut times = vec![Laps(Vec::new()); workers.len()];
        for _ in 0..self.repetitions {
            for (workers, times) in workers.iter().zip(&mut times) {
                say!("{count} runs on {workers} workers ...");
                let begun = clock::now();
                let outcomes = Workers::new(*workers)
                    .map(&scenarios, |scenario| Simulator.run(scenario, &mut NoRecorder));
                let wall_s = clock::now().since(begun).as_secs_f64();
                let outcomes: Result<Vec<_>, _> = outcomes.into_iter().collect();
                let packets = outcomes.map_err(|e| e.to_string())?.len() as f64;
                times.0.push(Lap { packets, wall_s, peak_kb: 0.0 });
            }
        }
        Ok(times.iter().map(Laps::wall_s).collect())
    }
}
