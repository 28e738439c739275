use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;

use sweetspot_emulator::isolate;
use sweetspot_linux::signals::Signal;
use sweetspot_path::{PathError, PathSpec};
use sweetspot_report::{
    DemoOutcome, FileFacts, PathFacts, TABLE_LEGEND, VariantOutcome, headline, page, table,
};
use sweetspot_units::Bytes;

use super::transfer::values;
use super::{Ending, Fallible};
use sweetspot_comparison::{
    ComparisonError, Content, DEMO_PATH, Ticker, Variant, VariantRunner, machine, scratch, usual,
};
use sweetspot_program::path_option;
use sweetspot_program::print::{self, Shown, wrapped};
use sweetspot_program::usage_error::{self, UsageError};
use sweetspot_program::whole_file;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
The time of each variant is at least the size over the path's rate: five
variants of 200 MB take about two minutes. The demo needs root or user
namespaces, and space for the file twice in TMPDIR (default: /var/tmp). After
Ctrl-C, the variants that had finished are shown and written.

Examples:
  sweetspot demo
  sweetspot demo --path \"rate=20Mbit/s rtt=20ms buffer=50kB\" --size 40MB
  sweetspot demo --path @lte --size 20MB
  sweetspot demo --sizing sobas+cubic,kernel+bbr,fixed:2MB+reno --out /tmp/mine
  sweetspot demo --json | python3 -m json.tool | less

Exit codes: 0 every variant ran; 1 one failed; 2 the command line is wrong;
128+N signal N ended it.")]
pub struct DemoArguments {
    /// Path to emulate; the data flow up, so up.rate= limits them: rate=, rtt= and buffer=, all three required, and the other keys of `emulate --path`, or a named path such as @lte
    #[arg(long, value_name = "SPEC|@NAME", default_value = DEMO_PATH)]
    path: WrittenPath,
    /// Move this file instead of incompressible data generated from the path's seed
    #[arg(long, value_name = "FILE", conflicts_with = "size")]
    file: Option<PathBuf>,
    /// Size of the generated data
    #[arg(long, value_name = "SIZE", default_value = "200MB")]
    size: Bytes,
    /// Variants to compare: SIZING+CONGESTION, or SIZING alone for cubic, separated by commas; SIZING is kernel (autotuning),
    /// bdp (rate x RTT, told in advance), sobas (measures the path, and holds the window that just fills it), sobas:paper (as published), fixed:SIZE or max [default:
    /// kernel+cubic,kernel+bbr,bdp+cubic,sobas:paper+cubic,sobas+cubic]
    #[arg(long, value_name = "LIST", value_delimiter = ',', hide_possible_values = true)]
    #[arg(value_parser = values::variant())]
    sizing: Vec<Variant>,
    /// Directory for report.html and outcome.json; replaces the files of an earlier demo
    #[arg(long, value_name = "DIR", default_value = "demo-out")]
    out: PathBuf,
    /// Print outcome.json to standard output instead of the text; --out still gets both files
    #[arg(long)]
    json: bool,
}

/// A path, and its text from the command line.
#[derive(Debug, Clone)]
struct WrittenPath {
    text: String,
    spec: PathSpec,
}

impl FromStr for WrittenPath {
    type Err = String;
    fn from_str(text: &str) -> Result<WrittenPath, String> {
        let wrong = |error: PathError| path_option::wrong_path_without_scenarios(&error);
        Ok(WrittenPath { text: text.to_owned(), spec: text.parse().map_err(wrong)? })
    }
}

