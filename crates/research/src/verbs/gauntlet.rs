use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use sweetspot_experiment::{NoStore, ResultStore, StudyError, Workers};
use sweetspot_lab::Lab;
use sweetspot_report::{Theme, svg_file};
use sweetspot_research::gauntlet::{
    DocumentInfo, GauntletPlan, GauntletReport, GauntletSettings, Population, RunMeasured, Runner,
    VariantResult, document, picture_name, pictures, table,
};
use sweetspot_scenario::{Congestion, Engine, EngineError, Outcome, Recorder, Scenario};
use sweetspot_sim::Simulator;
use sweetspot_sizing::Sizing;
use sweetspot_units::Duration;

use super::Ending;
use sweetspot_comparison::machine;
use sweetspot_program::build::identity;
use sweetspot_program::engine::EngineName;
use sweetspot_program::print::Shown;
use sweetspot_program::progress::{self, CountingEngine};
use sweetspot_program::result_journal::{OnVersionMismatch, ResultJournal};
use sweetspot_program::scenario_file::{Parallel, seed};
use sweetspot_program::usage_error::UsageError;
use sweetspot_program::values::{self, Offering};
use sweetspot_program::whole_file;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Every path is run under several seeds with the kernel's autotuning, with the same under other
seeds (the null, which shows the effect of chance), and with each sizing. With --journal no run is
run twice: the kernel's runs stay valid, those of a sizing while its --tag is the same.

Examples:
  sweetspot-research gauntlet --seed 7 --paths 300 --seeds 4 --sizing sobas,sobas:live --journal g.journal
  sweetspot-research gauntlet --seed 7 --only 41 --sizing sobas --worst worst")]
pub struct GauntletArguments {
    /// Engine: sim, or lab (this machine's kernel in real time, one run after another)
    #[arg(long, value_enum, default_value_t = EngineName::Sim)]
    engine: EngineName,
    /// Populations of random paths: drawn, sizes, long, changes, transfers, again
    #[arg(long, value_delimiter = ',', default_value = "drawn", hide_possible_values = true)]
    #[arg(value_parser = values::words::<Population>(POPULATIONS))]
    population: Vec<Population>,
    /// Seed of the population; the same seed gives the same paths
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = seed())]
    seed: u64,
    /// Number of paths, or a range of them: 300, or 100..200
    #[arg(long, value_name = "N|A..B", default_value = "300", value_parser = paths)]
    paths: Range<u64>,
    /// Run this path only
    #[arg(long, value_name = "INDEX", conflicts_with = "paths", value_parser = clap::value_parser!(u64).range(..1 << 53))]
    only: Option<u64>,
    /// Number of seeds per path
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    seeds: u64,
    /// Measured time of each transfer [default: 20s; sizes 60s at most, long 60s and 300s, changes
    /// and transfers 30s]
    #[arg(long)]
    duration: Option<Duration>,
    /// Congestion controls; each sizing is run with each
    #[arg(long, value_delimiter = ',', default_value = "cubic", hide_possible_values = true)]
    #[arg(value_parser = Offering::new(&["cubic", "reno", "bbr"], congestion))]
    congestion: Vec<Congestion>,
    /// Do not let sizings switch the congestion control
    #[arg(long)]
    congestion_fixed: bool,
    /// Sizings to compare with the kernel's
    #[arg(long, value_delimiter = ',', default_value = "sobas", hide_possible_values = true)]
    #[arg(value_parser = Offering::new(SIZINGS, sizing))]
    sizing: Vec<Sizing>,
    /// Journal of finished runs; the same command continues after an interruption
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
    /// Tag of the sizings' implementation; stored runs with another tag are not used [default: this
    /// program's version and build]
    #[arg(long, value_name = "TEXT")]
    tag: Option<String>,
    /// Run these sizings again even if the journal has them (kernel: the baseline)
    #[arg(long, value_name = "SIZING", value_delimiter = ',', requires = "journal")]
    fresh: Vec<Sizing>,
    /// Directory for scenario files of each sizing's worst paths
    #[arg(long, value_name = "DIR")]
    worst: Option<PathBuf>,
    /// Number of worst paths
    #[arg(long, value_name = "N", default_value_t = 10, requires = "worst")]
    worst_paths: usize,
    /// Seeds on which parameters were chosen; they are rejected, so results are out of sample
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = seed())]
    chosen_on: Vec<u64>,
    /// Write a document of the results here, with pictures in a directory of its name
    #[arg(long, value_name = "FILE.md")]
    out: Option<PathBuf>,
    #[command(flatten)]
    parallel: Parallel,
    /// Print a JSON object per population instead of the tables
    #[arg(long)]
    json: bool,
}

