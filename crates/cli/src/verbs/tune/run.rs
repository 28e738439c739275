use std::path::Path;
use std::process::{Command, ExitCode};

use sweetspot_kernel::KernelError;
use sweetspot_linux::signals::{self, Supervisor};
use sweetspot_tune::{Chosen, Leases, ProcessFamily, Scope, Tuner};

use super::inside::Inside;
use super::journal::{EventLog, Watched};
use super::options::{Common, GoalOption, Via, via_help};
use super::steer::{Until, steer};
use super::under_guard;
use crate::verbs::{Ending, Fallible};
use sweetspot_program::failed_command;

/// Run a command, and tune its connections and its children's
///
/// Via bpf (root) the command runs in a cgroup of its own. Via pidfd this needs no privileges,
/// because a process may access its children's sockets. At the end it lists the tuned connections (a dry run counts them), and why other bulk
/// transfers (60 kB or more) were not limited. It names the mechanism,
/// and reports that it tuned nothing, only on a terminal, with -v or in a dry run. The exit code is COMMAND's, or 128 + n after signal n.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  sweetspot tune run -- curl -O https://example.org/dataset.tar
  sweetspot tune run --send -- rsync -a data/ host:/backup

Exit codes: COMMAND's own, which may be any number; 2 the command line is wrong;
125 tuning failed, and COMMAND may not have run; 126 COMMAND cannot be executed;
127 COMMAND was not found.

`sweetspot tune --help` explains the actions and the members of --events.")]
#[command(mut_arg("via", |via| via.help(via_help!("auto"))))]
#[command(mut_arg("dry_run", |it| it.help("Run COMMAND untuned, and print what tuning would do")))]
pub struct TuneRunArguments {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    goal: GoalOption,

    /// The command to run
    #[arg(last = true, value_name = "COMMAND", required = true)]
    command: Vec<String>,
}

/// The exit code for the tuner's own failures, as in timeout(1) and env(1): COMMAND rarely ends with it.
const FAILED: u8 = 125;

pub fn run(arguments: TuneRunArguments) -> Ending {
    begin(arguments).or_else(|error| {
        err!("sweetspot: {error}");
        Ok(ExitCode::from(FAILED))
    })
}

fn begin(arguments: TuneRunArguments) -> Ending {
    let inside = match arguments.common.inside(
        Via::Auto,
        arguments.common.is_dry_run(),
        Inside::own_cgroup,
    ) {
        // The other tuner's programs see this command, too.
        Err(KernelError::Busy { program, .. }) if !arguments.common.names_mechanism() => {
            let other = format!("another tuner is attached here (BPF program {program})");
            err!(
                "sweetspot: {other} and decides about this command, so this one leaves it alone and its options have no effect; \
                 if the other's policy does not match the command, add --via pidfd"
            );
            return run_alone(&arguments.command).map(ExitCode::from);
        }
        inside => inside?,
    };
    under_guard(inside, FAILED, |inside, leases, supervisor| {
        guarded(&arguments, inside, leases, supervisor)
    })
}

/// Runs `command` without tuning it; returns its exit code.
fn run_alone(command: &[String]) -> Fallible<u8> {
    let mut supervisor = Supervisor::new()?;
    match start(command, None)? {
        Ok(command) => Ok(supervisor.wait_for(command)?),
        Err(code) => Ok(code),
    }
}

/// Starts `command` in the tuned cgroup and returns its process ID. If it cannot run, prints the reason and returns the exit
/// code.
fn start(command: &[String], inside: Option<&Inside>) -> Fallible<Result<u32, u8>> {
    let (program, rest) = command.split_first().ok_or("no command was given")?;
    let mut command = Command::new(program);
    signals::unblock_on_exec(command.args(rest));
    if let Some(inside) = inside {
        inside.cgroup().enter_on_exec(&mut command)?;
    }
    match command.spawn() {
        Ok(child) => Ok(Ok(child.id())),
        Err(error) => {
            let (code, message) = failed_command(program, &error);
            err!("sweetspot: {message}");
            Ok(Err(code))
        }
    }
}

fn guarded(
    arguments: &TuneRunArguments,
    inside: Option<Inside>,
    leases: Leases,
    mut supervisor: Supervisor,
) -> Fallible<u8> {
    let name = arguments.command.first().map(Path::new).and_then(Path::file_name);
    let mut journal = arguments.common.journal(Watched {
        owner: name.unwrap_or_default().display().to_string(),
        is_inside: inside.is_some(),
        is_host: false,
        is_explicit: false,
    })?;
    let options = arguments.common.options()?;
    let command = match start(&arguments.command, inside.as_ref())? {
        Ok(command) => command,
        Err(code) => return Ok(code),
    };
    journal.rehearse(options.dry_run);
    journal.begin("");
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
        Ok(code) => Ok(code),
        Err(error) => {
            // Tuning failed, but the command must go on.
            tuner.lift("tuning failed");
            err!("sweetspot: {error}; the command continues untuned");
            Ok(supervisor.wait_for(command)?)
        }
    }
}
