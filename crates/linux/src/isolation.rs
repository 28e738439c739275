//! Runs work in a process tree with its own namespaces, which ends as a unit.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};

use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{getegid, geteuid, set_parent_process_death_signal};
use rustix::thread::UnshareFlags;
use sweetspot_units::Duration;
use thiserror::Error;

use crate::event_fd::is_hung_up;
use crate::namespace::unshare;
use crate::signals::{Signal, Supervisor, end};
use crate::{check, clock, lifeline};

/// Why no isolated process tree could be started.
#[derive(Debug, Error)]
pub enum IsolationError {
    /// The kernel does not let this user create namespaces.
    #[error(
        "no permission for namespaces ({step}: {source}); run as root, or let users have them: \
         sysctl user.max_user_namespaces above 0 and, where they exist, \
         kernel.unprivileged_userns_clone=1 and kernel.apparmor_restrict_unprivileged_userns=0"
    )]
    NoPermission {
        /// The step that was refused.
        step: &'static str,
        /// The kernel's reason.
        source: io::Error,
    },
    /// A step failed for another reason.
    #[error("cannot isolate a process: {step}: {source}")]
    Failed {
        /// The step that failed.
        step: &'static str,
        /// The kernel's reason.
        source: io::Error,
    },
    /// The process has more than one thread, so it cannot fork safely. The field is the number of threads.
    #[error("cannot isolate a process that runs {0} threads; isolate before starting them")]
    Threads(usize),
}

/// The steps that can fail before the isolated work begins. The outer process writes its failed step to a pipe, as a byte.
#[derive(Debug, Clone, Copy)]
#[repr(u8)]
enum Step {
    Signals,
    Pipe,
    Fork,
    DeathSignal,
    UserNamespace,
    Namespaces,
    SetGroups,
    UidMap,
    GidMap,
    PrivateMounts,
    Wait,
}

impl Step {
    const ALL: [Step; 11] = [
        Step::Signals,
        Step::Pipe,
        Step::Fork,
        Step::DeathSignal,
        Step::UserNamespace,
        Step::Namespaces,
        Step::SetGroups,
        Step::UidMap,
        Step::GidMap,
        Step::PrivateMounts,
        Step::Wait,
    ];

    fn name(self) -> &'static str {
        match self {
            Step::Signals => "signalfd",
            Step::Pipe => "pipe",
            Step::Fork => "fork",
            Step::DeathSignal => "prctl(PR_SET_PDEATHSIG)",
            Step::UserNamespace => "unshare(CLONE_NEWUSER)",
            Step::Namespaces => "unshare(CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET)",
            Step::SetGroups => "writing /proc/self/setgroups",
            Step::UidMap => "writing /proc/self/uid_map",
            Step::GidMap => "writing /proc/self/gid_map",
            Step::PrivateMounts => "mount(MS_PRIVATE)",
            Step::Wait => "waiting for the isolated process",
        }
    }
}

/// A failed step and its error, on their way to the caller.
struct FailedStep(Step, io::Error);

type StepResult<T> = Result<T, FailedStep>;

trait At<T> {
    fn at(self, step: Step) -> StepResult<T>;
}

impl From<FailedStep> for IsolationError {
    fn from(FailedStep(step, source): FailedStep) -> IsolationError {
        let step = step.name();
        match source.raw_os_error() {
            // ENOSPC: user.max_user_namespaces has been reached, or is zero.
            Some(libc::EPERM | libc::EACCES | libc::ENOSPC) => {
                IsolationError::NoPermission { step, source }
            }
            _ => IsolationError::Failed { step, source },
        }
    }
}

impl<T> At<T> for io::Result<T> {
    fn at(self, step: Step) -> StepResult<T> {
        self.map_err(|error| FailedStep(step, error))
    }
}

/// A joined thread still counts as a thread of the process until the kernel has cleaned it up, which can take a moment on
/// a busy machine.
const THREAD_EXIT: Duration = Duration::from_millis(500);

