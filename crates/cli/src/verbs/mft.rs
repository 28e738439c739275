use std::process::ExitCode;

use sweetspot_sim::Simulator;
use sweetspot_study::{Mft, SearchBounds, find_mft};

use super::Ending;
use super::scenario_file::{Parallel, ScenarioFile};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  sweetspot mft scenarios/elephants.toml
  sweetspot mft scenarios/elephants.toml --set path.buffer=313pkt --seeds 4")]
pub struct Arguments {
    #[command(flatten)]
    file: ScenarioFile,
    /// Number of seeds to average over, from the scenario's own on
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    seeds: u64,
    /// Largest distance from the best window, as a share of it
    #[arg(long, value_name = "SHARE", default_value_t = 0.005, value_parser = tolerance)]
    tolerance: f64,
    #[command(flatten)]
    parallel: Parallel,
    /// Print all windows tried as one JSON object
    #[arg(long)]
    json: bool,
}

fn tolerance(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (1e-4..=1.0).contains(share));
    share.ok_or_else(|| "write a share between 0.0001 and 1, such as 0.005".to_owned())
}

pub fn run(arguments: Arguments) -> Ending {
    let scenario = arguments.file.scenario()?;
    let bounds = SearchBounds { tolerance: arguments.tolerance, ..SearchBounds::around(&scenario) };
    let workers = arguments.parallel.workers();
    let found = find_mft(&Simulator, &scenario, bounds, arguments.seeds, workers)?;
    if arguments.json {
        out!("{}", json(&scenario.title, &found));
    } else {
        print_for_people(&scenario.title, &found);
    }
    Ok(ExitCode::SUCCESS)
}

fn json(title: &str, found: &Mft) -> serde_json::Value {
    let trials = found.trials.iter().map(|trial| {
        serde_json::json!({
            "window_packets": trial.window,
            "goodput_bps": trial.rate_bps,
            "lossless": trial.lossless,
        })
    });
    serde_json::json!({
        "scenario": title,
        "mft_bps": found.rate_bps,
        "window_packets": found.window,
        "trials": trials.collect::<Vec<_>>(),
    })
}

fn print_for_people(title: &str, found: &Mft) {
    out!("{title}: {:.2} Mbit/s at S = {} packets", found.rate_bps / 1e6, found.window);
    for trial in &found.trials {
        let bar = "#".repeat((trial.rate_bps / found.rate_bps * 50.0) as usize);
        let loss = if trial.lossless { ' ' } else { '!' };
        out!("{:>7} {:>8.2} {loss} {bar}", trial.window, trial.rate_bps / 1e6);
    }
    out!("! marks windows at which the bottleneck dropped packets");
}
