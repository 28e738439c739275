//! The signals that end a command, in one place.
//!
//! - [`prepare`] is called once, by `main`.
//! - A [`Supervisor`] blocks the signals and reports them one by one, for verbs that clean up.
//! - [`end_within`] sets a time limit on the clean-up.
//! - [`lifeline`](crate::lifeline) sends a signal when the terminal or the reader is gone, and ends a process that does
//!   not react to its signals.
//!
//! A process started with SIGHUP ignored, as by nohup(1), keeps running when its terminal is gone.

use std::io::{self, IsTerminal};
use std::mem;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};

use rustix::io::Errno;
use rustix::process::{
    Pid, WaitOptions, WaitStatus, getppid, kill_process, set_parent_process_death_signal, wait,
};
use sweetspot_units::{Duration, Time};

use crate::{check, clock, event_fd, named};

/// An event from a [`Supervisor`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessEvent {
    /// A child ended, or an orphan that this process had adopted.
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
    /// SIGINT: the interrupt key was pressed.
    pub const INTERRUPT: Signal = Signal(libc::SIGINT);
    /// SIGPIPE: nothing reads the output.
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
        // Zero and negative numbers would address process groups.
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
        if let Some((pid, signal)) = pid.zip(rustix::process::Signal::from_named_raw(self.0)) {
            let _ = kill_process(pid, signal);
        }
    }
}

/// The signals that ask a process to end.
pub(crate) const ENDING: [i32; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];

/// Time from a signal until [`end_within`] ends the process: a user waits two seconds at most.
pub const CLEANING_TIME: Duration = Duration::from_millis(1500);

/// Makes a SIGPIPE sent by another process end this one like SIGTERM. The kernel's own SIGPIPE remains without effect: the failed
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

/// On SIGINT, writes `line` to standard error, on a terminal in place of the progress line; the signal then ends this process as
/// usual. Forked processes write nothing. Does nothing if SIGINT is ignored.
pub fn print_when_interrupted(line: String) {
    static LINE: OnceLock<(u32, String)> = OnceLock::new();
    extern "C" fn tell(signal: i32) {
        if let Some((teller, line)) = LINE.get() {
            // SAFETY: getpid, write and raise are async-signal-safe, and the line lives as long as the process.
            unsafe {
                if libc::getpid().cast_unsigned() == *teller {
                    libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), line.len());
                }
                libc::raise(signal);
            }
        }
    }
    let start = if std::io::stderr().is_terminal() { "\r\x1b[K" } else { "" };
    let line = format!("{start}{line}");
    if is_ignored(libc::SIGINT) || LINE.set((std::process::id(), line)).is_err() {
        return;
    }
    let handler: extern "C" fn(i32) = tell;
    // SAFETY: the action is fully set up, and its handler calls async-signal-safe functions only. It is the default again
    // before the handler raises the signal.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as usize;
        action.sa_flags = libc::SA_RESETHAND;
        libc::sigaction(libc::SIGINT, &action, std::ptr::null_mut());
    }
}

/// Ends this process with `code` if it still runs after `limit`, whatever its threads are doing. The time is kept by a kernel
/// timer (SIGALRM).
pub fn end_within(limit: Duration, code: u8) {
    static CODE: AtomicU8 = AtomicU8::new(1);
    extern "C" fn end_now(_: i32) {
        end(CODE.load(Ordering::Relaxed))
    }
    CODE.store(code, Ordering::Relaxed);
    let handler: extern "C" fn(i32) = end_now;
    let micros = limit.as_micros();
    let due =
        libc::timeval { tv_sec: (micros / 1_000_000) as _, tv_usec: (micros % 1_000_000) as _ };
    let once =
        libc::itimerval { it_interval: libc::timeval { tv_sec: 0, tv_usec: 0 }, it_value: due };
    // SAFETY: the handler is async-signal-safe, and `once` outlives the call.
    unsafe {
        libc::signal(libc::SIGALRM, handler as usize);
        libc::setitimer(libc::ITIMER_REAL, &once, std::ptr::null_mut());
    }
}

/// Ends this process without running exit handlers. Safe after a fork and in a signal handler.
pub(crate) fn end(code: u8) -> ! {
    // SAFETY: _exit is async-signal-safe, does not return and touches no memory.
    unsafe { libc::_exit(i32::from(code)) }
}

