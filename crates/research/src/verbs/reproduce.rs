use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};

use sweetspot_experiment::{CachedEngine, StudyError, Workers};
use sweetspot_linux::{clock, process};
use sweetspot_report::svg_file;
use sweetspot_research::gallery::{PageInfo, gallery};
use sweetspot_research::papers::{Entry, Figure, Precision, Stage, catalogue, find, markdown};
use sweetspot_research::{ns2, router};
use sweetspot_scenario::Engine;
use sweetspot_sim::Simulator;

use super::Ending;
use super::certified_lab::CertifiedLab;
use super::eta::Eta;
use sweetspot_comparison::machine;
use sweetspot_program::build::identity;
use sweetspot_program::engine::EngineName;
use sweetspot_program::print::Shown;
use sweetspot_program::progress::{run_with_status_lines, until_interrupted};
use sweetspot_program::result_journal::{OnVersionMismatch, ResultJournal};
use sweetspot_program::scenario_file::Parallel;
use sweetspot_program::usage_error::UsageError;
use sweetspot_program::values::ThemeName;

const DEFAULT_ENGINES: [EngineName; 2] = [EngineName::Sim, EngineName::Theory];
const DEFAULT_OUT: &str = "reproduction";

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  sweetspot-research reproduce all --out figures
  sweetspot-research reproduce fig4 drs-fig3 --engine theory
  sweetspot-research reproduce ns2 --out docs/results
  sweetspot-research reproduce --list --json")]
pub struct ReproduceArguments {
    /// Figures and tables: all, a paper (bdp, drs, heffner, blog, router), names like
    /// bdp-fig3 or fig3; ns2, the agreement with ns-2; or router-tables, Tables I and II of the
    /// router buffer paper with every number behind its figures
    #[arg(value_name = "WHAT")]
    what: Vec<String>,
    /// Engines to run
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = DEFAULT_ENGINES)]
    engine: Vec<EngineName>,
    /// Output directory: papers.html, papers.md, a picture per figure in papers/
    #[arg(long, value_name = "DIR", default_value = DEFAULT_OUT)]
    out: PathBuf,
    /// Use more seeds and a closer search, as for docs/results; router-tables always does
    #[arg(long)]
    careful: bool,
    /// For router-tables: one seed and short runs
    #[arg(long, conflicts_with = "careful")]
    quick: bool,
    /// List the figures and tables, and exit
    #[arg(long)]
    list: bool,
    /// Print the list, or the files written and every published number with ours, as one JSON object
    #[arg(long)]
    json: bool,
    /// Colours: for a screen or for paper
    #[arg(long, value_enum, default_value_t = ThemeName::Screen)]
    theme: ThemeName,
    #[command(flatten)]
    parallel: Parallel,
}

/// The argument for the agreement with ns-2, which is not a figure of a paper.
const NS2: &str = "ns2";

/// The argument for the router buffer paper's tables, which need all of its simulations.
const ROUTER_TABLES: &str = "router-tables";

pub fn run(arguments: ReproduceArguments) -> Ending {
    if arguments.list {
        list(arguments.json);
        return Ok(ExitCode::SUCCESS);
    }
    if arguments.what.is_empty() {
        out!(
            "This runs {} figures and tables of five papers and writes papers.html,\n\
             papers.md and one picture each into {}. Name what to run:\n\
             all (some minutes; half an hour with --careful), a paper (bdp, drs,\n\
             heffner, blog, router), or names that reproduce --list prints.\n\
             Finished runs are kept: the same command resumes.",
            catalogue().count(),
            arguments.out.shown(),
        );
        return Ok(ExitCode::SUCCESS);
    }
    let (documents, figures): (Vec<String>, Vec<String>) =
        arguments.what.iter().cloned().partition(|word| word == NS2 || word == ROUTER_TABLES);
    let entries = find(&figures).map_err(UsageError::new)?;
    make(&arguments.out)?;
    let mut written = Written { as_json: arguments.json, paths: Vec::new() };
    if documents.iter().any(|word| word == ROUTER_TABLES) {
        router_tables(&arguments, &mut written)?;
    }
    if documents.iter().any(|word| word == NS2) {
        let text = ns2::document(&Simulator, arguments.parallel.workers(), &machine::here())?;
        written.write(&arguments.out.join("ns2.md"), &text)?;
    }
    let mut figures = Vec::new();
    if !entries.is_empty() {
        figures = figures_of(&arguments, &entries, &mut written)?;
    }
    if arguments.json {
        out!("{}", serde_json::to_string_pretty(&in_json(&written, &figures))?);
    }
    Ok(ExitCode::SUCCESS)
}

