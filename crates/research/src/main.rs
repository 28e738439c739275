//! The `sweetspot-research` command: studies and benchmarks of Sweetspot, which write the pages of results. The make targets
//! call it; it is not installed.

// They panic if a stream cannot be written; see `sweetspot_program::print`.
#![deny(clippy::print_stdout, clippy::print_stderr)]

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use sweetspot_linux::{lifeline, signals};
use sweetspot_program::{fold_help::with_folded_help, usage_error};

#[macro_use]
extern crate sweetspot_program;

mod bench;
mod blog;
mod verbs;

/// Studies Sweetspot and writes its pages of results.
#[derive(Debug, Parser)]
#[command(name = "sweetspot-research", version, max_term_width = 80)]
struct CommandLine {
    #[command(subcommand)]
    study: ResearchVerb,
    /// Print nothing but results and errors
    #[arg(short, long, global = true)]
    quiet: bool,
}

#[derive(Debug, Subcommand)]
enum ResearchVerb {
    /// Compare sizings with the kernel's autotuning on a population of random paths
    Gauntlet(verbs::gauntlet::GauntletArguments),
    /// Experiments on this machine's kernel, each with a document of its results
    #[command(subcommand, after_help = "Examples:\n  sweetspot-research lab blog")]
    Lab(verbs::lab::LabExperiment),
    /// Run a scenario on several engines, and report where they differ and why
    Validate(verbs::validate::ValidateArguments),
    /// Reproduce the papers' figures and tables beside the published numbers
    Reproduce(verbs::reproduce::ReproduceArguments),
    /// Measure Sweetspot; each benchmark writes a page of results
    #[command(subcommand)]
    Bench(Benchmark),
}

#[derive(Debug, Subcommand)]
enum Benchmark {
    /// Advised windows in random situations; writes docs/results/advice.md
    Advice(bench::commands::advice::AdviceArguments),
    /// The demo path and a matrix of paths; writes docs/results/lab.md
    Lab(bench::commands::lab::LabArguments),
    /// Programs that size their own sockets; writes docs/results/library.md
    Library(bench::commands::library::LibraryArguments),
    /// `tune` on other programs; writes docs/results/live.md
    Live(bench::commands::live::LiveArguments),
    /// Flows with known causes, and how many the classifier gets right; writes
    /// docs/results/limits.md
    Limits(bench::commands::limits::LimitsArguments),
    /// The BBR team's tests and the evaluation suite's scenarios, in the simulator; writes docs/results/matrix.md
    Matrix(bench::commands::matrix::MatrixArguments),
    /// Random paths, measured; writes docs/results/measure.md
    Measure(bench::commands::measure::MeasureArguments),
    /// Random router links, to which the regression behind `advise router` is fitted; writes their table
    /// and its coefficients
    Router(bench::commands::router::RouterArguments),
    /// The simulator, compared with ns-2 and ns-3; writes docs/results/speed.md
    Sim(bench::commands::sim::SimArguments),
    /// CPU time of each stage of a copy; writes docs/results/stages.md
    Stages(bench::commands::stages::StagesArguments),
    /// Moving files, compared with scp and rsync, and across emulated paths; writes docs/results/transfer.md
    Transfer(bench::commands::transfer::TransferArguments),
}

fn main() -> ExitCode {
    signals::prepare();
    let matches = with_folded_help(CommandLine::command()).try_get_matches();
    let typed = match matches.and_then(|matches| CommandLine::from_arg_matches(&matches)) {
        Ok(typed) => typed,
        Err(error) => return usage_error::answer(&error),
    };
    if typed.quiet {
        sweetspot_program::print::be_quiet();
    }
    // If this fails, a study still obeys signals.
    let _ = lifeline::hold(true);
    let result = match typed.study {
        ResearchVerb::Gauntlet(arguments) => verbs::gauntlet::run(arguments),
        ResearchVerb::Lab(experiment) => verbs::lab::run(experiment),
        ResearchVerb::Validate(arguments) => verbs::validate::run(arguments),
        ResearchVerb::Reproduce(arguments) => verbs::reproduce::run(arguments),
        ResearchVerb::Bench(benchmark) => bench(benchmark),
    };
    result.unwrap_or_else(|error| {
        usage_error::failed("sweetspot-research", error.as_ref(), &error.to_string())
    })
}

fn bench(benchmark: Benchmark) -> verbs::Ending {
    use bench::commands;
    match benchmark {
        Benchmark::Advice(arguments) => commands::advice::run(arguments),
        Benchmark::Lab(arguments) => commands::lab::run(arguments),
        Benchmark::Library(arguments) => commands::library::run(arguments),
        Benchmark::Live(arguments) => commands::live::run(arguments),
        Benchmark::Limits(arguments) => commands::limits::run(arguments),
        Benchmark::Matrix(arguments) => commands::matrix::run(arguments),
        Benchmark::Measure(arguments) => commands::measure::run(arguments),
        Benchmark::Router(arguments) => commands::router::run(arguments),
        Benchmark::Sim(arguments) => commands::sim::run(arguments),
        Benchmark::Stages(arguments) => commands::stages::run(arguments),
        Benchmark::Transfer(arguments) => commands::transfer::run(arguments),
    }
}
