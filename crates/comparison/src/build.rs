//! Which build a program is.

use std::path::Path;

use crate::Content;

/// Which build a program is: the first digits of its executable's BLAKE3.
pub fn build(program: &Path) -> Result<String, Box<dyn std::error::Error>> {
    Ok(Content::of(program)?.hash.to_hex()[..8].to_owned())
}

/// This program's version and build, e.g. `0.1.0+1234abcd`: what results of simulations follow
/// from besides scenario and seed.
pub fn identity() -> Result<String, Box<dyn std::error::Error>> {
    let program = std::env::current_exe()?;
    Ok(format!("{}+{}", env!("CARGO_PKG_VERSION"), build(&program)?))
}
