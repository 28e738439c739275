//! A worker process and its guardians: if the worker is killed, a guardian undoes its effects.

use std::fs::File;
use std::io::{self, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use rustix::process::{Pid, WaitOptions, getpid, set_child_subreaper, setsid, waitpid};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};

use crate::isolation::{fork, pipe, wait_for_one_thread};
use crate::signals::{self, ENDING, Supervisor, end};
use crate::{event_fd, lifeline};

/// The worker's end of the pipe to its guardian.
#[derive(Debug)]
pub struct GuardianPipe(File);

impl GuardianPipe {
    /// Whether the guardian has ended.
    pub fn is_cut(&self) -> bool {
        event_fd::is_hung_up(&self.0)
    }
}

impl Write for GuardianPipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Runs `work` in a child process and returns its exit code, or 128 + n if signal n ended it. The calling process remains as
/// the child's guardian: `guard` reads the child's output to the end and then removes the child's limits. Signals are passed on
/// to the child. Its supervisor blocks them before any other thread starts, because another thread could take a signal and
/// leave the child waiting.
///
/// A third process, the *last guardian*, calls `last` when the other two have ended, whatever signal ended them. It has its own
/// session and ignores terminal and shell signals, so a limit is left behind only if SIGKILL hits all three or their cgroup.
///
/// Child and caller adopt orphans among their descendants, which keeps them allowed to trace those (kernel.yama.ptrace_scope).
/// The calling process must be single-threaded.
pub fn with_guardian(
    work: impl FnOnce(GuardianPipe, Supervisor) -> u8,
    guard: impl FnOnce(File) + Send,
    last: impl FnOnce(),
) -> io::Result<u8> {
    let suspended = lifeline::suspend();
    wait_for_one_thread()
        .map_err(|n| io::Error::other(format!("cannot fork a process of {n} threads")))?;
    // Otherwise both sides of the fork would write the buffered data.
    let _ = io::stdout().flush();
    // Open until both this process and the worker have ended.
    let alive = start_last_guardian(last)?;
    let mut supervisor = Supervisor::new()?;
    let (reader, writer) = pipe()?;
    adopt_orphans()?;
    match fork()? {
        None => {
            drop(reader);
            // A panic must end here rather than unwind into the copy of the guardian's stack.
            let code = catch_unwind(AssertUnwindSafe(|| {
                adopt_orphans()?;
                io::Result::Ok(work(GuardianPipe(writer), supervisor))
            }));
            let _ = io::stdout().flush();
            std::process::exit(i32::from(code.unwrap_or(Ok(101)).unwrap_or(1)))
        }
        Some(worker) => {
            drop((writer, suspended));
            let code = thread::scope(|scope| {
                thread::Builder::new().spawn_scoped(scope, move || guard(reader))?;
                supervisor.wait_for(worker)
            });
            // The worker's exit code counts. The supervisor would otherwise unblock pending signals.
            signals::ignore_further();
            drop(alive);
            code
        }
    }
}

/// Starts the process that calls `last` once the returned end of a pipe is closed everywhere.
fn start_last_guardian(last: impl FnOnce()) -> io::Result<File> {
    let (ended, alive) = pipe()?;
    match fork()? {
        // The intermediate parent exits at once, so this process is not a child of this family, which neither waits for it nor
        // finds it.
        None => match fork() {
            Ok(None) => {
                drop(alive);
                stay_until(ended);
                let _ = catch_unwind(AssertUnwindSafe(last));
                end(0)
            }
            Ok(Some(_)) => end(0),
            Err(_) => end(1),
        },
        Some(child) => {
            let ended = waitpid(Pid::from_raw(child as i32), WaitOptions::empty())?;
            if ended.is_none_or(|(_, status)| status.exit_status() != Some(0)) {
                return Err(io::Error::other("cannot start the last guardian"));
            }
            Ok(alive)
        }
    }
}

/// Waits for the end of a pipe, shielded from terminal signals and signals to a process group.
fn stay_until(mut ended: File) {
    for signal in ENDING {
        signals::ignore(signal);
    }
    // A failure only leaves it in the old session.
    let _ = setsid();
    // Whatever reads the command's output must not wait for this process.
    if let Ok(null) = File::options().read(true).write(true).open("/dev/null") {
        let _ = dup2_stdin(&null).and(dup2_stdout(&null)).and(dup2_stderr(&null));
    }
    // The working directory must not keep a file system from being unmounted.
    let _ = std::env::set_current_dir("/");
    let _ = ended.read(&mut [0]);
}

fn adopt_orphans() -> io::Result<()> {
    // Any process ID turns the setting on.
    set_child_subreaper(Some(getpid())).map_err(|e| crate::named("prctl(2)")(e.into()))
}
