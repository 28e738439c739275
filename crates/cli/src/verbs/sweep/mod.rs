mod best;
mod search_progress;

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use sweetspot_experiment::{
    Advantage, CachedEngine, Fastest, Journal, Over, ResultStore, RunKey, StudyError, Sweep,
    SweepError, SweepPoint, SweepVariant, Workers,
};
use sweetspot_report::{
    SWEEP_FORMAT, SweepFile, SweepFilePoint, SweepPath, TableFormat, sweep_columns, sweep_table,
};
use sweetspot_scenario::{Engine, Scenario};
use sweetspot_theory::engine::Theory;
use sweetspot_units::{Duration, Rate};

use super::run::{self, NOT_COVERED};
use super::{Ending, Fallible};
use sweetspot_program::build::identity;
use sweetspot_program::engine::EngineName;
use sweetspot_program::print::{Shown, wrapped};
use sweetspot_program::progress::{self, AnnouncingEngine, CountingEngine};
use sweetspot_program::result_journal::{OnVersionMismatch, ResultJournal};
use sweetspot_program::scenario_file::{Parallel, ScenarioFile};
use sweetspot_program::usage_error::{self, UsageError};

use crate::option_hints::{HintVerb, with_options};
use sweetspot_program::whole_file;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Every combination of the values runs under the same seeds, on all cores. With
--out, finished runs are kept in FILE.journal beside it: the same command
continues after an interruption, and you may remove the journal after a complete
sweep. The lines below the table name the fastest combination. If others are as
fast, they name the one with the smallest window, or with the shortest RTT if
that is shorter by more than 0.5 %. As fast: slower by at most 0.5 %, or by at
most 2 % and by no more than chance explains. `sweetspot sweep @` lists the
scenarios that come with the program.

Examples:
  sweetspot sweep @elephants --over path.buffer=100pkt,313pkt,625pkt
  sweetspot sweep @elephants --over path.buffer=50pkt..2000pkt:log:12 \\
      --over transfer.sizing=fixed:250pkt,sobas,drs \\
      --seeds 20 --out sweep.parquet
  sweetspot sweep @elephants --find-best --set path.buffer=313pkt --seeds 4

Exit codes: 0 every run is complete; 1 one failed; 2 the command line is wrong,
or there is no such scenario; 3 no closed form covers a combination, which is
then left out (--engine theory); 128+N signal N ended it.

Members of --json, an object per combination:
  values             each key of --over and its value
  outcomes           one per seed, as `sweetspot run --help` describes

Members of --find-best --json:
  scenario, engine, seed, version
                     as in an outcome; seed is the first one
  seeds              number of seeds for each window
  smallest_window_packets
                     the recommended window: the smallest as fast as any
  window_packets, goodput_bps
                     the fastest window, and its rate
  mft_bps            the same rate: the maximum feasible throughput
  plateau_packets    first and last window around the fastest within 2 % of it
  caution            the warning that a slightly larger window is much slower,
                     or null
  trials             the windows tried, each with:
    window_packets, goodput_bps, rtt_mean_s
    lossless           no packet dropped in the measured time
    window_filled      false: cwnd, not the window, limited the transfer")]
pub struct SweepArguments {
    #[command(flatten)]
    file: ScenarioFile,
    /// A key and its values: a list, or a range such as 50pkt..2000pkt:log:12 (or :lin:12). transfer.KEY sets every
    /// transfer, transfer.0.KEY the first
    #[arg(long, value_name = "KEY=VALUES")]
    over: Vec<String>,
    /// Search for the smallest window at which the first transfer is as fast as with any, in the simulator, and print
    /// every window tried; --out FILE.json keeps what --json prints
    #[arg(long, conflicts_with = "over")]
    find_best: bool,
    /// Stop the search within this share of the best window, such as 0.005 or 0.5% [default: 0.005]
    #[arg(long, value_name = "SHARE", value_parser = best::tolerance)]
    tolerance: Option<f64>,
    /// Seeds per combination, starting with the scenario's; the table shows the mean and ± half its 95 % confidence interval
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = seeds)]
    seeds: u64,
    /// How to run them: sim, packet by packet; theory, by closed forms; lab, on this machine's kernel (root, or user namespaces), one run at a time
    #[arg(long, value_enum, default_value_t = EngineName::Sim)]
    engine: EngineName,
    /// Write the results: FILE.csv or FILE.parquet, one row per run and transfer; FILE.json, whole
    /// outcomes
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    parallel: Parallel,
    /// Print JSON instead of the table: one object per combination, each on a line
    #[arg(long)]
    json: bool,
}

fn seeds(text: &str) -> Result<u64, &'static str> {
    let number = text.parse().ok().filter(|n| (1..=1_000_000).contains(n));
    number.ok_or("expected a whole number from 1 to 1000000")
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ResultFormat {
    Json,
    Table(TableFormat),
}

