use std::path::PathBuf;
use std::process::ExitCode;

use sweetspot_comparison::machine;
use sweetspot_experiment::{NoStore, ResultStore, RunKey};
use sweetspot_lab::Lab;
use sweetspot_research::validate::{
    Agreement, EnginePair, PathDrawing, PopulationInfo, PopulationRun, RunValues,
    population_document, population_text,
};
use sweetspot_scenario::{Congestion, Engine, NoRecorder, Outcome, Scenario};
use sweetspot_sim::Simulator;
use sweetspot_sizing::Sizing;
use sweetspot_units::Duration;

use crate::verbs::Ending;
use sweetspot_program::print::Shown;
use sweetspot_program::result_journal::{OnVersionMismatch, ResultJournal};
use sweetspot_program::scenario_file::seed;
use sweetspot_program::whole_file;

#[derive(Debug, clap::Args)]
pub struct PopulationArguments {
    /// Draw random paths and run each by the simulator and by the lab
    #[arg(long, conflicts_with_all = ["scenario", "standing", "seed", "engine", "overrides"])]
    population: bool,
    /// With --population: number of paths
    #[arg(long, value_name = "N", default_value_t = 60, requires = "population", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    paths: u64,
    /// With --population: the seed that draws them
    #[arg(long, value_name = "N", default_value_t = 1, requires = "population", value_parser = seed())]
    drawn_by: u64,
    /// With --population: seeds of paths used to correct the simulator; --drawn-by refuses them
    #[arg(long, value_name = "N", value_delimiter = ',', requires = "population", value_parser = seed())]
    chosen_on: Vec<u64>,
    /// With --population: measured time of each run
    #[arg(long, value_name = "TIME", default_value = "8s", requires = "population")]
    duration: Duration,
    /// With --population: congestion controls
    #[arg(long, value_delimiter = ',', default_value = "cubic,reno,bbr", requires = "population", value_parser = congestion)]
    congestion: Vec<Congestion>,
    /// With --population: sizings
    #[arg(long, value_delimiter = ',', default_value = "kernel,sobas", requires = "population")]
    sizing: Vec<Sizing>,
    /// With --population: run each path with one of the sizings alone, in turn
    #[arg(long, requires = "population")]
    alternate: bool,
    /// With --population: journal of the lab's runs; the same command continues after an interruption
    #[arg(long, value_name = "FILE", requires = "population")]
    journal: Option<PathBuf>,
}

/// Simulator runs per lab run; their median is compared.
const SIMULATOR_SEEDS: u64 = 5;
/// Further lab runs for a pair that differs.
const FURTHER_RUNS: u64 = 3;
/// Maximum number of attempts per lab run until one is certified.
const MAX_ATTEMPTS: u32 = 2;

fn congestion(text: &str) -> Result<Congestion, String> {
    Congestion::named(text).ok_or_else(|| "there is no such congestion control".to_owned())
}

impl PopulationArguments {
    /// Whether a population was requested.
    pub fn is_requested(&self) -> bool {
        self.population
    }

    fn drawing(&self) -> PathDrawing {
        PathDrawing {
            seed: self.drawn_by,
            paths: self.paths,
            duration: self.duration,
            congestions: self.congestion.clone(),
            sizings: self.sizing.clone(),
            alternate: self.alternate,
        }
    }

    /// The command line that repeats this run.
    fn command(&self) -> String {
        let congestion: Vec<&str> = self.congestion.iter().map(|c| c.name()).collect();
        let sizing: Vec<String> = self.sizing.iter().map(Sizing::to_string).collect();
        format!(
            "sweetspot-research validate --population --paths {} --drawn-by {} --duration {}s --congestion {} --sizing {}{}",
            self.paths,
            self.drawn_by,
            self.duration.as_secs_f64(),
            congestion.join(","),
            sizing.join(","),
            if self.alternate { " --alternate" } else { "" }
        )
    }
}

