use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use sweetspot_groups::{PathCache, PathGroup, TuneEventKind};
use sweetspot_linux::live::{LostSocket, OwnSocket, fork_generation};
use sweetspot_linux::tcp::{Info, options};
use sweetspot_linux::{clock, sysctl};
use sweetspot_sizing::share::max_min;
use sweetspot_units::{Bytes, Duration, Time};

use crate::error::{AttachError, SocketError};
use crate::handle::SizedSocket;
use crate::member::{LISTEN, Look, Member, Told};
use crate::options::{Observer, Options, SocketEvent};
use crate::path::{Path, PathKey};
use crate::report::{Activity, Report};

/// A socket that was attached this recently is young: data may come at any moment, and slow start is short.
const YOUNG_AGE: Duration = Duration::from_secs(2);
/// The time between two looks at young sockets without data, and how many sockets a look takes at most. A look costs a few
/// microseconds, so that all looks together take less than half of a hundredth of a core.
const YOUNG_LOOKS: (Duration, usize) = (Duration::from_millis(10), 10);
/// The same for older sockets on which nothing moves.
const IDLE_LOOKS: (Duration, usize) = (Duration::from_millis(50), 25);

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
    /// Threads that call observers now. Changed only while the state is locked, so that a detached socket's observer is
    /// either seen here or not called any more.
    delivering: Mutex<Vec<ThreadId>>,
    /// Notified when one of them is done.
    delivered: Condvar,
    generation: u32,
}

struct PoolState {
    paths: BTreeMap<PathKey, Path>,
    /// Every socket that was not detached, and where it is now.
    places: BTreeMap<u64, Place>,
    /// Sockets on which nothing moves.
    resting: BTreeMap<u64, Resting>,
    /// The young ones among them.
    young: RestingQueue,
    /// The others.
    idle: RestingQueue,
    cache: PathCache<PathKey, PathGroup>,
    memory: Option<Bytes>,
    max_window: Bytes,
    /// The latest time seen.
    now: Time,
}

/// Where a socket is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Resting,
    Moving(PathKey),
    Over,
}

/// A socket on which nothing moves.
struct Resting {
    since: Time,
    member: Member,
}

/// Resting sockets in the order of their next look.
#[derive(Default)]
struct RestingQueue {
    cookies: VecDeque<u64>,
    next_look: Time,
}

impl RestingQueue {
    fn push(&mut self, now: Time, cookie: u64) {
        if self.cookies.is_empty() {
            self.next_look = now;
        }
        self.cookies.push_back(cookie);
    }

    fn due(&self) -> Option<Time> {
        (!self.cookies.is_empty()).then_some(self.next_look)
    }

    /// The sockets to look at now; the others wait for their turn.
    fn take(&mut self, now: Time, (interval, most): (Duration, usize)) -> Vec<u64> {
        if self.due().is_none_or(|due| due > now) {
            return Vec::new();
        }
        self.next_look = now + interval;
        self.cookies.drain(..self.cookies.len().min(most)).collect()
    }
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
            resting: BTreeMap::new(),
            young: RestingQueue::default(),
            idle: RestingQueue::default(),
            cache: PathCache::default(),
            memory: None,
            max_window,
            now: Time::ZERO,
        };
        let shared = Shared {
            state: Mutex::new(state),
            earlier: Condvar::new(),
            delivering: Mutex::default(),
            delivered: Condvar::new(),
            generation,
        };
        Ok(Pool { shared: Arc::new(shared) })
    }

    /// Begins to size a socket. It may still be connecting. Nothing is kept open: the program closes it whenever it likes.
    pub fn attach(&self, socket: &impl AsFd, options: Options) -> Result<SizedSocket, AttachError> {
        self.attach_descriptor(socket.as_fd().as_raw_fd(), options)
    }

    /// [`Pool::attach`] for bindings of other languages, which have a number.
    pub fn attach_descriptor(
        &self,
        fd: RawFd,
        options: Options,
    ) -> Result<SizedSocket, AttachError> {
        let member_socket = check(fd)?;
        if !self.is_own() {
            return Err(AttachError::Forked);
        }
        let cookie = member_socket.cookie();
        let mut state = self.lock();
        // Also one that is over: its handle is still there.
        if state.places.contains_key(&cookie) {
            return Err(AttachError::AlreadyAttached);
        }
        let now = state.at(clock::now());
        state.rest(now, Member::new(member_socket, options, now));
        // An observer is called by polls alone.
        state.look(now, cookie, &mut Vec::new());
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
        let mut state = self.lock();
        let now = state.at(now);
        let notices = state.poll(now);
        if notices.is_empty() {
            return;
        }
        let _delivery = Delivery::begin(&self.shared);
        drop(state);
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

    /// Lifts the limits of a socket and forgets it. Its observer is not called afterwards: this waits for a call on another
    /// thread. The error says that it was out of reach already.
    pub(crate) fn detach(&self, cookie: u64) -> Result<(), SocketError> {
        if !self.is_own() {
            return Err(SocketError::Forked);
        }
        // A program may close it at any moment before.
        let member = self.lock().remove(cookie);
        Delivery::wait(&self.shared);
        let member = member.ok_or(SocketError::Closed)?;
        member.socket.with(|_| ()).map_err(|_| SocketError::Closed)
    }

    /// Whether this process made the pool. In a child of fork(2) the lock may be held by a thread that is not there.
    fn is_own(&self) -> bool {
        fork_generation().is_ok_and(|generation| generation == self.shared.generation)
    }

    fn lock(&self) -> MutexGuard<'_, PoolState> {
        lock(&self.shared.state)
    }
}

