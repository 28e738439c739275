//! A worker process and its guardian: when the worker is killed, the guardian undoes what it left behind.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use crate::check;
use crate::isolation::{fork, pipe};
use crate::signals::Supervisor;

/// The worker's end of the pipe to its guardian.
#[derive(Debug)]
pub struct GuardianPipe(File);

impl GuardianPipe {
    /// Whether the guardian has ended.
    pub fn is_cut(&self) -> bool {
        let mut fd = libc::pollfd { fd: self.0.as_raw_fd(), events: 0, revents: 0 };
        // SAFETY: one valid pollfd; a timeout of zero returns at once.
        unsafe { libc::poll(&mut fd, 1, 0) };
        fd.revents & libc::POLLERR != 0
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

/// Runs `work` in a child process and returns its exit code, or 128 + n if signal n ended it.
/// The calling process stays as the child's guardian: `guard` reads what the child writes, to the end, and then
/// undoes what the child left. Signals are passed on to the child, whose supervisor holds them before it starts a
/// thread: one without it could take a signal, and the child would wait for it in vain.
///
/// Both adopt the orphans among their descendants, so that they keep the right to trace them
/// (kernel.yama.ptrace_scope). The calling process must have one thread.
pub fn with_guardian(
    work: impl FnOnce(GuardianPipe, Supervisor) -> u8,
    guard: impl FnOnce(File) + Send,
) -> io::Result<u8> {
    let threads = fs::read_dir("/proc/self/task").map_or(1, |tasks| tasks.count());
    if threads != 1 {
        return Err(io::Error::other(format!("cannot fork a process of {threads} threads")));
    }
    // What is buffered now would be written by both sides of the fork.
    let _ = io::stdout().flush();
    let mut supervisor = Supervisor::new()?;
    let (reader, writer) = pipe()?;
    adopt_orphans()?;
    match fork()? {
        None => {
            drop(reader);
            // A panic must end here and not unwind into the guardian's copy of its own stack.
            let code = catch_unwind(AssertUnwindSafe(|| {
                adopt_orphans()?;
                io::Result::Ok(work(GuardianPipe(writer), supervisor))
            }));
            let _ = io::stdout().flush();
            std::process::exit(i32::from(code.unwrap_or(Ok(101)).unwrap_or(1)))
        }
        Some(worker) => {
            drop(writer);
            thread::scope(|scope| {
                thread::Builder::new().spawn_scoped(scope, move || guard(reader))?;
                supervisor.wait_for(worker)
            })
        }
    }
}

fn adopt_orphans() -> io::Result<()> {
    // SAFETY: this prctl takes numbers only.
    check(unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) })?;
    Ok(())
}
