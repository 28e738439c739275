use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap_mangen::Man;
use clap_mangen::roff::{Inline, Roff, bold, italic, roman};

use super::scenario_page;
use crate::settings;
use crate::verbs::Ending;
use sweetspot_program::print::Shown;
use sweetspot_program::whole_file;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  sweetspot generate man man && man -l man/man1/sweetspot.1
  sweetspot generate man ~/.local/share/man")]
pub struct GenerateManArguments {
    /// Directory to write them to, in man1, man5 and man7 as MANPATH needs them; created if missing
    dir: PathBuf,
}

/// The overview, with the parts common to all verbs.
const OVERVIEW: &str = include_str!("sweetspot.7");

const TAKES_SCENARIOS: [&str; 4] = ["run", "sweep", "emulate", "window"];

/// Writes the overview, the page on scenarios, one man page for the program and one per verb.
pub fn run(arguments: GenerateManArguments, program: clap::Command) -> Ending {
    let mut program = program.disable_help_subcommand(true);
    program.build();
    whole_file::make_directory("man:", &arguments.dir)?;
    for section in ["man1", "man5", "man7"] {
        whole_file::make_directory("man:", &arguments.dir.join(section))?;
    }
    let written = write_pages(&program, &mut Vec::new(), &arguments.dir.join("man1"));
    let scenario_page = format!("man5/{}", scenario_page::FILE);
    let others = [("man7/sweetspot.7", OVERVIEW), (scenario_page.as_str(), &scenario_page::text())];
    let write = |(file, text)| std::fs::write(arguments.dir.join(file), text);
    written.and_then(|()| others.into_iter().try_for_each(write)).map_err(|error| {
        format!(
            "man: cannot write to {}: {error}; name a directory that you may write to",
            arguments.dir.shown()
        )
    })?;
    note!("wrote the man pages into {}", arguments.dir.shown());
    Ok(ExitCode::SUCCESS)
}

fn write_pages(
    command: &clap::Command,
    verb: &mut Vec<String>,
    directory: &Path,
) -> io::Result<()> {
    for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
        verb.push(inner.get_name().to_owned());
        write_pages(inner, verb, directory)?;
        verb.pop();
    }
    let page = Man::new(command.clone());
    let mut text = Vec::new();
    page.render_title(&mut text)?;
    page.render_name_section(&mut text)?;
    let mut usage = Roff::new();
    synopsis(&mut usage, command);
    usage.to_writer(&mut text)?;
    page.render_description_section(&mut text)?;
    page.render_options_section(&mut text)?;
    if command.has_subcommands() {
        page.render_subcommands_section(&mut text)?;
    }
    let help = Help::of(command);
    let mut rest = Roff::new();
    exit_status(&mut rest, &help, verb);
    environment(&mut rest, command, verb);
    files(&mut rest, verb);
    notes(&mut rest, &help.notes);
    if !help.examples.is_empty() {
        rest.control("SH", ["EXAMPLES"]);
        literally(&mut rest, help.examples.iter().map(String::as_str));
    }
    rest.control("SH", ["SEE ALSO"]);
    let mut others = vec![bold("sweetspot"), roman("(7)")];
    if verb.is_empty() {
        for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
            let name = format!("sweetspot-{}", inner.get_name());
            others.extend([roman(", "), bold(name), roman("(1)")]);
        }
        others.extend([roman(", "), bold("sweetspot-scenario"), roman("(5)")]);
    }
    if TAKES_SCENARIOS.contains(&verb.last().map_or("", String::as_str)) {
        others.extend([roman(", "), bold("sweetspot-scenario"), roman("(5)")]);
    }
    rest.text(others);
    rest.to_writer(&mut text)?;
    std::fs::File::create(directory.join(page.get_filename()))?.write_all(&text)
}

