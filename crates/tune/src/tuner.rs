use std::collections::BTreeMap;
use std::net::IpAddr;
use std::num::NonZeroU64;
use std::os::fd::BorrowedFd;

use sweetspot_control::policy::Subject;
use sweetspot_control::{
    AppliedChange, ConnectionOwner, Goal, NotLimited, OwnClamp, PathCache, PathGroup, PeerLabels,
    TuneEvent, TuneEventKind, UnlimitedConnections, network,
};
use sweetspot_kernel::Transfers;
use sweetspot_linux::cgroup::Cgroup;
use sweetspot_linux::clock;
use sweetspot_linux::diag::TcpState;
use sweetspot_linux::live::LiveSocket;
use sweetspot_linux::tcp::options;
use sweetspot_sizing::SavedWindow;
use sweetspot_units::{Duration, Rate, Time};

use crate::connection::TunedConnection;
use crate::error::{TuneError, Untunable};
use crate::guard::Leases;
use crate::handle::Handle;
use crate::metrics::{PeerSnapshot, TunerSnapshot};
use crate::options::TunerOptions;
use crate::path::TunedPath;
use crate::sample::{KernelReport, sample};
use crate::scope::{Found, FoundConnection, FoundSocket, Scope, Selection};

/// The time between two searches for new connections. A handshake and a request take two round trips, and slow start
/// takes three more until a buffer can overflow.
const SEARCH_INTERVAL: Duration = Duration::from_millis(50);

/// The CPU budget. A search for new connections, or a round of samples with the reading before it, is followed by a pause of
/// this many times its CPU time. Together that is less than a hundredth of a core.
const SEARCH_CPU_BUDGET: u64 = 400;
/// The CPU budget of a search while no connection is watched: a hundredth of a core, so that new connections are noticed early.
const EAGER_CPU_BUDGET: u64 = 100;
const ROUND_CPU_BUDGET: u64 = 250;

/// The program name for an unknown process, such as one in a container that this process cannot see into.
const UNKNOWN_PROGRAM: &str = "?";

/// Samples the connections of a scope and applies limits.
///
/// **Contract.** The caller calls [`Tuner::handle_timeout`] no earlier than [`Tuner::poll_timeout`] says, and
/// [`Tuner::lift`] at the end, which lifts all limits.
pub struct Tuner<S> {
    scope: S,
    options: TunerOptions,
    leases: Leases,
    next_search: Time,
    /// CPU time spent reading records since the last rounds.
    reading: Duration,
    groups: BTreeMap<Ends, TunedPath>,
    /// The groups of paths without a connection, with the parameters learnt.
    path_cache: PathCache<Ends, PathGroup>,
    refused: Vec<Untunable>,
    /// Whether another tuner was reported.
    has_reported_other: bool,
    events: Vec<TuneEvent>,
    counts: BTreeMap<TuneEventKind, u64>,
    labels: PeerLabels,
    /// The ended connections that were never limited.
    unlimited: UnlimitedConnections,
}

/// The key of a path group: the local and the remote address, and the goal.
type Ends = (IpAddr, IpAddr, Goal);

impl<S: Scope> Tuner<S> {
    /// A tuner that has not searched for connections yet.
    pub fn new(scope: S, options: TunerOptions, leases: Leases) -> Tuner<S> {
        Tuner {
            scope,
            options,
            leases,
            next_search: Time::ZERO,
            reading: Duration::ZERO,
            groups: BTreeMap::new(),
            path_cache: PathCache::default(),
            refused: Vec::new(),
            has_reported_other: false,
            events: Vec::new(),
            counts: BTreeMap::new(),
            labels: PeerLabels::default(),
            unlimited: UnlimitedConnections::default(),
        }
    }

    /// When to call [`Tuner::handle_timeout`] next.
    pub fn poll_timeout(&self) -> Time {
        let scope = self.scope.poll_timeout().min(self.next_search);
        self.groups.values().map(|path| path.next_round).fold(scope, Time::min)
    }

