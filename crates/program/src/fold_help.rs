//! Folds the text below the options of a help to the terminal's width. Clap would fold commands, which then cannot be pasted, and
//! fold lines that the source has already folded.

use clap::Command;

use crate::fold::{fold, fold_words, is_whole};
use crate::print::width;

/// Folds this text in the command and all its subcommands. Also sets clap's width: if the help is piped to another program, clap
/// would use the width of the terminal on standard error.
#[must_use]
pub fn with_folded_help(command: Command) -> Command {
    let width = width();
    folded(command.term_width(width), width)
}

fn folded(mut command: Command, width: usize) -> Command {
    if let Some(help) = command.get_after_help().map(ToString::to_string) {
        let short = summary(&help);
        if short != help {
            command = command.after_long_help(fold_help(&help, width));
        }
        command = command.after_help(fold_help(&short, width));
    }
    let names: Vec<String> =
        command.get_subcommands().map(|inner| inner.get_name().to_owned()).collect();
    names
        .into_iter()
        .fold(command, |command, name| command.mut_subcommand(name, |inner| folded(inner, width)))
}

/// The text for -h. Omits the reference of JSON members and of their names, which is in --help and the man page.
fn summary(help: &str) -> String {
    let is_kept = |part: &&str| !part.starts_with("Members of ") && !part.starts_with("Names in ");
    help.split("\n\n").filter(is_kept).collect::<Vec<_>>().join("\n\n")
}

/// Joins each paragraph into one line and folds it. An indented line is an example, and stays as it is.
fn fold_help(help: &str, width: usize) -> String {
    let is_prose = |line: &str| line.starts_with(|c: char| !c.is_whitespace());
    let lines: Vec<&str> = help.lines().collect();
    let paragraphs = lines.chunk_by(|a, b| is_prose(a) && is_prose(b) && !a.ends_with(':'));
    let folded = paragraphs.map(|lines| match lines {
        [line] if is_whole(line) => fold_command(line, width),
        [line] if !is_prose(line) => fold(line, width).into_owned(),
        lines => fold_words(&lines.join(" "), 0, width),
    });
    folded.collect::<Vec<_>>().join("\n")
}

/// Folds a command into several lines that a shell accepts.
fn fold_command(command: &str, width: usize) -> String {
    const MORE: &str = " \\";
    let indent = command.len() - command.trim_start().len();
    let mut out = " ".repeat(indent);
    let mut column = indent;
    let words = words(command.trim_start());
    for (place, word) in words.iter().enumerate() {
        let is_last = place + 1 == words.len();
        let room = width.saturating_sub(if is_last { 0 } else { MORE.len() });
        if place > 0 && column + 1 + word.chars().count() > room && *word != "\\" {
            column = indent + 4;
            out += &format!("{MORE}\n{:column$}", "");
        } else if place > 0 {
            out.push(' ');
            column += 1;
        }
        out += word;
        column += word.chars().count();
    }
    out
}

/// Splits a command at spaces outside quotes.
fn words(command: &str) -> Vec<&str> {
    let mut quote = None;
    let is_gap = move |c: char| {
        match quote {
            Some(open) if c == open => quote = None,
            None if matches!(c, '\'' | '"') => quote = Some(c),
            _ => {}
        }
        c == ' ' && quote.is_none()
    };
    command.split(is_gap).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_command_can_still_be_pasted() {
        let command = "  sweetspot sweep a --over 'b = 1,2,3' --seeds 4";
        let folded = "  sweetspot sweep a --over \\\n      'b = 1,2,3' --seeds 4";
        assert_eq!(fold_command(command, 28), folded);
        assert_eq!(fold_command(command, 80), command);
    }

    #[test]
    fn a_continued_line_stays_continued() {
        assert_eq!(fold_command("  sweetspot run a \\", 19), "  sweetspot run a \\");
        assert_eq!(fold_command("  sweetspot run abc \\", 19), "  sweetspot run \\\n      abc \\");
    }

    #[test]
    fn only_the_long_help_lists_json_members() {
        let help = "Examples:\n  sweetspot top\n\nMembers of --json:\n  a, b  numbers";
        let mut command = with_folded_help(Command::new("top").about("Rows").after_help(help));
        let [short, long] = [command.render_help(), command.render_long_help()];
        assert!(!short.to_string().contains("Members") && short.to_string().contains("Examples"));
        assert!(long.to_string().contains("Members of --json"), "{long}");
    }

    #[test]
    fn paragraphs_are_folded_and_command_lists_keep_their_lines() {
        let help = "One two three\nfour.\n\nExamples:\n  sweetspot top\n  sweetspot ui";
        let folded = "One two\nthree\nfour.\n\nExamples:\n  sweetspot top\n  sweetspot ui";
        assert_eq!(fold_help(help, 9).replace(" \\\n      ", " "), folded);
    }
}
