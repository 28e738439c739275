use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::fd::AsFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use sweetspot_groups::{PathCache, PathGroup, TuneEventKind};
use sweetspot_linux::live::{OwnSocket, fork_generation};
use sweetspot_linux::tcp::{Info, options};
use sweetspot_linux::{clock, sysctl};
use sweetspot_sizing::share::max_min;
use sweetspot_units::{Bytes, Duration, Time};

use crate::error::{AttachError, SocketError};
use crate::handle::SizedSocket;
use crate::member::{Member, Told};
use crate::options::{Observer, Options, SocketEvent};
use crate::path::{Path, PathKey};
use crate::report::{Activity, Report};

/// A socket that waits for its handshake is looked at this often.
const CONNECTING_INTERVAL: Duration = Duration::from_millis(20);
/// After this time it is looked at no more often than an idle one.
const CONNECTING_TIME: Duration = Duration::from_secs(5);
/// The time between two looks at idle sockets, ...
const IDLE_INTERVAL: Duration = Duration::from_millis(100);
/// ... of which each takes no more than this many: a few microseconds each, so less than 0.5 % of a core.
const MAX_IDLE_LOOKS: usize = 100;

/// TCP_CLOSE and TCP_LISTEN of include/net/tcp_states.h.
const CLOSE: u8 = 7;
const LISTEN: u8 = 10;
/// TCP_SYN_SENT, TCP_SYN_RECV and TCP_NEW_SYN_RECV.
const HANDSHAKES: [u8; 3] = [2, 3, 12];

/// Sized sockets, polled by the program itself or by a thread.
///
/// [`Pool::new`] starts no thread: a program with its own loop calls [`Pool::poll`] whenever [`Pool::next_timeout`] has
/// come. [`SizedSocket::attach`] uses the pool of the process, which has a thread of its own.
///
/// A clone is the same pool. A pool belongs to the process that made it: after fork(2), the child gets errors.
///
/// ```
/// use std::net::{TcpListener, TcpStream};
/// use sweetspot_socket::{Options, Pool, now};
///
/// let listener = TcpListener::bind("127.0.0.1:0")?;
/// let stream = TcpStream::connect(listener.local_addr()?)?;
/// let pool = Pool::new()?;
/// let sized = pool.attach(&stream, Options::default())?;
/// // In the program's loop:
/// if pool.next_timeout().is_some_and(|due| due <= now()) {
///     pool.poll(now());
/// }
/// println!("{:?}", sized.report()?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Pool {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<PoolState>,
    /// Notified when something is due earlier than before.
    earlier: Condvar,
    generation: u32,
}

struct PoolState {
    paths: BTreeMap<PathKey, Path>,
    /// Every socket that was not detached, and where it is now.
    places: BTreeMap<u64, Place>,
    /// Sockets in the handshake.
    connecting: BTreeMap<u64, (Time, Member)>,
    next_connecting: Time,
    /// Sockets on which nothing moves, in the order in which they are looked at.
    idle: VecDeque<u64>,
    idle_members: BTreeMap<u64, (PathKey, Member)>,
    next_idle: Time,
    cache: PathCache<PathKey, PathGroup>,
    memory: Option<Bytes>,
    max_window: Bytes,
}

/// Where a socket is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Connecting,
    Moving(PathKey),
    Idle,
    Over,
}

/// An event on its way to an observer.
type Notice = (Observer, SocketEvent);

impl Pool {
    /// A pool without sockets and without a thread.
    pub fn new() -> Result<Pool, AttachError> {
        let system = |call| move |source| AttachError::System { call, source };
        let generation = fork_generation().map_err(system("pthread_atfork"))?;
        let max_window = sysctl::tcp_rmem().map_err(system("tcp_rmem"))?.most;
        let state = PoolState {
            paths: BTreeMap::new(),
            places: BTreeMap::new(),
            connecting: BTreeMap::new(),
            next_connecting: Time::ZERO,
            idle: VecDeque::new(),
            idle_members: BTreeMap::new(),
            next_idle: Time::ZERO,
            cache: PathCache::default(),
            memory: None,
            max_window,
        };
        let (state, earlier) = (Mutex::new(state), Condvar::new());
        Ok(Pool { shared: Arc::new(Shared { state, earlier, generation }) })
    }