/// The number of threads of this process.
fn threads() -> usize {
    fs::read_dir("/proc/self/task").map_or(1, |tasks| tasks.count())
}

/// Waits until this process has one thread. The error holds the number of threads that remain.
pub(crate) fn wait_for_one_thread() -> Result<(), usize> {
    let deadline = clock::now() + THREAD_EXIT;
    while threads() > 1 {
        if clock::now() >= deadline {
            return Err(threads());
        }
        clock::sleep_until(clock::now() + Duration::from_millis(1));
    }
    Ok(())
}

/// Runs `work` in new namespaces (PID, mount and network, plus user if the caller lacks the privilege for the others).
/// Returns its exit code, or 128 + n if signal n ended it.
///
/// Three processes make sure that nothing is left behind: an *outer* process that enters the namespaces, an *init* that is
/// PID 1 of the new PID namespace and reaps orphans, and the *worker* that runs `work`. When the worker ends, init ends,
/// and the kernel kills every process inside. If the caller or the outer process dies, even by SIGKILL, the kernel kills
/// the next process down. SIGINT, SIGTERM, SIGHUP and SIGQUIT sent to the caller are passed on to the worker.
pub fn isolate(work: impl FnOnce() -> u8) -> Result<u8, IsolationError> {
    isolate_noting_signals(work).map(|(code, _)| code)
}

/// Like [`isolate`], for one of several pieces of work. A signal that arrives just as a piece ends must end the caller,
/// too, so it is sent to this process again before returning.
pub fn isolate_one(work: impl FnOnce() -> u8) -> Result<u8, IsolationError> {
    let (code, signal) = isolate_noting_signals(work)?;
    if let Some(signal) = signal {
        signal.send(std::process::id());
    }
    Ok(code)
}

fn isolate_noting_signals(
    work: impl FnOnce() -> u8,
) -> Result<(u8, Option<Signal>), IsolationError> {
    let suspended = lifeline::suspend();
    wait_for_one_thread().map_err(IsolationError::Threads)?;
    // Otherwise both sides of the fork would write the buffered data.
    let _ = io::stdout().flush();
    let mut supervisor = Supervisor::new().at(Step::Signals)?;
    let (mut error_reader, error_writer) = pipe().at(Step::Pipe)?;
    let caller = std::process::id();
    let outer = match fork().at(Step::Fork)? {
        None => {
            drop(error_reader);
            run_outer(caller, supervisor, error_writer, work)
        }
        Some(outer) => outer,
    };
    drop((error_writer, suspended));
    let mut error_bytes = [0; 5];
    // Once the worker has begun, the pipe closes without any data.
    let failed_to_start = error_reader.read_exact(&mut error_bytes).is_ok();
    let ended = supervisor.wait_noting_signals(outer).at(Step::Wait)?;
    if !failed_to_start {
        return Ok(ended);
    }
    let [step, errno @ ..] = error_bytes;
    // The outer process wrote one of these bytes.
    let step = Step::ALL.into_iter().find(|s| *s as u8 == step).unwrap_or(Step::Fork);
    Err(FailedStep(step, io::Error::from_raw_os_error(i32::from_ne_bytes(errno))).into())
}

/// The outer process: enters the namespaces, starts init and waits for it.
fn run_outer(
    caller: u32,
    mut supervisor: Supervisor,
    mut error_writer: File,
    work: impl FnOnce() -> u8,
) -> ! {
    let arm = || {
        die_with_parent()?;
        // The caller may have died before the death signal was armed.
        if parent() == caller { Ok(()) } else { Err(io::ErrorKind::NotFound.into()) }
    };
    let started = arm().at(Step::DeathSignal).and_then(|()| {
        enter_namespaces()?;
        // Entering a user namespace disarms the death signal.
        arm().at(Step::DeathSignal)?;
        let (pulse, alive) = pipe().at(Step::Pipe)?;
        Ok((fork().at(Step::Fork)?, pulse, alive))
    });
    match started {
        Ok((None, pulse, alive)) => {
            drop(alive);
            init(pulse, supervisor, error_writer, work)
        }
        Ok((Some(init), pulse, alive)) => {
            drop((pulse, error_writer));
            let code = supervisor.wait_for(init).unwrap_or(1);
            drop(alive);
            end(code)
        }
        Err(failure) => exit_with_error(&mut error_writer, &failure),
    }
}

