use sweetspot_linux::live::{BorrowError, ProcessHandle};
use sweetspot_linux::signals::Supervisor;
use sweetspot_tune::{Leases, ProcessFamily, TuneError, Tuner};

use super::options::Common;
use super::steer::{Until, steer};
use super::under_guard;
use crate::verbs::Ending;

/// Tune the connections of a running process and of its children
///
/// Runs until the process ends or a signal comes. The process must be yours; if
/// kernel.yama.ptrace_scope is not 0, run this as root.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  sweetspot tune attach 4711
  sweetspot tune attach 4711 --send --events events.jsonl")]
pub struct Arguments {
    #[command(flatten)]
    common: Common,

    /// The process
    #[arg(value_name = "PID")]
    pid: u32,
}

pub fn run(arguments: Arguments) -> Ending {
    under_guard(|leases| play(&arguments, leases))
}

fn play(arguments: &Arguments, leases: Leases) -> Result<u8, Box<dyn std::error::Error>> {
    let pid = arguments.pid;
    let process = ProcessHandle::open(pid).map_err(|error| match error.is_over() {
        true => TuneError::NoProcess { pid },
        false => error.into(),
    })?;
    may_borrow(&process).map_err(TuneError::Process)?;
    let mut journal = arguments.common.journal()?;
    let options = arguments.common.options()?;
    let mut supervisor = Supervisor::new()?;
    let mut tuner = Tuner::new(ProcessFamily::new(pid, arguments.common.goal), options, leases);
    let until = Until::ProcessEnds(process);
    Ok(steer(&mut tuner, &mut supervisor, &mut journal, &until)?)
}

/// `Ok` if the sockets of `process` can be duplicated; otherwise there is nothing to tune.
fn may_borrow(process: &ProcessHandle) -> Result<(), BorrowError> {
    match process.sockets() {
        // It has ended: the wait for its end notices that.
        Err(error) if !error.is_over() => Err(error),
        _ => Ok(()),
    }
}
