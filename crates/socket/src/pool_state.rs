use std::collections::{BTreeMap, BTreeSet};

use sweetspot_control::{PathCache, PathGroup, TuneEventKind};
use sweetspot_linux::clock;
use sweetspot_linux::live::OwnSocket;
use sweetspot_units::{Bytes, Duration, Time};

use crate::both_ends::BothEnds;
use crate::error::AttachError;
use crate::member::{Member, Movement, ObservedEvent};
use crate::options::{Observer, Options, SocketEvent};
use crate::path::{Path, PathKey};
use crate::report::{Activity, Report};
use crate::sample_queue::SampleQueue;
use crate::woken::Woken;

/// A socket is young for this long after it was attached: its first data is likely soon, and slow start is short.
const YOUNG_AGE: Duration = Duration::from_secs(2);
/// Interval between polls of resting sockets, and the number of sockets in each poll. A socket costs a few microseconds.
struct Sampling {
    young: (Duration, usize),
    idle: (Duration, usize),
}

/// Sampling if only these polls notice the first data.
const BLIND: Sampling = Sampling { young: (YOUNG_INTERVAL, 10), idle: (IDLE_INTERVAL, 25) };
/// Sampling if the kernel reports activity. The polls only notice closed sockets, and programs that send without ever
/// filling the buffer.
const WATCHING: Sampling = Sampling { young: (YOUNG_INTERVAL, 2), idle: (IDLE_INTERVAL, 5) };
const YOUNG_INTERVAL: Duration = Duration::from_millis(10);
const IDLE_INTERVAL: Duration = Duration::from_millis(50);

pub(crate) struct PoolState {
    paths: BTreeMap<PathKey, Path>,
    /// The state of every socket that has not been detached, by cookie.
    places: BTreeMap<u64, Place>,
    /// Sockets without moving data.
    resting: BTreeMap<u64, Member>,
    /// The young sockets among `resting`.
    young: SampleQueue,
    /// The young sockets, ordered by age.
    attached: BTreeSet<(Time, u64)>,
    idle: SampleQueue,
    /// Resting sockets with reported activity.
    woken: Woken,
    cache: PathCache<PathKey, PathGroup>,
    memory: Option<Bytes>,
    max_window: Bytes,
    now: Time,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Inactive,
    Moving(PathKey),
    Closed,
}

pub(crate) type Notice = (Observer, SocketEvent);

impl PoolState {
    /// A state without sockets, on a host that allows windows up to `max_window`.
    pub fn new(max_window: Bytes) -> PoolState {
        PoolState {
            paths: BTreeMap::new(),
            places: BTreeMap::new(),
            resting: BTreeMap::new(),
            young: SampleQueue::default(),
            attached: BTreeSet::new(),
            idle: SampleQueue::default(),
            woken: Woken::new(),
            cache: PathCache::default(),
            memory: None,
            max_window,
            now: Time::ZERO,
        }
    }

    /// Number of sockets, including closed ones.
    pub fn sockets(&self) -> usize {
        self.places.len()
    }

    /// Adds a socket, unless it is already attached. A closed one still counts, because its handle exists.
    pub fn attach(&mut self, socket: OwnSocket, options: Options) -> Result<(), AttachError> {
        let cookie = socket.cookie();
        if self.places.contains_key(&cookie) {
            return Err(AttachError::AlreadyAttached);
        }
        let now = self.at(clock::now());
        let link = options.both_ends.as_ref().map(BothEnds::take).transpose()?;
        self.rest(now, Member::new(socket, options, link, now));
        // Observers are called only during polls.
        self.poll_inactive(now, cookie, &mut Vec::new());
        Ok(())
    }

    /// Limits the sum of all windows, beginning with the next poll.
    pub fn set_memory(&mut self, memory: Option<Bytes>) {
        self.memory = memory;
    }

    /// `now`, or the latest time seen if that is later.
    pub fn at(&mut self, now: Time) -> Time {
        self.now = self.now.max(now);
        self.now
    }