    /// Begins to size a socket. It may still be connecting. Nothing is kept open: the program closes it whenever it likes.
    pub fn attach(&self, socket: &impl AsFd, options: Options) -> Result<SizedSocket, AttachError> {
        let member_socket = check(socket)?;
        if !self.is_own() {
            return Err(AttachError::Forked);
        }
        let (cookie, now) = (member_socket.cookie(), clock::now());
        let mut state = self.lock();
        if state.places.get(&cookie).is_some_and(|place| *place != Place::Over) {
            return Err(AttachError::AlreadyAttached);
        }
        let member = Member::new(member_socket, options, now);
        state.connecting.insert(cookie, (now, member));
        state.places.insert(cookie, Place::Connecting);
        state.look_at_connecting(now);
        drop(state);
        self.shared.earlier.notify_one();
        Ok(SizedSocket::new(self.clone(), cookie))
    }

    /// Samples the sockets that are due at `now`, which is [`now`](crate::now) or earlier, and applies new limits.
    /// Observers are called before it returns.
    pub fn poll(&self, now: Time) {
        if !self.is_own() {
            return;
        }
        let notices = self.lock().poll(now);
        for (observer, event) in notices {
            observer(&event);
        }
    }

    /// When to call [`Pool::poll`] next; `None`: not before a socket is attached.
    pub fn next_timeout(&self) -> Option<Time> {
        if self.is_own() { self.lock().next_timeout() } else { None }
    }

    /// Limits the sum of the windows of all sockets; `None` lifts that limit. A socket keeps at least four segments. The
    /// kernel's buffers take up to twice a window.
    pub fn set_memory_budget(&self, memory: Option<Bytes>) {
        if self.is_own() {
            let mut state = self.lock();
            state.memory = memory;
            if memory.is_none() {
                state.paths.values_mut().for_each(|path| path.group.set_ceiling(None));
            }
        }
    }

    /// How many sockets are attached, closed ones included until they are detached.
    pub fn sockets(&self) -> usize {
        if self.is_own() { self.lock().places.len() } else { 0 }
    }

    /// Polls for ever; for a thread.
    pub(crate) fn serve(&self) {
        loop {
            let due = self.next_timeout();
            let state = self.lock();
            // A socket that was attached since then is due earlier.
            let due = state.next_timeout().into_iter().chain(due).min();
            let wait = due.map(|due| due.since(clock::now()));
            match wait {
                None => drop(self.shared.earlier.wait(state)),
                Some(Duration::ZERO) => drop(state),
                Some(wait) => {
                    let wait = std::time::Duration::from_nanos(wait.as_nanos());
                    drop(self.shared.earlier.wait_timeout(state, wait));
                }
            }
            self.poll(clock::now());
        }
    }

    pub(crate) fn report(&self, cookie: u64) -> Result<Report, SocketError> {
        if !self.is_own() {
            return Err(SocketError::Forked);
        }
        self.lock().report(cookie).ok_or(SocketError::Closed)
    }

    /// Lifts the limits of a socket and forgets it. The error says that it was out of reach already.
    pub(crate) fn detach(&self, cookie: u64) -> Result<(), SocketError> {
        if !self.is_own() {
            return Err(SocketError::Forked);
        }
        // A program may close it at any moment before.
        let member = self.lock().remove(cookie).ok_or(SocketError::Closed)?;
        member.socket.with(|_| ()).map_err(|_| SocketError::Closed)
    }

    /// Whether this process made the pool. In a child of fork(2) the lock may be held by a thread that is not there.
    fn is_own(&self) -> bool {
        fork_generation().is_ok_and(|generation| generation == self.shared.generation)
    }