impl ResultFormat {
    fn of(path: &Path) -> Result<ResultFormat, String> {
        if path.extension().is_some_and(|extension| extension == "json") {
            return Ok(ResultFormat::Json);
        }
        TableFormat::of(path).map(ResultFormat::Table).ok_or_else(|| {
            format!("--out {}: expected FILE.csv, FILE.parquet or FILE.json", path.shown())
        })
    }
}

pub fn run(arguments: SweepArguments) -> Ending {
    if arguments.file.is_list() {
        run::list();
        return Ok(ExitCode::SUCCESS);
    }
    arguments.file.exists()?;
    if arguments.find_best {
        if arguments.engine != EngineName::Sim {
            return Ok(usage_error::reject("--find-best always simulates; leave out --engine"));
        }
        return best::run(&arguments);
    }
    if arguments.tolerance.is_some() {
        return Ok(usage_error::reject("--tolerance is for --find-best; add it, or leave it out"));
    }
    if arguments.over.is_empty() {
        return Ok(usage_error::reject("give --over KEY=VALUES or --find-best; try '--help'"));
    }
    match run_all(&arguments) {
        Err(error) if error.is::<NoneCovered>() => {
            err!("sweetspot: {error}; --engine sim runs it");
            Ok(ExitCode::from(NOT_COVERED))
        }
        other => other,
    }
}

/// No closed form covers any combination.
#[derive(Debug)]
struct NoneCovered {
    combinations: usize,
    first: StudyError,
}

impl fmt::Display for NoneCovered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.combinations {
            1 => write!(f, "{}", self.first),
            many => write!(f, "none of the {many} combinations is covered; {}", self.first),
        }
    }
}

impl std::error::Error for NoneCovered {}

fn run_all(arguments: &SweepArguments) -> Ending {
    let format = arguments.out.as_deref().map(ResultFormat::of).transpose();
    let format = format.map_err(UsageError::new)?;
    let over = arguments.over.iter().map(|over| Over::parse(over));
    let over = over.collect::<Result<_, _>>().map_err(invalid_over)?;
    let sweep = Sweep {
        text: arguments.file.text()?,
        overrides: arguments.file.overrides.clone(),
        over,
        seeds: arguments.seeds,
    };
    let all = sweep.variants().map_err(|error| blame(arguments, &error))?;
    let count = all.len();
    let variants = match arguments.engine {
        EngineName::Theory => covered(&sweep, all)?,
        EngineName::Sim | EngineName::Lab => all,
    };
    whole_file::check_creatable("--out", arguments.out.as_deref())?;
    if let Some(out) = &arguments.out {
        for output in [out, &journal_of(out)] {
            whole_file::check_not_input("--out", Some(output), &arguments.file.files())?;
        }
    }
    let (runner, workers) = match arguments.engine {
        EngineName::Lab => (arguments.engine.engine(), Workers::ONE),
        other => (other.engine(), arguments.parallel.workers()),
    };
    let run = |engine: &(dyn Engine + Sync), journal: Option<&Path>| {
        if arguments.engine == EngineName::Lab {
            // The lab isolates this process, which is possible only as long as it has a single thread.
            let total = sweep.runs(variants.len());
            note!("{total} runs, one after another, in real time");
            #[cfg(target_os = "linux")]
            sweetspot_linux::signals::print_when_interrupted(format!(
                "sweetspot: interrupted before {total} runs were complete; {}\n",
                kept(journal)
            ));
            return Ok(sweep.run(&variants, &AnnouncingEngine::new(engine, total), workers)?);
        }
        run_interruptibly(&sweep, &variants, engine, workers, journal)
    };
    let points = match &arguments.out {
        None => run(runner, None)?,
        Some(out) => {
            let path = journal_of(out);
            let result_journal =
                ResultJournal::open(&path, &identity()?, OnVersionMismatch::Refuse)?;
            announce(&result_journal, runner.name(), &sweep, &variants, &path);
            let engine = CachedEngine { engine: runner, store: &result_journal };
            let points = run(&engine, Some(&path))?;
            if let Some(failure) = result_journal.failure() {
                err!("sweetspot: {failure}; the results below are complete");
            }
            points
        }
    };
    print(arguments, &sweep, &points)?;
    if let (Some(out), Some(format)) = (&arguments.out, format) {
        write(out, format, arguments, &sweep, &variants, &points)?;
    }
    Ok(if variants.len() < count { ExitCode::from(NOT_COVERED) } else { ExitCode::SUCCESS })
}