/// The verb, its options with their values, and the rest as its usage has it: operands, verbs, required options.
fn synopsis(page: &mut Roff, command: &clap::Command) {
    page.control("SH", ["SYNOPSIS"]);
    let usage = command.clone().render_usage().to_string();
    let name = command.get_bin_name().unwrap_or(command.get_name());
    for (n, line) in usage.trim_start_matches("Usage:").lines().map(str::trim).enumerate() {
        if n > 0 {
            page.control("br", []);
        }
        match line.split_once(" [OPTIONS]") {
            Some((verb, rest)) if verb == name => {
                let mut parts = vec![bold(verb)];
                command.get_arguments().for_each(|option| parts.extend(optional(option)));
                parts.push(roman(rest));
                page.text(parts);
            }
            _ => {
                page.text([bold(line)]);
            }
        }
    }
}

/// An option in brackets; nothing for those that the usage names.
fn optional(option: &clap::Arg) -> Vec<Inline> {
    if option.is_positional() || option.is_hide_set() || option.is_required_set() {
        return Vec::new();
    }
    let short = option.get_short().map(|short| format!("-{short}"));
    let long = option.get_long().map(|long| format!("--{long}"));
    let names: Vec<String> = short.into_iter().chain(long).collect();
    let mut parts = vec![roman(" ["), bold(names.join("|"))];
    if option.get_action().takes_values() {
        let values = option.get_value_names().unwrap_or_default();
        let values: Vec<&str> = values.iter().map(|value| value.as_str()).collect();
        parts.extend([roman(" "), italic(values.join(" "))]);
    }
    parts.push(roman("]"));
    parts
}

/// The text below the options in a verb's help.
#[derive(Default)]
struct Help {
    examples: Vec<String>,
    exit_codes: Option<String>,
    /// The other paragraphs.
    notes: Vec<String>,
}

impl Help {
    fn of(command: &clap::Command) -> Help {
        let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let mut help = Help::default();
        let mut in_examples = false;
        for paragraph in text.split("\n\n").filter(|paragraph| !paragraph.is_empty()) {
            let examples = paragraph.strip_prefix("Examples:\n");
            // A list of examples goes on while lines are indented.
            in_examples = examples.is_some() || in_examples && paragraph.starts_with("  ");
            let lines = || examples.unwrap_or(paragraph).lines().map(str::to_owned);
            if in_examples {
                help.examples.extend(lines());
            } else if let Some(codes) = paragraph.strip_prefix("Exit codes: ") {
                help.exit_codes = Some(codes.split_whitespace().collect::<Vec<_>>().join(" "));
            } else {
                help.notes.push(paragraph.to_owned());
            }
        }
        help
    }
}

const USUAL_CODES: &str = "0 success; 1 failure, and one line on standard error names the thing, the \
    reason and the next step; 2 the command line, a variable or the configuration file is wrong.";

/// Further codes of single verbs, for the page of the program.
const CODES_OF_VERBS: &str = "3 run and sweep --engine theory: no closed form covers the scenario; 23 send, \
    receive and copy: some files failed; 127 emulate and tune run: the command was not found. Otherwise emulate and \
    tune run end with the exit code of their command";

fn exit_status(page: &mut Roff, help: &Help, verb: &[String]) {
    page.control("SH", ["EXIT STATUS"]);
    let usual = match verb {
        [] => format!("{} {CODES_OF_VERBS}", USUAL_CODES.replace("is wrong.", "is wrong;")),
        _ => USUAL_CODES.to_owned(),
    };
    let codes = help.exit_codes.as_deref().unwrap_or(&usual);
    for one in codes.trim_end_matches('.').split("; ") {
        match one.split_once(' ') {
            Some((code, meaning)) if code.parse::<u8>().is_ok() => {
                page.control("TP", []);
                page.text([bold(code)]);
                page.text([roman(meaning)]);
            }
            _ => {
                page.text([roman(one)]);
            }
        }
    }
    page.control("PP", []);
    page.text([roman("After signal n: 128 + n.")]);
}

