//! Identifies the build of a program.

use std::fs::File;
use std::io;
use std::path::Path;

use crate::print::Shown;

/// The build of a program: the first digits of the BLAKE3 hash of its executable.
pub fn build(program: &Path) -> Result<String, Box<dyn std::error::Error>> {
    let blame = |e: io::Error| format!("cannot read {}: {e}", program.shown());
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(File::open(program).map_err(blame)?).map_err(blame)?;
    Ok(hasher.finalize().to_hex()[..8].to_owned())
}

/// This program's version and build, e.g. `0.1.0+1234abcd`. Together with the scenario and the seed
/// it determines a simulation's result.
pub fn identity() -> Result<String, Box<dyn std::error::Error>> {
    let program = std::env::current_exe()?;
    Ok(format!("{}+{}", env!("CARGO_PKG_VERSION"), build(&program)?))
}