/// PID 1: mounts the new namespace's /proc, starts the worker, and reaps children until the worker has ended.
fn init(
    pulse: File,
    mut supervisor: Supervisor,
    mut error_writer: File,
    work: impl FnOnce() -> u8,
) -> ! {
    if let Err(error) = die_with_parent() {
        exit_with_error(&mut error_writer, &FailedStep(Step::DeathSignal, error));
    }
    // The parent has no PID in this namespace to compare. Its end of the pipe, to which nothing is ever written, shows
    // whether it lives.
    if is_hung_up(&pulse) {
        end(1);
    }
    drop(pulse);
    mount_proc();
    match fork() {
        Err(error) => exit_with_error(&mut error_writer, &FailedStep(Step::Fork, error)),
        Ok(Some(worker)) => {
            drop(error_writer);
            end(supervisor.wait_for(worker).unwrap_or(1))
        }
        Ok(None) => {
            drop((error_writer, supervisor));
            // A panic must end here rather than unwind into the copy of the caller's stack.
            let code = catch_unwind(AssertUnwindSafe(work)).unwrap_or(101);
            let _ = io::stdout().flush();
            std::process::exit(i32::from(code))
        }
    }
}

/// Uses the caller's own privileges, or else (not root, or root in a container) a user namespace in which the caller is
/// root.
fn enter_namespaces() -> StepResult<()> {
    let all = UnshareFlags::NEWPID | UnshareFlags::NEWNS | UnshareFlags::NEWNET;
    match unshare(all) {
        Err(error) if error.raw_os_error() == Some(libc::EPERM) => {
            enter_user_namespace()?;
            unshare(all).at(Step::Namespaces)?;
        }
        other => other.at(Step::Namespaces)?,
    }
    // Mounts inside must not be visible outside.
    let private = MountPropagationFlags::REC | MountPropagationFlags::PRIVATE;
    mount_change(c"/", private).map_err(io::Error::from).at(Step::PrivateMounts)
}

fn enter_user_namespace() -> StepResult<()> {
    let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
    unshare(UnshareFlags::NEWUSER).at(Step::UserNamespace)?;
    // Without this the kernel refuses writes to gid_map (user_namespaces(7)).
    fs::write("/proc/self/setgroups", "deny").at(Step::SetGroups)?;
    fs::write("/proc/self/uid_map", format!("0 {uid} 1")).at(Step::UidMap)?;
    fs::write("/proc/self/gid_map", format!("0 {gid} 1")).at(Step::GidMap)
}

/// Mounts /proc for the new PID namespace. If the kernel forbids it (a container that masks parts of /proc), the old one
/// stays and only process listings are wrong.
fn mount_proc() {
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    let _ = mount(c"proc", c"/proc", c"proc", flags, None);
}

/// Forks: returns the child's process ID in the parent and `None` in the child.
pub(crate) fn fork() -> io::Result<Option<u32>> {
    // SAFETY: `isolate` made sure that there is one thread, and its children start none before they fork, so no lock can
    // be held by a thread that does not exist in the child.
    let pid = check(unsafe { libc::fork() })?;
    Ok((pid != 0).then_some(pid as u32))
}

fn parent() -> u32 {
    std::os::unix::process::parent_id()
}

fn die_with_parent() -> io::Result<()> {
    Ok(set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?)
}

/// A pipe's read end and write end, both closed on exec.
pub(crate) fn pipe() -> io::Result<(File, File)> {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
    Ok((read.into(), write.into()))
}

fn exit_with_error(error_writer: &mut File, FailedStep(step, error): &FailedStep) -> ! {
    let errno = error.raw_os_error().unwrap_or(0).to_ne_bytes();
    let _ = error_writer.write_all(&[&[*step as u8][..], &errno].concat());
    end(1)
}
