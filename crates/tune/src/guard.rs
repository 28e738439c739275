use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};

use sweetspot_linux::guardian::{self, Lifeline};
use sweetspot_linux::live::{LiveSocket, ProcessHandle};
use sweetspot_linux::processes::Process;

use crate::look::limit;

/// What has been done to connections and must be undone: told to a guardian before it is done, so
/// that it is undone even after `kill -9`.
///
/// Nothing is held open for that: a second descriptor would keep a connection alive that its
/// program has closed.
#[derive(Debug)]
pub struct Leases {
    lifeline: Lifeline,
}

impl Leases {
    /// Tells the guardian what is about to be done.
    pub fn take(&mut self, socket: &LiveSocket, started: u64) -> io::Result<()> {
        let (pid, fd) = (socket.process().pid(), socket.fd());
        let (inode, cookie) = (socket.inode(), socket.cookie());
        // One write: the guardian reads whole lines or, when we die, none.
        let line = format!("+ {pid} {started} {fd} {inode} {cookie}\n");
        self.lifeline.write_all(line.as_bytes())
    }

    /// Tells the guardian that it was undone, or that there is nothing to undo any more.
    pub fn release(&mut self, cookie: u64) -> io::Result<()> {
        self.lifeline.write_all(format!("- {cookie}\n").as_bytes())
    }

    /// Whether the guardian has gone: then nobody would undo what is done.
    pub fn are_worthless(&self) -> bool {
        self.lifeline.is_cut()
    }
}

/// Runs `work` in a process of its own, under a guardian that undoes what it leaves; returns its
/// exit code.
pub fn guarded(work: impl FnOnce(Leases) -> u8) -> io::Result<u8> {
    guardian::with_guardian(|lifeline| work(Leases { lifeline }), guard)
}

fn guard(reader: File) {
    let mut held = BTreeMap::new();
    for line in BufReader::new(reader).lines().map_while(Result::ok) {
        note(&mut held, &line);
    }
    for socket in held.values().filter_map(Lease::socket) {
        // One that is no more, or stands for another one, needs nothing.
        let _ = limit(&socket, None);
    }
}

/// A socket as the guardian knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Lease {
    pid: u32,
    started: u64,
    fd: i32,
    inode: u64,
    cookie: u64,
}

impl Lease {
    fn socket(&self) -> Option<LiveSocket> {
        let process = ProcessHandle::open(self.pid).ok()?;
        let same = Process::read(self.pid).is_ok_and(|p| p.started == self.started);
        if !same {
            return None;
        }
        LiveSocket::name(&process, self.fd, self.inode, Some(self.cookie)).ok()
    }
}

fn note(held: &mut BTreeMap<u64, Lease>, line: &str) -> Option<()> {
    let words: Vec<&str> = line.split(' ').collect();
    match words[..] {
        ["+", pid, started, fd, inode, cookie] => {
            let cookie = cookie.parse().ok()?;
            let lease = Lease {
                pid: pid.parse().ok()?,
                started: started.parse().ok()?,
                fd: fd.parse().ok()?,
                inode: inode.parse().ok()?,
                cookie,
            };
            held.insert(cookie, lease);
        }
        ["-", cookie] => {
            held.remove(&cookie.parse().ok()?);
        }
        _ => {}
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guardian_knows_what_was_taken_and_not_released() {
        let mut held = BTreeMap::new();
        note(&mut held, "+ 10 99 3 1234 77");
        note(&mut held, "+ 10 99 4 1235 78");
        note(&mut held, "- 77");
        let lease = Lease { pid: 10, started: 99, fd: 4, inode: 1235, cookie: 78 };
        assert_eq!(held, BTreeMap::from([(78, lease)]));
    }

    #[test]
    fn a_line_cut_short_is_no_lease() {
        let mut held = BTreeMap::new();
        for line in ["", "+ 10 99 3", "+ x 1 1 1 1", "-", "- x"] {
            note(&mut held, line);
        }
        assert!(held.is_empty());
    }
}
