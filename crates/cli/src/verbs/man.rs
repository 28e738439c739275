use std::path::PathBuf;
use std::process::ExitCode;

use super::Ending;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  mkdir -p man && sweetspot man man && man -l man/sweetspot.1")]
pub struct Arguments {
    /// The directory to write them to; it must exist
    dir: PathBuf,
}

/// Writes one man page for the program and one per verb.
pub fn run(arguments: Arguments, program: clap::Command) -> Ending {
    clap_mangen::generate_to(program, &arguments.dir).map_err(|error| {
        format!("man: cannot write to {}: {error}; name a directory", arguments.dir.display())
    })?;
    Ok(ExitCode::SUCCESS)
}
