//! The search for the window at which a scenario's first transfer is fastest.

use std::process::ExitCode;

use sweetspot_experiment::{Mft, SearchBounds, find_mft};
use sweetspot_sim::Simulator;

use super::Arguments;
use crate::verbs::Ending;

/// Reads the distance from the best window at which the search ends.
pub fn tolerance(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (1e-4..=1.0).contains(share));
    share.ok_or_else(|| "write a share between 0.0001 and 1, such as 0.005".to_owned())
}

pub fn run(arguments: &Arguments) -> Ending {
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
