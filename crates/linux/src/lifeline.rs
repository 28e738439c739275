//! Ends this process with its causes: a thread sends SIGHUP when the terminal is gone and SIGTERM when nothing reads
//! the output, and ends a process that does not react to its signals.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, fstat};
use rustix::stdio::{stderr, stdin, stdout};
use rustix::termios::isatty;

use crate::event_fd::EventFd;
use crate::signals::{self, ENDING, Signal, SignalSet, end};

/// Time between two checks of unanswered signals, and the checks after which the process ends: a second and a half.
const CHECK_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
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
    // The thread must take no signal.
    let started = signals::without_signals(|| {
        thread::Builder::new().name("lifeline".into()).spawn(move || causes.watch(&stopped))
    });
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
    terminals: Vec<BorrowedFd<'static>>,
    /// Standard output, if it is a pipe or a socket that somebody is to read.
    output: Option<BorrowedFd<'static>>,
    /// Readable while a signal waits to be taken.
    unanswered: OwnedFd,
}

impl Causes {
    fn of_this_process(watches_output: bool) -> io::Result<Causes> {
        let stays = signals::is_ignored(libc::SIGHUP);
        let is_watched = |stream: &BorrowedFd<'_>| !stays && isatty(stream);
        let terminals = [stdin(), stdout(), stderr()].into_iter().filter(is_watched).collect();
        // A signal that is ignored is never answered.
        let ending = SignalSet::of(ENDING.into_iter().filter(|s| !signals::is_ignored(*s)));
        let output = (watches_output && has_reader(stdout())).then(stdout);
        Ok(Causes { terminals, output, unanswered: ending.descriptor()? })
    }

    fn watch(mut self, stop: &EventFd) {
        let (mut unanswered, mut unread) = (0, None);
        loop {
            let waits = unanswered > 0 || unread.is_some();
            let timeout = waits.then_some(&CHECK_INTERVAL);
            let Some(seen) = self.poll(stop, waits, timeout) else { continue };
            if seen.stopped {
                return;
            }
            if seen.hung_up {
                self.terminals.clear();
                Signal::HANG_UP.send(std::process::id());
            }
            if seen.unread {
                self.output = None;
                unread = Some(0);
            }
            unread = unread.map(|checks| checks + 1);
            if unread.take_if(|checks| *checks > READER_GRACE).is_some() {
                Signal::TERMINATE.send(std::process::id());
            }
            unanswered = match first_pending() {
                Some(signal) if unanswered >= MAX_UNANSWERED => end(128 + signal as u8),
                Some(_) => unanswered + 1,
                None => 0,
            };
        }
    }

    /// Waits until something happens, or for `timeout`. While a signal waits already, it is not waited for again.
    fn poll(&self, stop: &EventFd, waits: bool, timeout: Option<&Timespec>) -> Option<Seen> {
        let mut fds = vec![PollFd::new(stop, PollFlags::IN)];
        // These are only watched for their ends.
        fds.extend(self.output.iter().map(|fd| PollFd::new(fd, PollFlags::empty())));
        fds.extend(self.terminals.iter().map(|fd| PollFd::new(fd, PollFlags::empty())));
        if !waits {
            fds.push(PollFd::new(&self.unanswered, PollFlags::IN));
        }
        poll(&mut fds, timeout).ok()?;
        let (stop, others) = fds.split_first()?;
        let (output, others) = others.split_at(self.output.iter().len());
        let terminals = &others[..self.terminals.len()];
        let is_gone = |fd: &PollFd<'_>| fd.revents().intersects(PollFlags::HUP | PollFlags::ERR);
        Some(Seen {
            stopped: !stop.revents().is_empty(),
            unread: output.iter().any(is_gone),
            hung_up: terminals.iter().any(is_gone),
        })
    }
}

struct Seen {
    stopped: bool,
    unread: bool,
    hung_up: bool,
}

/// Whether `stream` is a pipe or a socket. A closed one is neither.
fn has_reader(stream: BorrowedFd<'_>) -> bool {
    let kind = fstat(stream).map(|stat| FileType::from_raw_mode(stat.st_mode));
    matches!(kind, Ok(FileType::Fifo | FileType::Socket))
}

/// The signal that asks this process to end and that nobody has taken, if there is one.
fn first_pending() -> Option<i32> {
    let pending = SignalSet::pending();
    ENDING.into_iter().find(|signal| pending.contains(*signal))
}
