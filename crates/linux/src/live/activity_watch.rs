use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};

use rustix::event::{EventfdFlags, eventfd};

use crate::check;
use crate::epoll::{Epoll, Readiness};

/// Reports which of many sockets of this process have new data or free space to write, without polling each (epoll(7),
/// edge-triggered).
///
/// The sockets belong to another part of the process. The watch keeps none of them open; the kernel forgets each when its
/// last descriptor is closed. Events are hints: a closed socket still causes events while a child of fork(2) has it open.
///
/// A program may close every descriptor that it does not know, after which its own files may reuse the watch's descriptor
/// numbers. So each call first verifies that the epoll descriptor is still this watch's, using a marker that is registered
/// only there. If it is not, the call fails and nothing is closed. A close between the check and the call goes unnoticed.
#[derive(Debug)]
pub struct ActivityWatch {
    epoll: ManuallyDrop<Epoll>,
    mark: ManuallyDrop<OwnedFd>,
}

impl ActivityWatch {
    /// An empty watch. It uses two close-on-exec descriptors.
    pub fn new() -> io::Result<ActivityWatch> {
        let epoll = Epoll::new()?;
        let mark = eventfd(0, EventfdFlags::CLOEXEC)?;
        let watch =
            ActivityWatch { epoll: ManuallyDrop::new(epoll), mark: ManuallyDrop::new(mark) };
        watch.control(libc::EPOLL_CTL_ADD, watch.mark.as_raw_fd(), 0)?;
        Ok(watch)
    }

    /// Watches the file behind this descriptor, which its owner may close at any time, under `number`. The first event is
    /// that the socket is writable.
    pub fn add(&self, fd: RawFd, number: u64) -> io::Result<()> {
        self.prove()?;
        // SAFETY: the number is only passed to epoll_ctl(2), which rejects it if it is not open.
        let source = unsafe { BorrowedFd::borrow_raw(fd) };
        match self.epoll.watch(source, number) {
            // The same file is already watched under the same descriptor.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            watched => watched,
        }
    }

    /// Stops watching the file behind this descriptor. A closed file is no longer watched anyway.
    pub fn remove(&self, fd: RawFd) {
        if self.prove().is_ok() {
            // An error means that it was not watched.
            let _ = self.control(libc::EPOLL_CTL_DEL, fd, 0);
        }
    }

    /// Appends events since the last call to `ready`; a call may return only some of them. Does not wait.
    pub fn take(&self, ready: &mut Vec<Readiness>) -> io::Result<()> {
        self.prove()?;
        self.epoll.take(ready).map(drop)
    }

    /// Fails unless both descriptor numbers still belong to this watch's files.
    fn prove(&self) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, self.mark.as_raw_fd(), 0)
    }

    fn control(&self, call: libc::c_int, fd: RawFd, events: u32) -> io::Result<()> {
        let mut event = libc::epoll_event { events, u64: 0 };
        let epoll = self.epoll.as_raw_fd();
        // SAFETY: epoll_ctl takes any numbers, and `event` is valid for the call.
        check(unsafe { libc::epoll_ctl(epoll, call, fd, &mut event) }).map(drop)
    }
}

impl Drop for ActivityWatch {
    fn drop(&mut self) {
        if self.prove().is_ok() {
            // SAFETY: neither descriptor is used again.
            unsafe {
                ManuallyDrop::drop(&mut self.epoll);
                ManuallyDrop::drop(&mut self.mark);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    fn ready(watch: &ActivityWatch) -> Vec<u64> {
        let mut ready = Vec::new();
        watch.take(&mut ready).unwrap();
        ready
            .iter()
            .filter(|ready| ready.readable || ready.closed)
            .map(|ready| ready.number)
            .collect()
    }

    #[test]
    fn activity_is_reported_once_per_change_and_not_after_removal() {
        let watch = ActivityWatch::new().unwrap();
        let (mut client, server) = UnixStream::pair().unwrap();
        watch.add(server.as_raw_fd(), 7).unwrap();
        assert_eq!(ready(&watch), []);
        client.write_all(b"x").unwrap();
        assert_eq!((ready(&watch), ready(&watch)), (vec![7], vec![]));
        watch.remove(server.as_raw_fd());
        client.write_all(b"x").unwrap();
        assert_eq!(ready(&watch), []);
    }

    #[test]
    fn a_watched_file_whose_descriptor_is_reused_reports_nothing() {
        let watch = ActivityWatch::new().unwrap();
        let (mut client, server) = UnixStream::pair().unwrap();
        let (mut other, reused) = UnixStream::pair().unwrap();
        watch.add(server.as_raw_fd(), 7).unwrap();
        // SAFETY: makes the descriptor number of `server`, which `server` still owns, refer to a copy of `reused`.
        unsafe { libc::dup2(reused.as_raw_fd(), server.as_raw_fd()) };
        assert_eq!(client.read(&mut [0]).unwrap(), 0);
        other.write_all(b"x").unwrap();
        assert_eq!(ready(&watch), []);
        watch.add(server.as_raw_fd(), 8).unwrap();
        assert_eq!(ready(&watch), [8]);
    }

    /// Daemons close every descriptor when they start.
    #[test]
    fn a_reused_descriptor_of_the_watch_is_left_alone() {
        let watch = ActivityWatch::new().unwrap();
        let (own, number) = (Epoll::new().unwrap(), watch.epoll.as_raw_fd());
        let (mut client, server) = UnixStream::pair().unwrap();
        own.watch(&server, 9).unwrap();
        client.write_all(b"x").unwrap();
        // SAFETY: the watch's descriptor number now refers to the program's own set, which the watch must notice.
        unsafe { libc::dup2(own.as_raw_fd(), number) };
        assert!(watch.take(&mut Vec::new()).is_err());
        assert!(watch.add(server.as_raw_fd(), 7).is_err());
        watch.remove(server.as_raw_fd());
        drop(watch);
        let mut kept = Vec::new();
        own.take(&mut kept).unwrap();
        assert_eq!(kept.iter().map(|ready| ready.number).collect::<Vec<_>>(), [9]);
        // SAFETY: the number is still open, as the watch did not close it; closing it here ends the test's copy.
        assert_eq!(unsafe { libc::close(number) }, 0);
    }
}
