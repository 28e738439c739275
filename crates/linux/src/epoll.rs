//! Watches many descriptors at once (epoll(7)).

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use crate::check;

/// A set of watched descriptors. It is readable itself while one of them has news.
#[derive(Debug)]
pub struct Epoll(OwnedFd);

/// The readiness of one descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Readiness {
    /// The number given to [`Epoll::watch`].
    pub number: u64,
    /// There is data to read, or the peer has closed its half.
    pub readable: bool,
    /// There is room to write.
    pub writable: bool,
    /// The connection has ended, with or without an error.
    pub over: bool,
}

/// The most news taken in one call.
const EVENT_BATCH: usize = 256;

impl Epoll {
    /// An empty set.
    pub fn new() -> io::Result<Epoll> {
        // SAFETY: epoll_create1 takes a number; the descriptor it returns is ours alone.
        unsafe {
            let fd = check(libc::epoll_create1(libc::EPOLL_CLOEXEC))?;
            Ok(Epoll(OwnedFd::from_raw_fd(fd)))
        }
    }

    /// Watches `source` until it is closed, under `number`. News come once per change (edge-triggered), so the
    /// caller must read all there is.
    pub fn watch(&self, source: impl AsFd, number: u64) -> io::Result<()> {
        let events = libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLRDHUP | libc::EPOLLET;
        let mut event = libc::epoll_event { events: events as u32, u64: number };
        let fd = source.as_fd().as_raw_fd();
        // SAFETY: both descriptors are open and `event` is valid for the call.
        check(unsafe { libc::epoll_ctl(self.0.as_raw_fd(), libc::EPOLL_CTL_ADD, fd, &mut event) })?;
        Ok(())
    }

    /// Appends new events to `news` without waiting. Returns whether there may be more.
    pub fn take(&self, news: &mut Vec<Readiness>) -> io::Result<bool> {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; EVENT_BATCH];
        // SAFETY: `events` has room for the number given; a timeout of zero returns at once.
        let n = unsafe {
            libc::epoll_wait(self.0.as_raw_fd(), events.as_mut_ptr(), EVENT_BATCH as libc::c_int, 0)
        };
        let count = match check(n) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
            other => other? as usize,
        };
        news.extend(events[..count].iter().map(|event| {
            let has = |flags: libc::c_int| event.events & flags as u32 != 0;
            Readiness {
                number: event.u64,
                readable: has(libc::EPOLLIN | libc::EPOLLRDHUP),
                writable: has(libc::EPOLLOUT),
                over: has(libc::EPOLLERR | libc::EPOLLHUP),
            }
        }));
        Ok(count == EVENT_BATCH)
    }
}

impl AsRawFd for Epoll {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

impl AsFd for Epoll {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    #[test]
    fn news_come_once_per_change() {
        let epoll = Epoll::new().unwrap();
        let (mut near, mut far) = UnixStream::pair().unwrap();
        epoll.watch(&far, 7).unwrap();
        let mut news = Vec::new();
        assert!(!epoll.take(&mut news).unwrap());
        assert_eq!(news, [Readiness { number: 7, readable: false, writable: true, over: false }]);
        news.clear();
        epoll.take(&mut news).unwrap();
        assert_eq!(news, []);
        near.write_all(b"x").unwrap();
        epoll.take(&mut news).unwrap();
        assert!(news.len() == 1 && news[0].readable);
        far.read_exact(&mut [0]).unwrap();
        drop(near);
        news.clear();
        epoll.take(&mut news).unwrap();
        assert!(news.len() == 1 && news[0].over);
    }
}
