//! Waiting for children and for the signals that end a command, in one place.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use sweetspot_units::{Duration, Time};

use crate::{check, clock};

/// What a [`Supervisor`] saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A child, or an orphan this process adopted, ended.
    ChildEnded {
        /// Its process id.
        pid: u32,
        /// How it ended, in the shell's manner: its exit code, or 128 + n after signal n.
        code: u8,
    },
    /// A process asked us to end (SIGINT, SIGTERM, SIGHUP or SIGQUIT sent with kill).
    Told(Signal),
    /// The terminal asked its whole foreground group to end: our children have heard it too.
    ToldByTerminal(Signal),
}

/// The number of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signal(i32);

impl Signal {
    /// Ends a process, whatever it does.
    pub const KILL: Signal = Signal(libc::SIGKILL);
    /// Asks a process to end.
    pub const TERMINATE: Signal = Signal(libc::SIGTERM);

    /// Its number.
    pub fn number(self) -> i32 {
        self.0
    }

    /// Sends this signal to the process `pid`. That it has ended already is no error.
    pub fn send(self, pid: u32) {
        // SAFETY: kill takes two numbers; a pid of 0 or below (a group) is not a u32 we pass on.
        unsafe { libc::kill(pid as libc::pid_t, self.0) };
    }
}

/// Holds back SIGCHLD and the signals that end a process, and hands them out one by one. While
/// it exists they are blocked in the thread that made it and in all threads and children
/// started since; a dropped supervisor restores what was.
#[derive(Debug)]
pub struct Supervisor {
    held: libc::sigset_t,
    before: libc::sigset_t,
}

impl Supervisor {
    /// Starts to hold signals back.
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
        Ok(Supervisor { held, before })
    }

    /// Waits for the next event.
    pub fn next_event(&mut self) -> io::Result<Event> {
        loop {
            if let Some(event) = self.next_event_by(Time::MAX)? {
                return Ok(event);
            }
        }
    }

    /// Waits for the next event, but not beyond `due` on the clock of [`clock::now`].
    pub fn next_event_by(&mut self, due: Time) -> io::Result<Option<Event>> {
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
                    return Ok(Some(Event::ToldByTerminal(Signal(signal))));
                }
                Ok(signal) => return Ok(Some(Event::Told(Signal(signal)))),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Waits until `child` has ended, passes signals on to it meanwhile, reaps whatever else
    /// ends, and returns the child's code.
    pub fn wait_for(&mut self, child: u32) -> io::Result<u8> {
        loop {
            match self.next_event()? {
                Event::ChildEnded { pid, code } if pid == child => return Ok(code),
                Event::Told(signal) => signal.send(child),
                Event::ChildEnded { .. } | Event::ToldByTerminal(_) => {}
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

fn reap() -> io::Result<Option<Event>> {
    let mut status = 0;
    // SAFETY: `status` is valid for writing.
    match check(unsafe { libc::waitpid(-1, &mut status, libc::WNOHANG) }) {
        Ok(0) => Ok(None),
        Ok(pid) => Ok(Some(Event::ChildEnded { pid: pid as u32, code: code_of(status) })),
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
