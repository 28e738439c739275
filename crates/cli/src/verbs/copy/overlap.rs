//! Detects copies of a directory into itself, or over itself, on one host.

use std::fs;
use std::path::{Path, PathBuf};

use sweetspot_program::print::Shown;
use sweetspot_transfer::{NamedThings, Sources};

/// The reason against a copy to `target`: a directory would be copied into itself, or the deletion (`deletes`) would
/// remove a source.
pub fn hazard(sources: &Sources, target: &Path, deletes: bool) -> Option<String> {
    // With a list of names or exclusions, such a copy can be intended: they keep source and target apart.
    if sources.only.is_some() || !sources.exclude.is_empty() {
        return None;
    }
    let into = real(target);
    sources.paths.iter().find_map(|path| {
        let from = fs::canonicalize(path).ok()?;
        if !from.is_dir() {
            let into = if into.is_dir() { into.join(path.file_name()?) } else { into.clone() };
            let is_same = fs::canonicalize(into).is_ok_and(|into| into == from);
            return is_same
                .then(|| format!("{} and its destination are the same file", path.shown()));
        }
        let is_contents = NamedThings::stands_for_contents(path);
        let (path, target) = (path.shown(), target.shown());
        if into == from && is_contents {
            return Some(format!("{path} and {target} are the same directory"));
        }
        if into.starts_with(&from) {
            let why = match into == from {
                true => "the destination is the source".to_owned(),
                false => format!("{target} is inside it"),
            };
            return Some(format!("cannot copy {path} into itself: {why}"));
        }
        let is_removed = deletes && is_contents && from.starts_with(&into);
        is_removed.then(|| format!("{path} is inside {target}, and --delete would remove it there"))
    })
}

/// The path with links resolved, although its last components may not exist yet.
fn real(path: &Path) -> PathBuf {
    let mut rest = Vec::new();
    for above in path.ancestors() {
        let existing = if above.as_os_str().is_empty() { Path::new(".") } else { above };
        if let Ok(full) = fs::canonicalize(existing) {
            return rest.iter().rev().fold(full, |full: PathBuf, name| full.join(name));
        }
        rest.extend(above.file_name());
    }
    path.to_owned()
}