/// Writes the combinations to the journal, and says how many of their runs it already has.
fn announce(
    journal: &ResultJournal,
    engine: &str,
    sweep: &Sweep,
    variants: &[SweepVariant],
    path: &Path,
) {
    if journal.runs() > 0 {
        let is_known = |scenario: &Scenario| journal.get(&RunKey::of(engine, scenario)).is_some();
        let known = sweep.scenarios(variants).iter().filter(|scenario| is_known(scenario)).count();
        if known > 0 {
            let total = sweep.runs(variants.len());
            note!("{known} of {total} runs taken from {}", path.shown());
        }
    }
    journal.announce(&Journal::plan(engine, sweep, variants));
}

/// The variants that closed forms cover. Names the others; if no variant is left, fails with the first reason.
fn covered(sweep: &Sweep, variants: Vec<SweepVariant>) -> Fallible<Vec<SweepVariant>> {
    // All seeds have the same coverage.
    let once = Sweep { seeds: 1, ..sweep.clone() };
    let (mut covered, mut errors) = (Vec::new(), Vec::new());
    for variant in variants {
        match once.run(std::slice::from_ref(&variant), &Theory, Workers::ONE) {
            Err(error @ StudyError::PointNotCovered { .. }) => errors.push(error),
            // Any other error is reported by the sweep itself.
            _ => covered.push(variant),
        }
    }
    let combinations = errors.len();
    let mut errors = errors.into_iter();
    if covered.is_empty()
        && let Some(first) = errors.next()
    {
        return Err(NoneCovered { combinations, first }.into());
    }
    errors.for_each(|error| err!("sweetspot: {error}; it is left out, and --engine sim runs it"));
    Ok(covered)
}

fn invalid_over(error: impl std::fmt::Display) -> UsageError {
    UsageError::new(with_options(&format!("--over {error}"), HintVerb::Other))
}

fn blame(arguments: &SweepArguments, error: &StudyError) -> Box<dyn std::error::Error> {
    match error {
        // It names its options itself.
        StudyError::Sweep(error @ SweepError::SweptAndSet(_)) => UsageError::new(error).into(),
        StudyError::Sweep(error) => invalid_over(error).into(),
        other => match arguments.file.scenario() {
            // The scenario is valid without the values of --over, so these are at fault.
            Ok(_) => UsageError::new(arguments.file.blame(other)).into(),
            Err(of_file) => of_file,
        },
    }
}

/// `sweep.csv.journal` beside `sweep.csv`.
fn journal_of(out: &Path) -> PathBuf {
    let mut name = out.as_os_str().to_owned();
    name.push(".journal");
    name.into()
}

/// A sentence about where the finished runs of an interrupted sweep are kept.
fn kept(journal: Option<&Path>) -> String {
    journal.map_or_else(
        || "without --out FILE, no results are kept".to_owned(),
        |path| {
            format!("{} has the finished ones; the same command resumes from there", path.shown())
        },
    )
}

/// The message of an interrupted sweep.
fn interrupted_words(done: usize, total: usize, journal: Option<&Path>) -> String {
    match done {
        0 => format!("interrupted before the first of {total} runs was complete"),
        done => format!("interrupted after {done} of {total} runs; {}", kept(journal)),
    }
}

/// Runs the sweep with a progress display until done or interrupted.
fn run_interruptibly(
    sweep: &Sweep,
    variants: &[SweepVariant],
    engine: &(dyn Engine + Sync),
    workers: Workers,
    journal: Option<&Path>,
) -> Fallible<Vec<SweepPoint>> {
    let engine = CountingEngine::new(engine);
    let total = sweep.runs(variants.len());
    let interrupted = || err!("sweetspot: {}", interrupted_words(engine.done(), total, journal));
    let work = || sweep.run(variants, &engine, workers);
    Ok(progress::run_with_progress(work, || engine.done(), total, interrupted)?)
}

fn print(arguments: &SweepArguments, sweep: &Sweep, points: &[SweepPoint]) -> Fallible<()> {
    let keys = keys(sweep);
    if !arguments.json {
        out!("{}", sweep_table(&keys, points).trim_end());
        if let Some(verdict) = verdict(&keys, points, arguments.engine) {
            out!("");
            verdict.lines().for_each(|line| wrapped(line, ""));
        }
        return Ok(());
    }
    for point in points {
        let values: serde_json::Map<String, serde_json::Value> =
            keys.iter().cloned().zip(point.values.iter().map(|v| v.as_str().into())).collect();
        let outcomes = serde_json::to_value(&point.outcomes)?;
        out!("{}", serde_json::json!({ "values": values, "outcomes": outcomes }));
    }
    Ok(())
}