/// Ignores the signals that ask this process to end, also those that are pending: the first request decided how it ends.
pub fn ignore_further() {
    ENDING.into_iter().for_each(ignore);
}

pub(crate) fn ignore(signal: i32) {
    // SAFETY: ignoring a signal installs no handler.
    unsafe { libc::signal(signal, libc::SIG_IGN) };
}

/// Whether this process ignores `signal`, as its parent requested.
pub(crate) fn is_ignored(signal: i32) -> bool {
    // SAFETY: a null action changes nothing; `action` is valid for writing.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut action) == 0
            && action.sa_sigaction == libc::SIG_IGN
    }
}

/// Makes the kernel end `command` with SIGTERM when the thread that starts it ends: a helper must not outlive its process, even
/// after SIGKILL.
pub fn end_with_parent(command: &mut Command) {
    let parent = std::process::id();
    let arm = move || {
        set_parent_process_death_signal(Some(rustix::process::Signal::TERM))?;
        // The parent may have died before the death signal was armed.
        if Pid::as_raw(getppid()) as u32 != parent {
            end(1);
        }
        Ok(())
    };
    // SAFETY: the closure calls async-signal-safe functions only and allocates nothing.
    unsafe { command.pre_exec(arm) };
}

/// Blocks SIGCHLD and the signals that end a process, and reports them one by one. They are blocked in the thread that creates
/// the supervisor and in all threads and children started after that. Dropping it restores the signal mask.
///
/// SIGHUP that was ignored at the start stays ignored, and so does the interrupt key of a shell's background job.
#[derive(Debug)]
pub struct Supervisor {
    /// Readable while a signal is pending.
    waiting: OwnedFd,
    held: SignalSet,
    before: SignalSet,
}

