mod help;
mod people;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use sweetspot_report::{RunSeries, TableFormat, run_file};
use sweetspot_scenario::{EngineError, NoRecorder, Outcome, Recorder, Scenario};
use sweetspot_units::Duration;

use super::Ending;
use sweetspot_program::bundled;
use sweetspot_program::engine::{EngineAnswer, EngineName};
use sweetspot_program::print::{self, Shown, out_unfolded};
use sweetspot_program::progress;
use sweetspot_program::scenario_file::{read, seed};
use sweetspot_program::text_file;
use sweetspot_program::usage_error::UsageError;
use sweetspot_program::whole_file;

#[derive(Debug, clap::Args)]
#[command(after_help = help::AFTER)]
pub struct RunArguments {
    /// A TOML file (man sweetspot-scenario; `-`: standard input), or @NAME of a scenario that comes with the program, such as
    /// @elephants
    scenario: PathBuf,
    /// How to run it: sim, packet by packet; theory, by closed forms; lab, on this machine's kernel (root, or user namespaces)
    #[arg(long, value_enum, default_value_t = EngineName::Sim)]
    engine: EngineName,
    /// Use this seed instead of the scenario's
    #[arg(long, value_parser = seed())]
    seed: Option<u64>,
    /// Override a key of the scenario, such as path.buffer=625pkt or transfer.0.sizing=sobas
    #[arg(long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
    /// Print the scenario instead of running it: the file's text or, with --set or --seed, every key with its value
    #[arg(long, conflicts_with_all = ["engine", "json", "out", "series", "interval"])]
    print: bool,
    /// Print the outcome as one JSON object
    #[arg(long)]
    json: bool,
    /// Write the outcome and its time series as JSON, for `sweetspot report`
    #[arg(long, value_name = "FILE.json")]
    out: Option<PathBuf>,
    /// Write the time series of every transfer and of the bottleneck: FILE.csv as CSV, FILE.parquet as
    /// Parquet
    #[arg(long, value_name = "FILE")]
    series: Option<PathBuf>,
    /// Interval between samples of the time series [default: 100ms]
    #[arg(long, value_name = "TIME")]
    interval: Option<Duration>,
}

/// Default interval between samples.
const INTERVAL: Duration = Duration::from_millis(100);

/// Exit code if no closed form covers the scenario.
pub const NOT_COVERED: u8 = 3;