pub fn run(arguments: DemoArguments) -> Ending {
    let variants = if arguments.sizing.is_empty() { usual() } else { arguments.sizing.clone() };
    if let Some(file) = &arguments.file {
        refuse_unreadable(file)?;
    }
    if arguments.size == Bytes::ZERO {
        return Ok(usage_error::reject("--size 0B: nothing to move; give at least one byte"));
    }
    refuse_repeated(&arguments.sizing)?;
    refuse_unable(&variants)?;
    // Made now, so that an error shows before the transfers run.
    whole_file::make_directory("--out", &arguments.out)?;
    tempfile::tempfile_in(&arguments.out).map_err(|error| {
        let why = print::system(&error);
        format!("--out {}: {why}; name a directory that you may write to", arguments.out.shown())
    })?;
    let program = std::env::current_exe()?;
    // Created and removed by this process, which outlives the isolated one.
    let scratch = scratch::make()?;
    let code = isolate(|| match story(&arguments, &variants, &program, scratch.path()) {
        Ok(code) => code,
        Err(why) => {
            err!("sweetspot: {why}");
            1
        }
    })?;
    if i32::from(code) == 128 + Signal::INTERRUPT.number() {
        keep_finished(&arguments, scratch.path(), variants.len())?;
    }
    Ok(ExitCode::from(code))
}

/// The file with the outcome of the finished variants, next to the transferred data.
const FINISHED: &str = "finished.json";

/// Prints and writes the variants that finished before the demo was interrupted.
fn keep_finished(arguments: &DemoArguments, scratch: &Path, total: usize) -> Fallible<()> {
    let text = fs::read(scratch.join(FINISHED)).unwrap_or_default();
    let Ok(outcome) = serde_json::from_slice::<DemoOutcome>(&text) else {
        err!("sweetspot: interrupted before a variant was complete; there is no result");
        return Ok(());
    };
    publish(&outcome, arguments)?;
    let done = outcome.variants.len();
    err!("sweetspot: interrupted; the results are those of {done} of {total} variants");
    Ok(())
}

/// Prints how long the demo takes, and warns of conditions that worsen its result.
fn announce(arguments: &DemoArguments, variants: &[Variant], size: Bytes) {
    let path = &arguments.path.spec;
    let (count, each) = (variants.len() as u64, size / path.payload_capacity());
    let least = (each * count).as_secs_f64();
    let transfers = if count == 1 { "1 transfer".to_owned() } else { format!("{count} transfers") };
    note!("{transfers} of {size}: {least:.0} s or more in all");
    // Slow start doubles the flight until it overflows BDP + buffer. By then it has sent twice that amount.
    let slow_start = (path.bdp() + path.up.buffer.in_bytes(path.mtu)) * 2;
    if size < slow_start {
        note!(
            "slow start alone may move {slow_start} on this path, so variants hardly differ with {size}; give a larger {}",
            if arguments.file.is_some() { "--file" } else { "--size" }
        );
    }
    for variant in variants {
        if let Some(why) = VariantRunner::obstacle(variant) {
            note!("{variant} cannot run: {why}");
        }
    }
}

/// Rejects a variant that is given twice.
fn refuse_repeated(variants: &[Variant]) -> Result<(), UsageError> {
    let is_repeated = |(i, variant): &(usize, &Variant)| {
        variants[..*i].iter().any(|before| before.to_string() == variant.to_string())
    };
    match variants.iter().enumerate().find(is_repeated) {
        Some((_, variant)) => Err(UsageError::new(format!("--sizing: {variant} is listed twice"))),
        None => Ok(()),
    }
}

/// Rejects the variants if none of them can run here. If others can, a variant that cannot gets a row with the reason.
fn refuse_unable(variants: &[Variant]) -> Result<(), UsageError> {
    let obstacles: Option<Vec<_>> = variants.iter().map(VariantRunner::obstacle).collect();
    match obstacles.and_then(|all| all.into_iter().next()) {
        Some(why) => Err(UsageError::new(format!("--sizing: {why}"))),
        None => Ok(()),
    }
}

