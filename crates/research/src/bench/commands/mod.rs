//! One file per benchmark: its arguments and its steps. [`selection`] has the arguments shared by
//! several benchmarks.

pub mod advice;
pub mod lab;
pub mod library;
pub mod limits;
pub mod live;
pub mod matrix;
pub mod measure;
pub mod router;
pub mod selection;
pub mod sim;
pub mod stages;
pub mod transfer;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// How a benchmark ends: with an exit code, or with one line that names the problem, the reason and
/// the next step.
pub type Ending = Result<ExitCode, Box<dyn std::error::Error>>;

/// The program to be measured: `SWEETSPOT_BIN`, or `sweetspot` in this program's directory.
pub fn sweetspot() -> Result<PathBuf, String> {
    let beside = || Some(std::env::current_exe().ok()?.with_file_name("sweetspot"));
    let program = std::env::var_os("SWEETSPOT_BIN").map(PathBuf::from).or_else(beside);
    // Absolute, because the far end of a copy starts it in another directory.
    program.and_then(|path| path.canonicalize().ok()).filter(|path| path.is_file()).ok_or_else(
        || {
            "there is no program to measure: build it with make build, or name it in SWEETSPOT_BIN"
                .to_owned()
        },
    )
}

/// Runs `work` in a new subdirectory of `parent`, which is removed afterwards.
pub fn in_scratch<T>(
    parent: &Path,
    work: impl FnOnce(&Path) -> Result<T, String>,
) -> Result<T, String> {
    let scratch = parent.join(format!("sweetspot-research-{}", std::process::id()));
    std::fs::create_dir(&scratch)
        .map_err(|error| format!("cannot make {}: {error}; give --scratch", scratch.display()))?;
    let worked = work(&scratch);
    let _ = std::fs::remove_dir_all(&scratch);
    worked
}
