use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::UNIX_EPOCH;

use clap_mangen::Man;
use clap_mangen::roff::{Inline, Roff, bold, italic, roman};

use super::help_text::Help;
use super::scenario_page;
use crate::settings;
use crate::verbs::Ending;
use sweetspot_program::print::Shown;
use sweetspot_program::usage_error::UsageError;
use sweetspot_program::whole_file;
use sweetspot_protocol::clients::rfc3339;
use sweetspot_units::{Duration, Time};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  sweetspot generate man man && man -l man/man1/sweetspot.1
  sweetspot generate man ~/.local/share/man")]
pub struct GenerateManArguments {
    /// Directory to write them to, in man1, man5 and man7 as MANPATH needs them; created if missing
    dir: PathBuf,
}

/// The overview page, for the parts common to all verbs.
const OVERVIEW: &str = include_str!("sweetspot.7");

const TAKES_SCENARIOS: [&str; 4] = ["run", "sweep", "emulate", "window"];

/// Writes the overview, the page on scenarios, a man page for the program, and one for each verb.
pub fn run(arguments: GenerateManArguments, program: clap::Command) -> Ending {
    if arguments.dir == Path::new("-") {
        let why =
            "man: there are several pages, so - cannot print them; name a directory, such as man";
        return Err(UsageError::new(why).into());
    }
    let mut program = program.disable_help_subcommand(true);
    program.build();
    whole_file::make_directory("man:", &arguments.dir)?;
    for section in ["man1", "man5", "man7"] {
        whole_file::make_directory("man:", &arguments.dir.join(section))?;
    }
    let footer = Footer::new();
    let written =
        write_pages(&program, &program, &mut Vec::new(), &footer, &arguments.dir.join("man1"));
    let scenario_page = format!("man5/{}", scenario_page::FILE);
    let overview = overview(&footer);
    let others = [
        ("man7/sweetspot.7", overview.as_str()),
        (scenario_page.as_str(), &scenario_page::text(&footer.date, &footer.source)),
    ];
    let write = |(file, text)| std::fs::write(arguments.dir.join(file), text);
    written.and_then(|()| others.into_iter().try_for_each(write)).map_err(|error| {
        format!(
            "man: cannot write to {}: {error}; name a directory that you may write to",
            arguments.dir.shown()
        )
    })?;
    note!("wrote the man pages to {}", arguments.dir.shown());
    Ok(ExitCode::SUCCESS)
}

/// The text at the bottom of a page.
struct Footer {
    date: String,
    source: String,
}

impl Footer {
    /// The version, and the day on which the program was built.
    fn new() -> Footer {
        // For reproducible packages (https://reproducible-builds.org/specs/source-date-epoch).
        let packaged = std::env::var("SOURCE_DATE_EPOCH").ok().and_then(|text| text.parse().ok());
        let built = || {
            let modified = std::env::current_exe().and_then(std::fs::metadata)?.modified()?;
            modified.duration_since(UNIX_EPOCH).map_err(io::Error::other)
        };
        let seconds = packaged.or_else(|| built().ok().map(|built| built.as_secs()));
        let time = seconds.and_then(|seconds| rfc3339(Time::ZERO + Duration::from_secs(seconds)));
        let date = time.as_deref().and_then(|time| time.split('T').next()).unwrap_or_default();
        Footer { date: date.to_owned(), source: format!("sweetspot {}", env!("CARGO_PKG_VERSION")) }
    }
}

/// The overview page with its title and its exit codes.
fn overview(footer: &Footer) -> String {
    let mut title = Roff::new();
    title.control("TH", ["sweetspot", "7", &footer.date, &footer.source, "Overview"]);
    let mut codes = Roff::new();
    exit_status(&mut codes, &Help::default(), &[]);
    OVERVIEW
        .replace("@TITLE@", title.to_roff().trim_end())
        .replace("@EXIT_STATUS@", codes.to_roff().trim_end())
}

