//! Sockets of other processes: named once, borrowed for each look or action (pidfd_getfd(2)).
//!
//! A borrowed descriptor keeps the connection open: were it kept, the program's `close` would send
//! no FIN. So it is borrowed for microseconds, and each time it is made sure by inode and cookie
//! that it still is the socket that was meant.

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::sync::Arc;

use thiserror::Error;

use crate::processes::{self, Descriptor};
use crate::tcp::options;
use crate::{check, wake};

/// Beyond so many descriptors nobody is searched: each costs a microsecond.
const MOST: i32 = 1 << 16;

/// Why a socket could not be borrowed.
#[derive(Debug, Error)]
pub enum BorrowError {
    /// The process has ended.
    #[error("process {pid} has ended")]
    ProcessEnded {
        /// Which.
        pid: u32,
    },
    /// The process closed the descriptor.
    #[error("process {pid} closed its descriptor {fd}")]
    Closed {
        /// Whose.
        pid: u32,
        /// Which.
        fd: i32,
    },
    /// The number now stands for something else; nothing was done to it.
    #[error("descriptor {fd} of process {pid} is another file now")]
    Reused {
        /// Whose.
        pid: u32,
        /// Which.
        fd: i32,
    },
    /// The kernel forbids it.
    #[error(
        "no permission for the sockets of process {pid}: run as root (CAP_SYS_PTRACE), or as its user \
         where kernel.yama.ptrace_scope is 0"
    )]
    NotPermitted {
        /// Whose.
        pid: u32,
    },
    /// The kernel cannot do it.
    #[error("this kernel cannot lend sockets of other processes; Linux 5.6 or newer can")]
    Unsupported,
    /// Something else.
    #[error("cannot borrow descriptor {fd} of process {pid}: {source}")]
    Failed {
        /// Whose.
        pid: u32,
        /// Which.
        fd: i32,
        /// The kernel's reason.
        source: io::Error,
    },
}

impl BorrowError {
    /// Whether the socket is out of reach for good because the program is done with it.
    pub fn is_over(&self) -> bool {
        use BorrowError::{Closed, ProcessEnded, Reused};
        matches!(self, ProcessEnded { .. } | Closed { .. } | Reused { .. })
    }
}

/// A process that is meant even after its number was given to another one.
#[derive(Debug, Clone)]
pub struct ProcessHandle {
    pid: u32,
    pidfd: Arc<OwnedFd>,
}

impl ProcessHandle {
    /// A handle to the process that has number `pid` now.
    pub fn open(pid: u32) -> Result<ProcessHandle, BorrowError> {
        let number = libc::c_long::from(pid);
        // SAFETY: pidfd_open takes numbers.
        match descriptor(unsafe { libc::syscall(libc::SYS_pidfd_open, number, 0) }) {
            Ok(pidfd) => Ok(ProcessHandle { pid, pidfd: Arc::new(pidfd) }),
            Err(source) => Err(explain(source, pid, -1)),
        }
    }

    /// Its number.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Whether it has ended.
    pub fn has_ended(&self) -> bool {
        wake::is_readable(self.pidfd.as_fd())
    }

