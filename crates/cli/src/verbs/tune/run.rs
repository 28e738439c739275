use std::process::{Command, ExitCode};

use sweetspot_kernel::KernelError;
use sweetspot_linux::signals::{self, Supervisor};
use sweetspot_tune::{Chosen, Leases, ProcessFamily, Scope, Tuner};

use super::inside::Inside;
use super::options::{Common, EventLog, GoalOption, Via};
use super::steer::{Until, steer};
use super::under_guard;
use crate::verbs::{Ending, Fallible};

/// A shell's exit code for a command that does not exist.
const COMMAND_NOT_FOUND: u8 = 127;

/// Run a command, and tune its connections and its children's
///
/// Via bpf (root) the command runs in a cgroup of its own. Via pidfd this needs no privileges,
/// because a process may access its children's sockets. The exit code is COMMAND's, or 128 + n after signal n.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  sweetspot tune run -- curl -O https://example.org/dataset.tar
  sweetspot tune run --send -- rsync -a data/ host:/backup

Exit codes: 0 COMMAND succeeded; 1 tuning could not start; 2 the command line is
wrong; 127 COMMAND was not found. Any other code is COMMAND's own.")]
pub struct TuneRunArguments {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    goal: GoalOption,

    /// The command to run
    #[arg(last = true, value_name = "COMMAND", required = true)]
    command: Vec<String>,
}

pub fn run(arguments: TuneRunArguments) -> Ending {
    let inside = match arguments.common.inside(Via::Auto, Inside::own_cgroup) {
        // Its programs see this command, too.
        Err(KernelError::Busy { program, .. }) if !arguments.common.names_a_way() => {
            err!(
                "sweetspot: another tuner is active here (BPF program {program}), and tunes this command"
            );
            return run_alone(&arguments.command).map(ExitCode::from);
        }
        inside => inside?,
    };
    arguments.common.tell_mechanism(Via::Auto, inside.as_ref());
    under_guard(inside, |inside, leases, supervisor| {
        guarded(&arguments, inside, leases, supervisor)
    })
}

/// Runs `command` without tuning it; returns its exit code.
fn run_alone(command: &[String]) -> Fallible<u8> {
    let mut supervisor = Supervisor::new()?;
    match start(command, None)? {
        Some(command) => Ok(supervisor.wait_for(command)?),
        None => Ok(COMMAND_NOT_FOUND),
    }
}

/// Starts `command` in the tuned cgroup and returns its process id, or reports that there is no such program.
fn start(command: &[String], inside: Option<&Inside>) -> Fallible<Option<u32>> {
    let (program, rest) = command.split_first().ok_or("no command was given")?;
    let mut command = Command::new(program);
    signals::unblock_on_exec(command.args(rest));
    if let Some(inside) = inside {
        inside.cgroup().enter_on_exec(&mut command)?;
    }
    match command.spawn() {
        Ok(child) => Ok(Some(child.id())),
        Err(error) => {
            err!("sweetspot: cannot run {program}: {error}; is it installed and in PATH?");
            Ok(None)
        }
    }
}

fn guarded(
    arguments: &TuneRunArguments,
    inside: Option<Inside>,
    leases: Leases,
    mut supervisor: Supervisor,
) -> Fallible<u8> {
    let mut journal = arguments.common.journal()?;
    let options = arguments.common.options()?;
    let Some(command) = start(&arguments.command, inside.as_ref())? else {
        return Ok(COMMAND_NOT_FOUND);
    };
    let goal = arguments.goal.goal;
    match inside {
        Some(inside) => {
            let scope = inside.scope(Chosen::All(goal));
            tune(Tuner::new(scope, options, leases), &mut supervisor, &mut journal, command)
        }
        None => {
            let scope = ProcessFamily::new(command, goal);
            tune(Tuner::new(scope, options, leases), &mut supervisor, &mut journal, command)
        }
    }
}

/// Tunes until `command` ends; returns its exit code.
fn tune<S: Scope>(
    mut tuner: Tuner<S>,
    supervisor: &mut Supervisor,
    journal: &mut EventLog,
    command: u32,
) -> Fallible<u8> {
    match steer(&mut tuner, supervisor, journal, &Until::CommandEnds(command)) {
        Ok(code) => {
            journal.summarise();
            Ok(code)
        }
        Err(error) => {
            // Tuning fails; the command must not.
            tuner.lift("tuning failed");
            err!("sweetspot: {error}; the command continues untuned");
            Ok(supervisor.wait_for(command)?)
        }
    }
}
