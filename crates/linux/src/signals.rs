//! Waits for children that end and for the signals that end a command, in one place.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use sweetspot_units::{Duration, Time};

use crate::{check, clock, event_fd};

/// What a [`Supervisor`] reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessEvent {
    /// A child ended, or an orphan that this process adopted.
    ChildEnded {
        /// Its process id.
        pid: u32,
        /// Its exit code, or 128 + n if signal n ended it.
        code: u8,
    },
    /// Another process asked this one to end (SIGINT, SIGTERM, SIGHUP or SIGQUIT).
    Signal(Signal),
    /// The terminal asked its foreground process group to end. The children received the signal, too.
    TerminalSignal(Signal),
}

/// The number of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signal(i32);

impl Signal {
    /// SIGKILL, which ends a process at once.
    pub const KILL: Signal = Signal(libc::SIGKILL);
    /// SIGTERM, which asks a process to end.
    pub const TERMINATE: Signal = Signal(libc::SIGTERM);

    /// Its number.
    pub fn number(self) -> i32 {
        self.0
    }

    /// Sends this signal to process `pid`. A process that has ended already is not an error.
    pub fn send(self, pid: u32) {
        // SAFETY: kill takes two numbers; a pid of 0 or below (a group) is not a u32 we pass on.
        unsafe { libc::kill(pid as libc::pid_t, self.0) };
    }
}

/// Blocks SIGCHLD and the signals that end a process, and reports them one by one. They are blocked in the thread
/// that made the supervisor and in all threads and children started since. Dropping it restores the signal mask.
#[derive(Debug)]
pub struct Supervisor {
    /// Readable while a signal waits.
    waiting: OwnedFd,
    held: libc::sigset_t,
    before: libc::sigset_t,
}

impl Supervisor {
    /// Blocks the signals.
    pub fn new() -> io::Result<Supervisor> {
        let mut held = empty_set();
        for signal in [libc::SIGCHLD, libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT] {
            // SAFETY: `held` is an initialised set and the signals exist.
            unsafe { libc::sigaddset(&mut held, signal) };
        }
        let mut before = empty_set();
        // SAFETY: both sets are valid for the call.
        let code = unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &held, &mut before) };
        if code != 0 {
            return Err(io::Error::from_raw_os_error(code));
        }
        // SAFETY: the set is initialised; the descriptor is new and ours alone.
        let waiting = unsafe {
            let fd = check(libc::signalfd(-1, &held, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK))?;
            OwnedFd::from_raw_fd(fd)
        };
        Ok(Supervisor { waiting, held, before })
    }

    /// Waits for the next event.
    pub fn next_event(&mut self) -> io::Result<ProcessEvent> {
        loop {
            if let Some(event) = self.next_event_by(Time::MAX)? {
                return Ok(event);
            }
        }
    }

    /// Waits for the next event until `due` on the clock of [`clock::now`]; `None` if there was none.
    pub fn next_event_by(&mut self, due: Time) -> io::Result<Option<ProcessEvent>> {
        loop {
            // Several ended children may stand behind one SIGCHLD: look before waiting.
            if let Some(event) = reap()? {
                return Ok(Some(event));
            }
            // The kernel takes no timeout beyond what its signed seconds hold.
            let left = due.since(clock::now()).min(Duration::from_secs(3600));
            let timeout = clock::timespec(Time::ZERO + left);
            // SAFETY: siginfo_t is plain data for which zeros are a value.
            let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
            // SAFETY: the set and the timeout are initialised, `info` is valid for writing.
            match check(unsafe { libc::sigtimedwait(&self.held, &mut info, &timeout) }) {
                Ok(libc::SIGCHLD) => {}
                // si_code above zero: the kernel sent it, for the terminal's interrupt key.
                Ok(signal) if info.si_code > 0 => {
                    return Ok(Some(ProcessEvent::TerminalSignal(Signal(signal))));
                }
                Ok(signal) => return Ok(Some(ProcessEvent::Signal(Signal(signal)))),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// As [`Supervisor::next_event_by`], but also returns `None` as soon as `source` is readable.
    pub fn next_event_or(
        &mut self,
        source: BorrowedFd<'_>,
        due: Time,
    ) -> io::Result<Option<ProcessEvent>> {
        if let Some(event) = self.next_event_by(Time::ZERO)? {
            return Ok(Some(event));
        }
        event_fd::wait_readable(&[self.waiting.as_fd(), source], due)?;
        self.next_event_by(Time::ZERO)
    }

    /// Waits until `child` has ended and returns its code. Passes signals on to it and reaps other children
    /// meanwhile.
    pub fn wait_for(&mut self, child: u32) -> io::Result<u8> {
        loop {
            match self.next_event()? {
                ProcessEvent::ChildEnded { pid, code } if pid == child => return Ok(code),
                ProcessEvent::Signal(signal) => signal.send(child),
                ProcessEvent::ChildEnded { .. } | ProcessEvent::TerminalSignal(_) => {}
            }
        }
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        // SAFETY: `before` was filled by pthread_sigmask.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &self.before, std::ptr::null_mut());
        }
    }
}

/// Lets `command` start with no signal blocked, as its program expects: what a [`Supervisor`] holds
/// back is held back in children, too.
pub fn unblock_on_exec(command: &mut Command) {
    let unblock = || {
        unblock_all();
        Ok(())
    };
    // SAFETY: pthread_sigmask is async-signal-safe and nothing allocates.
    unsafe { command.pre_exec(unblock) };
}

/// Lets this thread receive every signal again. Safe between fork and exec.
pub(crate) fn unblock_all() {
    let none = empty_set();
    // SAFETY: the set is initialised; pthread_sigmask is async-signal-safe.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &none, std::ptr::null_mut()) };
}

fn empty_set() -> libc::sigset_t {
    // SAFETY: sigset_t is plain data, and sigemptyset makes it a valid empty set.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        set
    }
}

fn reap() -> io::Result<Option<ProcessEvent>> {
    let mut status = 0;
    // SAFETY: `status` is valid for writing.
    match check(unsafe { libc::waitpid(-1, &mut status, libc::WNOHANG) }) {
        Ok(0) => Ok(None),
        Ok(pid) => Ok(Some(ProcessEvent::ChildEnded { pid: pid as u32, code: code_of(status) })),
        Err(error) if error.raw_os_error() == Some(libc::ECHILD) => Ok(None),
        Err(error) => Err(error),
    }
}

fn code_of(status: i32) -> u8 {
    if libc::WIFEXITED(status) {
        libc::WEXITSTATUS(status) as u8
    } else {
        128 + libc::WTERMSIG(status) as u8
    }
}
