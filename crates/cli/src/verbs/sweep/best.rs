//! The search for the window at which a scenario's first transfer is fastest.

use std::process::ExitCode;

use sweetspot_experiment::{Mft, SearchBounds, WindowTrial, find_mft};
use sweetspot_program::print;
use sweetspot_program::progress::{self, CountingEngine};
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
    let engine = CountingEngine::new(&Simulator);
    let interrupted = || err!("sweetspot: interrupted after {} runs", engine.done());
    let work = || find_mft(&engine, &scenario, bounds, arguments.seeds, workers);
    let found = progress::while_it_counts(work, || engine.done(), interrupted)?;
    if arguments.json {
        out!("{}", json(&scenario.title, &found, arguments.seeds));
    } else {
        print_for_people(&scenario.title, &found, arguments.seeds);
    }
    Ok(ExitCode::SUCCESS)
}

/// Rates within this share of the best count as equal to it.
const PLATEAU: f64 = 0.02;

/// The tried windows around the best one, from and to, with rates within [`PLATEAU`] of it.
fn plateau(found: &Mft) -> (u64, u64) {
    let is_level = |rate: f64| rate >= found.rate_bps * (1.0 - PLATEAU);
    let best = found.trials.iter().position(|trial| trial.window == found.window).unwrap_or(0);
    let (below, above) = found.trials.split_at(best);
    let level = |trials: &mut dyn Iterator<Item = &WindowTrial>| {
        trials.take_while(|trial| is_level(trial.rate_bps)).last().map(|trial| trial.window)
    };
    let from = level(&mut below.iter().rev()).unwrap_or(found.window);
    let to = level(&mut above.iter()).unwrap_or(found.window);
    (from, to)
}

fn json(title: &str, found: &Mft, seeds: u64) -> serde_json::Value {
    let (from, to) = plateau(found);
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
        "plateau_packets": [from, to],
        "seeds": seeds,
        "trials": trials.collect::<Vec<_>>(),
    })
}

/// Columns of a line before its bar.
const NUMBERS: usize = 19;
const LONGEST_BAR: usize = 50;

fn print_for_people(title: &str, found: &Mft, seeds: u64) {
    out!("{title}: {:.2} Mbit/s with a window of {} packets", found.rate_bps / 1e6, found.window);
    let (from, to) = plateau(found);
    let percent = PLATEAU * 100.0;
    if from == to {
        out!("no other window tried comes within {percent} % of it");
    } else {
        out!("windows of {from} to {to} packets are within {percent} % of it");
    }
    if seeds == 1 {
        out!("one seed: --seeds 8 shows how much of it is chance");
    }
    // A bar has the rest of the line.
    let longest = print::width().saturating_sub(NUMBERS).min(LONGEST_BAR) as f64;
    out!("packets   Mbit/s");
    for trial in &found.trials {
        let bar = "#".repeat((trial.rate_bps / found.rate_bps * longest) as usize);
        let loss = if trial.lossless { ' ' } else { '!' };
        out!("{:>7} {:>8.2} {loss} {bar}", trial.window, trial.rate_bps / 1e6);
    }
    out!("!: the bottleneck dropped packets");
}
