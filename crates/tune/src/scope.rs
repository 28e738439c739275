use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::BorrowedFd;

use sweetspot_control::policy::{MatchedRule, Subject};
use sweetspot_control::{CongestionName, Goal, NotLimited};
use sweetspot_kernel::{Record, Transfers};
use sweetspot_linux::live::{BorrowError, ProcessHandle};
use sweetspot_linux::processes::{self, Descriptor, Process};
use sweetspot_sizing::SavedWindow;
use sweetspot_units::Time;

use crate::error::{TuneError, Untunable};
use crate::kernel::KernelConnection;

/// Finds the connections to be tuned.
pub trait Scope {
    /// The sockets and connections that are new since the last call. Each process that may not be inspected is added to
    /// `refused` once.
    fn find(&mut self, now: Time, refused: &mut Vec<Untunable>) -> Result<Vec<Found>, TuneError>;

    /// Reads the records that arrived and does timed work. Must be called at [`Scope::poll_timeout`].
    fn handle_timeout(&mut self, _now: Time) -> Result<(), TuneError> {
        Ok(())
    }

    /// When to call [`Scope::handle_timeout`] next; [`Time::MAX`] if nothing is due.
    fn poll_timeout(&self) -> Time {
        Time::MAX
    }

    /// Puts the changes since the last call into effect, unless they already are.
    fn flush(&mut self) -> Result<(), TuneError> {
        Ok(())
    }

    /// Saves the parameters of the path to a peer, for the next transfer to start with; `None` deletes them. The default does
    /// nothing: a search finds connections too late for that.
    fn remember(
        &mut self,
        _now: Time,
        _transfers: Transfers,
        _peer: IpAddr,
        _memory: Option<SavedWindow>,
    ) {
    }

    /// Lifts for good the limits that the tuner does not know of; the tuner has lifted the others.
    fn lift(&mut self) {}

    /// Passes a descriptor to `wait` that becomes readable when there is something to find; `None` if only a search can tell.
    fn announced(&self, wait: &mut dyn FnMut(Option<BorrowedFd<'_>>)) {
        wait(None);
    }

    /// Whether a search would find a connection that was already reported.
    fn has_found(&self) -> bool {
        false
    }

    /// Whether a connection is tuned.
    fn select(&self, subject: &Subject<'_>) -> Selection;

    /// The congestion control chosen for a connection; `None` leaves its own.
    fn congestion(&self, _subject: &Subject<'_>) -> Option<CongestionName> {
        None
    }

    /// The rule of the policy that decides about a connection; `None` without a policy or such a rule.
    fn rule(&self, _subject: &Subject<'_>) -> Option<MatchedRule> {
        None
    }

    /// Reports the socket with this inode again later, because it is not connected yet.
    fn forget(&mut self, inode: u64);
}

/// Whether a connection is tuned, and why not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selection {
    /// It is tuned, for this goal.
    Tuned(Goal),
    /// It is left alone, for this reason.
    LeftAlone(NotLimited),
    /// It belongs to a program outside the scope.
    OfOther,
}

impl Selection {
    /// Tunes a connection for the goal of the rule that matches it; without such a rule or a goal, leaves it alone.
    pub fn by_policy(rule: Option<MatchedRule>) -> Selection {
        match rule.map(|rule| rule.goal) {
            Some(Some(goal)) => Selection::Tuned(goal),
            Some(None) => Selection::LeftAlone(NotLimited::ByPolicy),
            None => Selection::LeftAlone(NotLimited::NoRule),
        }
    }

