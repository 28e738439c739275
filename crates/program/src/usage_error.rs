//! Usage errors on one line, like every other error.

use std::error::Error;
use std::fmt;
use std::process::ExitCode;

use clap::error::ErrorKind;

/// The exit code for wrong usage, the same as clap's.
const USAGE_EXIT_CODE: u8 = 2;

/// A usage error that a verb finds after the command line was parsed. Its exit code is 2, as in clap.
#[derive(Debug)]
pub struct UsageError(String);

impl UsageError {
    /// A usage error for this reason; the message gives the next step.
    pub fn new(reason: impl fmt::Display) -> UsageError {
        UsageError(reason.to_string())
    }
}

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for UsageError {}

/// Prints the error with which a verb of `program` failed, as `words`, and returns the exit code.
pub fn failed(program: &str, error: &(dyn Error + 'static), words: &str) -> ExitCode {
    err!("{program}: {words}");
    if error.is::<UsageError>() { ExitCode::from(USAGE_EXIT_CODE) } else { ExitCode::FAILURE }
}

/// Prints a usage error on one line, or the requested help or version.
pub fn answer(error: &clap::Error) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            out!("{}", error.render().to_string().trim_end());
            return ExitCode::SUCCESS;
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            err!("{}", error.render().to_string().trim_end());
        }
        _ => err!("sweetspot: {}", in_one_line(&error.render().to_string())),
    }
    ExitCode::from(USAGE_EXIT_CODE)
}

/// Prints a usage error and returns its exit code.
pub fn reject(error: &str) -> ExitCode {
    failed("sweetspot", &UsageError::new(error), error)
}

/// The standard library's messages for invalid numbers, and clearer ones.
const NUMBERS: [(&str, &str); 4] = [
    ("invalid digit found in string", "expected a whole number"),
    ("cannot parse integer from empty string", "expected a whole number"),
    ("number too large to fit in target type", "the number is too large"),
    ("number would be zero for non-zero type", "expected 1 or more"),
];

/// Joins clap's paragraphs (the error, tips, usage, a reference to the help) into one line.
pub fn in_one_line(rendered: &str) -> String {
    let paragraphs = rendered.trim().split("\n\n").map(|paragraph| {
        let paragraph = with_missing_joined(paragraph);
        let words: Vec<&str> = paragraph.split_whitespace().collect();
        words.join(" ").replace(" tip: ", "; tip: ")
    });
    let mut kept: Vec<String> = paragraphs
        .map(|words| match words.split_once(", ") {
            Some(("For more information", help)) => help.trim_end_matches('.').to_owned(),
            _ => words.trim_start_matches("error: ").to_owned(),
        })
        .map(|words| without_dashes_tip(&words))
        .filter(|words| !words.is_empty() && !words.starts_with("Usage:"))
        .collect();
    if lacks_dashes(rendered) {
        kept.insert(1.min(kept.len()), "write the command after `--`".to_owned());
    }
    let line = with_range_in_words(&kept.join("; "));
    NUMBERS.iter().fold(line, |line, (library, ours)| line.replace(library, ours))
}

/// Joins clap's list of missing arguments, one per line, by "and".
fn with_missing_joined(paragraph: &str) -> String {
    match paragraph.split_once("not provided:\n") {
        Some((before, missing)) => {
            format!("{before}not provided: {}", missing.trim().replace('\n', " and "))
        }
        None => paragraph.to_owned(),
    }
}

/// Removes clap's tip to put `--` before a misspelt option: no verb would understand that option then
/// either.
fn without_dashes_tip(words: &str) -> String {
    let before = words.split_once("tip: to pass '").map_or(words, |(before, _)| before);
    before.trim_end_matches("; ").to_owned()
}

/// Rewrites clap's "0 is not in 1..=100" as "expected a number from 1 to 100".
fn with_range_in_words(line: &str) -> String {
    let parts = || {
        let (before, after) = line.split_once(" is not in ")?;
        let (before, _) = before.rsplit_once(' ')?;
        let (range, rest) = after.split_at(after.find([';', ' ']).unwrap_or(after.len()));
        let (low, high) = range.split_once("..")?;
        let ours = match (high, high.strip_prefix('=')) {
            ("", _) => format!("expected {low} or more"),
            (_, Some(high)) => format!("expected a number from {low} to {high}"),
            (high, None) => format!("expected a number from {low} to below {high}"),
        };
        Some(format!("{before} {ours}{rest}"))
    };
    parts().unwrap_or_else(|| line.to_owned())
}

/// Whether a verb that needs a command after `--` got none, or got its first word without `--`.
fn lacks_dashes(rendered: &str) -> bool {
    let is_missing = rendered.contains("not provided:\n  <COMMAND>");
    let is_before = rendered
        .split_once("unexpected argument '")
        .is_some_and(|(_, argument)| !argument.starts_with('-'));
    rendered.contains("-- <COMMAND>") && (is_missing || is_before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_usage_error_is_one_line_ending_with_the_next_step() {
        let rendered = "error: the following required arguments were not provided:\n  \
            --rate <RATE>\n  --rtt <RTT>\n\nUsage: sweetspot x --rate <RATE>\n\n\
            For more information, try '--help'.\n";
        assert_eq!(
            in_one_line(rendered),
            "the following required arguments were not provided: --rate <RATE> and --rtt <RTT>; try '--help'"
        );
    }

    #[test]
    fn a_range_is_given_in_words() {
        let wrong = |range: &str| {
            in_one_line(&format!(
                "error: invalid value '0' for '--paths <N>': 0 is not in {range}\n\n\
                 For more information, try '--help'.\n"
            ))
        };
        let head = "invalid value '0' for '--paths <N>': expected";
        assert_eq!(wrong("1..=100"), format!("{head} a number from 1 to 100; try '--help'"));
        assert_eq!(wrong("1.."), format!("{head} 1 or more; try '--help'"));
    }

    #[test]
    fn a_misspelt_option_gets_no_tip_to_pass_it_as_a_value() {
        let wrong = |tips: &str| {
            in_one_line(&format!(
                "error: unexpected argument '--pth' found\n\n{tips}\n\n\
                 For more information, try '--help'.\n"
            ))
        };
        let dashes = "  tip: to pass '--pth' as a value, use '-- --pth'";
        assert_eq!(wrong(dashes), "unexpected argument '--pth' found; try '--help'");
        let similar = "  tip: a similar argument exists: '--path'";
        assert_eq!(
            wrong(&format!("{similar}\n{dashes}")),
            "unexpected argument '--pth' found; tip: a similar argument exists: '--path'; try '--help'"
        );
    }

    #[test]
    fn a_command_without_dashes_gets_advice_to_write_them() {
        let wrong = |what: &str| {
            in_one_line(&format!(
                "error: {what}\n\nUsage: sweetspot x [OPTIONS] -- <COMMAND>...\n\n\
                 For more information, try '--help'.\n"
            ))
        };
        assert_eq!(
            wrong("unexpected argument 'curl' found"),
            "unexpected argument 'curl' found; write the command after `--`; try '--help'"
        );
        let missing = "the following required arguments were not provided:\n  <COMMAND>...";
        assert!(wrong(missing).ends_with("; write the command after `--`; try '--help'"));
        assert!(!wrong("unexpected argument '--curl' found").contains("after `--`"));
    }
}
