use std::collections::BTreeSet;

use sweetspot_control::policy::{MatchedRule, PROGRAM_NAME_BYTES, Policy, Subject};
use sweetspot_linux::diag::{Detail, Diag, TcpState};
use sweetspot_linux::live::BorrowError;
use sweetspot_linux::processes;
use sweetspot_units::{Bytes, Duration, Time};

use crate::error::{TuneError, Untunable};
use crate::scope::{Found, Scope, Selection, sockets_of};

/// The time between two reads of the kernel's connection table. A read takes about a millisecond.
const TABLE_INTERVAL: Duration = Duration::from_millis(250);

/// The search for a connection's process begins once it has moved this much: an initial window (RFC 6928).
const MIN_TRANSFERRED: Bytes = Bytes::new(14_600);

/// The connections of a whole host that a policy covers.
#[derive(Debug)]
pub struct HostScope {
    policy: Policy,
    /// Whether uploads count, too.
    uploads: bool,
    diag: Diag,
    next_read: Time,
    /// The inodes of sockets for which a process was already searched.
    known: BTreeSet<u64>,
    /// Whether inaccessible processes were reported.
    complained: bool,
}

impl HostScope {
    /// A scope of the downloads in the calling thread's network namespace, and with `uploads` also of its uploads.
    pub fn new(policy: Policy, uploads: bool) -> Result<HostScope, TuneError> {
        let diag = Diag::open().map_err(|source| TuneError::Connections { source })?;
        Ok(HostScope {
            policy,
            uploads,
            diag,
            next_read: Time::ZERO,
            known: BTreeSet::new(),
            complained: false,
        })
    }

    /// Switches to another policy; all connections are searched for again.
    pub fn set_policy(&mut self, policy: Policy) {
        self.policy = policy;
        self.known.clear();
    }

    /// The inodes of connections that moved enough and are new.
    fn candidates(&mut self) -> Result<BTreeSet<u64>, TuneError> {
        let mut present = BTreeSet::new();
        let (info, uploads) = (Detail { info: true, ..Detail::NONE }, self.uploads);
        self.diag
            .connections(&[TcpState::Established, TcpState::FinWait2], info, |connection| {
                let moved = connection.info.map_or(Bytes::ZERO, |info| match uploads {
                    true => info.bytes_received.max(info.bytes_acked),
                    false => info.bytes_received,
                });
                if connection.inode != 0 && moved >= MIN_TRANSFERRED {
                    present.insert(connection.inode);
                }
            })
            .map_err(|source| TuneError::Connections { source })?;
        self.known.retain(|inode| present.contains(inode));
        Ok(present.into_iter().filter(|inode| !self.known.contains(inode)).collect())
    }
}

impl Scope for HostScope {
    fn find(&mut self, now: Time, refused: &mut Vec<Untunable>) -> Result<Vec<Found>, TuneError> {
        if now < self.next_read {
            return Ok(Vec::new());
        }
        self.next_read = now + TABLE_INTERVAL;
        let mut unresolved = self.candidates()?;
        self.known.extend(&unresolved);
        let (mut found, mut forbidden) = (Vec::new(), 0);
        let pids =
            processes::all().map_err(TuneError::at("cannot list processes (is /proc mounted?)"))?;
        for pid in pids {
            if unresolved.is_empty() {
                break;
            }
            match sockets_of(pid, &BTreeSet::new(), &mut BTreeSet::new()) {
                Ok(sockets) => {
                    let unresolved =
                        sockets.into_iter().filter(|f| unresolved.remove(&f.descriptor.inode));
                    found.extend(unresolved.map(Found::Socket));
                }
                Err(BorrowError::NotPermitted { .. }) => forbidden += 1,
                // The process has ended, or this kernel cannot borrow sockets; naming a socket reports the latter.
                Err(_) => {}
            }
        }
        // A connection without a visible process most likely belongs to one of the forbidden processes.
        if !unresolved.is_empty() && forbidden > 0 && !std::mem::replace(&mut self.complained, true)
        {
            refused.push(Untunable::Processes { processes: forbidden });
        }
        Ok(found)
    }

    fn forget(&mut self, inode: u64) {
        self.known.remove(&inode);
    }

    fn select(&self, subject: &Subject<'_>) -> Selection {
        Selection::by_policy(self.policy.matched(subject))
    }

    fn rule(&self, subject: &Subject<'_>) -> Option<MatchedRule> {
        self.policy.matched(subject)
    }
}

// A policy compares process names as the kernel stores them.
const _: () = assert!(PROGRAM_NAME_BYTES == processes::MAX_PROCESS_NAME_BYTES);