fn write_pages(
    program: &clap::Command,
    command: &clap::Command,
    verb: &mut Vec<String>,
    footer: &Footer,
    directory: &Path,
) -> io::Result<()> {
    for inner in visible(command) {
        verb.push(inner.get_name().to_owned());
        write_pages(program, inner, verb, footer, directory)?;
        verb.pop();
    }
    let page =
        Man::new(command.clone()).date(&footer.date).source(&footer.source).manual("Sweetspot");
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
    environment(&mut rest, command, &help, verb);
    files(&mut rest, command, verb, help.files.as_deref());
    notes(&mut rest, &help.notes);
    if !help.examples.is_empty() {
        rest.control("SH", ["EXAMPLES"]);
        literally(&mut rest, help.examples.iter().map(String::as_str));
    }
    rest.control("SH", ["SEE ALSO"]);
    let mut others = vec![bold("sweetspot"), roman("(7)")];
    for name in related(program, verb) {
        others.extend([roman(", "), bold(name), roman("(1)")]);
    }
    let takes_scenarios = TAKES_SCENARIOS.contains(&verb.last().map_or("", String::as_str));
    if verb.is_empty() || takes_scenarios {
        others.extend([roman(", "), bold("sweetspot-scenario"), roman("(5)")]);
    }
    rest.text(others);
    rest.to_writer(&mut text)?;
    std::fs::File::create(directory.join(page.get_filename()))?.write_all(&text)
}

fn visible(command: &clap::Command) -> impl Iterator<Item = &clap::Command> {
    command.get_subcommands().filter(|inner| !inner.is_hide_set())
}

/// Related pages. For the program: the pages of all verbs. For a verb: the verbs below it and the others with its purpose. For a
/// verb below another: its parent and siblings.
fn related(program: &clap::Command, verb: &[String]) -> Vec<String> {
    let names = |command| visible(command).map(|inner| inner.get_name().to_owned()).collect();
    let all: Vec<String> = names(program);
    let page = |name: &String| format!("sweetspot-{name}");
    match verb {
        [] => all.iter().map(page).collect(),
        [verb] => {
            let inner: Vec<String> = program.find_subcommand(verb).map(names).unwrap_or_default();
            let inner = inner.iter().map(|inner| format!("sweetspot-{verb}-{inner}"));
            let place = |name: &str| all.iter().position(|other| other == name);
            let groups = crate::GROUPS
                .iter()
                .filter_map(|(_, first, last)| Some(&all[place(first)?..=place(last)?]));
            let own = groups.into_iter().find(|group| group.contains(verb)).unwrap_or_default();
            inner.chain(own.iter().filter(|other| *other != verb).map(page)).collect()
        }
        [parent, verb, ..] => {
            let siblings: Vec<String> =
                program.find_subcommand(parent).map(names).unwrap_or_default();
            let siblings = siblings.iter().filter(|other| *other != verb);
            let below = siblings.map(|other| format!("sweetspot-{parent}-{other}"));
            std::iter::once(page(parent)).chain(below).collect()
        }
    }
}

/// The synopsis: the verb, its options with their values, then the rest of the usage (operands, verbs, required options).
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

/// An option in brackets; empty for options that the usage already names.
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

/// An exit code, and the verbs that may end with it; an empty list stands for all verbs.
struct Code {
    code: &'static str,
    meaning: &'static str,
    verbs: &'static [&'static str],
}

const CODES: [Code; 8] = [
    Code { code: "0", meaning: "success", verbs: &[] },
    Code {
        code: "1",
        meaning: "failure, and one line on standard error names the thing, the reason and the next step",
        verbs: &[],
    },
    Code {
        code: "2",
        meaning: "the command line, an environment variable or the configuration file is wrong",
        verbs: &[],
    },
    Code {
        code: "3",
        meaning: "no closed form covers the scenario (--engine theory)",
        verbs: &["run", "sweep"],
    },
    Code {
        code: "23",
        meaning: "some files failed, as in rsync(1)",
        verbs: &["copy", "send", "receive", "serve"],
    },
    Code {
        code: "125",
        meaning: "tuning failed; the command may not have run",
        verbs: &["tune run"],
    },
    Code { code: "126", meaning: "the command cannot be executed", verbs: &COMMANDS },
    Code { code: "127", meaning: "the command was not found", verbs: &COMMANDS },
];

