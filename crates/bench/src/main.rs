//! Benchmarks of Sweetspot, which write their results to `docs/results`. The make targets call this
//! program.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod commands;
mod lab;
mod limits;
mod live;
mod measure;
mod speed;
mod store;
mod transfer;

/// Measures Sweetspot and writes docs/results.
#[derive(Debug, Parser)]
#[command(name = "sweetspot-bench", version, max_term_width = 100)]
struct CommandLine {
    #[command(subcommand)]
    benchmark: Benchmark,
}

#[derive(Debug, Subcommand)]
enum Benchmark {
    /// Advised windows in random situations; writes docs/results/advice.md
    Advice(commands::advice::Arguments),
    /// The demo path and a matrix of paths; writes docs/results/lab.md
    Lab(commands::lab::Arguments),
    /// `tune` on other programs; writes docs/results/live.md
    Live(commands::live::Arguments),
    /// Flows of known cause, and which of them the classifier gets right; writes
    /// docs/results/limits.md
    Limits(commands::limits::Arguments),
    /// The BBR team's tests and the evaluation suite's scenarios, by the simulator; writes docs/results/matrix.md
    Matrix(commands::matrix::Arguments),
    /// Random paths, measured; writes docs/results/measure.md
    Measure(commands::measure::Arguments),
    /// Random router links, to which the regression behind `advise router` is fitted; writes their table
    /// and its coefficients
    Router(commands::router::Arguments),
    /// The simulator beside ns-2 and ns-3; writes docs/results/speed.md
    Sim(commands::sim::Arguments),
    /// Files moved beside scp and rsync, and across emulated paths; writes docs/results/transfer.md
    Transfer(commands::transfer::Arguments),
}

fn main() -> ExitCode {
    let result = match CommandLine::parse().benchmark {
        Benchmark::Advice(arguments) => commands::advice::run(arguments),
        Benchmark::Lab(arguments) => commands::lab::run(arguments),
        Benchmark::Live(arguments) => commands::live::run(arguments),
        Benchmark::Limits(arguments) => commands::limits::run(arguments),
        Benchmark::Matrix(arguments) => commands::matrix::run(arguments),
        Benchmark::Measure(arguments) => commands::measure::run(arguments),
        Benchmark::Router(arguments) => commands::router::run(arguments),
        Benchmark::Sim(arguments) => commands::sim::run(arguments),
        Benchmark::Transfer(arguments) => commands::transfer::run(arguments),
    };
    result.unwrap_or_else(|error| {
        eprintln!("sweetspot-bench: {error}");
        ExitCode::FAILURE
    })
}

/// The median of `values`, of an even number the upper one; `None` if there are no values.
pub fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}