fn story(
    arguments: &DemoArguments,
    variants: &[Variant],
    program: &Path,
    scratch: &Path,
) -> Fallible<u8> {
    let content = content(arguments, scratch)?;
    let runner = VariantRunner { path: &arguments.path.spec, content: &content, scratch, program };
    announce(arguments, variants, content.size);
    let mut rows = Vec::new();
    for (i, variant) in variants.iter().enumerate() {
        let name = format!("{}/{} {variant}", i + 1, variants.len());
        let ticker = (!print::is_quiet()).then(|| Ticker::new(&name, &runner));
        let row = runner.run(variant, &mut |now| {
            if let Some(ticker) = &ticker {
                ticker.show(now);
            }
        });
        if let Some(ticker) = ticker {
            ticker.finish(&row);
        }
        rows.push(row);
        if rows.iter().any(|row| row.failure.is_none()) {
            let finished = outcome_of(arguments, &content, rows.clone());
            fs::write(scratch.join(FINISHED), serde_json::to_vec(&finished)?)?;
        }
    }
    let failures: Vec<&str> = rows.iter().filter_map(|row| row.failure.as_deref()).collect();
    let failed = !failures.is_empty();
    if failures.len() == rows.len() {
        // An empty page would replace an earlier one.
        return Err(format!("no transfer finished: {}", failures.join("; ")).into());
    }
    publish(&outcome_of(arguments, &content, rows), arguments)?;
    Ok(u8::from(failed))
}

/// The outcome with the given `rows`.
fn outcome_of(
    arguments: &DemoArguments,
    content: &Content,
    rows: Vec<VariantOutcome>,
) -> DemoOutcome {
    DemoOutcome {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command: command(arguments),
        date: machine::date(),
        machine: machine::machine(),
        kernel: machine::kernel(),
        path: PathFacts {
            spec: arguments.path.text.clone(),
            ..PathFacts::of(&arguments.path.spec)
        },
        file: FileFacts {
            size: content.size,
            seed: arguments.file.is_none().then_some(arguments.path.spec.seed),
        },
        variants: rows,
    }
}

fn publish(outcome: &DemoOutcome, arguments: &DemoArguments) -> Fallible<()> {
    let json = serde_json::to_string(outcome)? + "\n";
    let write = |name: &str, text: &str| {
        let path = arguments.out.join(name);
        whole_file::write(&path, text.as_bytes())?;
        Ok::<PathBuf, String>(path)
    };
    let data = write("outcome.json", &json)?;
    let page = write("report.html", &page(outcome))?;
    if arguments.json {
        out!("{}", json.trim_end());
    } else {
        out!("\n{}", table(outcome));
        wrapped(TABLE_LEGEND, "");
        out!("");
        headline(outcome).iter().for_each(|sentence| wrapped(sentence, ""));
        out!("\nPictures: {}\nNumbers:  {}", page.shown(), data.shown());
    }
    Ok(())
}

/// The file to transfer: the user's, or generated data.
fn content(arguments: &DemoArguments, scratch: &Path) -> Result<Content, ComparisonError> {
    match &arguments.file {
        Some(file) => Content::of(file),
        None => Content::random(scratch, arguments.size, arguments.path.spec.seed),
    }
}

fn refuse_unreadable(file: &Path) -> Result<(), String> {
    let refuse = |why: String| Err(format!("--file {}: {why}", file.shown()));
    match fs::File::open(file).and_then(|f| f.metadata()) {
        Err(error) => refuse(format!("{}; name a file that you may read", print::system(&error))),
        Ok(facts) if !facts.is_file() => refuse("not a regular file; name one".to_owned()),
        Ok(facts) if facts.len() == 0 => refuse("it is empty; name one with content".to_owned()),
        Ok(_) => Ok(()),
    }
}

fn command(arguments: &DemoArguments) -> String {
    let mut text = format!("sweetspot demo --path \"{}\"", arguments.path.text);
    match &arguments.file {
        Some(file) => text += &format!(" --file {}", file.shown()),
        None => text += &format!(" --size {}", arguments.size.to_string().replace(' ', "")),
    }
    if !arguments.sizing.is_empty() {
        let names: Vec<String> = arguments.sizing.iter().map(Variant::to_string).collect();
        text += &format!(" --sizing {}", names.join(","));
    }
    text
}
