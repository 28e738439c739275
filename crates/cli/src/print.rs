//! Writes lines to standard output and standard error. The standard library's macros panic if that
//! fails, because a pipe is closed or a disk is full.

use std::fmt;
use std::io::{self, Write};
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};

/// Writes a line to standard output. If that fails the program ends with an error. A closed pipe
/// (`| head`) is no error: its reader has seen enough.
macro_rules! out {
    ($($words:tt)*) => { $crate::print::out(format_args!($($words)*)) };
}

/// Writes a line to standard error; failures are ignored.
macro_rules! err {
    ($($words:tt)*) => { $crate::print::err(format_args!($($words)*)) };
}

/// Writes a line to standard error that says how work goes on, or what else is worth knowing;
/// `--quiet` leaves it out.
macro_rules! note {
    ($($words:tt)*) => { if !$crate::print::is_quiet() { err!($($words)*) } };
}

static QUIET: AtomicBool = AtomicBool::new(false);

/// Leaves out notes and progress from here on.
pub fn be_quiet() {
    QUIET.store(true, Ordering::Relaxed);
}

/// Whether notes and progress are left out.
pub fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// The function behind the macro `out!`.
pub fn out(words: fmt::Arguments<'_>) {
    if let Err(error) = try_out(words) {
        err!("sweetspot: {error}");
        process::exit(1);
    }
}

/// Writes a line to standard output; an error for callers that must clean up first.
pub fn try_out(words: fmt::Arguments<'_>) -> Result<(), String> {
    out_while_read(words).map(drop)
}

/// Writes a line to standard output, for endless output; `false` if the reader has closed the pipe.
pub fn out_while_read(words: fmt::Arguments<'_>) -> Result<bool, String> {
    let mut stdout = io::stdout().lock();
    match writeln!(stdout, "{words}").and_then(|()| stdout.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(format!("cannot write to standard output: {error}; send it elsewhere")),
    }
}

/// The function behind the macro `err!`.
pub fn err(words: fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr().lock(), "{words}");
}

/// The width of a line.
const WIDTH: usize = 80;

/// Prints words on lines of [`WIDTH`] columns at most, those after the first indented further.
pub fn wrapped(words: &str, indent: &str) {
    let mut line = indent.to_owned();
    for word in words.split_whitespace() {
        let blank = line.trim().is_empty();
        if !blank && line.chars().count() + 1 + word.chars().count() > WIDTH {
            out!("{line}");
            line = format!("{indent}  {word}");
        } else {
            line = if blank { format!("{line}{word}") } else { format!("{line} {word}") };
        }
    }
    out!("{line}");
}
