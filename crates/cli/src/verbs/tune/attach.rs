use sweetspot_linux::live::{BorrowError, ProcessHandle};
use sweetspot_linux::processes::Process;
use sweetspot_linux::signals::Supervisor;
use sweetspot_tune::{Chosen, Leases, ProcessFamily, TuneError, Tuner};

use super::inside::Inside;
use super::journal::{EventLog, Watched};
use super::options::{Common, GoalOption, Via, via_help};
use super::steer::{Until, steer};
use super::under_guard;
use crate::ends::Ends;
use crate::verbs::{Ending, Fallible};

/// Tune the connections of a running process and of its children
///
/// Runs until the process ends or a signal arrives; then prints what it did, or why it limited nothing.
/// Via bpf, it attaches to the process's whole cgroup, but tunes only the process and its children.
/// Without root, the process must be yours and kernel.yama.ptrace_scope 0.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  sweetspot tune attach 4711
  sweetspot tune attach 4711 --peer 192.0.2.7:443
  sweetspot tune attach 4711 --send --events events.jsonl

Exit codes: 0 the process has ended, or a signal ended tuning (further signals
change nothing); 1 tuning could not start or continue; 2 the command line is
wrong.

`sweetspot tune --help` explains the actions and the members of --events.")]
#[command(mut_arg("via", |via| via.help(via_help!("pidfd, which also tunes existing connections before Linux 6.12"))))]
pub struct TuneAttachArguments {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    goal: GoalOption,

    /// Tune only connections to this peer
    #[arg(long, value_name = "HOST:PORT", value_hint = clap::ValueHint::Hostname)]
    peer: Option<Ends>,

    /// Also end when this process ends
    #[arg(long, value_name = "PID", value_parser = process, allow_negative_numbers = true)]
    until: Option<u32>,

    /// Process ID
    #[arg(value_name = "PID", value_parser = process, allow_negative_numbers = true)]
    pid: u32,
}

fn process(text: &str) -> Result<u32, String> {
    text.parse().ok().filter(|pid| *pid > 0).ok_or_else(|| {
        "expected a process ID such as 4711; `pgrep NAME` and `sweetspot top` find it".to_owned()
    })
}

pub fn run(arguments: TuneAttachArguments) -> Ending {
    find(arguments.pid)?;
    // If it has ended since, the wait for its end notices that.
    if let Ok(Process { pid, name, is_kernel: true, .. }) = Process::read(arguments.pid) {
        return Err(TuneError::KernelThread { pid, name }.into());
    }
    arguments.until.map(find).transpose()?;
    let pid = arguments.pid;
    let inside = arguments
        .common
        .inside(Via::Pidfd, arguments.common.is_dry_run(), |watch| Inside::around(pid, watch))?;
    under_guard(inside, 1, |inside, leases, supervisor| {
        guarded(&arguments, inside, leases, supervisor)
    })
}

fn find(pid: u32) -> Result<ProcessHandle, TuneError> {
    ProcessHandle::open(pid).map_err(|error| match error.is_over() {
        true => TuneError::NoProcess { pid },
        false => error.into(),
    })
}

fn guarded(
    arguments: &TuneAttachArguments,
    inside: Option<Inside>,
    leases: Leases,
    mut supervisor: Supervisor,
) -> Fallible<u8> {
    let process = find(arguments.pid)?;
    if inside.is_none() {
        may_borrow(&process).map_err(|error| {
            let next = "or add --via bpf (root), which needs no access to the process";
            format!("{}; {next}", TuneError::Process(error))
        })?;
    }
    let name = Process::read(arguments.pid).map_or(String::new(), |it| format!(" ({})", it.name));
    let mut journal = arguments.common.journal(Watched {
        owner: format!("process {}{name}", arguments.pid),
        is_inside: inside.is_some(),
        is_host: false,
        is_explicit: true,
    })?;
    let options = arguments.common.options()?;
    let peers = arguments.peer.as_ref().map_or(Vec::new(), |ends| ends.addresses().to_vec());
    let mut any = vec![(process, "the process has ended")];
    if let Some(other) = arguments.until {
        any.push((find(other)?, "the process of --until has ended"));
    }
    let until = Until::AnyEnds(any);
    journal.begin(EventLog::ctrl_c(options.dry_run));
    let (root, goal) = (arguments.pid, arguments.goal.goal);
    let code = match inside {
        Some(inside) => {
            let scope = inside.scope(Chosen::OfProcess { root, goal, peers });
            let mut tuner = Tuner::new(scope, options, leases);
            steer(&mut tuner, &mut supervisor, &mut journal, &until)
        }
        None => {
            let family = ProcessFamily::new(root, goal).with_peers(peers);
            let mut tuner = Tuner::new(family, options, leases);
            steer(&mut tuner, &mut supervisor, &mut journal, &until)
        }
    };
    Ok(code?)
}

/// `Ok` if the sockets of `process` can be duplicated; otherwise there is nothing to tune.
fn may_borrow(process: &ProcessHandle) -> Result<(), BorrowError> {
    match process.sockets() {
        // If it has ended, the wait for its end notices that.
        Err(error) if !error.is_over() => Err(error),
        _ => Ok(()),
    }
}