    /// Runs the searches and rounds that are due at `now`.
    pub fn handle_timeout(&mut self, now: Time) -> Result<(), TuneError> {
        let began = clock::used();
        self.scope.handle_timeout(now)?;
        self.reading += clock::used().since(began);
        if now >= self.next_search || self.scope.has_found() {
            let began = clock::used();
            for found in self.scope.find(now, &mut self.refused)? {
                match found {
                    Found::Socket(found) => self.try_add(now, &found),
                    Found::InKernel(found) => self.add_from_kernel(now, *found),
                }
            }
            self.share_memory();
            let took = clock::used().since(began);
            let cpu_budget =
                if self.groups.is_empty() { EAGER_CPU_BUDGET } else { SEARCH_CPU_BUDGET };
            self.next_search = clock::now() + SEARCH_INTERVAL.max(took * cpu_budget);
        }
        let due_paths: Vec<Ends> =
            self.groups.iter().filter(|(_, p)| p.next_round <= now).map(|(e, _)| *e).collect();
        if let Some(paths) = NonZeroU64::new(due_paths.len() as u64) {
            let reading = std::mem::take(&mut self.reading) / paths.get();
            due_paths.into_iter().for_each(|ends| self.round(ends, reading));
        }
        self.scope.flush()
    }

    /// Passes a descriptor to `wait` that becomes readable when there is something to find, if the scope has one.
    /// [`Tuner::search_at`] then brings the search forward.
    pub fn announced(&self, wait: &mut dyn FnMut(Option<BorrowedFd<'_>>)) {
        self.scope.announced(wait);
    }

    /// Searches for new connections no later than at `now`.
    pub fn search_at(&mut self, now: Time) {
        self.next_search = self.next_search.min(now);
    }

    /// The events since the last call.
    pub fn take_events(&mut self) -> Vec<TuneEvent> {
        for event in &self.events {
            *self.counts.entry(event.kind).or_default() += 1;
        }
        std::mem::take(&mut self.events)
    }

    /// The present state, for metrics.
    pub fn snapshot(&self) -> TunerSnapshot {
        let paths = || self.groups.values();
        let uploads = || {
            let connections = paths().flat_map(|p| p.connections.values());
            connections.filter(|_| !self.options.dry_run).filter_map(|c| c.upload.pace())
        };
        TunerSnapshot {
            watched: paths().map(|p| p.connections.len()).sum(),
            limited: paths().map(|p| p.limits().count()).sum(),
            window: paths().flat_map(TunedPath::limits).sum(),
            rate: paths().fold(Rate::ZERO, |sum, path| sum + path.group.rate()),
            paced: uploads().count(),
            pace: uploads().fold(Rate::ZERO, |sum, pace| sum + pace),
            peers: self.by_peer(),
            events: self.counts.clone(),
        }
    }

    fn by_peer(&self) -> BTreeMap<String, PeerSnapshot> {
        let mut peers: BTreeMap<String, PeerSnapshot> = BTreeMap::new();
        for ((_, remote, _), path) in &self.groups {
            let peer = peers.entry(self.labels.of(*remote).to_owned()).or_default();
            peer.watched += path.connections.len();
            peer.window += path.limits().sum();
            peer.rate = peer.rate + path.group.rate();
        }
        peers
    }

    /// The current rate and RTT of each watched connection, by cookie.
    pub fn readings(&self) -> impl Iterator<Item = (u64, Rate, Duration)> {
        self.groups.values().flat_map(TunedPath::readings)
    }

    /// The reasons why connections could not be tuned, since the last call.
    pub fn take_refusals(&mut self) -> Vec<Untunable> {
        std::mem::take(&mut self.refused)
    }

    /// Whether the guardian is gone. Then no more limits may be set.
    pub fn is_unguarded(&self) -> bool {
        self.leases.are_unguarded()
    }

    /// The connections seen but never limited: the ended ones and, after [`Tuner::lift`], all.
    pub fn unlimited(&self) -> &UnlimitedConnections {
        &self.unlimited
    }

    /// Lifts all limits, giving `why` as the reason.
    pub fn lift(&mut self, why: &str) {
        for path in self.groups.values_mut() {
            self.events.extend(path.end(self.options.uploads));
            path.take_unlimited().into_iter().for_each(|(why, peer)| self.unlimited.add(why, peer));
            self.events.extend(path.lift(why, &mut self.leases));
        }
        self.groups.clear();
        self.scope.lift();
    }

    /// Whether decisions are only reported, not applied.
    pub fn is_dry_run(&self) -> bool {
        self.options.dry_run
    }

    /// Starts over after `change` to the scope or the options: lifts all limits, giving `why` as the reason, and finds all
    /// connections again.
    pub fn restart(&mut self, why: &str, change: impl FnOnce(&mut S, &mut TunerOptions)) {
        for path in self.groups.values_mut() {
            self.events.extend(path.lift(why, &mut self.leases));
        }
        self.groups.clear();
        change(&mut self.scope, &mut self.options);
        self.next_search = Time::ZERO;
    }

    /// Divides the memory budget max-min fair among the path groups.
    fn share_memory(&mut self) {
        let groups = self.groups.values_mut();
        let groups = groups.map(|path| (&mut path.group, path.connections.len()));
        PathGroup::share_memory(self.options.memory, self.options.max_window, groups);
    }

    /// Adds a socket if it is a TCP connection that may still receive or send.
    fn try_add(&mut self, now: Time, found: &FoundSocket) {
        let (fd, inode) = (found.descriptor.fd, found.descriptor.inode);
        let socket = match LiveSocket::name(&found.process, fd, inode, None) {
            Ok(socket) => socket,
            Err(error) if error.is_over() => return,
            Err(error) => return self.refused.push(error.into()),
        };
        // The socket is not TCP, or cannot be sampled.
        let Ok(Ok(seen)) = sample(&socket, None, false, &mut OwnClamp::default()) else { return };
        match TcpState::from_number(seen.state) {
            Some(TcpState::SynSent | TcpState::SynReceived | TcpState::Close) => {
                return self.scope.forget(inode);
            }
            Some(TcpState::Established | TcpState::FinWait1 | TcpState::FinWait2) => {}
            _ => return,
        }
        let ends = socket.with(|fd| options::ends(fd));
        let Ok(Ok(Some((local, remote)))) = ends else { return };
        let (pid, cookie) = (found.process.pid(), socket.cookie());
        let (uid, program) = (found.uid, found.program.as_str());
        let cgroup = Cgroup::path_of(pid).unwrap_or_default();
        let subject = Subject { pid, uid, program, cgroup: &cgroup, local, remote };
        let rule = self.scope.rule(&subject);
        let connection_owner =
            ConnectionOwner { pid, program: program.to_owned(), local, remote, cookie, rule };
        let goal = match self.scope.select(&subject) {
            Selection::Tuned(goal) => goal,
            Selection::LeftAlone(why) => return self.leave_alone(why, connection_owner, &seen),
            Selection::OfOther => return,
        };
        let handle = Handle::Borrowed(socket, found.started);
        let tuned = TunedConnection::new(handle, connection_owner, &seen, goal);
        self.add(now, goal, tuned, &seen);
    }

    /// Adds a bulk transfer that the BPF programs report.
    fn add_from_kernel(&mut self, now: Time, found: FoundConnection) {
        let FoundConnection { connection, record, owner } = found;
        let uid = owner.as_ref().map_or(record.uid, |owner| owner.uid);
        let (local, remote) = (record.local, record.remote);
        let program =
            owner.as_ref().map_or(UNKNOWN_PROGRAM, |owner| owner.name.as_str()).to_owned();
        let pid = owner.map_or(0, |owner| owner.pid);
        let cgroup = Cgroup::path_of(pid).unwrap_or_default();
        let subject = Subject { pid, uid, program: &program, cgroup: &cgroup, local, remote };
        let (selection, rule) = (self.scope.select(&subject), self.scope.rule(&subject));
        let cookie = record.cookie;
        let connection_owner =
            ConnectionOwner { pid, program: program.clone(), local, remote, cookie, rule };
        let seen = KernelReport::of_record(&record);
        let Selection::Tuned(goal) = selection else {
            // If no map entry is free, it is only sampled.
            let _ = connection.leave();
            if let Selection::LeftAlone(why) = selection {
                self.leave_alone(why, connection_owner, &seen);
            }
            return;
        };
        // A congestion control matters only to a connection that mainly sends.
        let sends = self.options.uploads && record.acked > record.received;
        let congestion = self.scope.congestion(&subject).filter(|_| sends && !self.is_unguarded());
        let handle = Handle::InKernel(connection);
        let mut tuned = TunedConnection::new(handle, connection_owner, &seen, goal);
        if goal == Goal::Throughput
            && let Some((pace, minimum_rtt)) = record.saved_pace.zip(record.minimum_rtt)
        {
            tuned.resume_upload(now, SavedWindow { window: pace * minimum_rtt, minimum_rtt });
        }
        if let Some(to) = congestion {
            self.events.extend(tuned.choose_congestion(to, self.options.dry_run));
        }
        self.add(now, goal, tuned, &seen);
    }

    /// Counts a connection that is not tuned, and reports one that the policy leaves alone.
    fn leave_alone(
        &mut self,
        why: NotLimited,
        connection_owner: ConnectionOwner,
        seen: &KernelReport,
    ) {
        self.unlimited.leave_alone(connection_owner.cookie, why, connection_owner.remote);
        if !matches!(why, NotLimited::ByPolicy | NotLimited::NoRule) {
            return;
        }
        let why = why.words(1);
        let advertised = seen.sample.advertised;
        let change = AppliedChange::Window { from: None, to: None, clamp: None, advertised };
        let (wall_s, kind) = (clock::wall().as_secs_f64(), TuneEventKind::NotLimited);
        // One sample tells no rate.
        let (rate, rtt) = (Rate::ZERO, (Duration::ZERO, None));
        self.events.push(TuneEvent { wall_s, connection_owner, kind, why, change, rate, rtt });
    }

    /// Adds a connection with its first sample.
    fn add(&mut self, now: Time, goal: Goal, connection: TunedConnection, seen: &KernelReport) {
        let (local, remote) =
            (connection.connection_owner.local, connection.connection_owner.remote);
        let options = &self.options;
        self.labels.learn(remote.ip());
        self.unlimited.forget(connection.connection_owner.cookie);
        let ends = (local.ip(), remote.ip(), goal);
        let path_cache = &mut self.path_cache;
        let near = |other: &Ends| {
            (other.0, other.2) == (ends.0, goal) && network(other.1) == network(ends.1)
        };
        let recall = || match path_cache.recall(now, &ends, near) {
            Some(group) => TunedPath::again(now, group),
            None => TunedPath::new(now, goal, seen, options),
        };
        let path = self.groups.entry(ends).or_insert_with(recall);
        path.add(now, connection, seen);
    }

    /// Samples every connection of a path group and applies the controller's decisions. Reading its records took `reading` of
    /// CPU time.
    fn round(&mut self, ends: Ends, reading: Duration) {
        let groups = self.groups.len() as u64;
        let Some(path) = self.groups.get_mut(&ends) else { return };
        let (now, began) = (clock::now(), clock::used());
        self.events.extend(path.round(&self.options, &mut self.leases));
        path.take_unlimited().into_iter().for_each(|(why, peer)| self.unlimited.add(why, peer));
        if !self.has_reported_other
            && let Some(shared) = path.connections.values().find(|each| each.has_other_tuner)
        {
            self.has_reported_other = true;
            let ConnectionOwner { pid, program, .. } = shared.connection_owner.clone();
            self.refused.push(Untunable::OtherTuner { pid, program });
        }
        // The capacity left by other traffic changes within seconds, so it is not saved.
        let is_kept = ends.2 == Goal::Throughput && !self.options.dry_run;
        if let Some(memory) = path.group.poll_memory().filter(|_| is_kept) {
            self.scope.remember(now, Transfers::Downloads, ends.1, memory);
        }
        if let Some(memory) = path.poll_upload_memory().filter(|_| is_kept) {
            self.scope.remember(now, Transfers::Uploads, ends.1, memory);
        }
        if path.connections.is_empty() {
            let kept = self.groups.remove(&ends).filter(|_| is_kept);
            if let Some(path) = kept {
                self.path_cache.keep(now, ends, path.group);
            }
            return;
        }
        let took = clock::used().since(began) + reading;
        path.rest(clock::now(), took, ROUND_CPU_BUDGET * groups, self.options.uploads);
    }
}
