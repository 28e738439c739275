//! Errors for commands that could not be started.

use std::io;
use std::path::Path;

use crate::print::{Shown, system};

/// A shell's exit code for this error (POSIX, Shell Command Language, 2.8.2), and the message: the name, the reason and the next
/// step.
/// next step.
pub fn failed_command(program: &str, error: &io::Error) -> (u8, String) {
    let (code, next) = match error.kind() {
        io::ErrorKind::NotFound => (127, "is it installed and in PATH?"),
        _ => (126, "name a program that you may execute"),
    };
    (code, format!("cannot run {}: {}; {next}", Path::new(program).shown(), system(error)))
}
