use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use sweetspot_units::Duration;
use thiserror::Error;

use crate::tcp::options;
use crate::{check, clock};

/// A socket that another part of this process owns, identified by descriptor and cookie.
///
/// No duplicate is kept, because it would keep the connection open after the owner closes it. [`OwnSocket::with`] makes one
/// for a few microseconds, compares the cookie, and acts on the duplicate. So even if a descriptor number is closed and
/// reused at any moment, the action never reaches another socket.
///
/// fork(2) waits for these duplicates, so no child inherits one. A child rejects its parent's sockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnSocket {
    fd: RawFd,
    cookie: u64,
    generation: u32,
}

/// Why a socket of this process cannot be used.
#[derive(Debug, Error)]
pub enum LostSocket {
    /// Its descriptor was closed.
    #[error("the descriptor was closed")]
    Closed,
    /// Its descriptor number refers to another file now. Nothing was done to that file.
    #[error("the descriptor was closed, and its number belongs to another file")]
    Reused,
    /// This process is a child of the one in which the `OwnSocket` was made.
    #[error("the socket was attached by the parent process, before fork")]
    Forked,
    /// The kernel could not duplicate the descriptor.
    #[error("the descriptor cannot be duplicated: {0}")]
    Failed(#[source] io::Error),
}

impl LostSocket {
    /// Whether the socket is permanently out of reach.
    pub fn is_over(&self) -> bool {
        !matches!(self, LostSocket::Failed(_))
    }
}

impl OwnSocket {
    /// The socket that this process has open as `fd`. Fails if `fd` is not an open socket, and on kernels before 4.12, which
    /// have no cookies.
    pub fn at(fd: RawFd) -> io::Result<OwnSocket> {
        let generation = fork_generation()?;
        let _loan = Loan::begin();
        Ok(OwnSocket { fd, cookie: options::cookie(duplicate(fd)?)?, generation })
    }

    /// The socket's cookie, unique until the next boot.
    pub fn cookie(&self) -> u64 {
        self.cookie
    }

    /// Its descriptor.
    pub fn fd(&self) -> RawFd {
        self.fd
    }