/// The socket behind a descriptor, if it is a TCP connection.
fn check(fd: RawFd) -> Result<OwnSocket, AttachError> {
    let failed = |source: io::Error| match source.raw_os_error() {
        Some(EBADF) => AttachError::Closed,
        Some(ENOTSOCK) => AttachError::NotTcp,
        _ => AttachError::System { call: "SO_COOKIE", source },
    };
    let socket = OwnSocket::at(fd).map_err(failed)?;
    let state = socket.with(|fd| {
        let is_tcp = options::is_tcp(fd)?;
        is_tcp.then(|| Info::read(fd).map(|info| info.state)).transpose()
    });
    match state {
        Ok(Ok(Some(LISTEN))) => Err(AttachError::Listening),
        Ok(Ok(Some(_))) => Ok(socket),
        Ok(Ok(None)) => Err(AttachError::NotTcp),
        Ok(Err(source)) => Err(AttachError::System { call: "TCP_INFO", source }),
        Err(LostSocket::Failed(source)) => Err(AttachError::System { call: "fcntl", source }),
        // Another thread closed it just now.
        Err(_) => Err(AttachError::Closed),
    }
}

/// Linux's numbers of errors, on all its architectures.
const EBADF: i32 = 9;
const ENOTSOCK: i32 = 88;

/// While it lives, this thread calls observers.
struct Delivery<'a> {
    shared: &'a Shared,
}

impl Delivery<'_> {
    fn begin(shared: &Shared) -> Delivery<'_> {
        lock(&shared.delivering).push(thread::current().id());
        Delivery { shared }
    }

    /// Waits until no other thread calls observers.
    fn wait(shared: &Shared) {
        let this = thread::current().id();
        let mut delivering = lock(&shared.delivering);
        while delivering.iter().any(|thread| *thread != this) {
            delivering = shared.delivered.wait(delivering).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for Delivery<'_> {
    fn drop(&mut self) {
        let this = thread::current().id();
        let mut delivering = lock(&self.shared.delivering);
        if let Some(place) = delivering.iter().position(|thread| *thread == this) {
            delivering.swap_remove(place);
        }
        self.shared.delivered.notify_all();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic of an observer happens without a lock; one of the pool's own leaves no limit half set.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl PoolState {
    /// A time that is not before the latest one seen.
    fn at(&mut self, now: Time) -> Time {
        self.now = self.now.max(now);
        self.now
    }

    fn poll(&mut self, now: Time) -> Vec<Notice> {
        let mut notices = Vec::new();
        let young = self.young.take(now, YOUNG_LOOKS);
        for cookie in young.into_iter().chain(self.idle.take(now, IDLE_LOOKS)) {
            self.look(now, cookie, &mut notices);
            self.queue(now, cookie);
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
        let rounds = self.paths.values().map(|path| path.next_round);
        rounds.chain(self.young.due()).chain(self.idle.due()).min()
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
            self.leave(now, member, notices);
        }
        self.drop_empty(now, key);
    }

    /// Puts a socket that left its path in its place.
    fn leave(&mut self, now: Time, mut member: Member, notices: &mut Vec<Notice>) {
        let cookie = member.socket.cookie();
        if member.is_over {
            return self.end(&member, notices);
        }
        member.activity = Activity::Idle;
        self.places.insert(cookie, Place::Resting);
        // It is young no more.
        self.resting.insert(cookie, Resting { since: Time::ZERO, member });
        self.queue(now, cookie);
    }

    /// A socket was closed, or its connection is over.
    fn end(&mut self, member: &Member, notices: &mut Vec<Notice>) {
        self.places.insert(member.socket.cookie(), Place::Over);
        let told = (TuneEventKind::Gone, "the connection is over".to_owned());
        notices.extend(notice(member, None, told));
    }

    /// Puts a new socket among those on which nothing moves.
    fn rest(&mut self, now: Time, member: Member) {
        let cookie = member.socket.cookie();
        self.places.insert(cookie, Place::Resting);
        self.resting.insert(cookie, Resting { since: now, member });
        self.queue(now, cookie);
    }

    /// Queues a socket for its next look, if it still rests.
    fn queue(&mut self, now: Time, cookie: u64) {
        let Some(resting) = self.resting.get(&cookie) else { return };
        let is_young = now.since(resting.since) < YOUNG_AGE;
        let queue = if is_young { &mut self.young } else { &mut self.idle };
        queue.push(now, cookie);
    }

    /// Looks at a socket on which nothing moved.
    fn look(&mut self, now: Time, cookie: u64, notices: &mut Vec<Notice>) {
        // One that was detached is not there any more.
        let Some(resting) = self.resting.get_mut(&cookie) else { return };
        match resting.member.look(now) {
            Look::Still => {}
            Look::Over => {
                if let Some(resting) = self.resting.remove(&cookie) {
                    self.end(&resting.member, notices);
                }
            }
            Look::Moved => {
                if let Some(resting) = self.resting.remove(&cookie) {
                    self.join(now, resting.member);
                }
            }
        }
    }

    /// Adds a socket on which data move to its path.
    fn join(&mut self, now: Time, mut member: Member) {
        let cookie = member.socket.cookie();
        let Some((ends, reading)) = member.begin() else { return };
        let sizing = member.options.sizing;
        let key = PathKey::new(ends, sizing, cookie);
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
            Place::Resting => self.resting.remove(&cookie).map(|resting| resting.member),
            Place::Moving(key) => {
                let now = self.at(clock::now());
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
            Place::Resting => Some(self.resting.get(&cookie)?.member.report(None)),
            Place::Moving(key) => {
                let path = self.paths.get(&key)?;
                Some(path.members.get(&cookie)?.report(Some(&path.group)))
            }
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
