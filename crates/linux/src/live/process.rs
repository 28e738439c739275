use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::fs::{FileType, fstat};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

use super::error::{BorrowError, explain};
use crate::event_fd;
use crate::processes::{self, Descriptor};

/// The maximum number of descriptors searched per process. Each costs a microsecond.
const MAX_DESCRIPTORS: i32 = 1 << 16;

/// A handle to a process (pidfd). It does not refer to another process if the process ID is reused.
#[derive(Debug, Clone)]
pub struct ProcessHandle {
    pid: u32,
    pidfd: Arc<OwnedFd>,
}

impl ProcessHandle {
    /// Opens a handle to the process that has the ID `pid` now.
    pub fn open(pid: u32) -> Result<ProcessHandle, BorrowError> {
        let number = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(Errno::INVAL);
        match number.and_then(|number| pidfd_open(number, PidfdFlags::empty())) {
            Ok(pidfd) => Ok(ProcessHandle { pid, pidfd: Arc::new(pidfd) }),
            // PIDs that no process can have, and thread IDs.
            Err(Errno::INVAL | Errno::NOENT) => Err(BorrowError::ProcessEnded { pid }),
            Err(source) => Err(explain(source.into(), pid, -1)),
        }
    }

    /// Its process ID.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Whether it has ended.
    pub fn has_ended(&self) -> bool {
        event_fd::is_readable(&self.pidfd)
    }

    /// The sockets among its descriptors, found by borrowing each descriptor. Unlike [`processes::sockets`], this
    /// needs only CAP_SYS_PTRACE.
    pub fn sockets(&self) -> Result<Vec<Descriptor>, BorrowError> {
        let slots = processes::descriptor_slots(self.pid);
        let mut found = Vec::new();
        for fd in
            0..slots.map_err(|_| BorrowError::ProcessEnded { pid: self.pid })?.min(MAX_DESCRIPTORS)
        {
            match self.duplicate(fd) {
                Ok(file) => {
                    let socket = fstat(&file)
                        .ok()
                        .filter(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Socket);
                    found.extend(socket.map(|stat| Descriptor { fd, inode: stat.st_ino }));
                }
                Err(BorrowError::Closed { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }

    /// A duplicate of the descriptor that the process has open as `fd`.
    pub(super) fn duplicate(&self, fd: i32) -> Result<OwnedFd, BorrowError> {
        pidfd_getfd(&self.pidfd, fd, PidfdGetfdFlags::empty())
            .map_err(|source| explain(source.into(), self.pid, fd))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::inode;
    use std::fs::File;
    use std::net::TcpListener;
    use std::os::fd::AsRawFd;
    use std::process::{Command, Stdio};

    fn us() -> ProcessHandle {
        ProcessHandle::open(std::process::id()).unwrap()
    }

    #[test]
    fn a_process_handle_finds_sockets_and_ignores_files() {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let expected = inode(&socket).unwrap();
        let found = us().sockets().unwrap();
        assert!(found.iter().any(|d| d.fd == socket.as_raw_fd() && d.inode == expected));
        let file = File::open("/proc/self/stat").unwrap();
        assert!(us().sockets().unwrap().iter().all(|d| d.fd != file.as_raw_fd()));
    }

    #[test]
    fn an_ended_process_lends_no_descriptor() {
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
    fn an_invalid_pid_counts_as_an_ended_process() {
        // None of these is a process ID: 0 and numbers above the kernel's limit of 2^22 are invalid, and a thread's
        // ID differs from its process's.
        let thread = rustix::thread::gettid().as_raw_pid() as u32;
        assert_ne!(thread, std::process::id());
        for number in [0, 1 << 23, thread] {
            assert!(ProcessHandle::open(number).is_err_and(|error| error.is_over()), "{number}");
        }
    }
}
