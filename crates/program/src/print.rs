//! Writes lines to standard output and standard error. The standard library's macros panic on failure, as when a pipe
//! is closed or a disk is full.

use std::fmt::{self, Write as _};
use std::io::{self, Write};
use std::path::Path;
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};

use sweetspot_protocol::{Printable, write_escaped};
use terminal_size::{Height, Width, terminal_size_of};

use crate::fold::fold;

/// Writes a line to standard output. On failure the program ends with an error. A closed pipe (`| head`) is not an
/// error: its reader has seen enough.
#[macro_export]
macro_rules! out {
    ($($words:tt)*) => { $crate::print::out(format_args!($($words)*)) };
}

/// Writes a line to standard error; failures are ignored.
#[macro_export]
macro_rules! err {
    ($($words:tt)*) => { $crate::print::err(format_args!($($words)*)) };
}

/// Writes a line to standard error like [`err!`], while another program writes to the same terminal: what that program left on the
/// terminal's last line is cleared.
#[macro_export]
macro_rules! message {
    ($($words:tt)*) => { $crate::print::message(format_args!($($words)*)) };
}

/// Writes a line about progress or another useful fact to standard error, unless `--quiet` is set.
#[macro_export]
macro_rules! note {
    ($($words:tt)*) => { if !$crate::print::is_quiet() { $crate::err!($($words)*) } };
}

static QUIET: AtomicBool = AtomicBool::new(false);

/// Suppresses notes and progress from now on.
pub fn be_quiet() {
    QUIET.store(true, Ordering::Relaxed);
}

/// Whether notes and progress are suppressed.
pub fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// Separates two parts of a line built by [`whole_parts`].
pub const GAP: &str = "  ";

/// As many of the first `parts` as fit completely into `columns`.
pub fn whole_parts(parts: &[impl AsRef<str>], columns: usize) -> String {
    let mut line = String::new();
    for part in parts.iter().map(AsRef::as_ref) {
        let gap = if line.is_empty() { "" } else { GAP };
        if line.chars().count() + gap.len() + part.chars().count() > columns {
            break;
        }
        line = line + gap + part;
    }
    line
}

/// A system error in words, without its number.
pub fn system(error: &io::Error) -> String {
    let text = error.to_string();
    let number = error.raw_os_error().map(|code| format!(" (os error {code})"));
    number.and_then(|number| text.strip_suffix(&number)).unwrap_or(&text).to_owned()
}

/// Implements the macro `out!`.
pub fn out(words: fmt::Arguments<'_>) {
    if let Err(error) = try_out(words) {
        err!("sweetspot: {error}");
        process::exit(1);
    }
}

/// Writes a line to standard output. Returns the error, for callers that must clean up first.
pub fn try_out(words: fmt::Arguments<'_>) -> Result<(), String> {
    out_while_read(words).map(drop)
}

/// Writes a line to standard output, for unlimited output. Returns `false` if the reader has closed the pipe.
pub fn out_while_read(words: fmt::Arguments<'_>) -> Result<bool, String> {
    write_out(&folded(words, columns(terminal_size_of(io::stdout()))))
}

/// Writes a line to standard output without folding, because a program or a shell will read it.
pub fn out_unfolded(text: &str) -> Result<(), String> {
    write_out(&Harmless(format_args!("{text}")).to_string()).map(drop)
}

fn write_out(line: &str) -> Result<bool, String> {
    let mut stdout = io::stdout().lock();
    match writeln!(stdout, "{line}").and_then(|()| stdout.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => {
            Err(format!("cannot write to standard output: {}; send it elsewhere", system(&error)))
        }
    }
}

/// Implements the macro `err!`.
pub fn err(words: fmt::Arguments<'_>) {
    let line = folded(words, columns(terminal_size_of(io::stderr())));
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// See [`message!`](crate::message).
pub fn message(words: fmt::Arguments<'_>) {
    let columns = columns(terminal_size_of(io::stderr()));
    let clear = if columns.is_some() { "\r\x1b[K" } else { "" };
    let line = folded(words, columns);
    let _ = writeln!(io::stderr().lock(), "{clear}{line}");
}

/// The columns of a terminal of this size; `None` if there is no terminal, or its size is unknown.
fn columns(size: Option<(Width, Height)>) -> Option<usize> {
    size.map(|(Width(columns), _)| columns.into()).filter(|columns| *columns > 0)
}

/// An escaped line, folded to the terminal's width if there is a terminal.
fn folded(words: fmt::Arguments<'_>, columns: Option<usize>) -> String {
    let line = Harmless(words).to_string();
    match columns {
        Some(columns) => fold(&line, columns).into_owned(),
        None => line,
    }
}

/// The width of prose on standard output: 80, or the terminal's width if that is smaller.
pub fn width() -> usize {
    columns(terminal_size_of(io::stdout())).map_or(WIDTH, |columns| columns.min(WIDTH))
}

/// Clears the terminal on standard output before new output.
pub fn clear_screen() {
    let _ = io::stdout().lock().write_all(b"\x1b[H\x1b[J");
}

/// Text without terminal control sequences, even if a peer chose part of it. Everything except line ends and tabs is
/// escaped as in [`sweetspot_protocol::Printable`]. The escapes are JSON's, so that a JSON document keeps its meaning.
pub struct Harmless<'a>(pub fmt::Arguments<'a>);

impl fmt::Display for Harmless<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Escaping(f).write_fmt(self.0)
    }
}

struct Escaping<'a, 'b>(&'a mut fmt::Formatter<'b>);

impl fmt::Write for Escaping<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if text.bytes().all(|b| matches!(b, b' '..=b'~' | b'\n' | b'\t')) {
            return self.0.write_str(text);
        }
        text.chars().try_for_each(|c| match c {
            '\n' | '\t' => self.0.write_char(c),
            c => write_escaped(c, self.0),
        })
    }
}

/// A path in printable form.
pub trait Shown {
    /// The path with everything escaped that could control a terminal or look like another line.
    fn shown(&self) -> Printable<'_, Path>;
}

impl Shown for Path {
    fn shown(&self) -> Printable<'_, Path> {
        Printable(self)
    }
}

/// The width of prose unless a terminal is narrower.
const WIDTH: usize = 80;

/// Prints words on lines of at most [`width`] columns, with `indent` on all lines after the first.
pub fn wrapped(words: &str, indent: &str) {
    let words: Vec<&str> = words.split_whitespace().collect();
    out!("{}", fold(&format!("{indent}{}", words.join(" ")), width()));
}

/// Prints a line and keeps its spaces, folded as by [`wrapped`].
pub fn spaced(line: &str) {
    out!("{}", fold(line, width()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_json_keeps_its_meaning_and_escapes_terminal_controls() {
        let name = "a\x1b[2J\u{7f}\u{9b}\u{202e}\u{e0001}\n日本";
        let json = serde_json::json!({ "name": name }).to_string();
        let printed = Harmless(format_args!("{json}")).to_string();
        assert!(printed.chars().all(sweetspot_protocol::is_printable), "{printed}");
        let read: serde_json::Value = serde_json::from_str(&printed).unwrap();
        assert_eq!(read["name"], name);
    }

    #[test]
    fn newlines_and_tabs_are_not_escaped() {
        let text = "a\tb\nü\x07";
        assert_eq!(Harmless(format_args!("{text}")).to_string(), "a\tb\nü\\u0007");
    }
}
