use std::collections::{BTreeMap, BTreeSet};
use std::iter;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::process;
use std::sync::{Arc, Mutex, PoisonError};

use sweetspot_control::policy::{MatchedRule, Policy, Subject};
use sweetspot_control::{CongestionName, Goal, network};
use sweetspot_kernel::{Connections, KernelError, Record, SocketPrograms, Transfers};
use sweetspot_linux::cgroup::Cgroup;
use sweetspot_linux::processes::{self, Process};
use sweetspot_sizing::{PATH_LIFETIME, SavedWindow};
use sweetspot_units::{Duration, Time};

use crate::error::{TuneError, Untunable};
use crate::kernel::{KernelTable, Network};
use crate::scope::{Found, FoundConnection, Scope, Selection};

/// The time between two renewals of the lease, a third of its length: a renewal may be late by as much again.
const RENEWAL_INTERVAL: Duration = Duration::from_millis(500);

/// Which connections of a cgroup are tuned, and for which goal.
#[derive(Debug)]
pub enum Chosen {
    /// All of them.
    All(Goal),
    /// The connections that a policy covers.
    ByPolicy(Policy),
    /// The connections of a process and its descendants.
    OfProcess {
        /// The process.
        root: u32,
        /// The goal for them.
        goal: Goal,
        /// Tune only connections to these peers; if empty, connections to any peer.
        peers: Vec<SocketAddr>,
    },
}

/// The bulk transfers of a cgroup, as the BPF programs report them.
#[derive(Debug)]
pub struct KernelScope {
    cgroup: Cgroup,
    table: KernelTable,
    programs: Arc<Mutex<SocketPrograms>>,
    chosen: Chosen,
    next_renewal: Time,
    /// The hosts and networks with saved path parameters, and when those expire.
    remembered: BTreeMap<(Transfers, Network), Time>,
}

impl KernelScope {
    /// A scope of the connections of `cgroup`, to which `programs` are attached, as `connections` reports them.
    pub fn new(
        cgroup: Cgroup,
        programs: Arc<Mutex<SocketPrograms>>,
        connections: Connections,
        chosen: Chosen,
    ) -> KernelScope {
        let table = KernelTable::new(connections);
        let (next_renewal, remembered) = (Time::ZERO, BTreeMap::new());
        KernelScope { cgroup, table, programs, chosen, next_renewal, remembered }
    }

    /// Sets whether this is a dry run. Other tuners can see that.
    pub fn rehearse(&mut self, dry_run: bool) {
        self.table.rehearse(dry_run);
    }

    /// Switches to another choice of connections and finds all again, like [`KernelScope::find_present`].
    pub fn choose(&mut self, chosen: Chosen) -> Result<bool, KernelError> {
        self.chosen = chosen;
        self.table.forget_all();
        self.find_present()
    }

    /// Finds the connections that existed before the programs were attached, too. Returns whether the kernel lets the programs
    /// follow all of them.
    pub fn find_present(&self) -> Result<bool, KernelError> {
        self.programs.lock().unwrap_or_else(PoisonError::into_inner).find_present()
    }

    /// The processes that own the sockets of these records, by socket inode. Preferred is the process that the programs saw
    /// using the socket. For other sockets, this searches the descriptors of each process of the cgroup once, because a server
    /// may have thousands of connections.
    fn owners<'a>(&self, records: impl Iterator<Item = &'a Record>) -> BTreeMap<u64, Process> {
        let (mut owners, mut inodes) = (BTreeMap::new(), BTreeSet::new());
        let mut users: BTreeMap<u32, Option<Process>> = BTreeMap::new();
        for record in records {
            let Some(inode) = record.inode else { continue };
            // Softirq work that is pending while we sample a socket runs in our context.
            let pid = record.pid.filter(|pid| *pid != process::id());
            let read = |pid| users.entry(pid).or_insert_with(|| Process::read(pid).ok()).clone();
            if let Some(user) = pid.and_then(read) {
                owners.insert(inode, user);
            } else {
                inodes.insert(inode);
            }
        }
        let processes = if inodes.is_empty() { Vec::new() } else { self.cgroup.processes() };
        for pid in processes {
            if inodes.is_empty() {
                break;
            }
            let Ok(sockets) = processes::sockets(pid) else { continue };
            let own: Vec<u64> =
                sockets.iter().map(|d| d.inode).filter(|inode| inodes.remove(inode)).collect();
            if let Some(process) = own.first().and_then(|_| Process::read(pid).ok()) {
                owners.extend(own.into_iter().map(|inode| (inode, process.clone())));
            }
        }
        owners
    }
}

