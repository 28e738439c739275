use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use sweetspot_experiment::Workers;
use sweetspot_linux::clock;
use sweetspot_scenario::{Engine, NoRecorder, Scenario};
use sweetspot_sim::scheduler::{BinaryHeapScheduler, QuadHeap, Wheel};
use sweetspot_sim::{Simulator, run_with};

use super::{RunCost, RunCosts, Scheduler, Sharing, SpeedCase};

/// Runs a case in this process, `runs` times with seeds from 1 on.
pub fn simulate(
    case: SpeedCase,
    scheduler: Scheduler,
    runs: u64,
) -> Result<RunCost, Box<dyn std::error::Error>> {
    let base = case.scenario()?;
    let started = clock::now();
    let mut packets = 0.0;
    for seed in 1..=runs {
        let scenario = Scenario { seed, ..base.clone() };
        let outcome = match scheduler {
            Scheduler::Usual => Simulator.run(&scenario, &mut NoRecorder)?,
            Scheduler::Wheel => run_with(&scenario, &mut NoRecorder, || Wheel::of(&scenario.path)),
            Scheduler::Heap => run_with(&scenario, &mut NoRecorder, QuadHeap::default),
            Scheduler::BinaryHeap => {
                run_with(&scenario, &mut NoRecorder, BinaryHeapScheduler::default)
            }
        };
        packets += outcome.packets_forwarded as f64;
    }
    let wall_s = clock::now().since(started).as_secs_f64();
    let status = fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak_kb = peak.and_then(|words| words.trim().trim_end_matches(" kB").parse().ok());
    Ok(RunCost { packets, wall_s, peak_kb: peak_kb.unwrap_or(f64::NAN) })
}

/// Number of ns-3 repetitions, fewer because its runs are long.
const NS3_REPETITIONS: usize = 3;

/// Runs programs one after the other, each in a separate process.
pub struct SpeedBenchmark<'a> {
    /// This program.
    pub program: &'a Path,
    /// The Tcl script for ns-2.
    pub script: &'a Path,
    /// The compiled ns-3 program, or why it could not be compiled.
    pub ns3: Result<PathBuf, String>,
    /// Number of repetitions of each program.
    pub repetitions: usize,
}

