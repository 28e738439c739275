//! The server's UDP port: tells each transfer under which address its sender's datagrams come.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use sweetspot_linux::event_fd::{EventFd, wait_readable};
use sweetspot_linux::udp::Udp;
use sweetspot_units::Time;

use super::channel::lock;
use crate::probe::{Packet, Seal};

/// One UDP socket for senders whose address is not known yet.
pub(crate) struct Switchboard {
    door: Udp,
    calls: Mutex<Calls>,
    closing: EventFd,
    closed: AtomicBool,
}

#[derive(Default)]
struct Calls {
    lines: Vec<Arc<Line>>,
    /// Datagrams that no line was open for: a sender's first one may overtake its hello.
    early: VecDeque<(Vec<u8>, SocketAddr)>,
}

/// Early datagrams kept, and the longest that is.
const EARLY: usize = 64;
const LONGEST: usize = 128;

/// Where one transfer waits for its sender's address.
pub(crate) struct Line {
    id: [u8; 4],
    seal: Seal,
    caller: Mutex<Option<SocketAddr>>,
    /// Rung when the sender has called.
    pub event_fd: EventFd,
}

impl Switchboard {
    pub fn new(address: SocketAddr) -> std::io::Result<Switchboard> {
        Ok(Switchboard {
            door: Udp::bind_shared(address)?,
            calls: Mutex::default(),
            closing: EventFd::new()?,
            closed: false.into(),
        })
    }

    /// A line for the transfer with this identity and seal.
    pub fn open_line(&self, id: [u8; 4], seal: Seal) -> std::io::Result<Arc<Line>> {
        let line = Line { id, seal, caller: Mutex::default(), event_fd: EventFd::new()? };
        let line = Arc::new(line);
        let mut calls = lock(&self.calls);
        calls.early.iter().for_each(|(datagram, from)| line.ring(datagram, *from));
        calls.lines.push(Arc::clone(&line));
        Ok(line)
    }

    /// The transfer is over.
    pub fn close_line(&self, line: &Arc<Line>) {
        lock(&self.calls).lines.retain(|other| !Arc::ptr_eq(other, line));
    }

    /// Listens until [`Switchboard::close`].
    pub fn run(&self) {
        let mut datagram = [0; 2048];
        while !self.closed.load(Ordering::Acquire) {
            let sources = [self.door.as_fd(), self.closing.as_fd()];
            if wait_readable(&sources, Time::MAX).is_err() {
                return;
            }
            // What cannot be received is lost, as datagrams may be.
            while let Ok(Some(arrival)) = self.door.receive(&mut datagram) {
                let datagram = &datagram[..arrival.length.min(datagram.len())];
                self.connect(datagram, arrival.from);
            }
        }
    }

    /// Ends [`Switchboard::run`].
    pub fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.closing.signal();
    }

    fn connect(&self, datagram: &[u8], from: SocketAddr) {
        let Some(id) = Seal::claimed_id(datagram) else { return };
        let mut calls = lock(&self.calls);
        // Identities are short: two lines may have the same, and the seal tells.
        let mut lines = calls.lines.iter().filter(|line| line.id == id).peekable();
        if lines.peek().is_some() {
            lines.for_each(|line| line.ring(datagram, from));
        } else if datagram.len() <= LONGEST {
            if calls.early.len() == EARLY {
                calls.early.pop_front();
            }
            calls.early.push_back((datagram.to_vec(), from));
        }
    }
}

impl Line {
    /// Takes down the caller, if this is the sender's call.
    fn ring(&self, datagram: &[u8], from: SocketAddr) {
        if self.seal.open(datagram) == Some(Packet::Punch) {
            *lock(&self.caller) = Some(from);
            self.event_fd.signal();
        }
    }

    /// The sender's address, if it called since this was last asked.
    pub fn caller(&self) -> Option<SocketAddr> {
        self.event_fd.clear();
        lock(&self.caller).take()
    }
}
