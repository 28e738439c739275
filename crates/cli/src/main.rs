//! The `sweetspot` command: parses the command line and runs one verb.

// These macros panic if a stream cannot be written; use the module `print`.
#![deny(clippy::print_stdout, clippy::print_stderr)]

use std::process::ExitCode;

use clap::{
    Arg, ArgAction, ArgMatches, Command, CommandFactory, FromArgMatches, Parser, Subcommand,
};
use option_hints::HintVerb;
#[cfg(target_os = "linux")]
use sweetspot_linux::{lifeline, signals};
use sweetspot_program::{fold_help::with_folded_help, print, usage_error};

#[macro_use]
extern crate sweetspot_program;

#[cfg(target_os = "linux")]
mod combinations;
mod ends;
mod habits;
mod option_hints;
mod own_files;
mod picture;
mod settings;
mod verbs;

/// glibc copies more than 2 kB with `rep movsb`. For some alignments of source and target, AMD's Zen 3 and 4 run it at a tenth
/// of the speed (glibc bug 30994). glibc's allocator aligns TLS records that way; with this allocator, large buffers are aligned
/// to 64 bytes.
#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Finds, holds and explains the window at which TCP is fast and queues are short.
#[derive(Debug, Parser)]
#[command(name = "sweetspot", version, max_term_width = 80)]
#[command(after_help = "\
Examples:
  sweetspot copy dataset me@nas.example.org:archive/
  sweetspot tune run -- curl -O https://example.org/dataset.tar
  sweetspot advise window --rate 10Gbit/s --rtt 80ms
  sweetspot top

`sweetspot COMMAND --help` describes a command with its options and examples;
`sweetspot generate man DIR` writes the man pages, sweetspot(7) among them.")]
struct CommandLine {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    // Move files.
    /// Copy files and directories to and from a host that ssh reaches
    Copy(verbs::copy::CopyArguments),
    /// Send files and directories
    Send(verbs::send::SendArguments),
    /// Receive files from `sweetspot send`
    Receive(verbs::receive::ReceiveArguments),
    /// Receive files, or serve named clients
    Serve(verbs::serve::ServeArguments),
    /// The far end of `sweetspot copy`
    #[cfg(target_os = "linux")]
    #[command(hide = true)]
    Endpoint(verbs::copy::EndpointArguments),
    // Inspect connections and paths.
    Top(verbs::top::TopArguments),
    Diagnose(verbs::diagnose::DiagnoseArguments),
    Measure(verbs::measure::MeasureArguments),
    // Tune.
    Tune(verbs::tune::TuneArguments),
    /// Advise on the window, host settings or router buffer for a path
    Advise(verbs::advise::AdviseArguments),
    // Study.
    /// Compare ways to size the window on this machine's kernel
    Demo(verbs::demo::DemoArguments),
    Emulate(verbs::emulate::EmulateArguments),
    /// Simulate a scenario, or run it on this machine's kernel
    Run(verbs::run::RunArguments),
    /// Run a scenario with many values, or search for its best window
    Sweep(verbs::sweep::SweepArguments),
    /// Make an HTML page from results: tables, curves, time series
    Report(verbs::report::ReportArguments),
    Ui(verbs::ui::UiArguments),
    /// Write the man pages or print shell completions
    #[command(
        subcommand,
        after_help = "Examples:\n  sweetspot generate man man\n  sweetspot generate completions bash"
    )]
    Generate(verbs::generate::Generated),
}

/// The headings of the verbs in `sweetspot --help`, each with its first and last verb.
const GROUPS: [(&str, &str, &str); 4] = [
    ("Move files", "copy", "serve"),
    ("Inspect connections and paths", "top", "measure"),
    ("Tune", "tune", "advise"),
    ("Study", "demo", "generate"),
];

const RENAMED: [(&str, &str); 10] = [
    ("completions", "sweetspot generate completions"),
    ("gauntlet", "sweetspot-research gauntlet"),
    ("invite", "sweetspot serve invite"),
    ("key", "sweetspot serve key"),
    ("lab", "sweetspot-research lab"),
    ("man", "sweetspot generate man"),
    ("mft", "sweetspot sweep --find-best"),
    ("reproduce", "sweetspot-research reproduce"),
    ("test", "sweetspot measure --quick"),
    ("validate", "sweetspot-research validate"),
];

