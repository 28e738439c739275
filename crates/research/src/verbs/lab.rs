use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use sweetspot_lab::isolated;
use sweetspot_linux::signals;
use sweetspot_units::Duration;

use super::Ending;
use crate::blog::{BlogRow, Environment, blog};
use sweetspot_comparison::machine;
use sweetspot_program::print::Shown;
use sweetspot_program::usage_error::UsageError;
use sweetspot_program::whole_file;

#[derive(Debug, clap::Subcommand)]
pub enum LabExperiment {
    /// Five receive buffers at 100 Mbit/s and 10 ms: the experiment of S. Gordon's blog
    Blog(BlogArguments),
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  sweetspot-research lab blog
  sweetspot-research lab blog --each 3s --json
  sweetspot-research lab blog --out docs/results/blog.md")]
pub struct BlogArguments {
    /// Measured time of each buffer
    #[arg(long, value_name = "TIME", default_value = "10s")]
    each: Duration,
    /// Write a document of the results, with machine, kernel and date
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print the results as one JSON object
    #[arg(long)]
    json: bool,
}

/// Minimum measured time: a shorter one would be slow start only.
const MIN_MEASURED: Duration = Duration::from_millis(100);
/// Maximum measured time.
const MAX_MEASURED: Duration = Duration::from_secs(3600);

pub fn run(experiment: LabExperiment) -> Ending {
    let LabExperiment::Blog(arguments) = experiment;
    if !(MIN_MEASURED..=MAX_MEASURED).contains(&arguments.each) {
        let why = format!("--each {}: give {MIN_MEASURED} to {MAX_MEASURED}", arguments.each);
        return Err(UsageError::new(why).into());
    }
    whole_file::check_creatable("--out", arguments.out.as_deref())?;
    let left = match &arguments.out {
        Some(out) => format!("{} is not written", out.shown()),
        None => "there is no result".to_owned(),
    };
    signals::print_when_interrupted(format!(
        "sweetspot-research: interrupted before the experiment was complete; {left}\n"
    ));
    let result = isolated(|| blog(arguments.each, &mut show))?;
    if let Some(out) = &arguments.out {
        fs::write(out, result.document(&place(&arguments)))
            .map_err(|error| format!("--out {}: {error}; name another file", out.shown()))?;
    }
    if arguments.json {
        out!("{}", serde_json::to_string_pretty(&result)?);
    } else {
        out!("{}", result.text().trim_end());
    }
    Ok(ExitCode::SUCCESS)
}

fn show(row: &BlogRow) {
    note!(
        "SO_RCVBUF {} kB: {:.1} kB advertised, {:.1} Mbit/s",
        row.asked_bytes / 1000,
        row.window_advertised_bytes as f64 / 1e3,
        row.measured_bps / 1e6,
    );
}

fn place(arguments: &BlogArguments) -> Environment {
    let each = arguments.each.to_string().replace(' ', "");
    Environment {
        command: format!("sweetspot-research lab blog --each {each} --out docs/results/blog.md"),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        machine: format!("{}, {}", machine::machine(), machine::kernel()),
        date: machine::date().chars().take_while(|c| *c != 'T').collect(),
    }
}
