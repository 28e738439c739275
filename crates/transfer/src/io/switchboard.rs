//! The server's UDP port: tells each transfer under which address its sender's datagrams come.

use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex};

use sweetspot_linux::udp::Udp;
use sweetspot_linux::wake::{Bell, wait_readable};
use sweetspot_units::Time;

use super::channel::lock;
use crate::probe::{Packet, Seal};

/// One UDP socket for senders whose address is not known yet.
pub(crate) struct Switchboard {
    door: Udp,
    lines: Mutex<Vec<Arc<Line>>>,
    closing: Bell,
    closed: std::sync::atomic::AtomicBool,
}

/// Where one transfer waits for its sender's address.
pub(crate) struct Line {
    id: [u8; 8],
    seal: Seal,
    caller: Mutex<Option<SocketAddr>>,
    /// Rung when the sender has called.
    pub bell: Bell,
}

impl Switchboard {
    pub fn new(address: SocketAddr) -> std::io::Result<Switchboard> {
        Ok(Switchboard {
            door: Udp::bind_shared(address)?,
            lines: Mutex::default(),
            closing: Bell::new()?,
            closed: false.into(),
        })
    }

    /// A line for the transfer with this identity and seal.
    pub fn open_line(&self, id: [u8; 8], seal: Seal) -> std::io::Result<Arc<Line>> {
        let line = Line { id, seal, caller: Mutex::default(), bell: Bell::new()? };
        let line = Arc::new(line);
        lock(&self.lines).push(Arc::clone(&line));
        Ok(line)
    }

    /// The transfer is over.
    pub fn close_line(&self, line: &Arc<Line>) {
        lock(&self.lines).retain(|other| !Arc::ptr_eq(other, line));
    }

    /// Listens until [`Switchboard::close`].
    pub fn run(&self) {
        let mut datagram = [0; 2048];
        while !self.closed.load(std::sync::atomic::Ordering::Acquire) {
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
        self.closed.store(true, std::sync::atomic::Ordering::Release);
        self.closing.ring();
    }

    fn connect(&self, datagram: &[u8], from: SocketAddr) {
        let Some(id) = Seal::claimed_id(datagram) else { return };
        let Some(line) = lock(&self.lines).iter().find(|line| line.id == id).cloned() else {
            return;
        };
        if line.seal.open(datagram) == Some(Packet::Punch) {
            *lock(&line.caller) = Some(from);
            line.bell.ring();
        }
    }
}

impl Line {
    /// The sender's address, if it called since this was last asked.
    pub fn caller(&self) -> Option<SocketAddr> {
        self.bell.silence();
        lock(&self.caller).take()
    }
}