/// The documented command line: every verb has --quiet.
fn program() -> Command {
    let program = CommandLine::command();
    let template = help_template(&program);
    let mut program = program.help_template(template);
    let names: Vec<String> =
        program.get_subcommands().map(|verb| verb.get_name().to_owned()).collect();
    for name in names {
        program = program.mut_subcommand(name, with_quiet);
    }
    program
}

/// The help template, with the verbs grouped below headings.
fn help_template(program: &Command) -> String {
    let verbs: Vec<&Command> =
        program.get_subcommands().filter(|verb| !verb.is_hide_set()).collect();
    let place = |name| verbs.iter().position(|verb| verb.get_name() == name).unwrap_or_default();
    let mut list = String::new();
    for (heading, first, last) in GROUPS {
        list += &format!("{heading}:\n");
        for verb in &verbs[place(first)..=place(last)] {
            let about = verb.get_about().map(ToString::to_string).unwrap_or_default();
            list += &format!("  {:<9} {about}\n", verb.get_name());
        }
        list.push('\n');
    }
    format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{list}Options:\n{{options}}{{after-help}}"
    )
}

/// The error for a renamed verb; `None` for any other verb.
fn renamed() -> Option<String> {
    let typed = std::env::args_os().skip(1).find(|word| word != "help")?;
    let (old, new) = RENAMED.iter().find(|(old, _)| typed == *old)?;
    Some(format!("{old}: this is now `{new}`; try `{new} --help`"))
}

/// `verb`, or each verb below it, with the option --quiet.
fn with_quiet(verb: Command) -> Command {
    let names: Vec<String> =
        verb.get_subcommands().map(|inner| inner.get_name().to_owned()).collect();
    let verb = names.into_iter().fold(verb, |verb, name| verb.mut_subcommand(name, with_quiet));
    // `--seed -1` has a wrong value; it is not an unknown option -1.
    let verb = verb.mut_args(|option| {
        match option.get_action().takes_values() && !option.is_positional() {
            true => option.allow_negative_numbers(true),
            false => option,
        }
    });
    if verb.is_subcommand_required_set() {
        return verb;
    }
    if verb.get_arguments().any(|option| option.get_id() == QUIET) {
        return verb;
    }
    let quiet = Arg::new(QUIET).long(QUIET).short('q').action(ArgAction::SetTrue);
    verb.arg(quiet.help("Print nothing but results and errors"))
}

const QUIET: &str = "quiet";

/// Whether --quiet is set for the called verb.
fn is_quiet(matches: &ArgMatches) -> bool {
    match matches.subcommand() {
        Some((_, verb)) => is_quiet(verb),
        None => matches!(matches.try_get_one::<bool>(QUIET), Ok(Some(true))),
    }
}