/// Verbs that run a command and end with its exit code.
const COMMANDS: [&str; 2] = ["emulate", "tune run"];

/// Exit codes from the verb's help, or from the table. The page of the program has the whole table.
fn exit_status(page: &mut Roff, help: &Help, verb: &[String]) {
    page.control("SH", ["EXIT STATUS"]);
    let name = verb.join(" ");
    let listed = CODES.iter().filter(|code| match verb {
        [] => true,
        _ => code.verbs.is_empty() || code.verbs.contains(&name.as_str()),
    });
    let of_table = listed.map(|Code { code, meaning, verbs }| match verb {
        [] if !verbs.is_empty() => format!("{code} {}: {meaning}", verbs.join(", ")),
        _ => format!("{code} {meaning}"),
    });
    // The page's last line already has the exit codes after a signal.
    let is_own = |code: &&str| !code.starts_with("128+N");
    let of_help = |codes: &String| {
        codes.trim_end_matches('.').split("; ").filter(is_own).map(str::to_owned).collect()
    };
    let entries: Vec<String> = help.exit_codes.as_ref().map_or_else(|| of_table.collect(), of_help);
    for entry in entries {
        match entry.split_once(' ') {
            Some((code, meaning)) if code.parse::<u8>().is_ok() => {
                page.control("TP", []);
                page.text([bold(code)]);
                page.text([roman(meaning)]);
            }
            _ => {
                page.text([roman(entry)]);
            }
        }
    }
    page.control("PP", []);
    if verb.is_empty() {
        let verbs = COMMANDS.join(" and ");
        page.text([roman(format!("Otherwise {verbs} end with the exit code of their command."))]);
    }
    let says_so = |codes: &String| ["128 + n", "a signal ended"].iter().any(|w| codes.contains(w));
    if !help.exit_codes.as_ref().is_some_and(says_so) {
        page.text([roman("After signal n: 128 + n.")]);
    }
}

/// Whether the verb has its own options, not only verbs below it.
fn has_options(command: &clap::Command) -> bool {
    command.get_opts().any(|option| !option.is_global_set() && option.get_id() != "help")
}

fn environment(page: &mut Roff, command: &clap::Command, help: &Help, verb: &[String]) {
    page.control("SH", ["ENVIRONMENT"]);
    page.text(help.environment.iter().map(roman).collect::<Vec<_>>());
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
    if verb.is_empty() || has_options(command) {
        // The name of a variable includes the verb.
        let any = ["VERB".to_owned()];
        let own = settings::variable(if verb.is_empty() { &any } else { verb }, "OPTION");
        let words =
            "The default of an option; write hyphens as underscores. Flags take true or false.";
        entry(own, words.to_owned());
    }
    let has = |long: &str| command.get_arguments().any(|option| option.get_long() == Some(long));
    for common in settings::COMMON.into_iter().filter(|common| verb.is_empty() || has(common)) {
        let words = format!("The default of --{common} of every verb that has it.");
        entry(settings::variable(&[], common), words);
    }
    entry(
        settings::CONFIG_VARIABLE.to_owned(),
        "The configuration file; if empty, no file is read.".to_owned(),
    );
    entry("NO_COLOR".to_owned(), "If set and not empty, disables colours.".to_owned());
}

/// The verb's own file, if its help names one, and the configuration file.
fn files(page: &mut Roff, command: &clap::Command, verb: &[String], own: Option<&str>) {
    page.control("SH", ["FILES"]);
    if let Some((path, purpose)) = own.and_then(|own| own.split_once(' ')) {
        page.control("TP", []);
        page.text([bold(path)]);
        page.text([roman(purpose)]);
    }
    page.control("TP", []);
    page.text([bold("~/.config/sweetspot/config.toml")]);
    let table = match verb {
        [] => ", in a table for each verb".to_owned(),
        verb if has_options(command) => format!(", in its table [{}]", verb.join(".")),
        _ => " of every verb".to_owned(),
    };
    page.text([roman(format!(
        "Defaults of options{table}. XDG_CONFIG_HOME names another directory."
    ))]);
}

