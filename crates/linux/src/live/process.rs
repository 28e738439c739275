use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::sync::Arc;

use super::error::{BorrowError, explain};
use super::status;
use crate::processes::{self, Descriptor};
use crate::{check, event_fd};

/// How many descriptors of a process are searched at most. Each costs a microsecond.
const MAX_DESCRIPTORS: i32 = 1 << 16;

/// A handle of a process (pidfd), which stays valid when the process ID is reused.
#[derive(Debug, Clone)]
pub struct ProcessHandle {
    pid: u32,
    pidfd: Arc<OwnedFd>,
}

impl ProcessHandle {
    /// A handle of the process that has the ID `pid` now.
    pub fn open(pid: u32) -> Result<ProcessHandle, BorrowError> {
        let number = libc::c_long::from(pid);
        // SAFETY: pidfd_open takes numbers.
        match descriptor(unsafe { libc::syscall(libc::SYS_pidfd_open, number, 0) }) {
            Ok(pidfd) => Ok(ProcessHandle { pid, pidfd: Arc::new(pidfd) }),
            // Numbers that no process can have, and thread IDs.
            Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOENT)) => {
                Err(BorrowError::ProcessEnded { pid })
            }
            Err(source) => Err(explain(source, pid, -1)),
        }
    }

    /// Its process ID.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Whether it has ended.
    pub fn has_ended(&self) -> bool {
        event_fd::is_readable(self.pidfd.as_fd())
    }

    /// The sockets among its descriptors, found by borrowing each descriptor. This needs CAP_SYS_PTRACE only, unlike
    /// [`processes::sockets`].
    pub fn sockets(&self) -> Result<Vec<Descriptor>, BorrowError> {
        let slots = processes::descriptor_slots(self.pid);
        let mut found = Vec::new();
        for fd in
            0..slots.map_err(|_| BorrowError::ProcessEnded { pid: self.pid })?.min(MAX_DESCRIPTORS)
        {
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
    pub(super) fn duplicate(&self, fd: i32) -> Result<OwnedFd, BorrowError> {
        let (pidfd, number) = (libc::c_long::from(self.pidfd.as_raw_fd()), libc::c_long::from(fd));
        // SAFETY: pidfd_getfd takes numbers.
        let got = descriptor(unsafe { libc::syscall(libc::SYS_pidfd_getfd, pidfd, number, 0) });
        got.map_err(|source| explain(source, self.pid, fd))
    }
}

fn is_socket(stat: &libc::stat) -> bool {
    stat.st_mode & libc::S_IFMT == libc::S_IFSOCK
}

fn descriptor(result: libc::c_long) -> io::Result<OwnedFd> {
    let fd = check(result as i32)?;
    // SAFETY: a new descriptor (closed on exec, as both calls make them) that is ours alone.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::inode;
    use std::fs::File;
    use std::net::TcpListener;
    use std::process::{Command, Stdio};

    fn us() -> ProcessHandle {
        ProcessHandle::open(std::process::id()).unwrap()
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
    }

    #[test]
    fn a_number_that_no_process_has_is_that_of_one_that_ended() {
        // None is 0 or beyond the kernel's limit of 2^22; a thread's is not its process's.
        // SAFETY: gettid takes nothing and cannot fail.
        let thread = unsafe { libc::gettid() } as u32;
        assert_ne!(thread, std::process::id());
        for number in [0, 1 << 23, thread] {
            assert!(ProcessHandle::open(number).is_err_and(|error| error.is_over()), "{number}");
        }
    }
}
