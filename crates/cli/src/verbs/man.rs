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

/// The overview, with what all verbs share: exit status, environment, files.
const OVERVIEW: &str = include_str!("sweetspot.7");

/// Writes the overview, one man page for the program and one per verb.
pub fn run(arguments: Arguments, program: clap::Command) -> Ending {
    let overview = arguments.dir.join("sweetspot.7");
    let written = clap_mangen::generate_to(program, &arguments.dir);
    written.and_then(|()| std::fs::write(overview, OVERVIEW)).map_err(|error| {
        format!("man: cannot write to {}: {error}; name a directory", arguments.dir.display())
    })?;
    Ok(ExitCode::SUCCESS)
}