pub fn run(arguments: RunArguments) -> Ending {
    if arguments.scenario == Path::new("@") {
        list();
        return Ok(ExitCode::SUCCESS);
    }
    if arguments.print {
        return print_scenario(&arguments);
    }
    let format = arguments.series.as_deref().map(series_format).transpose()?;
    let scenario = read(&arguments.scenario, &arguments.overrides, arguments.seed)?;
    let inputs = text_file::scenario_files(&arguments.scenario);
    for (option, path) in [("--out", &arguments.out), ("--series", &arguments.series)] {
        whole_file::check_creatable(option, path.as_deref())?;
        whole_file::check_not_input(option, path.as_deref(), &inputs)?;
    }
    arguments.out.as_deref().map_or(Ok(()), refuse_other_suffix)?;
    if scenario.transfers.is_empty() && scenario.cross.is_empty() {
        let name = arguments.scenario.shown();
        return Err(format!("{name}: nothing to run; add a [[transfer]] or [[cross]]").into());
    }
    if arguments.engine == EngineName::Lab {
        // Checked before the run, which takes real time.
        refuse_late_starts(&arguments, &scenario)?;
    }
    let mut series = recorder(&scenario, &arguments)?;
    let finished = match run_interruptibly(&arguments, &scenario, series.as_mut()) {
        Err(error @ EngineError::NotCovered { .. }) => {
            err!("sweetspot: {}: {error}; --engine sim runs it", arguments.scenario.shown());
            return Ok(ExitCode::from(NOT_COVERED));
        }
        other => other?,
    };
    if let (Some(series), Some(path), Some(format)) = (&series, &arguments.series, format) {
        whole_file::write(path, &format.bytes(&series.columns(&finished.outcome))?)?;
        note!("wrote {}", path.shown());
    }
    if let Some(path) = &arguments.out {
        let columns = series.map(|series| series.columns(&finished.outcome));
        let file = run_file(&finished, &scenario, columns.as_ref())?;
        whole_file::write(path, format!("{file}\n").as_bytes())?;
        note!("wrote {}", path.shown());
    }
    if arguments.json {
        out!("{}", serde_json::to_string_pretty(&finished)?);
    } else {
        people::print_for_people(&scenario, &finished.outcome);
        if let Some(certificate) = &finished.certificate
            && (!print::is_quiet() || !certificate.trust)
        {
            out!("\n{}", certificate.text.trim_end());
        }
    }
    if nothing_moved(&finished.outcome) {
        let (from, to) = (scenario.warmup, scenario.warmup + scenario.duration);
        let [from, to] = [from, to].map(Duration::as_secs_f64);
        return Err(format!(
            "{}: no transfer moved data between {from} s and {to} s, the measured time; change its start, warmup or \
             duration",
            arguments.scenario.shown()
        )
        .into());
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs `scenario`. A signal ends the program with a message.
fn run_interruptibly(
    arguments: &RunArguments,
    scenario: &Scenario,
    series: Option<&mut RunSeries>,
) -> Result<EngineAnswer, EngineError> {
    let seconds = (scenario.warmup + scenario.duration).as_secs_f64();
    let interrupted = {
        let files = [&arguments.out, &arguments.series].into_iter().flatten();
        let unwritten: Vec<String> = files.map(|file| file.shown().to_string()).collect();
        let kept = match unwritten.as_slice() {
            [] => "there is no result".to_owned(),
            [one] => format!("{one} is not written"),
            several => format!("{} are not written", several.join(" and ")),
        };
        format!("sweetspot: interrupted before the run of {seconds} s was complete; {kept}")
    };
    let mut none = NoRecorder;
    let recorder: &mut (dyn Recorder + Send) = match series {
        Some(series) => series,
        None => &mut none,
    };
    match arguments.engine {
        // The lab may have only one thread, and handles signals itself.
        EngineName::Lab => {
            #[cfg(target_os = "linux")]
            sweetspot_linux::signals::print_when_interrupted(interrupted + "\n");
            arguments.engine.run(scenario, recorder)
        }
        EngineName::Theory | EngineName::Sim => {
            let work = || arguments.engine.run(scenario, recorder);
            let doing = || format!("simulating {seconds} s");
            progress::run_with_timer(work, doing, || err!("{interrupted}"))
        }
    }
}

/// Fails if all transfers start after the end of the run.
fn refuse_late_starts(arguments: &RunArguments, scenario: &Scenario) -> Result<(), String> {
    let end = scenario.warmup + scenario.duration;
    let first = scenario.transfers.iter().map(|transfer| transfer.start).min();
    match first.filter(|start| *start >= end) {
        None => Ok(()),
        Some(start) => Err(format!(
            "{}: the first transfer starts at {start} and the run ends at {end}; change its start, warmup or duration",
            arguments.scenario.shown()
        )),
    }
}

/// Lists the scenarios that come with the program.
pub fn list() {
    let titles = bundled::titles();
    let longest = titles.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (name, title) in titles {
        out!("@{name:longest$}  {title}");
    }
}

/// Whether there are transfers, and none of them has any throughput.
fn nothing_moved(outcome: &Outcome) -> bool {
    let mut transfers = outcome.transfers.iter().peekable();
    transfers.peek().is_some() && transfers.all(|transfer| transfer.goodput_bps <= 0.0)
}

/// Prints the scenario. The file's own text has comments and omits defaults; with options that change it, all keys are
/// printed.
fn print_scenario(arguments: &RunArguments) -> Ending {
    let scenario = read(&arguments.scenario, &arguments.overrides, arguments.seed)?;
    let text = if arguments.overrides.is_empty() && arguments.seed.is_none() {
        text_file::scenario(&arguments.scenario)?
    } else {
        scenario.to_string()
    };
    out_unfolded(text.trim_end())?;
    Ok(ExitCode::SUCCESS)
}

/// The format by the extension of a file; Parquet if it has no known one.
fn series_format(path: &Path) -> Result<TableFormat, UsageError> {
    if path.extension().is_none() {
        return Ok(TableFormat::Parquet);
    }
    let expected = || format!("--series {}: expected FILE.csv or FILE.parquet", path.shown());
    TableFormat::of(path).ok_or_else(|| UsageError::new(expected()))
}

/// Rejects a file name with another format's extension: the outcome is JSON.
fn refuse_other_suffix(path: &Path) -> Result<(), UsageError> {
    let expected = "FILE.json; for time series as CSV or Parquet, give --series";
    whole_file::check_extension("--out", Some(path), &["json"], expected)
}

/// The recorder for the time series of `scenario`, if requested; closed forms have no time series.
fn recorder(
    scenario: &Scenario,
    arguments: &RunArguments,
) -> Result<Option<RunSeries>, UsageError> {
    let theory = arguments.engine == EngineName::Theory;
    if theory && arguments.series.is_some() {
        let wrong = "--series: closed forms have no time series; use --engine sim or lab";
        return Err(UsageError::new(wrong));
    }
    if arguments.series.is_none() && arguments.out.is_none() {
        return match arguments.interval {
            Some(_) => Err(UsageError::new("--interval needs --series or --out")),
            None => Ok(None),
        };
    }
    if theory {
        return Ok(None);
    }
    let series = RunSeries::of(scenario, arguments.interval.unwrap_or(INTERVAL));
    series.map(Some).map_err(|error| UsageError::new(format!("--interval {error}")))
}
