//! Words on standard output and standard error. The standard library's macros panic where nobody
//! can be told: a reader that has gone, a full disk.

use std::fmt;
use std::io::{self, Write};
use std::process;

/// A line of what was asked for, on standard output. Where it cannot be written the program ends
/// with an error, unless the reader has gone (`| head`): that one has seen what it wanted.
macro_rules! out {
    ($($words:tt)*) => { $crate::print::out(format_args!($($words)*)) };
}

/// A line for whoever watches, on standard error; lost if that cannot be written.
macro_rules! err {
    ($($words:tt)*) => { $crate::print::err(format_args!($($words)*)) };
}

/// See the macro of this name.
pub fn out(words: fmt::Arguments<'_>) {
    if let Err(error) = try_out(words) {
        err!("sweetspot: {error}");
        process::exit(1);
    }
}

/// The same for who has something to finish first.
pub fn try_out(words: fmt::Arguments<'_>) -> Result<(), String> {
    out_while_read(words).map(drop)
}

/// The same for who tells without end: whether somebody still reads.
pub fn out_while_read(words: fmt::Arguments<'_>) -> Result<bool, String> {
    let mut stdout = io::stdout().lock();
    match writeln!(stdout, "{words}").and_then(|()| stdout.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(format!("cannot write to standard output: {error}; send it elsewhere")),
    }
}

/// See the macro of this name.
pub fn err(words: fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr().lock(), "{words}");
}
