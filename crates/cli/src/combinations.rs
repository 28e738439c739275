//! Rejects options that have no effect in combination with the other given options.
//!
//! Clap's `requires` is not enough: it is ignored if the required option conflicts with another given option, as `--clients`
//! does with `--dir` in `serve --dir in --state here`. Only options on the command line are checked: values from a
//! configuration file or the environment are defaults, which some command lines do not need.

use std::ffi::OsStr;

use clap::ArgMatches;
use clap::parser::ValueSource;

use crate::ends::has_port;
use crate::verbs::copy::Operand;
use crate::verbs::transfer::is_ticket;

/// The condition under which an option has an effect.
enum Condition {
    /// With at least one of these options.
    With(&'static [&'static str]),
    /// Without any of these options.
    Without(&'static [&'static str]),
    /// If this function returns true; the text describes the condition.
    If(fn(&ArgMatches) -> bool, &'static str),
}

use Condition::{If, With, Without};

/// A verb, some of its options, and the condition under which they have an effect.
type Rule = (&'static str, &'static [&'static str], Condition);

const RULES: &[Rule] = &[
    ("serve", &["state"], With(&["clients"])),
    ("serve", &["verbose"], Without(&["quiet"])),
    (
        "send",
        &["offer", "one_try", "listen", "advertise", "spoken_code"],
        If(waits_for_receiver, "without a ticket"),
    ),
    ("send", &["identity"], Without(&["code"])),
    ("send", &["verbose"], Without(&["quiet"])),
    ("receive", &["identity"], Without(&["code"])),
    ("receive", &["verbose"], Without(&["quiet"])),
    ("copy", &["ssh", "jump", "remote_program", "port", "via"], If(is_remote, "with another host")),
    (
        "copy",
        &["port"],
        If(|m| !has_value(m, "via", &["reverse", "ssh"]), "with --via auto or direct"),
    ),
    (
        "copy",
        &["streams", "sizing", "congestion"],
        If(|m| !has_value(m, "via", &["ssh"]), "outside ssh, without --via ssh"),
    ),
    ("copy", &["verbose"], Without(&["quiet"])),
    ("emulate", &["trace_up", "trace_down"], With(&["path"])),
    ("emulate", &["certificate"], Without(&["self_test", "list"])),
    ("measure", &["series", "times"], With(&["watch"])),
    ("measure", &["gentle", "direction", "quick", "scenario"], If(knows_far_end, "with a ticket")),
    ("measure", &["budget", "ticket_file", "code", "identity"], If(knows_far_end, "with a ticket")),
    ("measure", &["identity"], Without(&["code"])),
    ("top", &["rows"], With(&["once", "json"])),
];

/// Checks the options on the command line of `matches`. The error names an option without effect.
pub fn check(matches: &ArgMatches) -> Result<(), String> {
    let Some((verb, given)) = matches.subcommand() else { return Ok(()) };
    let rules = RULES.iter().filter(|(of, ..)| *of == verb);
    for (_, options, condition) in rules {
        for option in options.iter().filter(|option| is_given(given, option)) {
            let why = match condition {
                With(required) if !required.iter().any(|other| is_present(given, other)) => {
                    format!("with {}", listed(required))
                }
                Without(required) if required.iter().any(|other| is_present(given, other)) => {
                    format!("without {}", listed(required))
                }
                If(holds, words) if !holds(given) => (*words).to_owned(),
                _ => continue,
            };
            return Err(format!("{} has an effect only {why}; leave it out", long(option)));
        }
    }
    Ok(())
}

fn is_given(matches: &ArgMatches, option: &str) -> bool {
    matches.value_source(option) == Some(ValueSource::CommandLine)
}

/// Whether the option is set, by the command line or a default. An unset flag has its default value, so flags are checked by
/// value.
fn is_present(matches: &ArgMatches, option: &str) -> bool {
    match matches.try_get_one::<bool>(option) {
        Ok(flag) => flag.copied().unwrap_or(false),
        Err(_) => matches.contains_id(option),
    }
}

fn long(option: &str) -> String {
    format!("--{}", option.replace('_', "-"))
}

fn listed(options: &[&str]) -> String {
    options.iter().map(|option| long(option)).collect::<Vec<_>>().join(" or ")
}

/// The values of `option`, as typed.
fn typed<'a>(matches: &'a ArgMatches, option: &str) -> impl DoubleEndedIterator<Item = &'a OsStr> {
    matches.get_raw(option).into_iter().flatten()
}

fn has_value(matches: &ArgMatches, option: &str, values: &[&str]) -> bool {
    typed(matches, option).any(|typed| values.iter().any(|value| typed == *value))
}

/// Whether `send` offers files and waits for a receiver, instead of sending them to a listener.
fn waits_for_receiver(matches: &ArgMatches) -> bool {
    let has_ticket = typed(matches, "paths").next_back().is_some_and(is_ticket);
    !has_ticket && !matches.contains_id("ticket_file") && !matches.contains_id("code")
}

/// Whether an operand of `copy` is on another host. Invalid operands are reported later.
fn is_remote(matches: &ArgMatches) -> bool {
    let is_here = |typed: &OsStr| matches!(Operand::parse(typed), Ok(Operand::Local(_)));
    !typed(matches, "operands").all(is_here)
}

/// Whether the far end of `measure` runs this program: unlike HOST:PORT, a ticket does not end in a port.
fn knows_far_end(matches: &ArgMatches) -> bool {
    !typed(matches, "far_end").any(|typed| has_port(&typed.to_string_lossy()))
}