impl Supervisor {
    /// Blocks the signals.
    pub fn new() -> io::Result<Supervisor> {
        let is_held = |signal: &i32| *signal != libc::SIGHUP || !is_ignored(libc::SIGHUP);
        let held = ENDING.into_iter().filter(is_held).chain([libc::SIGCHLD]);
        let held = SignalSet::of(held);
        let before = held.block()?;
        let waiting = held.descriptor().map_err(named("signalfd(2)"))?;
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

    /// Waits for the next event until the clock of [`clock::now`] reaches `due`; `None` if there was none.
    pub fn next_event_by(&mut self, due: Time) -> io::Result<Option<ProcessEvent>> {
        loop {
            // One SIGCHLD may stand for several ended children, so reap before waiting.
            if let Some(event) = reap()? {
                return Ok(Some(event));
            }
            // The timeout is limited so that its signed seconds cannot overflow.
            let left = due.since(clock::now()).min(Duration::from_secs(3600));
            match self.held.wait(left) {
                Ok((libc::SIGCHLD, _)) => {}
                // si_code above zero: sent by the kernel for the terminal's interrupt key. SIGHUP goes only to the session
                // leader.
                Ok((signal, code)) if code > 0 && is_ignored(signal) => {}
                Ok((signal, code)) if code > 0 && signal != libc::SIGHUP => {
                    return Ok(Some(ProcessEvent::TerminalSignal(Signal(signal))));
                }
                Ok((signal, _)) => return Ok(Some(ProcessEvent::Signal(Signal(signal)))),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Like [`Supervisor::next_event_by`], but also returns `None` as soon as `source` is readable.
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

    /// Waits until `child` has ended and returns its exit code. In the meantime, passes signals on to it and reaps other
    /// children.
    pub fn wait_for(&mut self, child: u32) -> io::Result<u8> {
        self.wait_noting_signals(child).map(|(code, _)| code)
    }

    /// Like [`Supervisor::wait_for`], but also returns the last signal that arrived: the child may have ended before handling it.
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
        self.before.restore();
    }
}

/// Runs `act` with every signal blocked in this thread. A thread that `act` starts keeps them blocked, so a program's handlers
/// never run on a library's thread.
pub fn without_signals<T>(act: impl FnOnce() -> T) -> T {
    let before = SignalSet::all().block();
    let done = act();
    if let Ok(before) = before {
        before.restore();
    }
    done
}

/// Makes `command` start with no signal blocked, as its program expects: children inherit the signals that a [`Supervisor`]
/// blocks.
pub fn unblock_on_exec(command: &mut Command) {
    let unblock = || {
        unblock_all();
        Ok(())
    };
    // SAFETY: pthread_sigmask is async-signal-safe and nothing allocates.
    unsafe { command.pre_exec(unblock) };
}

/// Unblocks every signal in this thread. Safe between fork and exec.
pub(crate) fn unblock_all() {
    SignalSet::of([]).restore();
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct SignalSet(libc::sigset_t);

impl SignalSet {
    /// The set of `signals`. Safe between fork and exec.
    pub(crate) fn of(signals: impl IntoIterator<Item = i32>) -> SignalSet {
        SignalSet::made_by(|set| {
            // SAFETY: the set is valid for writing; an invalid signal number leaves it unchanged.
            unsafe {
                libc::sigemptyset(set);
                for signal in signals {
                    libc::sigaddset(set, signal);
                }
            }
        })
    }

    fn all() -> SignalSet {
        // SAFETY: the set is valid for writing.
        SignalSet::made_by(|set| unsafe { _ = libc::sigfillset(set) })
    }

    /// The signals pending for this thread.
    pub(crate) fn pending() -> SignalSet {
        // SAFETY: the set is valid for writing.
        SignalSet::made_by(|set| unsafe { _ = libc::sigpending(set) })
    }

    fn made_by(make: impl FnOnce(&mut libc::sigset_t)) -> SignalSet {
        // SAFETY: sigset_t is plain data for which zeros are the empty set.
        let mut set = unsafe { mem::zeroed() };
        make(&mut set);
        SignalSet(set)
    }

    pub(crate) fn contains(&self, signal: i32) -> bool {
        // SAFETY: the set is initialised.
        unsafe { libc::sigismember(&self.0, signal) == 1 }
    }

    /// Also blocks these signals in this thread, and returns the set that was blocked before.
    fn block(&self) -> io::Result<SignalSet> {
        self.set_mask(libc::SIG_BLOCK)
    }

    /// Blocks exactly these signals in this thread. Safe between fork and exec.
    fn restore(&self) {
        let _ = self.set_mask(libc::SIG_SETMASK);
    }

    fn set_mask(&self, how: i32) -> io::Result<SignalSet> {
        let mut code = 0;
        let before = SignalSet::made_by(|before| {
            // SAFETY: both sets are valid for the call, which is async-signal-safe.
            code = unsafe { libc::pthread_sigmask(how, &self.0, before) };
        });
        if code == 0 { Ok(before) } else { Err(io::Error::from_raw_os_error(code)) }
    }

    /// A descriptor that is readable while one of these signals is pending.
    pub(crate) fn descriptor(&self) -> io::Result<OwnedFd> {
        let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
        // SAFETY: the set is initialised; the descriptor is new and nothing else owns it.
        unsafe { Ok(OwnedFd::from_raw_fd(check(libc::signalfd(-1, &self.0, flags))?)) }
    }

    /// Takes a signal that is pending or arrives within `timeout`, with its `si_code`.
    fn wait(&self, timeout: Duration) -> io::Result<(i32, i32)> {
        let nanos = timeout.as_nanos();
        let timeout = libc::timespec {
            tv_sec: (nanos / 1_000_000_000) as _,
            tv_nsec: (nanos % 1_000_000_000) as _,
        };
        // SAFETY: siginfo_t is plain data for which zeros are a value; set and timeout are initialised.
        unsafe {
            let mut info: libc::siginfo_t = mem::zeroed();
            let signal = check(libc::sigtimedwait(&self.0, &mut info, &timeout))?;
            Ok((signal, info.si_code))
        }
    }
}

fn reap() -> io::Result<Option<ProcessEvent>> {
    match wait(WaitOptions::NOHANG) {
        Ok(ended) => Ok(ended.map(|(pid, status)| ProcessEvent::ChildEnded {
            pid: pid.as_raw_pid() as u32,
            code: code_of(status),
        })),
        Err(Errno::CHILD) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn code_of(status: WaitStatus) -> u8 {
    match status.exit_status() {
        Some(code) => code as u8,
        None => 128 + status.terminating_signal().unwrap_or(0) as u8,
    }
}