fn list(json: bool) {
    if !json {
        catalogue().for_each(|entry| out!("{:<16} {}", entry.name, entry.title));
        return;
    }
    let entries = catalogue().map(|e| serde_json::json!({ "name": e.name, "title": e.title }));
    let all = serde_json::json!({ "figures": entries.collect::<Vec<_>>() });
    out!("{all:#}");
}

fn in_json(written: &Written, figures: &[Figure]) -> serde_json::Value {
    let figures = figures.iter().map(|figure| {
        serde_json::json!({
            "name": figure.name,
            "title": figure.title,
            "comparisons": figure.comparisons,
        })
    });
    let paths = written.paths.iter().map(|path| path.shown().to_string());
    serde_json::json!({
        "written": paths.collect::<Vec<_>>(),
        "figures": figures.collect::<Vec<_>>(),
    })
}

/// The journal of finished runs in the output directory.
struct OutputJournal {
    journal: ResultJournal,
    path: PathBuf,
    before: usize,
}

impl OutputJournal {
    fn open(arguments: &ReproduceArguments) -> Result<OutputJournal, Box<dyn std::error::Error>> {
        let path = arguments.out.join("reproduce.journal");
        let journal = ResultJournal::open(&path, &identity()?, OnVersionMismatch::Replace)?;
        let before = journal.runs();
        if before > 0 {
            note!("{before} finished runs are in {}", path.shown());
        }
        Ok(OutputJournal { journal, path, before })
    }

    /// Runs `work`; if interrupted, prints how to continue.
    fn work<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        until_interrupted(work, || self.interrupted())
    }

    fn interrupted(&self) {
        err!(
            "sweetspot: interrupted; finished work is in {}, and the same command resumes from there",
            self.path.shown()
        );
    }

    fn took(&self, seconds: f64, workers: Workers) -> String {
        if let Some(failure) = self.journal.failure() {
            err!("sweetspot: {failure}: what was finished is written, but would be run again");
        }
        format!(
            "{seconds:.0} s on {} worker(s), {:.0} s of their processors, {} runs new and {} known",
            workers.count(),
            process::cpu_time().as_secs_f64(),
            self.journal.runs() - self.before,
            self.before
        )
    }
}

fn router_tables(
    arguments: &ReproduceArguments,
    written: &mut Written,
) -> Result<(), Box<dyn std::error::Error>> {
    let kept = OutputJournal::open(arguments)?;
    let workers = arguments.parallel.workers();
    let started = clock::now();
    let watch = |done: usize, all: usize| {
        if done == all {
            let seconds = clock::now().since(started).as_secs_f64();
            note!("{all:>4} runs more after {seconds:>6.1} s");
        }
    };
    let store = &kept.journal;
    let runner =
        sweetspot_experiment::router::Runner { engine: &Simulator, store, workers, watch: &watch };
    let scale =
        if arguments.quick { router::StudyEffort::QUICK } else { router::StudyEffort::DOCUMENT };
    let study = kept.work(|| router::Study::new(&runner, scale))?;
    let took = kept.took(clock::now().since(started).as_secs_f64(), workers);
    let made = format!(
        "Written by `sweetspot-research reproduce router-tables{} --out docs/results` on {} ({took}).",
        if arguments.quick { " --quick" } else { "" },
        machine::here(),
    );
    Ok(written.write(&arguments.out.join("router.md"), &router::document(&study, scale, &made)?)?)
}

fn figures_of(
    arguments: &ReproduceArguments,
    entries: &[&Entry],
    written: &mut Written,
) -> Result<Vec<Figure>, Box<dyn std::error::Error>> {
    let kept = OutputJournal::open(arguments)?;
    let sim = CachedEngine { engine: &Simulator, store: &kept.journal };
    let lab = CertifiedLab::default();
    let wants = |name| arguments.engine.contains(&name);
    let stage = Stage {
        theory: wants(EngineName::Theory),
        sim: wants(EngineName::Sim).then_some(&sim as &(dyn Engine + Sync)),
        lab: wants(EngineName::Lab).then_some(&lab as &(dyn Engine + Sync)),
        store: &kept.journal,
        workers: arguments.parallel.workers(),
        precision: if arguments.careful { Precision::Careful } else { Precision::Quick },
    };
    let started = clock::now();
    let usual = entries.iter().map(|entry| entry.usual_time(&stage));
    let eta = Mutex::new(Eta::new(usual, started));
    let work = || run_all(entries, &stage, &eta);
    // The lab isolates this process, which is only possible while it is single-threaded.
    let figures = if stage.lab.is_some() {
        work()
    } else {
        run_with_status_lines(work, || to_go(&eta), || kept.interrupted())
    }?;
    let mut took = kept.took(clock::now().since(started).as_secs_f64(), stage.workers);
    took.extend(lab.verdict().map(|verdict| format!(", {verdict}")));
    write_all(arguments, &figures, (&took, written))?;
    Ok(figures)
}