const POPULATIONS: &[&str] = &["drawn", "sizes", "long", "changes", "transfers", "again"];
/// Default sizings to compare with the kernel's own.
const SIZINGS: &[&str] = &["sobas", "sobas:live", "sobas:paper", "drs", "max"];

/// Parses 300 or 100..200.
fn paths(text: &str) -> Result<Range<u64>, String> {
    let integer = |text: &str| text.trim().parse().ok().filter(|n: &u64| *n < 1 << 53);
    let range = match text.split_once("..") {
        Some((first, end)) => integer(first).zip(integer(end)).map(|(first, end)| first..end),
        None => integer(text).map(|end| 0..end),
    };
    range
        .filter(|range| !range.is_empty())
        .ok_or_else(|| "write a number of paths, 300, or a range, 100..200".to_owned())
}

fn congestion(text: &str) -> Result<Congestion, String> {
    Congestion::named(text).ok_or_else(|| {
        let known = Congestion::CHOICES.map(|(name, _)| name).join(", ");
        format!("there is no such congestion control; there are {known}")
    })
}

fn sizing(text: &str) -> Result<Sizing, String> {
    match text.parse() {
        Ok(Sizing::Kernel) => Err("it is what the others are judged against".to_owned()),
        Ok(sizing) => Ok(sizing),
        Err(error) => Err(error.to_string()),
    }
}

