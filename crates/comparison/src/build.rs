//! Identifies the build of a program.

use std::path::Path;

use crate::Content;

/// The build of a program: the first digits of its executable's BLAKE3 hash.
pub fn build(program: &Path) -> Result<String, Box<dyn std::error::Error>> {
    Ok(Content::of(program)?.hash.to_hex()[..8].to_owned())
}

/// This program's version and build, e.g. `0.1.0+1234abcd`. With scenario and seed it determines a
/// simulation's result.
pub fn identity() -> Result<String, Box<dyn std::error::Error>> {
    let program = std::env::current_exe()?;
    Ok(format!("{}+{}", env!("CARGO_PKG_VERSION"), build(&program)?))
}