impl SpeedBenchmark<'_> {
    /// Runs this simulator with each of `schedulers` in turn.
    pub fn schedulers(
        &self,
        case: SpeedCase,
        schedulers: &[Scheduler],
    ) -> Result<Vec<RunCosts>, String> {
        let mut costs = vec![RunCosts(Vec::new()); schedulers.len()];
        for _ in 0..self.repetitions {
            for (scheduler, costs) in schedulers.iter().zip(&mut costs) {
                costs.0.push(self.ours(case, *scheduler)?);
            }
        }
        Ok(costs)
    }

    /// Runs this simulator and ns-2 in turn; if ns-2 is missing, the error says why.
    pub fn against_ns2(
        &self,
        case: SpeedCase,
    ) -> Result<(RunCosts, Result<RunCosts, String>), String> {
        let mut ours = RunCosts(Vec::new());
        let mut theirs = Ok(RunCosts(Vec::new()));
        for _ in 0..self.repetitions {
            ours.0.push(self.ours(case, Scheduler::Usual)?);
            theirs = theirs.and_then(|mut costs: RunCosts| {
                costs.0.push(self.ns2(case)?);
                Ok(costs)
            });
        }
        Ok((ours, theirs))
    }

    /// The command with which this program executes a case `runs` times in a separate process.
    fn runner(&self, case: SpeedCase, scheduler: Scheduler, runs: u64) -> Command {
        let mut command = Command::new(self.program);
        command
            .args(["bench", "sim", "--run", &case.to_string()])
            .args(["--scheduler", &scheduler.to_string()])
            .args(["--runs", &runs.to_string()]);
        command
    }

    fn ours(&self, case: SpeedCase, scheduler: Scheduler) -> Result<RunCost, String> {
        err!("{case}, scheduler {scheduler} ...");
        let output = self.runner(case, scheduler, 1).output().map_err(|e| e.to_string())?;
        if !output.status.success() {
            let why = String::from_utf8_lossy(&output.stderr);
            return Err(format!("{case} failed: {}", why.trim()));
        }
        serde_json::from_slice(&output.stdout).map_err(|e| format!("{case}: {e}"))
    }

    fn ns2(&self, case: SpeedCase) -> Result<RunCost, String> {
        err!("{case}, ns-2 ...");
        let end = case.seconds().map_err(|e| e.to_string())?;
        let mut command = Command::new("ns");
        command.arg(self.script);
        peer(command, "ns2", case, end)
    }

    /// Runs ns-3 for [`SpeedCase::ns3_seconds`].
    pub fn ns3(&self, case: SpeedCase) -> Result<RunCosts, String> {
        let program = self.ns3.as_ref()?;
        let costs = (0..self.repetitions.min(NS3_REPETITIONS)).map(|_| {
            err!("{case}, ns-3 ...");
            peer(Command::new(program), "libns3-dev", case, case.ns3_seconds())
        });
        Ok(RunCosts(costs.collect::<Result<_, _>>()?))
    }

    /// Times `count` runs on one worker, on two, and in two parallel processes.
    pub fn sharing(&self, count: u64) -> Result<Vec<Sharing>, String> {
        let base = SpeedCase::Elephants.scenario().map_err(|e| e.to_string())?;
        // Both halves are the same, so that they end together.
        let scenarios: Vec<Scenario> =
            (0..count).map(|run| Scenario { seed: 1 + run / 2, ..base.clone() }).collect();
        let workers = |workers: usize| -> Result<f64, String> {
            err!("{count} runs on {workers} workers ...");
            let started = clock::now();
            let outcomes = Workers::new(workers)
                .map(&scenarios, |scenario| Simulator.run(scenario, &mut NoRecorder));
            let wall_s = clock::now().since(started).as_secs_f64();
            outcomes.into_iter().find_map(Result::err).map_or(Ok(wall_s), |e| Err(e.to_string()))
        };
        (0..self.repetitions)
            .map(|_| {
                Ok(Sharing {
                    one: workers(1)?,
                    two: workers(2)?,
                    processes: self.side_by_side(count / 2)?,
                })
            })
            .collect()
    }

    /// The time, in seconds, that two parallel processes take for `runs` runs each.
    fn side_by_side(&self, runs: u64) -> Result<f64, String> {
        err!("two processes with {runs} runs each ...");
        let started = clock::now();
        let start = || {
            let mut command = self.runner(SpeedCase::Elephants, Scheduler::Usual, runs);
            command.stdout(Stdio::null()).spawn().map_err(|e| e.to_string())
        };
        for mut child in [start()?, start()?] {
            let status = child.wait().map_err(|e| e.to_string())?;
            if !status.success() {
                return Err(format!("a process that ran elephants ended with {status}"));
            }
        }
        Ok(clock::now().since(started).as_secs_f64())
    }
}

/// Runs a case with another simulator's `command` (from `package`) until `end`, in seconds; it prints
/// its cost.
fn peer(mut command: Command, package: &str, case: SpeedCase, end: f64) -> Result<RunCost, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let count = if case == SpeedCase::Mice { "2000" } else { "20" };
    let output = command
        .args([&case.to_string(), count, &end.to_string()])
        .output()
        .map_err(|e| format!("{name}: {e}; apt-get install {package}"))?;
    let stdout = String::from_utf8_lossy(&output.stdout);
    let number = |key: &str| {
        let word = stdout.split_whitespace().find_map(|word| word.strip_prefix(key));
        word.and_then(|word| word.parse().ok())
            .ok_or_else(|| format!("{name}: no {key} in {:?}", stdout.trim()))
    };
    Ok(RunCost {
        packets: number("packets=")?,
        wall_s: number("wall_s=")?,
        peak_kb: number("peak_kb=")?,
    })
}
