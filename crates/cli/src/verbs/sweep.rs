use std::process::ExitCode;

use sweetspot_sim::Simulator;
use sweetspot_study::{Sweep, SweepPoint};

use super::Ending;
use super::scenario_file::{Parallel, ScenarioFile};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  sweetspot sweep scenarios/elephants.toml --over path.buffer=100pkt,313pkt,625pkt
  sweetspot sweep scenarios/elephants.toml --over transfer.0.sizing=kernel,sobas --json")]
pub struct Arguments {
    #[command(flatten)]
    file: ScenarioFile,
    /// The key and its values, e.g. path.buffer=100pkt,313pkt,625pkt
    #[arg(long, value_name = "KEY=VALUE,VALUE,...")]
    over: String,
    #[command(flatten)]
    parallel: Parallel,
    /// Print one JSON object per value and line
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: Arguments) -> Ending {
    let (key, values) = arguments.over.split_once('=').ok_or_else(|| {
        format!("--over {}: write it like path.buffer=313pkt,625pkt", arguments.over)
    })?;
    let sweep = Sweep {
        text: arguments.file.text()?,
        overrides: arguments.file.overrides.clone(),
        key: key.to_owned(),
        values: values.split(',').map(|value| value.trim().to_owned()).collect(),
    };
    let points = sweep
        .run(&Simulator, arguments.parallel.workers())
        .map_err(|error| arguments.file.blame(&error))?;
    if !arguments.json {
        tell!("{key:>20}  transfer  Mbit/s  RTT ms  loss %  timeouts");
    }
    for point in &points {
        if arguments.json {
            tell!("{}", json(key, point)?);
        } else {
            print_for_people(point);
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn json(key: &str, point: &SweepPoint) -> Result<serde_json::Value, serde_json::Error> {
    let outcome = serde_json::to_value(&point.outcome)?;
    Ok(serde_json::json!({ "key": key, "value": point.value, "outcome": outcome }))
}

fn print_for_people(point: &SweepPoint) {
    for (i, transfer) in point.outcome.transfers.iter().enumerate() {
        tell!(
            "{:>20} {i:>9} {:>7.2} {:>7.1} {:>7.4} {:>9}",
            point.value,
            transfer.goodput_bps / 1e6,
            transfer.rtt_mean_s * 1e3,
            transfer.loss_rate * 100.0,
            transfer.timeouts,
        );
    }
}