/// The remaining paragraphs: prose is wrapped for the reader's width, lists are kept as they are.
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

    /// The synopsis of a verb, without font commands.
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

    /// Calls `look` with the help and the names of each verb.
    fn each(command: &clap::Command, verb: &mut Vec<String>, look: &mut dyn FnMut(&Help, &str)) {
        look(&Help::of(command), &verb.join(" "));
        for inner in visible(command) {
            verb.push(inner.get_name().to_owned());
            each(inner, verb, look);
            verb.pop();
        }
    }

    #[test]
    fn the_exit_code_table_agrees_with_the_help_of_each_verb() {
        let mut seen = 0;
        each(&crate::program(), &mut Vec::new(), &mut |help, verb| {
            let Some(codes) = &help.exit_codes else { return };
            seen += 1;
            let of_help: Vec<&str> =
                codes.split("; ").filter_map(|entry| entry.split(' ').next()).collect();
            for Code { code, verbs, .. } in CODES.iter().filter(|code| !code.verbs.is_empty()) {
                assert_eq!(of_help.contains(code), verbs.contains(&verb), "{verb}: {code}");
            }
            let is_known = |code: &&str| CODES.iter().any(|known| known.code == *code);
            let numbers = of_help.iter().filter(|code| code.parse::<u8>().is_ok());
            assert!(numbers.into_iter().all(is_known), "{verb}: {codes}");
        });
        assert!(seen >= 6, "{seen} verbs");
    }

    #[test]
    fn the_overview_repeats_the_exit_codes_and_has_a_footer() {
        let footer = Footer { date: "2026-11-30".to_owned(), source: "sweetspot 0.1.0".to_owned() };
        let overview = overview(&footer);
        let mut page = Roff::new();
        exit_status(&mut page, &Help::default(), &[]);
        assert!(overview.contains(page.to_roff().trim_end()), "{overview}");
        let title = overview.lines().find(|line| line.starts_with(".TH")).unwrap_or_default();
        assert!(title.contains("2026\\-11\\-30") || title.contains("2026-11-30"), "{title}");
        assert!(title.contains("sweetspot 0.1.0"), "{title}");
        assert!(!overview.contains("@TITLE@") && !overview.contains("@EXIT"), "{overview}");
    }

    #[test]
    fn the_serve_page_lists_signal_exit_codes_once() {
        let program = crate::program();
        let help = Help::of(program.find_subcommand("serve").expect("a verb"));
        let mut page = Roff::new();
        exit_status(&mut page, &help, &["serve".to_owned()]);
        assert_eq!(page.to_roff().matches("128").count(), 1, "{}", page.to_roff());
    }

    #[test]
    fn each_page_refers_to_related_verbs() {
        let program = crate::program();
        let of = |verb: &[&str]| {
            related(&program, &verb.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
        };
        for other in ["sweetspot-run", "sweetspot-sweep", "sweetspot-demo"] {
            assert!(of(&["report"]).contains(&other.to_owned()), "{:?}", of(&["report"]));
        }
        assert_eq!(of(&["tune", "undo"])[..2], ["sweetspot-tune", "sweetspot-tune-run"]);
        assert!(!of(&["report"]).contains(&"sweetspot-report".to_owned()));
    }

    #[test]
    fn prose_is_refilled_and_lists_keep_their_lines() {
        let mut page = Roff::new();
        notes(&mut page, &["One\ntwo.".to_owned(), "Keys:\n  q  quit".to_owned()]);
        let text = page.to_roff();
        let expected = ".SH NOTES\n.PP\nOne two.\n.PP\n.EX\nKeys:\nq  quit\n.EE\n";
        assert!(text.ends_with(expected), "{text}");
    }

    #[test]
    fn a_synopsis_shows_option_values_and_the_command_after_dashes() {
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