    /// Samples the sockets that are due at `now`. Returns the events for observers.
    pub fn poll(&mut self, now: Time) -> Vec<Notice> {
        let mut notices = Vec::new();
        self.age(now);
        let sampling = if self.woken.is_watching() { WATCHING } else { BLIND };
        let turns = [
            self.woken.poll(now),
            self.young.poll(now, sampling.young),
            self.idle.poll(now, sampling.idle),
        ];
        for cookie in turns.into_iter().flatten() {
            self.poll_inactive(now, cookie, &mut notices);
        }
        self.share_memory();
        let next_due = self.paths.iter().filter(|(_, path)| path.next_round <= now);
        let next_due: Vec<PathKey> = next_due.map(|(key, _)| *key).collect();
        for key in next_due {
            self.round(now, key, &mut notices);
        }
        notices
    }

    /// The next time at which a socket is due.
    pub fn next_timeout(&self) -> Option<Time> {
        let rounds = self.paths.values().map(|path| path.next_round);
        rounds.chain(self.young.next_due()).chain(self.idle.next_due()).min()
    }

    fn round(&mut self, now: Time, key: PathKey, notices: &mut Vec<Notice>) {
        let paths = self.paths.len() as u64;
        let began = clock::used();
        // Datagrams already received are older than `now`.
        let has_links = self.paths.get_mut(&key).is_some_and(Path::receive);
        let now = if has_links { self.at(clock::now()) } else { now };
        let Some(path) = self.paths.get_mut(&key) else { return };
        let round = path.round(now);
        let remove_unresponsive =
            if has_links { path.remove_unresponsive(now) } else { Vec::new() };
        path.rest(clock::now(), clock::used().since(began), paths);
        for (cookie, reported) in round.reported {
            self.notify(cookie, reported, notices);
        }
        for member in round.left {
            self.leave(now, member, notices);
        }
        for mut member in remove_unresponsive {
            if let Some(link) = &mut member.link {
                link.fall_back();
            }
            self.join(now, member);
        }
        self.drop_empty(now, key);
    }

    /// Files a socket that left its path as resting or over.
    fn leave(&mut self, now: Time, mut member: Member, notices: &mut Vec<Notice>) {
        let cookie = member.socket.cookie();
        if member.is_over {
            return self.end(&member, notices);
        }
        member.activity = Activity::Idle;
        self.places.insert(cookie, Place::Inactive);
        self.woken.add(&member.socket);
        self.resting.insert(cookie, member);
        self.idle.insert(now, cookie);
    }

    /// Handles a socket that was closed, or with a connection that has ended.
    fn end(&mut self, member: &Member, notices: &mut Vec<Notice>) {
        self.places.insert(member.socket.cookie(), Place::Closed);
        let reported = (TuneEventKind::Gone, "the connection has ended".to_owned());
        notices.extend(notice(member, None, reported));
    }

    /// Adds a new socket to the resting ones.
    fn rest(&mut self, now: Time, member: Member) {
        let cookie = member.socket.cookie();
        self.places.insert(cookie, Place::Inactive);
        self.woken.add(&member.socket);
        self.attached.insert((member.attached, cookie));
        self.young.insert(now, cookie);
        self.resting.insert(cookie, member);
    }

    /// Moves sockets that are no longer young to the other queue.
    fn age(&mut self, now: Time) {
        while let Some((attached, cookie)) = self.attached.first().copied() {
            if now.since(attached) < YOUNG_AGE {
                return;
            }
            self.attached.pop_first();
            self.young.remove(cookie);
            self.idle.insert(now, cookie);
        }
    }

    /// Removes a socket from the resting ones.
    fn wake(&mut self, cookie: u64) -> Option<Member> {
        self.young.remove(cookie);
        self.idle.remove(cookie);
        let member = self.resting.remove(&cookie)?;
        self.attached.remove(&(member.attached, cookie));
        self.woken.remove(&member.socket);
        Some(member)
    }

