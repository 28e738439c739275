use std::os::fd::RawFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use sweetspot_linux::live::fork_generation;
use sweetspot_linux::{clock, sysctl};
use sweetspot_units::{Bytes, Duration, Time};

use crate::descriptor::connection_at;
use crate::error::{AttachError, SocketError};
use crate::options::Options;
use crate::pool_state::PoolState;
use crate::report::Report;

/// Sized sockets, polled by the program itself or by a thread.
///
/// [`Pool::new`] starts no thread: a program with its own event loop calls [`Pool::poll`] at the time that
/// [`Pool::next_timeout`] returns. [`SizedSocket::attach`](crate::SizedSocket::attach) uses the process's pool, which has
/// its own thread.
///
/// Clones share one pool. A pool belongs to the process that created it: after fork(2), the child gets errors.
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
    /// Notified when the next timeout becomes earlier.
    earlier: Condvar,
    /// Threads that are calling observers. Changed only while the state is locked. A detached socket's observer is
    /// therefore either listed here or not called any more.
    delivering: Mutex<Vec<ThreadId>>,
    /// Notified when one of them has finished.
    delivered: Condvar,
    generation: u32,
}

impl Pool {
    /// A pool without sockets and without a thread.
    pub fn new() -> Result<Pool, AttachError> {
        let system = |call| move |source| AttachError::System { call, source };
        let generation = fork_generation().map_err(system("pthread_atfork"))?;
        let max_window = sysctl::tcp_rmem().map_err(system("tcp_rmem"))?.max;
        let shared = Shared {
            state: Mutex::new(PoolState::new(max_window)),
            earlier: Condvar::new(),
            delivering: Mutex::default(),
            delivered: Condvar::new(),
            generation,
        };
        Ok(Pool { shared: Arc::new(shared) })
    }

    /// Samples the sockets that are due at `now`, and applies new limits. `now` must not be later than [`now`](crate::now).
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

    /// The time of the next [`Pool::poll`]; `None`: none until a socket is attached.
    pub fn next_timeout(&self) -> Option<Time> {
        if self.is_own() { self.lock().next_timeout() } else { None }
    }

    /// Limits the sum of the windows of all sockets; `None` lifts that limit. Each socket keeps at least four segments. The
    /// kernel's buffers take up to twice the window.
    pub fn set_memory_budget(&self, memory: Option<Bytes>) {
        if self.is_own() {
            self.lock().set_memory(memory);
        }
    }

    /// Number of attached sockets, including closed ones that have not been detached.
    pub fn sockets(&self) -> usize {
        if self.is_own() { self.lock().sockets() } else { 0 }
    }

    /// Polls forever, on a thread.
    pub(crate) fn serve(&self) {
        loop {
            let state = self.lock();
            match state.next_timeout().map(|due| due.since(clock::now())) {
                None => drop(self.shared.earlier.wait(state)),
                Some(Duration::ZERO) => drop(state),
                Some(wait) => {
                    let wait = std::time::Duration::from_nanos(wait.as_nanos());
                    drop(self.shared.earlier.wait_timeout(state, wait));
                }
            }
            // If an observer panics, this poll's other events are lost, but the sockets remain sized.
            let _ = catch_unwind(AssertUnwindSafe(|| self.poll(clock::now())));
        }
    }

    /// Adds a socket. Returns its cookie.
    pub(crate) fn add(&self, fd: RawFd, options: Options) -> Result<u64, AttachError> {
        let socket = connection_at(fd)?;
        if !self.is_own() {
            return Err(AttachError::Forked);
        }
        let cookie = socket.cookie();
        self.lock().attach(socket, options)?;
        self.shared.earlier.notify_one();
        Ok(cookie)
    }

    pub(crate) fn report(&self, cookie: u64) -> Result<Report, SocketError> {
        if !self.is_own() {
            return Err(SocketError::Forked);
        }
        self.lock().report(cookie).ok_or(SocketError::Closed)
    }

    /// Lifts the limits of a socket and forgets it. If another thread is calling its observer, waits for that call, so that
    /// there is no call afterwards. Fails if the socket could no longer be accessed.
    pub(crate) fn detach(&self, cookie: u64) -> Result<(), SocketError> {
        if !self.is_own() {
            return Err(SocketError::Forked);
        }
        // The program may have closed it at any time before.
        let member = self.lock().remove(cookie);
        Delivery::wait(&self.shared);
        let member = member.ok_or(SocketError::Closed)?;
        member.socket.with(|_| ()).map_err(|_| SocketError::Closed)
    }

    /// Whether this process created the pool. In a child of fork(2), a thread that does not exist there may hold the lock.
    fn is_own(&self) -> bool {
        fork_generation().is_ok_and(|generation| generation == self.shared.generation)
    }

    fn lock(&self) -> MutexGuard<'_, PoolState> {
        lock(&self.shared.state)
    }
}

/// Marks this thread as calling observers, until it is dropped.
struct Delivery<'a> {
    shared: &'a Shared,
}

impl Delivery<'_> {
    fn begin(shared: &Shared) -> Delivery<'_> {
        lock(&shared.delivering).push(thread::current().id());
        Delivery { shared }
    }

    /// Waits until no other thread is calling observers.
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
    // Observers panic without holding a lock, and a panic of the pool's own leaves no limit half set.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
