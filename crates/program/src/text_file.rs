//! Text files that a user names on the command line.

use std::cell::RefCell;
use std::convert::Infallible;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::Fallible;
use crate::bundled;
use crate::print::{Shown, system};
use crate::usage_error::UsageError;
use sweetspot_scenario::with_files;

/// Maximum size of a file, bytes: hand-written files are smaller, and a device may never end.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// The text of a file that is to be `what`; an error names the file, the reason and what to do.
pub fn read(path: &Path, what: &str) -> Fallible<String> {
    text_of(path, bytes(path).map_err(|error| unreadable(path, &error, what))?)
}

/// The error that the file `path`, which is to be `what`, cannot be read: wrong usage if there is no such file.
pub fn unreadable(path: &Path, error: &io::Error, what: &str) -> Box<dyn std::error::Error> {
    let words = format!("{}: {}; name {what}", path.shown(), system(error));
    match error.kind() {
        io::ErrorKind::NotFound => UsageError::new(words).into(),
        _ => words.into(),
    }
}

fn text_of(path: &Path, bytes: Vec<u8>) -> Fallible<String> {
    String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = good.iter().filter(|byte| **byte == b'\n').count() + 1;
        format!("{}: line {line}: it is not UTF-8; save the file as UTF-8", path.shown()).into()
    })
}

/// The text of a scenario file, with the traces that it names, which lie where it does, in their place. A scenario that
/// does not exist is wrong usage in every form.
pub fn scenario(path: &Path) -> Fallible<String> {
    if let Some(name) = path.to_str().and_then(|path| path.strip_prefix('@')) {
        return bundled::scenario(name).map_err(|words| UsageError::new(words).into());
    }
    let name = named(path);
    let (text, directory) = match is_standard_input(path) {
        true => (standard_input()?, Path::new("")),
        false => {
            let what = format!(
                "a scenario file, or @NAME of one that comes with the program{}",
                suggestion(path)
            );
            (read(path, &what)?, path.parent().unwrap_or(Path::new("")))
        }
    };
    if text.trim().is_empty() {
        let next = "write a scenario (man sweetspot-scenario), or try @elephants";
        return Err(UsageError::new(format!("{name}: it is empty; {next}")).into());
    }
    let trace =
        |name: &str| read(&directory.join(name), "a trace in Mahimahi's format or a CSV of rates");
    with_files(&text, trace).map_err(|error| format!("{name}: {error}").into())
}

/// The name of a file, or of standard input, in messages.
pub fn named(path: &Path) -> String {
    match is_standard_input(path) {
        true => "standard input".to_owned(),
        false => path.shown().to_string(),
    }
}

/// Whether `path` is `-`, which stands for standard input.
pub fn is_standard_input(path: &Path) -> bool {
    path == Path::new("-")
}

/// The text on standard input, read once.
fn standard_input() -> Fallible<String> {
    static TEXT: OnceLock<Result<String, String>> = OnceLock::new();
    let text = TEXT.get_or_init(|| {
        read(Path::new("/dev/stdin"), "a scenario on standard input")
            .map_err(|error| error.to_string())
    });
    Ok(text.clone()?)
}

/// The name of the scenario that comes with the program and was probably meant by the file `path`, as a question.
fn suggestion(path: &Path) -> String {
    let name = path.with_extension("");
    let suggestion = name.to_str().filter(|name| !path.exists() && bundled::is_scenario(name));
    suggestion.map_or(String::new(), |name| format!("; did you mean @{name}?"))
}

/// The files that a scenario is read from: its own and its traces; none for @NAME.
pub fn scenario_files(path: &Path) -> Vec<PathBuf> {
    if path.to_str().is_some_and(|path| path.starts_with('@')) || is_standard_input(path) {
        return Vec::new();
    }
    let files = RefCell::new(vec![path.to_owned()]);
    if let Ok(text) = read(path, "a scenario file") {
        let directory = path.parent().unwrap_or(Path::new(""));
        // An invalid scenario names no traces.
        let _ = with_files(&text, |name| {
            files.borrow_mut().push(directory.join(name));
            Ok::<_, Infallible>(String::new())
        });
    }
    files.into_inner()
}

/// The content of a file of any size, or of standard input if `path` is `-`.
pub fn read_any_size(path: &Path) -> io::Result<Vec<u8>> {
    if !is_standard_input(path) {
        return fs::read(path);
    }
    let mut bytes = Vec::new();
    io::stdin().read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "more than 16 MiB"));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_for_a_missing_file_suggests_the_scenario_of_that_name() {
        let wrong = |path: &str| scenario(Path::new(path)).unwrap_err().to_string();
        for path in ["elephants", "elephants.toml"] {
            assert!(wrong(path).ends_with("; did you mean @elephants?"), "{}", wrong(path));
        }
        for path in ["nosuch.toml", "/"] {
            assert!(!wrong(path).contains("did you mean"), "{}", wrong(path));
        }
    }
}
