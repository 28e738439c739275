//! Ends this process with its causes: a thread sends SIGHUP when the terminal is gone and SIGTERM when nobody reads the
//! output, and ends a process that leaves its signals unanswered.

use std::io::{self, IsTerminal};
use std::mem;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use crate::check;
use crate::event_fd::EventFd;
use crate::signals::{self, ENDING};

/// Time between two checks of unanswered signals, and the checks after which the process ends: a second and a half.
const CHECK_INTERVAL_MS: i32 = 100;
const MAX_UNANSWERED: u32 = 15;
/// Checks between the end of the reader and SIGTERM: a verb that writes meanwhile ends by itself, without an error.
const READER_GRACE: u32 = 10;

static LIFELINE: Mutex<Option<Lifeline>> = Mutex::new(None);

struct Lifeline {
    watches_output: bool,
    stop: Arc<EventFd>,
    thread: JoinHandle<()>,
}

/// Starts the thread. `watches_output`: the verb has no purpose but its output, so it ends when nobody reads that.
pub fn hold(watches_output: bool) -> io::Result<()> {
    let causes = Causes::of_this_process(watches_output)?;
    let stop = Arc::new(EventFd::new()?);
    let stopped = Arc::clone(&stop);
    // The thread must take no signal: it starts with all of them blocked.
    let before = block_all();
    let started =
        thread::Builder::new().name("lifeline".into()).spawn(move || causes.watch(&stopped));
    restore(&before);
    let lifeline = Lifeline { watches_output, stop, thread: started? };
    *LIFELINE.lock().unwrap_or_else(PoisonError::into_inner) = Some(lifeline);
    Ok(())
}

/// The thread is stopped until this is dropped, because a process of one thread only can fork.
pub(crate) struct Suspended(Option<bool>);

/// Stops the thread for a fork.
pub(crate) fn suspend() -> Suspended {
    let lifeline = LIFELINE.lock().unwrap_or_else(PoisonError::into_inner).take();
    Suspended(lifeline.map(|lifeline| {
        lifeline.stop.signal();
        let _ = lifeline.thread.join();
        lifeline.watches_output
    }))
}

impl Drop for Suspended {
    fn drop(&mut self) {
        if let Some(watches_output) = self.0 {
            // Without it the process still obeys signals.
            let _ = hold(watches_output);
        }
    }
}

/// The events that the thread watches.
struct Causes {
    /// The terminals among the standard streams.
    terminals: Vec<i32>,
    /// Standard output, if it is a pipe or a socket that somebody is to read.
    output: Option<i32>,
    /// Readable while a signal waits to be taken.
    unanswered: OwnedFd,
}

impl Causes {
    fn of_this_process(watches_output: bool) -> io::Result<Causes> {
        let streams = [
            (0, io::stdin().is_terminal()),
            (1, io::stdout().is_terminal()),
            (2, io::stderr().is_terminal()),
        ];
        let stays = signals::is_ignored(libc::SIGHUP);
        let terminals = streams.into_iter().filter(|(_, is)| *is && !stays).map(|(fd, _)| fd);
        let ending = ending_set();
        // SAFETY: the set is initialised; the descriptor is new and ours alone.
        let unanswered = unsafe {
            let fd = check(libc::signalfd(-1, &ending, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK))?;
            OwnedFd::from_raw_fd(fd)
        };
        let output = (watches_output && has_reader(1)).then_some(1);
        Ok(Causes { terminals: terminals.collect(), output, unanswered })
    }