    fn lock(&self) -> MutexGuard<'_, PoolState> {
        // A panic of an observer happens without the lock; one of the pool's own leaves no limit half set.
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The socket behind a descriptor, if it is a TCP connection.
fn check(socket: &impl AsFd) -> Result<OwnSocket, AttachError> {
    let failed = |call| {
        move |source: io::Error| match source.raw_os_error() {
            Some(EBADF) => AttachError::Closed,
            Some(ENOTSOCK) => AttachError::NotTcp,
            _ => AttachError::System { call, source },
        }
    };
    if !options::is_tcp(socket.as_fd()).map_err(failed("SO_PROTOCOL"))? {
        return Err(AttachError::NotTcp);
    }
    if Info::read(socket.as_fd()).map_err(failed("TCP_INFO"))?.state == LISTEN {
        return Err(AttachError::Listening);
    }
    OwnSocket::name(socket.as_fd()).map_err(failed("SO_COOKIE"))
}

/// Linux's numbers of errors, on all its architectures.
const EBADF: i32 = 9;
const ENOTSOCK: i32 = 88;

impl PoolState {
    fn poll(&mut self, now: Time) -> Vec<Notice> {
        let mut notices = Vec::new();
        if !self.connecting.is_empty() && self.next_connecting <= now {
            self.look_at_connecting(now);
        }
        if !self.idle.is_empty() && self.next_idle <= now {
            self.look_at_idle(now);
        }
        self.share_memory();
        let due = self.paths.iter().filter(|(_, path)| path.next_round <= now);
        let due: Vec<PathKey> = due.map(|(key, _)| *key).collect();
        for key in due {
            self.round(now, key, &mut notices);
        }
        notices
    }

    fn next_timeout(&self) -> Option<Time> {
        let connecting = (!self.connecting.is_empty()).then_some(self.next_connecting);
        let idle = (!self.idle.is_empty()).then_some(self.next_idle);
        let rounds = self.paths.values().map(|path| path.next_round);
        rounds.chain(connecting).chain(idle).min()
    }

    /// Samples the sockets of a path.
    fn round(&mut self, now: Time, key: PathKey, notices: &mut Vec<Notice>) {
        let paths = self.paths.len() as u64;
        let began = clock::used();
        let Some(path) = self.paths.get_mut(&key) else { return };
        let round = path.round(now);
        path.rest(clock::now(), clock::used().since(began), paths);
        for (cookie, told) in round.told {
            self.notify(cookie, told, notices);
        }
        for member in round.left {
            self.leave(now, key, member, notices);
        }
        self.drop_empty(now, key);
    }

    /// Puts a socket that left its path in its place.
    fn leave(&mut self, now: Time, key: PathKey, mut member: Member, notices: &mut Vec<Notice>) {
        let cookie = member.socket.cookie();
        if member.is_over {
            self.places.insert(cookie, Place::Over);
            let told = (TuneEventKind::Gone, "the connection is over".to_owned());
            notices.extend(notice(&member, None, told));
            return;
        }
        member.activity = Activity::Idle;
        if self.idle.is_empty() {
            self.next_idle = now + IDLE_INTERVAL;
        }
        self.idle.push_back(cookie);
        self.idle_members.insert(cookie, (key, member));
        self.places.insert(cookie, Place::Idle);
    }

    /// Looks at the sockets whose handshake may be over.
    fn look_at_connecting(&mut self, now: Time) {
        let cookies: Vec<u64> = self.connecting.keys().copied().collect();
        let mut is_young = false;
        for cookie in cookies {
            let Some((since, member)) = self.connecting.get_mut(&cookie) else { continue };
            let since = *since;
            let state = member.socket.with(|fd| Info::read(fd).map(|info| info.state));
            match state {
                // Not connected yet, or a handshake that failed: the program may try again or close it.
                Ok(Ok(CLOSE)) => is_young |= now.since(since) < CONNECTING_TIME,
                Ok(Ok(state)) if HANDSHAKES.contains(&state) => {
                    is_young |= now.since(since) < CONNECTING_TIME;
                }
                Ok(Ok(LISTEN)) | Ok(Err(_)) => self.give_up(cookie),
                Ok(Ok(_)) => {
                    if let Some((_, member)) = self.connecting.remove(&cookie) {
                        self.join(now, member, None);
                    }
                }
                Err(lost) if !lost.is_over() => {}
                Err(_) => self.give_up(cookie),
            }
        }
        let interval = if is_young { CONNECTING_INTERVAL } else { IDLE_INTERVAL };
        self.next_connecting = now + interval;
    }

    fn give_up(&mut self, cookie: u64) {
        self.connecting.remove(&cookie);
        self.places.insert(cookie, Place::Over);
    }

