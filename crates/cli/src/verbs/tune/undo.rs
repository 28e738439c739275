use std::process::ExitCode;

use sweetspot_tune::lift_leftovers;

use super::inside;
use crate::verbs::Ending;

/// Lift the limits of tuners that were killed together with their guardians
///
/// Tuners record each limit under /run/sweetspot (root) or XDG_RUNTIME_DIR before they set it. A
/// tuner that runs is left alone. Every `tune run`, `attach` and `daemon` does the same at its start.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  sweetspot tune undo

Exit code: 0, also if there was nothing to lift.")]
pub struct TuneUndoArguments {}

pub fn run(_arguments: TuneUndoArguments) -> Ending {
    inside::remove_abandoned();
    out!("{}", words(lift_leftovers()));
    Ok(ExitCode::SUCCESS)
}

/// Says on how many connections limits were lifted.
pub fn words(connections: usize) -> String {
    match connections {
        0 => "killed tuners left no limits".to_owned(),
        1 => "lifted the limits of a killed tuner on 1 connection".to_owned(),
        n => format!("lifted the limits of a killed tuner on {n} connections"),
    }
}