/// Runs the population, prints the comparison and writes its document.
pub fn run(arguments: &PopulationArguments, out: Option<&PathBuf>, json: bool) -> Ending {
    if arguments.chosen_on.contains(&arguments.drawn_by) {
        let seed = arguments.drawn_by;
        return Err(format!(
            "--drawn-by {seed}: the simulator was mended on its paths (--chosen-on), which cannot measure it; take another"
        )
        .into());
    }
    let journal = arguments
        .journal
        .as_deref()
        .map(|path| ResultJournal::open(path, env!("CARGO_PKG_VERSION"), OnVersionMismatch::Refuse))
        .transpose()?;
    let store = journal.as_ref().map_or(&NoStore as &dyn ResultStore, |journal| journal);
    let runs = arguments.drawing().runs()?;
    let (mut pairs, mut left_out) = (Vec::new(), Vec::new());
    for (done, run) in runs.iter().enumerate() {
        match lab(&run.scenario, store) {
            Ok(outcome) => {
                let mut found = pair(run, &outcome)?;
                for pair in found.iter_mut().filter(|pair| pair.is_to_be_explained()) {
                    pair.lab_again = lab_again(&run.scenario, store);
                }
                pairs.extend(found);
            }
            Err(reason) => left_out.push(format!(
                "path {}, {}, {}: {reason}",
                run.path,
                run.congestion.name(),
                run.sizing
            )),
        }
        note!("sweetspot: {} of {} runs", done + 1, runs.len());
    }
    let info = PopulationInfo { command: arguments.command(), machine: machine::here(), left_out };
    if let Some(out) = out {
        whole_file::write(out, population_document(&pairs, &info).as_bytes())?;
        note!("wrote {}", out.shown());
    }
    if json {
        let agreement = Agreement::of(&pairs);
        let (command, left_out) = (info.command, info.left_out);
        out!(
            "{}",
            serde_json::json!({ "command": command, "agreement": agreement, "pairs": pairs, "left_out": left_out })
        );
    } else {
        out!("{}", population_text(&pairs, &info.left_out).trim_end());
        if out.is_none() {
            note!("sweetspot: --out FILE.md writes every pair");
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The lab's certified outcome, or why there is none.
fn lab(scenario: &Scenario, store: &dyn ResultStore) -> Result<Outcome, String> {
    let key = RunKey::of(Lab.name(), scenario);
    if let Some(outcome) = store.get(&key) {
        return Ok(outcome);
    }
    let mut doubts = String::new();
    for _ in 0..MAX_ATTEMPTS {
        let finished = Lab.run(scenario).map_err(|error| error.to_string())?;
        if finished.certificate.trust {
            store.put(&key, &finished.outcome);
            return Ok(finished.outcome);
        }
        doubts = finished.certificate.reasons.join("; ");
    }
    Err(doubts)
}

/// Further certified lab runs with other seeds.
fn lab_again(scenario: &Scenario, store: &dyn ResultStore) -> Vec<RunValues> {
    let seeds = (1..=FURTHER_RUNS).map(|further| scenario.seed + further);
    let again = seeds.map(|seed| Scenario { seed, ..scenario.clone() });
    again.filter_map(|scenario| RunValues::of(&lab(&scenario, store).ok()?)).collect()
}

/// The lab's run paired with the simulator's runs of the same path.
fn pair(
    run: &PopulationRun,
    lab: &Outcome,
) -> Result<Option<EnginePair>, Box<dyn std::error::Error>> {
    let mut sim = Vec::new();
    for seed in 0..SIMULATOR_SEEDS {
        let scenario = Scenario { seed: run.scenario.seed + seed, ..run.scenario.clone() };
        sim.extend(RunValues::of(&Simulator.run(&scenario, &mut NoRecorder)?));
    }
    let path = &run.scenario.path;
    let hop = path.narrow();
    let Some(lab) = RunValues::of(lab) else { return Ok(None) };
    Ok(Some(EnginePair {
        path: run.path,
        congestion: run.congestion.name().to_owned(),
        sizing: run.sizing.to_string(),
        rate_mbit: hop.rate.as_f64() / 1e6,
        rtt_ms: path.rtt.as_secs_f64() * 1e3,
        buffer_packets: hop.buffer.in_packets(path.packet),
        buffer_bdp: hop.buffer.in_bytes(path.packet).as_f64() / path.bdp().as_f64(),
        loss: hop.loss.get(),
        lab,
        lab_again: Vec::new(),
        sim,
    }))
}