pub fn run(arguments: GauntletArguments) -> Ending {
    if arguments.chosen_on.contains(&arguments.seed) {
        let seed = arguments.seed;
        return Err(UsageError::new(format!(
            "--seed {seed}: it chose parameters (--chosen-on) and cannot measure them; take another"
        ))
        .into());
    }
    if arguments.engine == EngineName::Theory {
        let why = "--engine theory: a population needs random draws; choose sim or lab";
        return Err(UsageError::new(why).into());
    }
    let tag = arguments.tag.clone().map_or_else(identity, Ok)?;
    let result_journal =
        arguments.journal.as_deref().map(|path| open(path, &arguments.fresh)).transpose()?;
    let mut reports = Vec::new();
    for population in arguments.population.iter().copied() {
        let plan = GauntletPlan::new(GauntletSettings {
            population,
            seed: arguments.seed,
            paths: arguments.only.map_or(arguments.paths.clone(), |only| only..only + 1),
            seeds: arguments.seeds,
            duration: arguments.duration,
            congestions: arguments.congestion.clone(),
            congestion_fixed: arguments.congestion_fixed,
            sizings: arguments.sizing.clone(),
        })?;
        let store = result_journal
            .as_ref()
            .map_or(&NoStore as &dyn ResultStore, |result_journal| result_journal);
        let (plan, measured) = run_interruptibly(plan, store, &tag, &arguments)?;
        let report = GauntletReport::of(&plan, &measured);
        print(&report, arguments.json)?;
        if let Some(directory) = &arguments.worst {
            write_worst(&arguments, &plan, &report, directory)?;
        }
        reports.push(report);
    }
    if let Some(failure) = result_journal.and_then(|result_journal| result_journal.failure()) {
        err!("sweetspot: {failure}; the results are whole");
    }
    if let Some(out) = &arguments.out {
        write_document(&arguments, &reports, out)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Opens the journal, without the runs of sizings that are to be repeated.
fn open(path: &Path, fresh: &[Sizing]) -> Result<ResultJournal, String> {
    // Kept across builds of one version: the tag distinguishes builds that change a sizing.
    let result_journal =
        ResultJournal::open(path, env!("CARGO_PKG_VERSION"), OnVersionMismatch::Refuse)?;
    let again: Vec<String> = fresh.iter().map(Sizing::to_string).collect();
    if !again.is_empty() {
        result_journal.forget(|_, outcome| {
            outcome.transfers.iter().any(|transfer| again.contains(&transfer.sizing))
        })?;
    }
    Ok(result_journal)
}

fn print(report: &GauntletReport, json: bool) -> Result<(), Box<dyn std::error::Error>> {
    if json {
        out!("{}", serde_json::to_string(report)?);
        return Ok(());
    }
    out!("{}", table(report).trim_end());
    Ok(())
}

/// Executes the runs with a progress display until finished or interrupted.
fn run_interruptibly(
    plan: GauntletPlan,
    store: &dyn ResultStore,
    tag: &str,
    arguments: &GauntletArguments,
) -> Result<(GauntletPlan, Vec<RunMeasured>), StudyError> {
    if arguments.engine == EngineName::Lab {
        return in_the_lab(&plan, store, tag);
    }
    let engine = CountingEngine::new(&Simulator);
    let runner = Runner { engine: &engine, store, tag };
    let total = runner.missing(&plan);
    let interrupted = || {
        let kept = match &arguments.journal {
            Some(path) => format!(
                "finished runs are in {}; the same command resumes from there",
                path.shown()
            ),
            None => "nothing is kept without --journal FILE".to_owned(),
        };
        err!("sweetspot: interrupted after {} of {total} runs; {kept}", engine.done());
    };
    let workers = arguments.parallel.workers();
    let run = || runner.run(&plan, workers);
    let measured = progress::run_with_progress(run, || engine.done(), total, interrupted)?;
    Ok((plan, measured))
}

/// Executes the runs on those paths of `plan` that this machine can emulate accurately, with every variant.
/// The lab needs a single-threaded process, so there is no progress display.
fn in_the_lab(
    plan: &GauntletPlan,
    store: &dyn ResultStore,
    tag: &str,
) -> Result<(GauntletPlan, Vec<RunMeasured>), StudyError> {
    let runner = Runner { engine: &RetriedLab, store, tag };
    let one = Workers::new(1);
    let total = plan.paths().count();
    let mut kept = Vec::new();
    for (index, path) in plan.paths().enumerate() {
        match runner.run(&plan.restricted_to(&[path]), one) {
            Ok(_) => kept.push(path),
            Err(error) => err!("sweetspot: path {path} is left out: {error}"),
        }
        note!("sweetspot: {} of {total} paths", index + 1);
    }
    let plan = plan.restricted_to(&kept);
    let measured = runner.run(&plan, one)?;
    Ok((plan, measured))
}

/// The lab, which repeats a run until its certificate confirms accurate emulation.
struct RetriedLab;

/// Maximum number of attempts per run.
const MAX_ATTEMPTS: u32 = 3;

impl Engine for RetriedLab {
    fn name(&self) -> &'static str {
        Lab.name()
    }

    fn run(
        &self,
        scenario: &Scenario,
        recorder: &mut dyn Recorder,
    ) -> Result<Outcome, EngineError> {
        let mut doubts = String::new();
        for _ in 0..MAX_ATTEMPTS {
            let finished = Lab.run(scenario).map_err(EngineError::from)?;
            if finished.certificate.trust {
                finished.record(scenario, recorder);
                return Ok(finished.outcome);
            }
            doubts = finished.certificate.reasons.join("; ");
        }
        let reason = format!("not certified in {MAX_ATTEMPTS} runs: {doubts}");
        Err(EngineError::Failed { engine: Lab.name(), reason })
    }
}

/// Writes scenario files for each sizing's worst paths.
fn write_worst(
    arguments: &GauntletArguments,
    plan: &GauntletPlan,
    report: &GauntletReport,
    directory: &Path,
) -> Result<(), String> {
    let blame = |path: &Path, error: &std::io::Error| {
        format!("{}: {error}; choose another directory with --worst", path.shown())
    };
    fs::create_dir_all(directory).map_err(|error| blame(directory, &error))?;
    let options = options(arguments);
    let tested = report.variants.iter().filter(|result| result.sizing != "null");
    for result in tested {
        let VariantResult { sizing, congestion, .. } = result;
        for (rank, path) in result.worst(arguments.worst_paths).iter().enumerate() {
            let run = plan.runs().find(|run| {
                run.path() == path.path
                    && run.variant().name() == *sizing
                    && run.variant().congestion().name() == *congestion
            });
            let Some(run) = run else { continue };
            let name = format!(
                "{sizing}-{congestion}-{:03}-{}-{}",
                rank + 1,
                report.population.name(),
                path.path
            );
            let file = directory.join(format!("{}.toml", name.replace(':', "-")));
            let classes: Vec<&str> = path.classes.iter().map(|class| class.name()).collect();
            let text = format!(
                "# Goodput {:.3} of the kernel's ({:.3} Mbit/s of {:.3}); {}.\n\
                 # sweetspot sweep {} --over transfer.sizing=kernel,{sizing} --seeds {}\n\
                 # sweetspot-research gauntlet --population {} --seed {} --only {} --seeds {}{options} \\\n\
                 #     --sizing {sizing} --congestion {congestion}\n{}",
                path.goodput,
                path.variant.goodput_bps / 1e6,
                path.kernel.goodput_bps / 1e6,
                classes.join(", "),
                file.shown(),
                report.seeds,
                report.population.name(),
                report.seed,
                path.path,
                report.seeds,
                run.text()
            );
            fs::write(&file, text).map_err(|error| blame(&file, &error))?;
        }
    }
    note!("wrote {}", directory.shown());
    Ok(())
}

/// Writes the document and, in a directory beside it, the pictures.
fn write_document(
    arguments: &GauntletArguments,
    reports: &[GauntletReport],
    out: &Path,
) -> Result<(), String> {
    let blame = |path: &Path, error: &std::io::Error| {
        format!("{}: {error}; choose another place with --out", path.shown())
    };
    let pictures_in = out.with_extension("");
    fs::create_dir_all(&pictures_in).map_err(|error| blame(&pictures_in, &error))?;
    for report in reports {
        for congestion in arguments.congestion.iter().map(|congestion| congestion.name()) {
            let plots = pictures(report, congestion);
            let file = pictures_in.join(picture_name(report, congestion));
            let title = format!("{}, {congestion}", report.population.name());
            fs::write(&file, svg_file(&title, &plots, Theme::Screen))
                .map_err(|error| blame(&file, &error))?;
        }
    }
    let imprint = DocumentInfo {
        command: command(arguments),
        machine: machine::here(),
        chosen_on: arguments.chosen_on.clone(),
        pictures: pictures_in.file_name().unwrap_or_default().to_string_lossy().into_owned(),
    };
    whole_file::write(out, document(reports, &imprint).as_bytes())?;
    note!("wrote {}", out.shown());
    Ok(())
}

/// The options of [`command`] that differ from their defaults.
fn options(arguments: &GauntletArguments) -> String {
    let duration = arguments.duration.map(|d| format!(" --duration {}s", d.as_secs_f64()));
    let fixed = arguments.congestion_fixed.then(|| " --congestion-fixed".to_owned());
    [duration, fixed].into_iter().flatten().collect()
}

/// The command line that repeats this run.
fn command(arguments: &GauntletArguments) -> String {
    let listed = |words: Vec<String>| words.join(",");
    let Range { start, end } = arguments.only.map_or(arguments.paths.clone(), |i| i..i + 1);
    let options = options(arguments);
    format!(
        "sweetspot-research gauntlet --engine {} --population {} --seed {} --paths {start}..{end} --seeds {}{options} \
         --congestion {} --sizing {}",
        arguments.engine,
        listed(arguments.population.iter().map(|p| p.name().to_owned()).collect()),
        arguments.seed,
        arguments.seeds,
        listed(arguments.congestion.iter().map(|c| c.name().to_owned()).collect()),
        listed(arguments.sizing.iter().map(Sizing::to_string).collect()),
    )
}