    /// Runs `act` on the socket if it is still the same. `act` must neither block nor fork.
    pub fn with<T>(&self, act: impl FnOnce(&OwnedFd) -> T) -> Result<T, LostSocket> {
        let _loan = Loan::begin();
        if GENERATION.load(Ordering::Relaxed) != self.generation {
            return Err(LostSocket::Forked);
        }
        let duplicate = duplicate(self.fd).map_err(|error| match error.raw_os_error() {
            Some(libc::EBADF) => LostSocket::Closed,
            _ => LostSocket::Failed(error),
        })?;
        // A file that is not a socket has no cookie.
        if options::cookie(&duplicate).ok() != Some(self.cookie) {
            return Err(LostSocket::Reused);
        }
        Ok(act(&duplicate))
    }
}

/// The number of forks between the first process that called this and the current one. Thread state is unusable in a child:
/// a lock may be held by a thread that does not exist there.
pub fn fork_generation() -> io::Result<u32> {
    static WATCHED: OnceLock<i32> = OnceLock::new();
    // SAFETY: the handlers only use atomics, the clock and sched_yield(2), which are safe after a fork.
    let error = *WATCHED.get_or_init(|| unsafe {
        libc::pthread_atfork(Some(before_fork), Some(after_fork), Some(in_child))
    });
    match error {
        0 => Ok(GENERATION.load(Ordering::Relaxed)),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

static GENERATION: AtomicU32 = AtomicU32::new(0);
/// Number of threads in fork(2).
static FORKING: AtomicU32 = AtomicU32::new(0);
/// Number of duplicates that exist now.
static LOANS: AtomicU32 = AtomicU32::new(0);

/// The longest that fork(2) waits. A duplicate lives longer only if its thread gets no CPU, a signal handler forks while it
/// exists, or the program closes a lingering socket at that moment (`SO_LINGER`).
const MAX_WAIT: Duration = Duration::from_millis(10);

/// While a loan exists, fork(2) waits.
struct Loan;

impl Loan {
    fn begin() -> Loan {
        loop {
            LOANS.fetch_add(1, Ordering::SeqCst);
            if FORKING.load(Ordering::SeqCst) == 0 {
                return Loan;
            }
            LOANS.fetch_sub(1, Ordering::SeqCst);
            std::thread::yield_now();
        }
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        LOANS.fetch_sub(1, Ordering::SeqCst);
    }
}

extern "C" fn before_fork() {
    FORKING.fetch_add(1, Ordering::SeqCst);
    let until = clock::now() + MAX_WAIT;
    while LOANS.load(Ordering::SeqCst) > 0 && clock::now() < until {
        std::thread::yield_now();
    }
}

extern "C" fn after_fork() {
    FORKING.fetch_sub(1, Ordering::SeqCst);
}

extern "C" fn in_child() {
    // Of all threads, only the forking one exists in the child.
    FORKING.store(0, Ordering::SeqCst);
    LOANS.store(0, Ordering::SeqCst);
    GENERATION.fetch_add(1, Ordering::SeqCst);
}

fn duplicate(fd: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: fcntl accepts any number, and F_DUPFD_CLOEXEC has no pointer argument.
    let duplicate = check(unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 0) })?;
    // SAFETY: the kernel has just created this descriptor, and nothing else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(duplicate) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::os::fd::AsRawFd;

    fn listener() -> TcpListener {
        TcpListener::bind("127.0.0.1:0").unwrap()
    }

    /// How many descriptors of this process refer to the socket with this cookie.
    fn copies(cookie: u64) -> usize {
        let is_copy = |fd: &RawFd| {
            // SAFETY: only the cookie is read, which fails if the number is not open.
            let fd = unsafe { std::os::fd::BorrowedFd::borrow_raw(*fd) };
            options::cookie(fd).ok() == Some(cookie)
        };
        (0..1024).filter(is_copy).count()
    }

    #[test]
    fn closed_sockets_and_reused_descriptors_are_refused() {
        let (first, second) = (listener(), listener());
        let named = OwnSocket::at(first.as_raw_fd()).unwrap();
        assert_eq!(named.with(|fd| options::cookie(fd).unwrap()).unwrap(), named.cookie());
        // SAFETY: dup2 makes the descriptor number of `first`, which `first` still owns, refer to a copy of `second`.
        unsafe { libc::dup2(second.as_raw_fd(), first.as_raw_fd()) };
        let refused = named.with(|_| panic!("the wrong socket"));
        assert!(matches!(refused, Err(LostSocket::Reused)));
        // A number above the limit on descriptors, which is never open.
        let closed = OwnSocket { fd: RawFd::MAX, ..named };
        assert!(matches!(closed.with(|_| ()), Err(LostSocket::Closed)));
    }

    /// Ends the other thread even if an assertion fails.
    struct SetWhenDropped<'a>(&'a std::sync::atomic::AtomicBool);

    impl Drop for SetWhenDropped<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_forked_child_refuses_its_parents_sockets_and_inherits_no_duplicate() {
        let socket = listener();
        let named = OwnSocket::at(socket.as_raw_fd()).unwrap();
        let done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            let _end = SetWhenDropped(&done);
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    let _ = named.with(|_| ());
                }
            });
            let mut waits_that_ended = 0;
            for _ in 0..20 {
                let began = clock::now();
                // SAFETY: the child only calls functions that are safe after a fork, and leaves by _exit.
                let child = unsafe { libc::fork() };
                if child == 0 {
                    let refused = matches!(named.with(|_| ()), Err(LostSocket::Forked));
                    // On a busy host the other thread may get no CPU for as long as fork waits.
                    let ran_out = clock::now().since(began) >= MAX_WAIT;
                    let code = match copies(named.cookie) {
                        _ if !refused => 1,
                        _ if ran_out => 2,
                        copies => i32::from(copies != 1),
                    };
                    // SAFETY: ends the child without running any of the parent's code.
                    unsafe { libc::_exit(code) };
                }
                let mut status = 0;
                // SAFETY: waits for the child that was just made.
                assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
                assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) != 1, "{status}");
                waits_that_ended += i32::from(libc::WEXITSTATUS(status) == 0);
            }
            assert!(waits_that_ended > 0, "no fork within the time that it waits");
        });
        assert!(named.with(|_| ()).is_ok());
    }
}
