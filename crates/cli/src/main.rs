//! The `sweetspot` command: parses the command line and runs one verb.

// They panic if a stream cannot be written; see `print`.
#![deny(clippy::print_stdout, clippy::print_stderr)]

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

mod eta;
mod own_files;
#[macro_use]
mod print;
mod progress;
mod raster;
mod result_journal;
mod text_file;
mod usage_error;
mod verbs;
mod whole_file;

/// Finds, holds and explains the window at which TCP is fastest and queues are shortest.
#[derive(Debug, Parser)]
#[command(name = "sweetspot", version, max_term_width = 100)]
struct CommandLine {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Advise on the window, the host settings or the router buffer for a path
    Advise(verbs::advise::Arguments),
    Emulate(verbs::emulate::Arguments),
    /// Receive files
    Serve(verbs::serve::Arguments),
    /// Copy files and directories to and from a host that ssh reaches
    Copy(verbs::copy::Arguments),
    /// The far end of `sweetspot copy`
    #[command(hide = true)]
    Endpoint(verbs::copy::EndpointArguments),
    /// Receive what `sweetspot send` offers
    Receive(verbs::receive::Arguments),
    /// Print the key by which a service knows this user
    Key(verbs::key::Arguments),
    /// Let somebody use a service: a ticket, or a code to say, and a line in its clients file
    Invite(verbs::invite::Arguments),
    /// Send files and directories
    Send(verbs::send::Arguments),
    Measure(verbs::measure::Arguments),
    Test(verbs::measure::TestArguments),
    Tune(verbs::tune::Arguments),
    /// Show on this machine's kernel what sizing the window gains
    Demo(verbs::demo::Arguments),
    /// Experiments on this machine's kernel, each with a document of its results
    #[command(subcommand)]
    Lab(verbs::lab::Experiment),
    /// Show this host's TCP connections and what limits each
    Top(verbs::top::Arguments),
    /// Find what limits a connection, why, and what to do about it
    Diagnose(verbs::diagnose::Arguments),
    /// Play a scenario
    Run(verbs::run::Arguments),
    /// Play every combination of the values of some keys of a scenario
    Sweep(verbs::sweep::Arguments),
    /// Compare sizings with the kernel's autotuning on a population of random paths
    Gauntlet(verbs::gauntlet::Arguments),
    /// Search for the window at which a scenario's transfer is fastest
    Mft(verbs::mft::Arguments),
    /// Play a scenario by several engines and report where they differ, and why
    Validate(verbs::validate::Arguments),
    /// Reproduce the papers' figures and tables beside the published numbers
    Reproduce(verbs::reproduce::Arguments),
    /// Make an HTML page from results: tables, curves, time series, distributions
    Report(verbs::report::Arguments),
    Ui(verbs::ui::Arguments),
    /// Write the man pages
    Man(verbs::man::Arguments),
    /// Print completions for a shell
    Completions(verbs::completions::Arguments),
}

fn main() -> ExitCode {
    let typed = match CommandLine::try_parse() {
        Ok(typed) => typed,
        Err(error) => return usage_error::answer(&error),
    };
    let result = match typed.verb {
        Verb::Advise(arguments) => verbs::advise::run(arguments),
        Verb::Emulate(arguments) => verbs::emulate::run(arguments),
        Verb::Serve(arguments) => verbs::serve::run(arguments),
        Verb::Copy(arguments) => verbs::copy::run(arguments),
        Verb::Endpoint(arguments) => verbs::copy::run_endpoint(arguments),
        Verb::Receive(arguments) => verbs::receive::run(arguments),
        Verb::Key(arguments) => verbs::key::run(arguments),
        Verb::Invite(arguments) => verbs::invite::run(arguments),
        Verb::Send(arguments) => verbs::send::run(arguments),
        Verb::Measure(arguments) => verbs::measure::run(arguments),
        Verb::Test(arguments) => verbs::measure::run_test(arguments),
        Verb::Tune(arguments) => verbs::tune::run(arguments),
        Verb::Demo(arguments) => verbs::demo::run(arguments),
        Verb::Lab(experiment) => verbs::lab::run(experiment),
        Verb::Top(arguments) => verbs::top::run(arguments),
        Verb::Diagnose(arguments) => verbs::diagnose::run(arguments),
        Verb::Run(arguments) => verbs::run::run(arguments),
        Verb::Sweep(arguments) => verbs::sweep::run(arguments),
        Verb::Gauntlet(arguments) => verbs::gauntlet::run(arguments),
        Verb::Mft(arguments) => verbs::mft::run(arguments),
        Verb::Validate(arguments) => verbs::validate::run(arguments),
        Verb::Reproduce(arguments) => verbs::reproduce::run(arguments),
        Verb::Report(arguments) => verbs::report::run(arguments),
        Verb::Ui(arguments) => verbs::ui::run(arguments),
        Verb::Man(arguments) => verbs::man::run(arguments, CommandLine::command()),
        Verb::Completions(arguments) => verbs::completions::run(arguments, CommandLine::command()),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            err!("sweetspot: {error}");
            ExitCode::FAILURE
        }
    }
}
