use std::io;

use thiserror::Error;

use crate::processes;

/// Why a socket could not be borrowed.
#[derive(Debug, Error)]
pub enum BorrowError {
    /// The process has ended.
    #[error("process {pid} has ended")]
    ProcessEnded {
        /// The process.
        pid: u32,
    },
    /// The process closed the descriptor.
    #[error("process {pid} closed its descriptor {fd}")]
    Closed {
        /// The process.
        pid: u32,
        /// The descriptor.
        fd: i32,
    },
    /// The descriptor refers to another file now. Nothing was done to that file.
    #[error("descriptor {fd} of process {pid} now refers to another file")]
    Reused {
        /// The process.
        pid: u32,
        /// The descriptor.
        fd: i32,
    },
    /// The process may not be inspected.
    #[error(
        "no permission for the sockets of process {pid}: {}",
        remedy(processes::may_inspect_others())
    )]
    NotPermitted {
        /// The process.
        pid: u32,
    },
    /// The kernel has no pidfd_getfd(2).
    #[error(
        "this kernel cannot duplicate sockets of other processes (pidfd_getfd); Linux 5.6 or newer can, \
         unless a seccomp filter forbids it"
    )]
    Unsupported,
    /// The kernel failed for another reason.
    #[error("cannot duplicate descriptor {fd} of process {pid}: {source}")]
    Failed {
        /// The process.
        pid: u32,
        /// The descriptor.
        fd: i32,
        /// The kernel's reason.
        source: io::Error,
    },
}

/// How to gain access to a process's sockets; a user who may already inspect the processes of others needs a different remedy.
fn remedy(may_inspect_others: bool) -> &'static str {
    match may_inspect_others {
        true => {
            "a seccomp filter or a security module forbids it (in a container, let its seccomp profile allow pidfd_getfd)"
        }
        false => {
            "run as root (CAP_SYS_PTRACE), or as its user where kernel.yama.ptrace_scope is 0; in a container, let its \
             seccomp profile allow pidfd_getfd"
        }
    }
}

impl BorrowError {
    /// Whether the program has closed the socket or ended, so that the socket is permanently out of
    /// reach.
    pub fn is_over(&self) -> bool {
        use BorrowError::{Closed, ProcessEnded, Reused};
        matches!(self, ProcessEnded { .. } | Closed { .. } | Reused { .. })
    }
}

/// Explains why the kernel refused to duplicate descriptor `fd` of process `pid`.
pub(super) fn explain(source: io::Error, pid: u32, fd: i32) -> BorrowError {
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

    #[test]
    fn duplication_errors_give_the_next_step() {
        let words = |errno| explain(io::Error::from_raw_os_error(errno), 7, 3).to_string();
        // pidfd_getfd came with Linux 5.6.
        assert!(words(libc::ENOSYS).contains("Linux 5.6 or newer"));
        assert!(words(libc::EPERM).contains("let its seccomp profile allow pidfd_getfd"));
        // Root has the capability already.
        assert!(remedy(false).contains("run as root (CAP_SYS_PTRACE)"));
        assert!(!remedy(true).contains("root"));
        assert!(words(libc::EBADF).contains("closed its descriptor 3"));
        assert!(words(libc::EMFILE).starts_with("cannot duplicate descriptor 3 of process 7"));
    }
}
