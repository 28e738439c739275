//! Errors for commands that could not be started.

use std::io;
use std::path::Path;

use crate::print::{Shown, system};

/// A shell's exit code for this error (POSIX, Shell Command Language, 2.8.2), and the message: the name, the reason and the next
/// step.
pub fn failed_command(program: &str, error: &io::Error) -> (u8, String) {
    // As if a shell had got a whole command line in quotes.
    let has_spaces = program.contains(char::is_whitespace);
    let quote = if has_spaces { "\"" } else { "" };
    let (code, next) = match error.kind() {
        io::ErrorKind::NotFound if has_spaces => (127, "write each argument as a word of its own"),
        io::ErrorKind::NotFound => (127, "is it installed and in PATH?"),
        _ => (126, "name a program that you may execute"),
    };
    let name = Path::new(program).shown();
    (code, format!("cannot run {quote}{name}{quote}: {}; {next}", system(error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_in_one_word_gets_advice_to_split_it() {
        let missing = io::Error::from_raw_os_error(2);
        let (code, words) = failed_command("ls -l", &missing);
        assert!(words.starts_with("cannot run \"ls -l\": No such file"), "{words}");
        assert!(code == 127 && words.ends_with("; write each argument as a word of its own"));
        assert!(failed_command("ls", &missing).1.starts_with("cannot run ls: "));
    }
}