/// A host as a network with a full-length prefix.
fn host(peer: IpAddr) -> Network {
    let peer = peer.to_canonical();
    (peer, if peer.is_ipv4() { 32 } else { 128 })
}

/// Lifts every limit of the BPF programs and detaches them. May be called more than once, and by another process.
pub fn undo(programs: &Mutex<SocketPrograms>) {
    programs.lock().unwrap_or_else(PoisonError::into_inner).undo();
}

impl Scope for KernelScope {
    fn find(&mut self, _now: Time, _refused: &mut Vec<Untunable>) -> Result<Vec<Found>, TuneError> {
        let found = self.table.take_found();
        let owners = self.owners(found.iter().map(|(_, record)| record));
        let found = found.into_iter().map(|(connection, record)| {
            let owner = record.inode.and_then(|inode| owners.get(&inode)).cloned();
            Found::InKernel(Box::new(FoundConnection { connection, record, owner }))
        });
        Ok(found.collect())
    }

    fn handle_timeout(&mut self, now: Time) -> Result<(), TuneError> {
        self.table.read(now);
        if now < self.next_renewal {
            return Ok(());
        }
        if !self.cgroup.exists() {
            return Err(TuneError::CgroupGone { path: self.cgroup.path().to_owned() });
        }
        self.next_renewal = now + RENEWAL_INTERVAL;
        self.remembered.retain(|(transfers, network), until| {
            let is_kept = now < *until;
            if !is_kept {
                self.table.remember(*transfers, *network, None);
            }
            is_kept
        });
        self.table.renew(now).map_err(TuneError::from)
    }

    fn poll_timeout(&self) -> Time {
        self.next_renewal
    }

    fn announced(&self, wait: &mut dyn FnMut(Option<BorrowedFd<'_>>)) {
        wait(Some(self.table.connections().as_fd()));
    }

    fn has_found(&self) -> bool {
        self.table.has_found()
    }

    fn flush(&mut self) -> Result<(), TuneError> {
        self.table.flush().map_err(TuneError::from)
    }

    fn remember(
        &mut self,
        now: Time,
        transfers: Transfers,
        peer: IpAddr,
        memory: Option<SavedWindow>,
    ) {
        // Uploads to a whole network are not remembered: its hosts have access links of their own.
        let network = Some(network(peer)).filter(|_| transfers == Transfers::Downloads);
        for network in iter::once(host(peer)).chain(network) {
            let path = (transfers, network);
            match memory {
                Some(_) => self.remembered.insert(path, now + PATH_LIFETIME),
                None => self.remembered.remove(&path),
            };
            self.table.remember(transfers, network, memory);
        }
    }

    fn lift(&mut self) {
        undo(&self.programs);
        self.next_renewal = Time::MAX;
    }

    fn select(&self, subject: &Subject<'_>) -> Selection {
        match &self.chosen {
            Chosen::All(goal) => Selection::Tuned(*goal),
            Chosen::ByPolicy(policy) => Selection::by_policy(policy.matched(subject)),
            Chosen::OfProcess { root, goal, peers } => {
                match processes::family(*root).contains(&subject.pid) {
                    true => Selection::by_peer(*goal, peers, subject.remote),
                    false => Selection::OfOther,
                }
            }
        }
    }

    fn congestion(&self, subject: &Subject<'_>) -> Option<CongestionName> {
        match &self.chosen {
            Chosen::ByPolicy(policy) => policy.congestion(subject),
            Chosen::All(_) | Chosen::OfProcess { .. } => None,
        }
    }

    fn rule(&self, subject: &Subject<'_>) -> Option<MatchedRule> {
        match &self.chosen {
            Chosen::ByPolicy(policy) => policy.matched(subject),
            Chosen::All(_) | Chosen::OfProcess { .. } => None,
        }
    }

    /// Connections are reported once they are bulk transfers, which no other state is.
    fn forget(&mut self, _inode: u64) {}
}