fn environment(page: &mut Roff, command: &clap::Command, verb: &[String]) {
    page.control("SH", ["ENVIRONMENT"]);
    let mut entry = |name: String, meaning: String| {
        page.control("TP", []);
        page.text([bold(name)]);
        page.text([roman(meaning)]);
    };
    for option in command.get_arguments() {
        if let (Some(name), Some(long)) = (option.get_env(), option.get_long()) {
            entry(name.to_string_lossy().into(), format!("The default of --{long}."));
        }
    }
    let own = match verb {
        // A variable names its verb.
        [] => settings::variable(&["VERB".to_owned()], "OPTION"),
        verb => settings::variable(verb, "OPTION"),
    };
    let options =
        "The default of an option; write hyphens as underscores. Flags take true or false.";
    entry(own, options.to_owned());
    for common in settings::COMMON {
        entry(settings::variable(&[], common), format!("The default of --{common} of every verb."));
    }
    entry(
        settings::CONFIG_VARIABLE.to_owned(),
        "The configuration file; if empty, no file is read.".to_owned(),
    );
    entry("NO_COLOR".to_owned(), "If set and not empty, disables colours.".to_owned());
}

fn files(page: &mut Roff, verb: &[String]) {
    page.control("SH", ["FILES"]);
    page.control("TP", []);
    page.text([bold("~/.config/sweetspot/config.toml")]);
    let table = match verb {
        [] => "a table for each verb".to_owned(),
        verb => format!("its table [{}]", verb.join(".")),
    };
    page.text([roman(format!(
        "Defaults of options, in {table}. XDG_CONFIG_HOME names another directory."
    ))]);
}

/// The paragraphs, if there are any: prose for the reader's width, lists as they are.
fn notes(page: &mut Roff, paragraphs: &[String]) {
    if paragraphs.is_empty() {
        return;
    }
    page.control("SH", ["NOTES"]);
    for paragraph in paragraphs {
        page.control("PP", []);
        if paragraph.lines().any(|line| line.starts_with(' ')) {
            literally(page, paragraph.lines());
        } else {
            page.text([roman(paragraph.replace('\n', " "))]);
        }
    }
}

fn literally<'a>(page: &mut Roff, lines: impl Iterator<Item = &'a str>) {
    page.control("EX", []);
    for line in lines {
        page.text([roman(line.strip_prefix("  ").unwrap_or(line))]);
    }
    page.control("EE", []);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The synopsis of a verb, without fonts.
    fn of(verbs: &[&str]) -> String {
        let mut program = crate::program();
        program.build();
        let mut command = &program;
        for verb in verbs {
            command = command.find_subcommand(verb).expect("a verb");
        }
        let mut page = Roff::new();
        synopsis(&mut page, command);
        let text = page.to_roff();
        [r"\fB", r"\fI", r"\fR"]
            .iter()
            .fold(text, |text, font| text.replace(font, ""))
            .replace(r"\-", "-")
    }

    #[test]
    fn prose_has_the_reader_s_width_and_a_list_its_own_lines() {
        let mut page = Roff::new();
        notes(&mut page, &["One\ntwo.".to_owned(), "Keys:\n  q  quit".to_owned()]);
        let text = page.to_roff();
        let expected = ".SH NOTES\n.PP\nOne two.\n.PP\n.EX\nKeys:\nq  quit\n.EE\n";
        assert!(text.ends_with(expected), "{text}");
    }

    #[test]
    fn a_synopsis_names_the_values_of_options_and_the_command_after_dashes() {
        let window = of(&["advise", "window"]);
        assert!(window.contains("sweetspot advise window"), "{window}");
        assert!(window.contains(" [--congestion "), "{window}");
        let run = of(&["tune", "run"]);
        assert!(run.contains(" -- <COMMAND>..."), "{run}");
        let copy = of(&["copy"]);
        assert!(copy.contains(" [-J|--jump HOST]") && copy.contains(" [--delete]"), "{copy}");
        assert!(copy.trim_end().ends_with("SOURCE... DESTINATION"), "{copy}");
        assert!(!copy.contains(" [-r"), "hidden: {copy}");
    }
}