    /// The sockets that it has open, found by borrowing whatever it has open: for who may borrow
    /// (CAP_SYS_PTRACE) but not list ([`processes::sockets`]).
    pub fn sockets(&self) -> Result<Vec<Descriptor>, BorrowError> {
        let slots = processes::descriptor_slots(self.pid);
        let mut found = Vec::new();
        for fd in 0..slots.map_err(|_| BorrowError::ProcessEnded { pid: self.pid })?.min(MOST) {
            match self.duplicate(fd) {
                Ok(file) => {
                    let inode = status(&file).ok().filter(is_socket).map(|stat| stat.st_ino);
                    found.extend(inode.map(|inode| Descriptor { fd, inode }));
                }
                Err(BorrowError::Closed { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }

    /// A second descriptor for the file that the process has open as `fd`.
    fn duplicate(&self, fd: i32) -> Result<OwnedFd, BorrowError> {
        let (pidfd, number) = (libc::c_long::from(self.pidfd.as_raw_fd()), libc::c_long::from(fd));
        // SAFETY: pidfd_getfd takes numbers.
        let got = descriptor(unsafe { libc::syscall(libc::SYS_pidfd_getfd, pidfd, number, 0) });
        got.map_err(|source| explain(source, self.pid, fd))
    }
}

/// A socket of a process, known by number, inode and cookie.
#[derive(Debug, Clone)]
pub struct LiveSocket {
    process: ProcessHandle,
    fd: i32,
    inode: u64,
    cookie: u64,
}

impl LiveSocket {
    /// Names the socket that `process` has open as `fd`, which must have this inode and, where
    /// given, this cookie. `Reused` is also what something other than a socket is.
    pub fn name(
        process: &ProcessHandle,
        fd: i32,
        inode: u64,
        cookie: Option<u64>,
    ) -> Result<LiveSocket, BorrowError> {
        let borrowed = process.duplicate(fd)?;
        let reused = BorrowError::Reused { pid: process.pid, fd };
        let seen = options::cookie(&borrowed).ok();
        match seen {
            Some(seen) if cookie.is_none_or(|wanted| wanted == seen) => {
                if self::inode(&borrowed).ok() != Some(inode) {
                    return Err(reused);
                }
                Ok(LiveSocket { process: process.clone(), fd, inode, cookie: seen })
            }
            _ => Err(reused),
        }
    }

    /// Lends the socket to `act`, after making sure that it still is the one that was named.
    pub fn with<T>(&self, act: impl FnOnce(&OwnedFd) -> T) -> Result<T, BorrowError> {
        let borrowed = self.process.duplicate(self.fd)?;
        let same = options::cookie(&borrowed).is_ok_and(|cookie| cookie == self.cookie)
            && inode(&borrowed).is_ok_and(|inode| inode == self.inode);
        if !same {
            return Err(BorrowError::Reused { pid: self.process.pid, fd: self.fd });
        }
        Ok(act(&borrowed))
    }

    /// The process that has it open.
    pub fn process(&self) -> &ProcessHandle {
        &self.process
    }

    /// Its number there.
    pub fn fd(&self) -> i32 {
        self.fd
    }

    /// Its inode.
    pub fn inode(&self) -> u64 {
        self.inode
    }

    /// Its cookie.
    pub fn cookie(&self) -> u64 {
        self.cookie
    }
}

/// The inode of an open file.
pub fn inode(file: impl AsFd) -> io::Result<u64> {
    status(file).map(|stat| stat.st_ino)
}

fn status(file: impl AsFd) -> io::Result<libc::stat> {
    // SAFETY: an all-zero stat is valid, and the call fills it in.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: the descriptor is open and `stat` is valid for writing.
    check(unsafe { libc::fstat(file.as_fd().as_raw_fd(), &mut stat) })?;
    Ok(stat)
}

fn is_socket(stat: &libc::stat) -> bool {
    stat.st_mode & libc::S_IFMT == libc::S_IFSOCK
}

fn descriptor(result: libc::c_long) -> io::Result<OwnedFd> {
    let fd = check(result as i32)?;
    // SAFETY: a new descriptor (closed on exec, as both calls make them) that is ours alone.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn explain(source: io::Error, pid: u32, fd: i32) -> BorrowError {
    match source.raw_os_error() {
        Some(libc::ESRCH) => BorrowError::ProcessEnded { pid },
        Some(libc::EBADF) => BorrowError::Closed { pid, fd },
        Some(libc::EPERM | libc::EACCES) => BorrowError::NotPermitted { pid },
        Some(libc::ENOSYS) => BorrowError::Unsupported,
        _ => BorrowError::Failed { pid, fd, source },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::net::{TcpListener, TcpStream};
    use std::process::{Command, Stdio};

    fn us() -> ProcessHandle {
        ProcessHandle::open(std::process::id()).unwrap()
    }

    #[test]
    fn a_named_socket_is_lent_as_the_same_socket() {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let inode = inode(&socket).unwrap();
        let cookie = options::cookie(&socket).unwrap();
        let live = LiveSocket::name(&us(), socket.as_raw_fd(), inode, Some(cookie)).unwrap();
        assert_eq!(live.with(|fd| options::cookie(fd).unwrap()).unwrap(), cookie);
    }

    #[test]
    fn sockets_are_found_by_borrowing_as_well_as_by_listing() {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let wanted = inode(&socket).unwrap();
        let found = us().sockets().unwrap();
        assert!(found.iter().any(|d| d.fd == socket.as_raw_fd() && d.inode == wanted));
        let file = File::open("/proc/self/stat").unwrap();
        assert!(us().sockets().unwrap().iter().all(|d| d.fd != file.as_raw_fd()));
    }

    #[test]
    fn another_cookie_or_inode_or_no_socket_is_never_lent() {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let (fd, inode) = (socket.as_raw_fd(), inode(&socket).unwrap());
        let cookie = options::cookie(&socket).unwrap();
        for (inode, cookie) in [(inode, cookie + 1), (inode + 1, cookie)] {
            let named = LiveSocket::name(&us(), fd, inode, Some(cookie));
            assert!(matches!(named, Err(BorrowError::Reused { .. })));
        }
        let file = File::open("/proc/self/stat").unwrap();
        let named = LiveSocket::name(&us(), file.as_raw_fd(), super::inode(&file).unwrap(), None);
        assert!(matches!(named, Err(BorrowError::Reused { .. })));
    }

    #[test]
    fn a_number_that_was_given_to_another_socket_is_refused() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let first = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let second = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let live =
            LiveSocket::name(&us(), first.as_raw_fd(), inode(&first).unwrap(), None).unwrap();
        // SAFETY: dup2 gives the number of `first`, which stays its owner, to a copy of `second`.
        unsafe { libc::dup2(second.as_raw_fd(), first.as_raw_fd()) };
        let lent = live.with(|_| panic!("lent the wrong socket"));
        assert!(matches!(&lent, Err(e @ BorrowError::Reused { .. }) if e.is_over()));
    }

    #[test]
    fn what_the_kernel_cannot_or_may_not_do_is_said_with_the_next_step() {
        let words = |errno| explain(io::Error::from_raw_os_error(errno), 7, 3).to_string();
        // pidfd_getfd came with Linux 5.6.
        assert!(words(libc::ENOSYS).contains("Linux 5.6 or newer"));
        assert!(words(libc::EPERM).contains("run as root (CAP_SYS_PTRACE)"));
        assert!(words(libc::EBADF).contains("closed its descriptor 3"));
        assert!(words(libc::EMFILE).starts_with("cannot borrow descriptor 3 of process 7"));
    }

    #[test]
    fn a_process_that_ended_lends_nothing() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let process = ProcessHandle::open(child.id()).unwrap();
        assert!(!process.has_ended());
        let closed = process.duplicate(99);
        assert!(matches!(closed, Err(BorrowError::Closed { fd: 99, .. })), "{closed:?}");
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(process.has_ended());
        assert!(matches!(process.duplicate(0), Err(BorrowError::ProcessEnded { .. })));
        // No process has a number beyond the kernel's limit of 2^22.
        let none = ProcessHandle::open(1 << 23);
        assert!(none.is_err_and(|e| e.is_over() || matches!(e, BorrowError::Failed { .. })));
    }
}
