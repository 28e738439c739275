//! Ends this process when it is no longer needed. A thread sends SIGHUP when the terminal is gone and SIGTERM when
//! nothing reads the output. It also ends a process that does not react to its signals.

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

/// Interval between checks for unanswered signals. After 15 such checks, 1.5 s, the process is ended.
const CHECK_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
const MAX_UNANSWERED: u32 = 15;
/// Checks between the reader's end and SIGTERM: a verb that writes in the meantime ends by itself, without an error.
const READER_GRACE: u32 = 10;

static LIFELINE: Mutex<Option<Lifeline>> = Mutex::new(None);

struct Lifeline {
    watches_output: bool,
    stop: Arc<EventFd>,
    thread: JoinHandle<()>,
}

/// Starts the thread. `watches_output`: the verb only produces output, so it ends when nothing reads that.
pub fn hold(watches_output: bool) -> io::Result<()> {
    let causes = Causes::of_this_process(watches_output)?;
    let stop = Arc::new(EventFd::new()?);
    let stopped = Arc::clone(&stop);
    // The thread must not receive signals.
    let started = signals::without_signals(|| {
        thread::Builder::new().name("lifeline".into()).spawn(move || causes.watch(&stopped))
    });
    let lifeline = Lifeline { watches_output, stop, thread: started? };
    *LIFELINE.lock().unwrap_or_else(PoisonError::into_inner) = Some(lifeline);
    Ok(())
}

/// Keeps the thread stopped until dropped, because only a single-threaded process can fork.
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
            // If this fails, the process still obeys signals.
            let _ = hold(watches_output);
        }
    }
}

/// The events that the thread watches.
struct Causes {
    /// The terminals among the standard streams.
    terminals: Vec<BorrowedFd<'static>>,
    /// Standard output, if it is a pipe or a socket with a reader.
    output: Option<BorrowedFd<'static>>,
    /// Readable while a signal is pending.
    unanswered: OwnedFd,
}

impl Causes {
    fn of_this_process(watches_output: bool) -> io::Result<Causes> {
        let stays = signals::is_ignored(libc::SIGHUP);
        let is_watched = |stream: &BorrowedFd<'_>| !stays && isatty(stream);
        let terminals = [stdin(), stdout(), stderr()].into_iter().filter(is_watched).collect();
        // An ignored signal is never answered.
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

    /// Waits for an event or for `timeout`. While `waits` says that a signal is already pending, signals are not
    /// polled.
    fn poll(&self, stop: &EventFd, waits: bool, timeout: Option<&Timespec>) -> Option<Seen> {
        let mut fds = vec![PollFd::new(stop, PollFlags::IN)];
        // These are polled only for hang-up.
        fds.extend(self.output.iter().map(|fd| PollFd::new(fd, PollFlags::empty())));
        fds.extend(self.terminals.iter().map(|fd| PollFd::new(fd, PollFlags::empty())));
        if !waits {
            fds.push(PollFd::new(&self.unanswered, PollFlags::IN));
        }
        poll(&mut fds, timeout).ok()?;
        let (stop, rest) = fds.split_first()?;
        let (output, rest) = rest.split_at(self.output.iter().len());
        let terminals = &rest[..self.terminals.len()];
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

/// A pending signal that asks this process to end, if any.
fn first_pending() -> Option<i32> {
    let pending = SignalSet::pending();
    ENDING.into_iter().find(|signal| pending.contains(*signal))
}