/// The values with the fastest first transfer, or with the smallest window that is as fast; `None` if there is nothing to choose
/// from, or no transfer.
fn verdict(keys: &[String], points: &[SweepPoint], engine: EngineName) -> Option<String> {
    let mut outcomes = points.iter().flat_map(|point| &point.outcomes);
    if points.len() < 2 || outcomes.all(|outcome| outcome.transfers.is_empty()) {
        return None;
    }
    let Some(fastest) = Fastest::of(points) else {
        return Some(
            "No transfer moved data: does the first one start before the run ends?".to_owned(),
        );
    };
    let name = |place: usize| {
        let values = keys.iter().zip(&points[place].values);
        values.map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" ")
    };
    let chance = match fastest.seeds == 1 && engine != EngineName::Theory {
        true => "\nOne seed: --seeds 8 separates differences from chance.",
        false => "",
    };
    let (seeds, is_unsure) = (fastest.seeds, !fastest.unsure.is_empty());
    let more = format!("use --seeds {}.", (2 * seeds).max(8));
    let show = |place: usize, goodput_bps: f64| {
        let rtt = points[place].rtt().map_or(String::new(), |rtt| format!(", RTT {rtt}"));
        format!("{}, {}{rtt}", name(place), Rate::from_f64(goodput_bps))
    };
    let mut outcomes = points.iter().flat_map(|point| &point.outcomes);
    let of_first = match outcomes.any(|outcome| outcome.transfers.len() > 1) {
        true => " (first transfer)",
        false => "",
    };
    let values: Vec<&[String]> = points.iter().map(|point| point.values.as_slice()).collect();
    let rtts: Vec<Option<Duration>> = points.iter().map(SweepPoint::rtt).collect();
    let first = show(fastest.place, fastest.goodput_bps);
    let (place, goodput_bps, advantage) = fastest.best(&values, &rtts);
    let because = match advantage {
        Advantage::SmallestWindow => "the smallest window that is as fast as the fastest",
        Advantage::ShortestRtt => "the shortest RTT of those that are as fast as the fastest",
        Advantage::Rate => {
            let mut clauses = [vec![first], fastest.others_in_words(name)].concat();
            let unsure = if is_unsure { clauses.pop() } else { None };
            let title = if is_unsure { "No clear winner; highest mean" } else { "Fastest" };
            let unsure = unsure.map_or(String::new(), |words| format!("\n{words}: {more}"));
            return Some(format!("{title}{of_first}: {}.{unsure}{chance}", clauses.join("; ")));
        }
    };
    let unsure = match is_unsure {
        true => format!("\n{seeds} seeds are too few to be sure: {more}"),
        false => String::new(),
    };
    let best = show(place, goodput_bps);
    Some(format!("Best{of_first}: {best}: {because}, {first}.{unsure}{chance}"))
}

fn keys(sweep: &Sweep) -> Vec<String> {
    sweep.over.iter().map(|over| over.key.clone()).collect()
}

/// Writes the results. If this fails, the journal still has them.
fn write(
    out: &Path,
    format: ResultFormat,
    arguments: &SweepArguments,
    sweep: &Sweep,
    variants: &[SweepVariant],
    points: &[SweepPoint],
) -> Fallible<()> {
    let file = file(keys(sweep), arguments, variants, points);
    let bytes = match format {
        ResultFormat::Table(table) => table.bytes(&sweep_columns(&file))?,
        ResultFormat::Json => serde_json::to_vec(&file)?,
    };
    whole_file::write(out, &bytes).map_err(|error| {
        let kept = journal_of(out);
        format!("{error}; every run is kept in {}: repeat the same command", kept.shown())
    })?;
    note!("wrote {}", out.shown());
    Ok(())
}

fn file(
    keys: Vec<String>,
    arguments: &SweepArguments,
    variants: &[SweepVariant],
    points: &[SweepPoint],
) -> SweepFile {
    let over: String = arguments.over.iter().map(|over| format!(" --over {over}")).collect();
    let point = |(point, variant): (&SweepPoint, &SweepVariant)| SweepFilePoint {
        values: point.values.clone(),
        path: SweepPath::of(&variant.scenario),
        outcomes: point.outcomes.clone(),
    };
    SweepFile {
        sweetspot_sweep: SWEEP_FORMAT,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command: format!(
            "sweetspot sweep {}{over} --seeds {}",
            arguments.file.name(),
            arguments.seeds
        ),
        keys,
        points: points.iter().zip(variants).map(point).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupted_sweep_names_its_journal_only_if_it_has_runs() {
        let words = |done| interrupted_words(done, 8, Some(Path::new("x.json.journal")));
        assert_eq!(words(0), "interrupted before the first of 8 runs was complete");
        let kept = "x.json.journal has the finished ones; the same command resumes from there";
        assert_eq!(words(3), format!("interrupted after 3 of 8 runs; {kept}"));
    }
}