    /// Tunes for `goal` if `remote` is one of `peers`, or if `peers` is empty.
    pub fn by_peer(goal: Goal, peers: &[SocketAddr], remote: SocketAddr) -> Selection {
        match peers.is_empty() || peers.contains(&remote) {
            true => Selection::Tuned(goal),
            false => Selection::LeftAlone(NotLimited::OtherPeer),
        }
    }
}

/// A connection or socket that the scope found.
#[derive(Debug, Clone)]
pub enum Found {
    /// A socket of a process; it may not be a TCP connection.
    Socket(FoundSocket),
    /// A connection that the BPF programs report.
    InKernel(Box<FoundConnection>),
}

/// A bulk transfer that BPF programs sample.
#[derive(Debug, Clone)]
pub struct FoundConnection {
    /// The handle for samples and limits.
    pub connection: KernelConnection,
    /// Its first record.
    pub record: Record,
    /// Its process; `None` if unknown.
    pub owner: Option<Process>,
}

/// A socket of a process, of any kind.
#[derive(Debug, Clone)]
pub struct FoundSocket {
    /// The process.
    pub process: ProcessHandle,
    /// The process's name.
    pub program: String,
    /// The user that it runs as.
    pub uid: u32,
    /// When it started, in clock ticks since boot.
    pub started: u64,
    /// The socket's descriptor and inode.
    pub descriptor: Descriptor,
}

/// The connections of a process and all its descendants.
#[derive(Debug)]
pub struct ProcessFamily {
    root: u32,
    goal: Goal,
    /// If empty, connections to any peer are tuned.
    peers: Vec<SocketAddr>,
    known: BTreeSet<u64>,
    complained: BTreeSet<u32>,
}

impl ProcessFamily {
    /// A scope of the process `root` and its descendants; all of their connections have this goal.
    pub fn new(root: u32, goal: Goal) -> ProcessFamily {
        let (known, complained) = (BTreeSet::new(), BTreeSet::new());
        ProcessFamily { root, goal, peers: Vec::new(), known, complained }
    }

    /// Tunes only the connections to `peers`; if empty, connections to any peer.
    pub fn with_peers(self, peers: Vec<SocketAddr>) -> ProcessFamily {
        ProcessFamily { peers, ..self }
    }
}

impl Scope for ProcessFamily {
    fn find(&mut self, _now: Time, refused: &mut Vec<Untunable>) -> Result<Vec<Found>, TuneError> {
        let mut found = Vec::new();
        let mut present = BTreeSet::new();
        for pid in processes::family(self.root) {
            match sockets_of(pid, &self.known, &mut present) {
                Ok(new) => found.extend(new.into_iter().map(Found::Socket)),
                Err(error) if error.is_over() => {}
                Err(error) => {
                    if self.complained.insert(pid) {
                        refused.push(error.into());
                    }
                }
            }
        }
        self.known = present;
        Ok(found)
    }

    fn forget(&mut self, inode: u64) {
        self.known.remove(&inode);
    }

    fn select(&self, subject: &Subject<'_>) -> Selection {
        Selection::by_peer(self.goal, &self.peers, subject.remote)
    }
}

/// The sockets of `pid` with inodes that are not `known`. Adds all inodes to `present`. A socket shared by several processes
/// appears once.
pub fn sockets_of(
    pid: u32,
    known: &BTreeSet<u64>,
    present: &mut BTreeSet<u64>,
) -> Result<Vec<FoundSocket>, BorrowError> {
    let descriptors = match processes::sockets(pid) {
        Ok(descriptors) => descriptors,
        // With CAP_SYS_PTRACE alone, sockets can be borrowed but not listed under /proc.
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            ProcessHandle::open(pid)?.sockets()?
        }
        // The process has ended.
        Err(_) => return Err(BorrowError::ProcessEnded { pid }),
    };
    let mut new = Vec::new();
    for descriptor in descriptors {
        if present.insert(descriptor.inode) && !known.contains(&descriptor.inode) {
            new.push(descriptor);
        }
    }
    if new.is_empty() {
        return Ok(Vec::new());
    }
    // Opens the handle first: if the process read afterwards has the same start time, both are the same process.
    let process = ProcessHandle::open(pid)?;
    let Ok(Process { name, uid, started, .. }) = Process::read(pid) else {
        return Err(BorrowError::ProcessEnded { pid });
    };
    let found = |descriptor| FoundSocket {
        process: process.clone(),
        program: name.clone(),
        uid,
        started,
        descriptor,
    };
    Ok(new.into_iter().map(found).collect())
}