fn run_all(
    entries: &[&Entry],
    stage: &Stage<'_>,
    eta: &Mutex<Eta>,
) -> Result<Vec<Figure>, StudyError> {
    let mut figures = Vec::new();
    for (i, entry) in entries.iter().enumerate() {
        figures.push(run_figure(entry, stage)?);
        let took = eta.lock().unwrap_or_else(PoisonError::into_inner).handle_done(clock::now());
        let (seconds, count) = (took.as_secs_f64(), entries.len());
        let left = if i + 1 < count { format!(", {}", to_go(eta)) } else { String::new() };
        note!("{:>2}/{count} {:<16} {seconds:>6.1} s{left}", i + 1, entry.name);
    }
    Ok(figures)
}

/// The remaining time, in words.
fn to_go(eta: &Mutex<Eta>) -> String {
    let left = eta.lock().unwrap_or_else(PoisonError::into_inner).left(clock::now());
    match left.as_secs_f64() {
        seconds if seconds < 60.0 => "less than a minute to go".to_owned(),
        seconds => format!("about {:.0} min to go", (seconds / 60.0).ceil()),
    }
}

/// Runs a figure. If the lab cannot run it, the other engines do, and the text gives the reason.
fn run_figure(entry: &Entry, stage: &Stage<'_>) -> Result<Figure, StudyError> {
    match (entry.run)(stage) {
        Err(StudyError::Engine(why)) if stage.lab.is_some() => {
            err!("{}: {why}", entry.name);
            let mut figure = (entry.run)(&Stage { lab: None, ..*stage })?;
            figure.about += &format!(" Not in the lab: {why}.");
            Ok(figure)
        }
        other => other,
    }
}

fn write_all(
    arguments: &ReproduceArguments,
    figures: &[Figure],
    (took, written): (&str, &mut Written),
) -> Result<(), Box<dyn std::error::Error>> {
    let pictures = arguments.out.join("papers");
    make(&pictures)?;
    for figure in figures.iter().filter(|figure| !figure.plots.is_empty()) {
        let file = pictures.join(format!("{}.svg", figure.name));
        let picture = svg_file(figure.title, &figure.plots, arguments.theme.into());
        fs::write(&file, picture).map_err(|e| blame(&file, &e))?;
        written.paths.push(file);
    }
    let words = repeated(arguments);
    let made = format!(
        "Written by `sweetspot-research reproduce {words}` on {} ({took}).",
        machine::here(),
    );
    let page_info = PageInfo {
        command: format!("sweetspot-research reproduce {words}"),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        date: machine::date(),
        took: took.to_owned(),
        theme: arguments.theme.into(),
    };
    written.write(&arguments.out.join("papers.md"), &markdown(figures, "papers", &made))?;
    written.write(&arguments.out.join("papers.html"), &gallery(figures, &page_info))?;
    Ok(())
}

/// The arguments that reproduce these files: those that differ from the defaults.
fn repeated(arguments: &ReproduceArguments) -> String {
    let mut words = arguments.what.join(" ");
    if arguments.engine != DEFAULT_ENGINES {
        let names: Vec<String> = arguments.engine.iter().map(EngineName::to_string).collect();
        words += &format!(" --engine {}", names.join(","));
    }
    if arguments.careful {
        words += " --careful";
    }
    if arguments.out != Path::new(DEFAULT_OUT) {
        words += &format!(" --out {}", arguments.out.shown());
    }
    words
}

fn make(directory: &Path) -> Result<(), String> {
    fs::create_dir_all(directory).map_err(|error| blame(directory, &error))
}

/// The files written.
struct Written {
    /// Whether their names are printed at the end rather than as they are written.
    as_json: bool,
    paths: Vec<PathBuf>,
}

impl Written {
    fn write(&mut self, path: &Path, text: &str) -> Result<(), String> {
        fs::write(path, text).map_err(|error| blame(path, &error))?;
        if !self.as_json {
            out!("wrote {}", path.shown());
        }
        self.paths.push(path.to_owned());
        Ok(())
    }
}

fn blame(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}; choose another directory with --out", path.shown())
}