    /// Looks at some of the idle sockets.
    fn look_at_idle(&mut self, now: Time) {
        for _ in 0..self.idle.len().min(MAX_IDLE_LOOKS) {
            let Some(cookie) = self.idle.pop_front() else { break };
            // One that was detached is not there any more.
            let Some((_, member)) = self.idle_members.get(&cookie) else { continue };
            match member.has_moved(now) {
                Ok(Ok(false)) => self.idle.push_back(cookie),
                Err(lost) if !lost.is_over() => self.idle.push_back(cookie),
                Ok(Ok(true)) => {
                    if let Some((key, member)) = self.idle_members.remove(&cookie) {
                        self.join(now, member, Some(key));
                    }
                }
                Ok(Err(_)) | Err(_) => {
                    self.idle_members.remove(&cookie);
                    self.places.insert(cookie, Place::Over);
                }
            }
        }
        self.next_idle = now + IDLE_INTERVAL;
    }

    /// Adds a connected socket to its path; `known` if it had one before.
    fn join(&mut self, now: Time, mut member: Member, known: Option<PathKey>) {
        let cookie = member.socket.cookie();
        let opened = member.open(now);
        let (Ok(Ok(ends)), Some(reading)) = (opened, member.latest()) else {
            self.places.insert(cookie, Place::Over);
            return;
        };
        let sizing = member.options.sizing;
        let key = known.unwrap_or(PathKey::new(ends, sizing, cookie));
        if !self.paths.contains_key(&key) {
            let known = self.cache.recall(now, &key, |_| false);
            let new = || Path::group(sizing, reading.info.advmss, self.max_window);
            // Only sizings that need to know the path have no controller, and those cannot be chosen.
            let Some(group) = known.or_else(new) else { return };
            self.paths.insert(key, Path::new(now, group));
        }
        if let Some(path) = self.paths.get_mut(&key) {
            path.add(now, member, &reading);
            self.places.insert(cookie, Place::Moving(key));
        }
    }

    /// Removes a socket and lifts its limits; `None` if it was closed.
    fn remove(&mut self, cookie: u64) -> Option<Member> {
        match self.places.remove(&cookie)? {
            Place::Connecting => self.connecting.remove(&cookie).map(|(_, member)| member),
            Place::Idle => self.idle_members.remove(&cookie).map(|(_, member)| member),
            Place::Moving(key) => {
                let now = clock::now();
                let member = self.paths.get_mut(&key).and_then(|path| path.remove(now, cookie));
                self.drop_empty(now, key);
                member
            }
            Place::Over => None,
        }
    }

    /// Keeps the window that a path without sockets had, for later ones.
    fn drop_empty(&mut self, now: Time, key: PathKey) {
        if self.paths.get(&key).is_some_and(|path| path.members.is_empty()) {
            let path = self.paths.remove(&key).filter(|_| key.is_worth_keeping());
            if let Some(path) = path {
                self.cache.keep(now, key, path.group);
            }
        }
    }

    /// Divides the memory budget max-min fair among the paths.
    fn share_memory(&mut self) {
        let Some(memory) = self.memory else { return };
        let most = self.max_window;
        let demand = |path: &Path| path.group.window().unwrap_or(most * path.members.len() as u64);
        let demands: Vec<Bytes> = self.paths.values().map(demand).collect();
        for (path, share) in self.paths.values_mut().zip(max_min(memory, &demands)) {
            path.group.set_ceiling(Some(share));
        }
    }

    fn report(&self, cookie: u64) -> Option<Report> {
        match *self.places.get(&cookie)? {
            Place::Connecting => Some(self.connecting.get(&cookie)?.1.report(None)),
            Place::Moving(key) => {
                let path = self.paths.get(&key)?;
                Some(path.members.get(&cookie)?.report(Some(&path.group)))
            }
            Place::Idle => Some(self.idle_members.get(&cookie)?.1.report(None)),
            Place::Over => None,
        }
    }

    fn notify(&self, cookie: u64, told: Told, notices: &mut Vec<Notice>) {
        let Some(Place::Moving(key)) = self.places.get(&cookie) else { return };
        let Some(path) = self.paths.get(key) else { return };
        let member = path.members.get(&cookie);
        notices.extend(member.and_then(|member| notice(member, Some(&path.group), told)));
    }
}

fn notice(member: &Member, group: Option<&PathGroup>, told: Told) -> Option<Notice> {
    let observer = member.options.observer.clone()?;
    let (kind, why) = told;
    Some((observer, SocketEvent { kind, why, report: member.report(group) }))
}
