//! Watches many descriptors at once (epoll(7)).

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};

/// A set of watched descriptors. The set itself is readable while any of them has an event pending.
#[derive(Debug)]
pub struct Epoll(OwnedFd);

/// The readiness of one descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Readiness {
    /// The number given to [`Epoll::watch`].
    pub number: u64,
    /// There is data to read, or the peer has closed its half.
    pub readable: bool,
    /// There is free space to write.
    pub writable: bool,
    /// The connection is closed in both directions or failed.
    pub closed: bool,
}

/// The maximum number of events taken in one call.
const EVENT_BATCH: usize = 256;

impl Epoll {
    /// An empty set.
    pub fn new() -> io::Result<Epoll> {
        Ok(Epoll(epoll::create(CreateFlags::CLOEXEC)?))
    }

    /// Watches `source` until it is closed, under `number`. An event is reported once per change
    /// (edge-triggered), so the caller must read all available data.
    pub fn watch(&self, source: impl AsFd, number: u64) -> io::Result<()> {
        let events = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        Ok(epoll::add(&self.0, source, EventData::new_u64(number), events)?)
    }

    /// Appends pending events to `ready` without waiting. Returns whether more may be pending.
    pub fn take(&self, ready: &mut Vec<Readiness>) -> io::Result<bool> {
        let mut events = [MaybeUninit::<Event>::uninit(); EVENT_BATCH];
        let at_once = Timespec::default();
        let events = match epoll::wait(&self.0, &mut events, Some(&at_once)) {
            Err(rustix::io::Errno::INTR) => return Ok(false),
            other => other?.0,
        };
        ready.extend(events.iter().map(|event| {
            let (flags, data) = (event.flags, event.data);
            Readiness {
                number: data.u64(),
                readable: flags.intersects(EventFlags::IN | EventFlags::RDHUP),
                writable: flags.intersects(EventFlags::OUT),
                closed: flags.intersects(EventFlags::ERR | EventFlags::HUP),
            }
        }));
        Ok(events.len() == EVENT_BATCH)
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
    fn readiness_is_reported_once_per_change() {
        let epoll = Epoll::new().unwrap();
        let (mut client, mut server) = UnixStream::pair().unwrap();
        epoll.watch(&server, 7).unwrap();
        let mut ready = Vec::new();
        assert!(!epoll.take(&mut ready).unwrap());
        assert_eq!(
            ready,
            [Readiness { number: 7, readable: false, writable: true, closed: false }]
        );
        ready.clear();
        epoll.take(&mut ready).unwrap();
        assert_eq!(ready, []);
        client.write_all(b"x").unwrap();
        epoll.take(&mut ready).unwrap();
        assert!(ready.len() == 1 && ready[0].readable);
        server.read_exact(&mut [0]).unwrap();
        drop(client);
        ready.clear();
        epoll.take(&mut ready).unwrap();
        assert!(ready.len() == 1 && ready[0].closed);
    }
}
