//! Writes a file atomically.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use crate::print::{Shown, system};
use crate::usage_error::UsageError;

/// Writes `content` to a temporary file beside `path`, syncs it to disk and renames it. A pipe or a device is written directly.
/// An error has the file and the next step.
pub fn write(path: &Path, content: &[u8]) -> Result<(), String> {
    try_write(path, content).map_err(|error| {
        let step = match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                "free some space or name a file elsewhere"
            }
            io::ErrorKind::NotFound => "create the directory first",
            io::ErrorKind::PermissionDenied => "name a file in a directory that you may write to",
            _ => "name another file",
        };
        format!("{}: {}; {step}", path.shown(), system(&error))
    })
}

/// Checks that `path` can be created as a file in an existing directory. Called before long work, so that its result is not lost.
/// `option` is the option with the file.
pub fn check_creatable(option: &str, path: Option<&Path>) -> Result<(), String> {
    let Some(path) = path else { return Ok(()) };
    if path.is_dir() {
        return Err(format!("{option} {}: that is a directory; name a file in it", path.shown()));
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    match parent.map(fs::metadata) {
        Some(Err(error)) => {
            let error = system(&error);
            Err(format!("{option} {}: {error}; create the directory first", path.shown()))
        }
        Some(Ok(existing)) if !existing.is_dir() => Err(format!(
            "{option} {}: its parent is not a directory; name another file",
            path.shown()
        )),
        _ => Ok(()),
    }
}

/// Checks that the file name `path` of `option` does not have the suffix of another format: it must have none, or one of
/// `suffixes`. `expected` is the text for the error.
pub fn check_extension(
    option: &str,
    path: Option<&Path>,
    suffixes: &[&str],
    expected: &str,
) -> Result<(), UsageError> {
    let Some(path) = path else { return Ok(()) };
    match path.extension() {
        Some(suffix) if !suffixes.iter().any(|one| suffix == *one) => {
            Err(UsageError::new(format!("{option} {}: expected {expected}", path.shown())))
        }
        _ => Ok(()),
    }
}

/// Creates the directory `path` and its parents if they are missing. An error names `option`.
pub fn make_directory(option: &str, path: &Path) -> Result<(), String> {
    fs::create_dir_all(path).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory => {
            format!("{option} {} is not a directory; name another", path.shown())
        }
        _ => {
            let error = system(&error);
            format!("{option} {}: {error}; name a directory that you may write to", path.shown())
        }
    })
}

/// Fails if `output`, the file of `option`, is one of `inputs`, even by another name or a link: the result would replace its own
/// source. Called before anything is written.
pub fn check_not_input(
    option: &str,
    output: Option<&Path>,
    inputs: &[impl AsRef<Path>],
) -> Result<(), UsageError> {
    let Some(output) = output else { return Ok(()) };
    let mut inputs = inputs.iter().map(AsRef::as_ref);
    match inputs.find(|input| are_one_file(output, input)) {
        None => Ok(()),
        Some(input) => Err(UsageError::new(format!(
            "{option} {}: this would overwrite the input {}; name another file",
            output.shown(),
            input.shown()
        ))),
    }
}

/// Fails if `output`, the file of `option`, exists and may have been edited since it was written, unless `force` is set. A pipe
/// or a device has nothing to lose.
pub fn check_overwrite(option: &str, output: Option<&Path>, force: bool) -> Result<(), String> {
    match output {
        Some(output) if !force && output.is_file() => Err(format!(
            "{option} {}: it exists already; name a new file, or overwrite it with --force",
            output.shown()
        )),
        _ => Ok(()),
    }
}

/// Whether both paths lead to the same regular file. A pipe or a device has nothing to lose.
#[cfg(unix)]
fn are_one_file(one: &Path, other: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let identity = |path| {
        let existing = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
        Some((existing.dev(), existing.ino()))
    };
    identity(one).is_some_and(|one| identity(other) == Some(one))
}

#[cfg(not(unix))]
fn are_one_file(one: &Path, other: &Path) -> bool {
    let identity = |path: &Path| fs::canonicalize(path).ok().filter(|path| path.is_file());
    identity(one).is_some_and(|one| identity(other) == Some(one))
}

fn try_write(path: &Path, content: &[u8]) -> io::Result<()> {
    if fs::metadata(path).is_ok_and(|existing| !existing.is_file()) {
        return OpenOptions::new().write(true).open(path)?.write_all(content);
    }
    sweetspot_system::replace(path, content)
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn an_output_path_must_name_a_file_in_an_existing_directory() {
        let place = |path: &str| check_creatable("--out", Some(Path::new(path)));
        assert_eq!(place("/"), Err("--out /: that is a directory; name a file in it".to_owned()));
        assert_eq!(place("."), Err("--out .: that is a directory; name a file in it".to_owned()));
        assert!(place("/nowhere/x").unwrap_err().ends_with("create the directory first"));
        assert!(place("/dev/null/x").unwrap_err().starts_with("--out /dev/null/x: "));
        // A device and a new file are valid destinations.
        assert_eq!((place("/dev/null"), place("new.json")), (Ok(()), Ok(())));
        assert_eq!(check_creatable("--out", None), Ok(()));
    }

    #[test]
    fn an_existing_file_is_overwritten_only_with_force() {
        let directory =
            std::env::temp_dir().join(format!("spares-existing-{}", std::process::id()));
        fs::create_dir(&directory).unwrap();
        let [existing, new] = ["there", "new"].map(|name| directory.join(name));
        fs::write(&existing, "edited").unwrap();
        let spares = |path: &Path, force| check_overwrite("--scenario", Some(path), force);
        let error = spares(&existing, false).unwrap_err();
        assert!(error.ends_with("name a new file, or overwrite it with --force"), "{error}");
        let rest =
            [spares(&existing, true), spares(&new, false), spares(Path::new("/dev/null"), false)];
        assert_eq!(rest, [Ok(()), Ok(()), Ok(())]);
        assert_eq!(check_overwrite("--scenario", None, false), Ok(()));
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn an_output_that_aliases_an_input_is_rejected() {
        let directory = std::env::temp_dir().join(format!("spares-inputs-{}", std::process::id()));
        fs::create_dir(&directory).unwrap();
        let [input, linked, hard, copy] =
            ["input", "linked", "hard", "copy"].map(|name| directory.join(name));
        fs::write(&input, "content").unwrap();
        fs::write(&copy, "content").unwrap();
        symlink(&input, &linked).unwrap();
        fs::hard_link(&input, &hard).unwrap();
        let refused = |output: &Path| {
            check_not_input("--out", Some(output), &[&copy.with_file_name("none"), &input]).err()
        };
        let dotted = directory.join("./input");
        for output in [&input, &linked, &hard, &dotted] {
            let words = refused(output).unwrap().to_string();
            let expected = format!(
                "--out {}: this would overwrite the input {}; name another file",
                output.display(),
                input.display()
            );
            assert_eq!(words, expected);
        }
        assert!(refused(&copy).is_none() && refused(&directory.join("new")).is_none());
        // A device is not a file with content to lose.
        let device = Path::new("/dev/null");
        assert!(check_not_input("--out", Some(device), &[device]).is_ok());
        assert!(check_not_input("--out", None, &[&input]).is_ok());
        fs::remove_dir_all(&directory).unwrap();
    }
}