    /// Watches until `stop` is signalled.
    fn watch(mut self, stop: &EventFd) {
        let (mut unanswered, mut unread) = (0, None);
        loop {
            let waits = unanswered > 0 || unread.is_some();
            let timeout = if waits { CHECK_INTERVAL_MS } else { -1 };
            let Some(seen) = self.poll(stop, waits, timeout) else { continue };
            if seen.stopped {
                return;
            }
            if seen.hung_up {
                self.terminals.clear();
                send_to_self(libc::SIGHUP);
            }
            if seen.unread {
                self.output = None;
                unread = Some(0);
            }
            unread = unread.map(|checks| checks + 1);
            if unread.take_if(|checks| *checks > READER_GRACE).is_some() {
                send_to_self(libc::SIGTERM);
            }
            unanswered = match first_pending() {
                Some(signal) if unanswered >= MAX_UNANSWERED => end(signal),
                Some(_) => unanswered + 1,
                None => 0,
            };
        }
    }

    /// Waits until something happens, or for `timeout` in milliseconds. While a signal waits already, it is not waited
    /// for again.
    fn poll(&self, stop: &EventFd, waits: bool, timeout: i32) -> Option<Seen> {
        let entry = |fd, events| libc::pollfd { fd, events, revents: 0 };
        let signals = if waits { -1 } else { self.unanswered.as_raw_fd() };
        let mut fds = vec![
            entry(stop.as_fd().as_raw_fd(), libc::POLLIN),
            entry(signals, libc::POLLIN),
            // A negative descriptor is passed over.
            entry(self.output.unwrap_or(-1), 0),
        ];
        fds.extend(self.terminals.iter().map(|fd| entry(*fd, 0)));
        // SAFETY: the entries outlive the call.
        let ready = unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, timeout) };
        if ready < 0 {
            return None;
        }
        let is_gone = |fd: &libc::pollfd| fd.revents & (libc::POLLHUP | libc::POLLERR) != 0;
        Some(Seen {
            stopped: fds[0].revents != 0,
            unread: is_gone(&fds[2]),
            hung_up: fds[3..].iter().any(is_gone),
        })
    }
}

/// The result of one poll.
struct Seen {
    stopped: bool,
    unread: bool,
    hung_up: bool,
}

/// Whether `fd` is a pipe or a socket.
fn has_reader(fd: i32) -> bool {
    // SAFETY: an all-zero stat is valid, and the call fills it in; a closed descriptor is an error.
    unsafe {
        let mut stat: libc::stat = mem::zeroed();
        libc::fstat(fd, &mut stat) == 0
            && matches!(stat.st_mode & libc::S_IFMT, libc::S_IFIFO | libc::S_IFSOCK)
    }
}

fn send_to_self(signal: i32) {
    // SAFETY: kill takes numbers.
    unsafe { libc::kill(libc::getpid(), signal) };
}

/// The signal that asks this process to end and that nobody has taken, if there is one.
fn first_pending() -> Option<i32> {
    // SAFETY: an all-zero set is valid, and the call fills it in.
    unsafe {
        let mut pending: libc::sigset_t = mem::zeroed();
        libc::sigpending(&mut pending);
        ENDING.into_iter().find(|signal| libc::sigismember(&pending, *signal) == 1)
    }
}

fn end(signal: i32) -> ! {
    // SAFETY: _exit does not return and touches no memory.
    unsafe { libc::_exit(128 + signal) }
}

fn ending_set() -> libc::sigset_t {
    // SAFETY: sigset_t is plain data, sigemptyset makes it a valid empty set, and the signals exist.
    unsafe {
        let mut set = mem::zeroed();
        libc::sigemptyset(&mut set);
        // One that is ignored is never answered.
        for signal in ENDING.into_iter().filter(|signal| !signals::is_ignored(*signal)) {
            libc::sigaddset(&mut set, signal);
        }
        set
    }
}

/// Blocks every signal in this thread; returns the mask before.
pub(crate) fn block_all() -> libc::sigset_t {
    // SAFETY: both sets are valid for the calls.
    unsafe {
        let (mut all, mut before) = (mem::zeroed(), mem::zeroed());
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        before
    }
}

pub(crate) fn restore(mask: &libc::sigset_t) {
    // SAFETY: the mask was filled by pthread_sigmask.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, mask, std::ptr::null_mut()) };
}