impl Verb {
    /// The verb for hints, which name only options of that verb.
    #[cfg(target_os = "linux")]
    fn hint_verb(&self) -> HintVerb {
        match self {
            Verb::Copy(_) => HintVerb::Copy,
            Verb::Send(arguments) if arguments.offers() => HintVerb::Offer,
            Verb::Send(_) => HintVerb::Send,
            Verb::Receive(_) => HintVerb::Receive,
            Verb::Serve(_) => HintVerb::Serve,
            Verb::Measure(_) => HintVerb::Measure,
            _ => HintVerb::Other,
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn hint_verb(&self) -> HintVerb {
        HintVerb::Other
    }
}

#[cfg(target_os = "linux")]
impl Verb {
    /// Whether output is the verb's only purpose, so that it ends when its reader does. Transfers, tuners and servers continue:
    /// a caller may read only the first line.
    fn is_its_output(&self) -> bool {
        match self {
            Verb::Serve(arguments) => arguments.prints_content(),
            Verb::Receive(arguments) => arguments.prints_content(),
            Verb::Emulate(arguments) => arguments.prints(),
            // Its standard output belongs to COMMAND.
            Verb::Tune(_) => false,
            Verb::Send(_) | Verb::Copy(_) | Verb::Ui(_) => false,
            _ => true,
        }
    }
}

#[cfg(target_os = "linux")]
use combinations::check as checked;

/// The verbs with options to check run only on Linux.
#[cfg(not(target_os = "linux"))]
fn checked(_: &ArgMatches) -> Result<(), String> {
    Ok(())
}

fn main() -> ExitCode {
    #[cfg(target_os = "linux")]
    signals::prepare();
    if let Some(line) = renamed() {
        return usage_error::reject(&line);
    }
    let program_with_defaults = match settings::with_defaults(program()) {
        Ok(program) => program,
        Err(error) => return usage_error::reject(&error),
    };
    let typed = with_folded_help(program_with_defaults).try_get_matches().and_then(|matches| {
        if is_quiet(&matches) {
            print::be_quiet();
        }
        CommandLine::from_arg_matches(&matches).map(|typed| (typed, checked(&matches)))
    });
    let typed = match typed {
        Ok((typed, Ok(()))) => typed,
        Ok((_, Err(wrong))) => return usage_error::reject(&wrong),
        Err(error) => {
            let habit = habits::line(&error, std::env::args_os());
            return habit
                .map_or_else(|| usage_error::answer(&error), |line| usage_error::reject(&line));
        }
    };
    // If this fails, the verb still obeys signals.
    #[cfg(target_os = "linux")]
    let _ = lifeline::hold(typed.verb.is_its_output());
    let hint_verb = typed.verb.hint_verb();
    let result = match typed.verb {
        Verb::Copy(arguments) => verbs::copy::run(arguments),
        Verb::Send(arguments) => verbs::send::run(arguments),
        Verb::Receive(arguments) => verbs::receive::run(arguments),
        Verb::Serve(arguments) => verbs::serve::run(arguments),
        #[cfg(target_os = "linux")]
        Verb::Endpoint(arguments) => verbs::copy::run_endpoint(arguments),
        Verb::Top(arguments) => verbs::top::run(arguments),
        Verb::Diagnose(arguments) => verbs::diagnose::run(arguments),
        Verb::Measure(arguments) => verbs::measure::run(arguments),
        Verb::Tune(arguments) => verbs::tune::run(arguments),
        Verb::Advise(arguments) => verbs::advise::run(arguments),
        Verb::Demo(arguments) => verbs::demo::run(arguments),
        Verb::Emulate(arguments) => verbs::emulate::run(arguments),
        Verb::Run(arguments) => verbs::run::run(arguments),
        Verb::Sweep(arguments) => verbs::sweep::run(arguments),
        Verb::Report(arguments) => verbs::report::run(arguments),
        Verb::Ui(arguments) => verbs::ui::run(arguments),
        Verb::Generate(generated) => verbs::generate::run(generated, program()),
    };
    match result {
        Ok(code) => code,
        Err(error) => usage_error::failed(
            "sweetspot",
            error.as_ref(),
            &option_hints::of(error.as_ref(), hint_verb),
        ),
    }
}

#[cfg(test)]
mod tests {
    use clap::error::ErrorKind;

    use super::*;

    /// Calls `look` for each public verb, with its name.
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
            let is_quiet = |o: &Arg| o.get_long() == Some(QUIET) && o.get_short() == Some('q');
            let takes_quiet = verb.get_arguments().any(is_quiet);
            assert!(takes_quiet || verb.has_subcommands(), "{path}");
        });
    }

    /// Help is wrapped at 80 columns. A wrapped example cannot be pasted, and a wrapped paragraph has ragged lines.
    #[test]
    fn text_below_the_options_fits_80_columns() {
        each_verb(&program(), "", &mut |verb, path| {
            let help = verb.get_after_help().map(ToString::to_string).unwrap_or_default();
            for line in help.lines() {
                assert!(line.chars().count() <= 80, "{path}: {line}");
            }
        });
    }

    #[test]
    fn every_example_in_a_help_text_parses() {
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
                // `diagnose slow.pcap` fails here, because this file does not exist.
                let no_file = error.kind() == ErrorKind::ValueValidation
                    && error.to_string().contains("there is no file");
                assert!(no_file, "{example}: {error}");
            }
        });
        assert!(read > 50, "{read} examples");
    }

    #[test]
    fn a_negative_number_is_an_invalid_value_not_an_option() {
        for typed in [["run", "@elephants", "--seed"], ["top", "--once", "--interval"]] {
            let words = ["sweetspot"].into_iter().chain(typed).chain(["-1"]);
            let error = program().try_get_matches_from(words).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ValueValidation, "{error}");
        }
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
