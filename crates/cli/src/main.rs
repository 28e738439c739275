//! The `sweetspot` command: what was typed, then a short story per verb.

// They panic where nobody can be told; see `print`.
#![deny(clippy::print_stdout, clippy::print_stderr)]

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

#[macro_use]
mod print;
mod attend;
mod bench;
mod build;
mod complaint;
mod contest;
mod ledger;
mod raster;
mod verbs;

/// Finds, holds and explains the window at which TCP is fastest and its path calmest.
#[derive(Debug, Parser)]
#[command(name = "sweetspot", version, max_term_width = 100)]
struct Typed {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Say how large a window, which host settings, or how much router buffer a path needs
    Advise(verbs::advise::Arguments),
    Emulate(verbs::emulate::Arguments),
    /// Receive files
    Serve(verbs::serve::Arguments),
    /// Send a file
    Send(verbs::send::Arguments),
    /// Show on this machine's kernel what sizing the window gains
    Demo(verbs::demo::Arguments),
    /// Play a scenario
    Run(verbs::run::Arguments),
    /// Play every combination of the values of some keys of a scenario
    Sweep(verbs::sweep::Arguments),
    /// Search the window at which a scenario's transfer is fastest
    Mft(verbs::mft::Arguments),
    /// Play the papers' figures and tables again, and draw them with the published numbers
    Reproduce(verbs::reproduce::Arguments),
    /// Make one page from results: tables, curves, time series, distributions
    Report(verbs::report::Arguments),
    /// Measure the demo path and a matrix of paths, and write docs/results/lab.md
    #[command(hide = true)]
    BenchLab(verbs::bench_lab::Arguments),
    /// Write the man pages
    Man(verbs::man::Arguments),
    /// Print completions for a shell
    Completions(verbs::completions::Arguments),
}

fn main() -> ExitCode {
    let typed = match Typed::try_parse() {
        Ok(typed) => typed,
        Err(error) => return complaint::answer(&error),
    };
    let result = match typed.verb {
        Verb::Advise(arguments) => verbs::advise::run(arguments),
        Verb::Emulate(arguments) => verbs::emulate::run(arguments),
        Verb::Serve(arguments) => verbs::serve::run(arguments),
        Verb::Send(arguments) => verbs::send::run(arguments),
        Verb::Demo(arguments) => verbs::demo::run(arguments),
        Verb::Run(arguments) => verbs::run::run(arguments),
        Verb::Sweep(arguments) => verbs::sweep::run(arguments),
        Verb::Mft(arguments) => verbs::mft::run(arguments),
        Verb::Reproduce(arguments) => verbs::reproduce::run(arguments),
        Verb::Report(arguments) => verbs::report::run(arguments),
        Verb::BenchLab(arguments) => verbs::bench_lab::run(arguments),
        Verb::Man(arguments) => verbs::man::run(arguments, Typed::command()),
        Verb::Completions(arguments) => verbs::completions::run(arguments, Typed::command()),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            say!("sweetspot: {error}");
            ExitCode::FAILURE
        }
    }
}
