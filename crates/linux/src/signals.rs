//! The signals that end a command, in one place.
//!
//! - [`prepare`] is called once, by `main`.
//! - A [`Supervisor`] holds the signals back and reports them one by one, for verbs that clean up.
//! - [`end_within`] sets a limit on that cleaning.
//! - [`lifeline`](crate::lifeline) sends a signal when the terminal or the reader is gone, and ends a process that does
//!   not take its signals.
//!
//! A process that starts with SIGHUP ignored, as nohup(1) does it, keeps running when its terminal goes.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicI32, Ordering};

use sweetspot_units::{Duration, Time};

use crate::{check, clock, event_fd, named};

/// An event from a [`Supervisor`].
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
    /// SIGHUP: the terminal is gone.
    pub const HANG_UP: Signal = Signal(libc::SIGHUP);
    /// SIGINT: the interrupt key.
    pub const INTERRUPT: Signal = Signal(libc::SIGINT);
    /// SIGPIPE: nobody reads the output.
    pub const BROKEN_PIPE: Signal = Signal(libc::SIGPIPE);

    /// Its number.
    pub fn number(self) -> i32 {
        self.0
    }

    /// The shell's exit code for a process that this signal ended.
    pub fn exit_code(self) -> u8 {
        128 + self.0 as u8
    }

    /// Sends this signal to process `pid`. A process that has ended already is not an error.
    pub fn send(self, pid: u32) {
        // SAFETY: kill takes two numbers; a pid of 0 or below (a group) is not a u32 we pass on.
        unsafe { libc::kill(pid as libc::pid_t, self.0) };
    }
}

/// The signals that ask a process to end.
pub(crate) const ENDING: [i32; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];

/// Time between a signal and the end of the process that [`end_within`] allows: the kernel's and the shell's users wait
/// two seconds at most.
pub const CLEANING_TIME: Duration = Duration::from_millis(1500);

/// Lets SIGPIPE of another process end this one like SIGTERM. The kernel's own SIGPIPE stays without effect: the failed
/// write reports it.
pub fn prepare() {
    extern "C" fn handle(_: i32, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
        // SAFETY: the kernel passes a valid siginfo_t of a signal that a process sent; getpid and kill are
        // async-signal-safe.
        unsafe {
            if (*info).si_pid() != libc::getpid() {
                libc::kill(libc::getpid(), libc::SIGTERM);
            }
        }
    }
    let handler: extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) = handle;
    // SAFETY: the action is fully set up, and its handler calls async-signal-safe functions only.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        libc::sigaction(libc::SIGPIPE, &action, std::ptr::null_mut());
    }
}

/// Ends this process with `code` if it still runs after `limit`, whatever its threads do then. The kernel's timer
/// (SIGALRM) counts the time.
pub fn end_within(limit: Duration, code: u8) {
    static CODE: AtomicI32 = AtomicI32::new(1);
    extern "C" fn end(_: i32) {
        // SAFETY: _exit is async-signal-safe and does not return.
        unsafe { libc::_exit(CODE.load(Ordering::Relaxed)) }
    }
    CODE.store(i32::from(code), Ordering::Relaxed);
    let handler: extern "C" fn(i32) = end;
    let micros = limit.as_micros();
    let due = libc::timeval {
        tv_sec: (micros / 1_000_000) as libc::time_t,
        tv_usec: (micros % 1_000_000) as libc::suseconds_t,
    };
    let once =
        libc::itimerval { it_interval: libc::timeval { tv_sec: 0, tv_usec: 0 }, it_value: due };
    // SAFETY: the handler is async-signal-safe, and `once` outlives the call.
    unsafe {
        libc::signal(libc::SIGALRM, handler as usize);
        libc::setitimer(libc::ITIMER_REAL, &once, std::ptr::null_mut());
    }
}

/// Whether this process ignores `signal`, as its parent asked for.
pub(crate) fn is_ignored(signal: i32) -> bool {
    // SAFETY: a null action changes nothing; `action` is valid for writing.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut action) == 0
            && action.sa_sigaction == libc::SIG_IGN
    }
}

/// Lets the kernel end `command` with SIGTERM when the thread that starts it ends: a helper must not outlive its
/// process, even after SIGKILL.
pub fn end_with_parent(command: &mut Command) {
    let parent = std::process::id();
    let arm = move || {
        // SAFETY: prctl and getppid take numbers only and are async-signal-safe.
        unsafe {
            check(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM))?;
            // The parent may have died before that was armed.
            if libc::getppid() as u32 != parent {
                libc::_exit(1);
            }
        }
        Ok(())
    };
    // SAFETY: the closure calls async-signal-safe functions only and allocates nothing.
    unsafe { command.pre_exec(arm) };
}

/// Blocks SIGCHLD and the signals that end a process, and reports them one by one. They are blocked in the thread
/// that made the supervisor and in all threads and children started since. Dropping it restores the signal mask.
///
/// SIGHUP that was ignored at the start stays ignored, and so does the interrupt key of a shell's background job.
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
        let is_held = |signal: &i32| *signal != libc::SIGHUP || !is_ignored(libc::SIGHUP);
        for signal in ENDING.into_iter().filter(is_held).chain([libc::SIGCHLD]) {
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
            let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
            let fd = check(libc::signalfd(-1, &held, flags)).map_err(named("signalfd(2)"))?;
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
            // The kernel's timeout is limited by its signed seconds.
            let left = due.since(clock::now()).min(Duration::from_secs(3600));
            let timeout = clock::timespec(Time::ZERO + left);
            // SAFETY: siginfo_t is plain data for which zeros are a value.
            let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
            // SAFETY: the set and the timeout are initialised, `info` is valid for writing.
            match check(unsafe { libc::sigtimedwait(&self.held, &mut info, &timeout) }) {
                Ok(libc::SIGCHLD) => {}
                // si_code above zero: the kernel sent it, for the terminal's interrupt key. SIGHUP goes to the session's
                // leader alone.
                Ok(signal) if info.si_code > 0 && is_ignored(signal) => {}
                Ok(signal) if info.si_code > 0 && signal != libc::SIGHUP => {
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
        self.wait_noting_signals(child).map(|(code, _)| code)
    }

    /// The same, with the last signal that came meanwhile: the child may have ended before it took that.
    pub(crate) fn wait_noting_signals(&mut self, child: u32) -> io::Result<(u8, Option<Signal>)> {
        let mut last = None;
        loop {
            match self.next_event()? {
                ProcessEvent::ChildEnded { pid, code } if pid == child => return Ok((code, last)),
                ProcessEvent::Signal(signal) => {
                    last = Some(signal);
                    signal.send(child);
                }
                ProcessEvent::TerminalSignal(signal) => last = Some(signal),
                ProcessEvent::ChildEnded { .. } => {}
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

/// Runs `act` with every signal blocked in this thread. A thread that `act` starts keeps them blocked, so that a program's
/// handlers never run on the thread of a library.
pub fn without_signals<T>(act: impl FnOnce() -> T) -> T {
    let before = crate::lifeline::block_all();
    let done = act();
    crate::lifeline::restore(&before);
    done
}

/// Lets `command` start with no signal blocked, as its program expects: children inherit the signals that a [`Supervisor`]
/// blocks.
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
