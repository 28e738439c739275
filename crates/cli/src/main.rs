//! The `sweetspot` command: parses the command line and runs one verb.

// They panic if a stream cannot be written; see `print`.
#![deny(clippy::print_stdout, clippy::print_stderr)]

use std::process::ExitCode;

use clap::{
    Arg, ArgAction, ArgMatches, Command, CommandFactory, FromArgMatches, Parser, Subcommand,
};
use sweetspot_linux::{lifeline, signals};

mod combinations;
mod ends;
mod eta;
mod own_files;
#[macro_use]
mod print;
mod picture;
mod progress;
mod result_journal;
mod settings;
mod text_file;
mod usage_error;
mod values;
mod verbs;
mod whole_file;

/// Finds, holds and explains the window at which TCP is fastest and queues are shortest.
#[derive(Debug, Parser)]
#[command(name = "sweetspot", version, max_term_width = 100)]
#[command(after_help = "\
Examples:
  sweetspot copy dataset me@nas.example.org:archive/
  sweetspot tune run -- curl -O https://example.org/dataset.tar
  sweetspot advise window --rate 10Gbit/s --rtt 80ms
  sweetspot top")]
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
    #[command(subcommand, after_help = "Examples:\n  sweetspot lab blog")]
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

/// The command line as documented: every verb takes --quiet.
fn program() -> Command {
    let mut program = CommandLine::command();
    let names: Vec<String> =
        program.get_subcommands().map(|verb| verb.get_name().to_owned()).collect();
    for name in names {
        program = program.mut_subcommand(name, with_quiet);
    }
    program
}

/// `verb`, or each verb below it, with --quiet.
fn with_quiet(verb: Command) -> Command {
    let names: Vec<String> =
        verb.get_subcommands().map(|inner| inner.get_name().to_owned()).collect();
    if !names.is_empty() {
        return names.into_iter().fold(verb, |verb, name| verb.mut_subcommand(name, with_quiet));
    }
    if verb.get_arguments().any(|option| option.get_id() == QUIET) {
        return verb;
    }
    let quiet = Arg::new(QUIET).long(QUIET).short('q').action(ArgAction::SetTrue);
    verb.arg(quiet.help("Print nothing but results and errors"))
}

const QUIET: &str = "quiet";

/// Whether --quiet is set for the verb that was called.
fn is_quiet(matches: &ArgMatches) -> bool {
    match matches.subcommand() {
        Some((_, verb)) => is_quiet(verb),
        None => matches!(matches.try_get_one::<bool>(QUIET), Ok(Some(true))),
    }
}

impl Verb {
    /// Whether it has no purpose but what it prints, so that it ends when nobody reads that. A transfer, a tuner and a
    /// server go on: a caller may read the first line only.
    fn is_its_output(&self) -> bool {
        match self {
            Verb::Serve(arguments) => arguments.prints_content(),
            Verb::Receive(arguments) => arguments.prints_content(),
            Verb::Emulate(arguments) => arguments.prints(),
            // Its standard output is COMMAND's.
            Verb::Tune(_) => false,
            Verb::Send(_) | Verb::Copy(_) | Verb::Ui(_) => false,
            _ => true,
        }
    }
}

fn main() -> ExitCode {
    signals::prepare();
    let program_with_defaults = match settings::with_defaults(program()) {
        Ok(program) => program,
        Err(error) => return usage_error::said(&error),
    };
    let typed = program_with_defaults.try_get_matches().and_then(|matches| {
        if is_quiet(&matches) {
            print::be_quiet();
        }
        CommandLine::from_arg_matches(&matches).map(|typed| (typed, combinations::check(&matches)))
    });
    let typed = match typed {
        Ok((typed, Ok(()))) => typed,
        Ok((_, Err(wrong))) => return usage_error::said(&wrong),
        Err(error) => return usage_error::answer(&error),
    };
    // Without it a verb still obeys signals.
    let _ = lifeline::hold(typed.verb.is_its_output());
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
        Verb::Man(arguments) => verbs::man::run(arguments, program()),
        Verb::Completions(arguments) => verbs::completions::run(arguments, program()),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            err!("sweetspot: {error}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::error::ErrorKind;

    use super::*;

    /// Calls `look` for each verb that people call, with its names.
    fn each_verb(command: &Command, path: &str, look: &mut impl FnMut(&Command, &str)) {
        look(command, path);
        for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
            each_verb(verb, format!("{path} {}", verb.get_name()).trim(), look);
        }
    }

    #[test]
    fn every_verb_has_examples_and_takes_quiet() {
        each_verb(&program(), "", &mut |verb, path| {
            let help = verb.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains("sweetspot "), "{path} has no example");
            let takes_quiet = verb.get_arguments().any(|option| option.get_long() == Some(QUIET));
            assert!(takes_quiet || verb.has_subcommands(), "{path}");
        });
    }

    #[test]
    fn every_example_in_a_help_text_is_a_command_line() {
        let mut read = 0;
        each_verb(&program(), "", &mut |verb, _| {
            let help = verb.get_after_help().map(ToString::to_string).unwrap_or_default();
            let examples = help.lines().map(str::trim).filter(|line| {
                line.starts_with("sweetspot ") && !line.contains(['"', '\'', '|', '&', '>', '\\'])
            });
            for example in examples {
                read += 1;
                let Err(error) = program().try_get_matches_from(example.split_whitespace()) else {
                    continue;
                };
                // `diagnose slow.pcap`, where there is no such file.
                let no_file = error.kind() == ErrorKind::ValueValidation
                    && error.to_string().contains("nor a file");
                assert!(no_file, "{example}: {error}");
            }
        });
        assert!(read > 50, "{read} examples");
    }

    #[test]
    fn no_two_options_share_a_variable() {
        let mut seen = std::collections::BTreeSet::new();
        each_verb(&program(), "", &mut |verb, path| {
            let names: Vec<String> = path.split_whitespace().map(str::to_owned).collect();
            for long in verb.get_arguments().filter_map(|option| option.get_long()) {
                let name = settings::variable(&names, long);
                assert!(seen.insert(name.clone()), "{name}");
            }
        });
        assert!(seen.len() > 100, "{}", seen.len());
    }
}