    /// Polls a resting socket.
    fn poll_inactive(&mut self, now: Time, cookie: u64, notices: &mut Vec<Notice>) {
        let Some(member) = self.resting.get_mut(&cookie) else { return };
        match member.poll(now) {
            Movement::Still => {}
            Movement::Closed => {
                if let Some(member) = self.wake(cookie) {
                    self.end(&member, notices);
                }
            }
            Movement::Moved => {
                if let Some(member) = self.wake(cookie) {
                    self.join(now, member);
                }
            }
        }
    }

    /// Adds a socket with moving data to its path.
    fn join(&mut self, now: Time, mut member: Member) {
        let cookie = member.socket.cookie();
        let Some((ends, reading)) = member.begin() else { return };
        let sizing = member.options.sizing;
        let is_helped = member.is_helped();
        let key = PathKey::new(ends, sizing, cookie, is_helped);
        if !self.paths.contains_key(&key) {
            let known = match &mut member.link {
                Some(link) if is_helped => link.group.take().map(|group| *group),
                _ => self.cache.recall(now, &key, |_| false),
            };
            let (mss, max) = (reading.info.advmss, self.max_window);
            let new = || {
                if is_helped { Path::helped_group(mss, max) } else { Path::group(sizing, mss, max) }
            };
            // Only sizings that need a known path have no controller, and those cannot be selected.
            let Some(group) = known.or_else(new) else { return };
            self.paths.insert(key, Path::new(now, group));
        }
        if let Some(path) = self.paths.get_mut(&key) {
            path.add(now, member, &reading);
            self.places.insert(cookie, Place::Moving(key));
        }
    }

    /// Removes a socket and lifts its limits; `None` if it was already closed.
    pub fn remove(&mut self, cookie: u64) -> Option<Member> {
        match self.places.remove(&cookie)? {
            Place::Inactive => self.wake(cookie),
            Place::Moving(key) => {
                let now = self.at(clock::now());
                let member = self.paths.get_mut(&key).and_then(|path| path.remove(now, cookie));
                self.drop_empty(now, key);
                member
            }
            Place::Closed => None,
        }
    }

    /// Keeps the window of a path without sockets, for later sockets.
    fn drop_empty(&mut self, now: Time, key: PathKey) {
        if self.paths.get(&key).is_some_and(|path| path.members.is_empty()) {
            let Some(Path { group, .. }) = self.paths.remove(&key) else { return };
            let alone = key.alone().and_then(|cookie| self.resting.get_mut(&cookie));
            if let Some(link) = alone.and_then(|member| member.link.as_mut()) {
                // The probes' numbering must continue.
                link.group = link.is_helping().then(|| Box::new(group));
            } else if key.is_worth_keeping() {
                self.cache.keep(now, key, group);
            }
        }
    }

    /// Divides the memory budget among the paths, max-min fairly.
    fn share_memory(&mut self) {
        let paths = self.paths.values_mut();
        let groups = paths.map(|path| (&mut path.group, path.members.len()));
        PathGroup::share_memory(self.memory, self.max_window, groups);
    }

    /// The state of a socket; `None` if it was closed.
    pub fn report(&self, cookie: u64) -> Option<Report> {
        match *self.places.get(&cookie)? {
            Place::Inactive => Some(self.resting.get(&cookie)?.report(None)),
            Place::Moving(key) => {
                let path = self.paths.get(&key)?;
                Some(path.members.get(&cookie)?.report(Some(&path.group)))
            }
            Place::Closed => None,
        }
    }

    fn notify(&self, cookie: u64, reported: ObservedEvent, notices: &mut Vec<Notice>) {
        let Some(Place::Moving(key)) = self.places.get(&cookie) else { return };
        let Some(path) = self.paths.get(key) else { return };
        let member = path.members.get(&cookie);
        notices.extend(member.and_then(|member| notice(member, Some(&path.group), reported)));
    }
}

fn notice(member: &Member, group: Option<&PathGroup>, reported: ObservedEvent) -> Option<Notice> {
    let observer = member.options.observer.clone()?;
    let (kind, why) = reported;
    Some((observer, SocketEvent { kind, why, report: member.report(group) }))
}
