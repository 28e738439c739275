//! Waits for descriptors until a given time, and wakes other threads (eventfd(2)).

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use sweetspot_units::Time;

use crate::{check, clock};

/// Waits until one of `sources` is readable or `due` has come on the clock of [`clock::now`]. At most four sources are polled.
pub fn wait_readable(sources: &[BorrowedFd<'_>], due: Time) -> io::Result<()> {
    let mut fds = [libc::pollfd { fd: -1, events: libc::POLLIN, revents: 0 }; 4];
    for (fd, source) in fds.iter_mut().zip(sources) {
        fd.fd = source.as_raw_fd();
    }
    let timeout = clock::timespec(Time::ZERO + due.since(clock::now()));
    let count = sources.len().min(fds.len()) as libc::nfds_t;
    // SAFETY: `fds` and `timeout` outlive the call; a null mask leaves signals as they are.
    match check(unsafe { libc::ppoll(fds.as_mut_ptr(), count, &timeout, std::ptr::null()) }) {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
        other => other.map(|_| ()),
    }
}

/// Whether `source` can be read without waiting; its end is read so, too.
pub fn is_readable(source: BorrowedFd<'_>) -> bool {
    poll_now(source, libc::POLLIN) & (libc::POLLIN | libc::POLLHUP | libc::POLLERR) != 0
}

/// Whether a connection is shut down in both directions, or broke.
pub fn is_hung_up(connection: BorrowedFd<'_>) -> bool {
    poll_now(connection, 0) & (libc::POLLHUP | libc::POLLERR) != 0
}

fn poll_now(source: BorrowedFd<'_>, events: libc::c_short) -> libc::c_short {
    let mut fd = libc::pollfd { fd: source.as_raw_fd(), events, revents: 0 };
    // SAFETY: one valid pollfd; a timeout of zero returns at once.
    unsafe { libc::poll(&mut fd, 1, 0) };
    fd.revents
}

/// Whether the other end of `source` is gone, such as the window of a terminal.
pub fn has_hung_up(source: impl AsFd) -> bool {
    let mut fd = libc::pollfd { fd: source.as_fd().as_raw_fd(), events: 0, revents: 0 };
    // SAFETY: one valid pollfd; a timeout of zero returns at once.
    unsafe { libc::poll(&mut fd, 1, 0) };
    fd.revents & (libc::POLLHUP | libc::POLLERR) != 0
}

/// An eventfd: one thread signals it, another waits for it among its other sources.
#[derive(Debug)]
pub struct EventFd(OwnedFd);

impl EventFd {
    /// An eventfd that is not signalled.
    pub fn new() -> io::Result<EventFd> {
        // SAFETY: eventfd takes numbers; the descriptor it returns is ours alone.
        unsafe {
            let fd = check(libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK))?;
            Ok(EventFd(OwnedFd::from_raw_fd(fd)))
        }
    }

    /// Signals it; it stays readable until [`EventFd::clear`].
    pub fn signal(&self) {
        let one = 1_u64;
        // SAFETY: eight bytes are read from `one`. A full counter is as good as one that grew.
        unsafe { libc::write(self.0.as_raw_fd(), (&raw const one).cast(), 8) };
    }

    /// Makes it unreadable until the next signal.
    pub fn clear(&self) {
        let mut count = 0_u64;
        // SAFETY: eight bytes are written to `count`. One not signalled returns EAGAIN.
        unsafe { libc::read(self.0.as_raw_fd(), (&raw mut count).cast(), 8) };
    }
}

impl AsFd for EventFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
