//! Waits for descriptors until a given time, and wakes other threads (eventfd(2)).

use std::array;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use sweetspot_units::Time;

use crate::clock;

const MAX_SOURCES: usize = 4;

/// Waits until one of `sources` is readable or the clock of [`clock::now`] reaches `due`. Polls at most four sources.
pub fn wait_readable(sources: &[BorrowedFd<'_>], due: Time) -> io::Result<()> {
    let Some(first) = sources.first() else {
        clock::sleep_until(due);
        return Ok(());
    };
    let entry = |n| PollFd::from_borrowed_fd(*sources.get(n).unwrap_or(first), PollFlags::IN);
    let mut fds: [PollFd<'_>; MAX_SOURCES] = array::from_fn(entry);
    let timeout = clock::timespec(Time::ZERO + due.since(clock::now()));
    match poll(&mut fds[..sources.len().min(MAX_SOURCES)], Some(&timeout)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Whether a read from `source` would not block. End of file counts as readable.
pub fn is_readable(source: impl AsFd) -> bool {
    poll_now(&source, PollFlags::IN).intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR)
}

/// Whether a connection has failed or is shut down in both directions, or the other end of `source` is gone, as when a
/// terminal window is closed.
pub fn is_hung_up(source: impl AsFd) -> bool {
    poll_now(&source, PollFlags::empty()).intersects(PollFlags::HUP | PollFlags::ERR)
}

fn poll_now(source: &impl AsFd, events: PollFlags) -> PollFlags {
    let mut fd = [PollFd::new(source, events)];
    // If poll fails, no event is reported.
    let _ = poll(&mut fd, Some(&Timespec::default()));
    fd[0].revents()
}

/// An eventfd that one thread signals and another polls among its other sources. If a seccomp filter forbids eventfd(2), a
/// pipe replaces it.
#[derive(Debug)]
pub struct EventFd {
    waited_for: OwnedFd,
    /// The pipe's write end.
    other: Option<OwnedFd>,
}

impl EventFd {
    /// Creates an eventfd that is not signalled.
    pub fn new() -> io::Result<EventFd> {
        match eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK) {
            Ok(waited_for) => Ok(EventFd { waited_for, other: None }),
            Err(Errno::NOSYS | Errno::PERM) => EventFd::pipe(),
            Err(error) => Err(error.into()),
        }
    }

    fn pipe() -> io::Result<EventFd> {
        let (waited_for, other) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        Ok(EventFd { waited_for, other: Some(other) })
    }

    /// Makes the descriptor readable until [`EventFd::clear`].
    pub fn signal(&self) {
        let end = self.other.as_ref().unwrap_or(&self.waited_for);
        // If the counter or the pipe is full, the descriptor is already readable.
        let _ = rustix::io::write(end, &1_u64.to_ne_bytes());
    }

    /// Makes the descriptor unreadable until the next signal.
    pub fn clear(&self) {
        // If no signal is pending, the read returns EAGAIN. A counter is empty after one read, a pipe after one read per
        // signal.
        while rustix::io::read(&self.waited_for, &mut [0_u8; 8]) == Ok(8) && self.other.is_some() {}
    }
}

impl AsFd for EventFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.waited_for.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_seen_until_it_is_cleared_with_or_without_eventfd() {
        for event in [EventFd::new().unwrap(), EventFd::pipe().unwrap()] {
            assert!(!is_readable(event.as_fd()));
            for signals in [1, 2, 100_000] {
                (0..signals).for_each(|_| event.signal());
                assert!(is_readable(event.as_fd()), "{signals}");
                event.clear();
                assert!(!is_readable(event.as_fd()), "{signals}");
            }
        }
    }
}
