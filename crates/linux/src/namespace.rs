//! Network namespaces: creates and enters them, and starts commands in them.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::thread;

use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};

use crate::signals;

/// A network namespace. It exists as long as this handle exists, or a process or socket is in it.
#[derive(Debug)]
pub struct NetworkNamespace {
    file: File,
}

impl NetworkNamespace {
    /// Creates a new namespace that has only a loopback device, which is down. Needs CAP_SYS_ADMIN, which
    /// [`isolate`](crate::isolation::isolate) provides.
    pub fn new() -> io::Result<NetworkNamespace> {
        // A namespace belongs to a thread: a short-lived thread creates it, and the open file keeps it alive.
        on_own_thread(|| {
            unshare(UnshareFlags::NEWNET)?;
            NetworkNamespace::current()
        })?
    }

    /// The namespace of the calling thread.
    pub fn current() -> io::Result<NetworkNamespace> {
        Ok(NetworkNamespace { file: File::open("/proc/thread-self/ns/net")? })
    }

    /// The namespace that ip-netns(8) calls `name`. Entering it needs CAP_SYS_ADMIN.
    pub fn named(name: &str) -> io::Result<NetworkNamespace> {
        // A name is a single file name, not a path.
        if name.is_empty() || name.contains('/') || name.starts_with('.') {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        Ok(NetworkNamespace { file: File::open(format!("/run/netns/{name}"))? })
    }

    /// The namespace of process `pid`. Needs the right to inspect that process. Entering the namespace needs
    /// CAP_SYS_ADMIN.
    pub fn of_process(pid: u32) -> io::Result<NetworkNamespace> {
        Ok(NetworkNamespace { file: File::open(format!("/proc/{pid}/ns/net"))? })
    }

    /// Runs `work` in this namespace on a new thread and waits for it. A socket created there stays in the
    /// namespace wherever it is used later.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        on_own_thread(|| {
            self.enter()?;
            Ok(work())
        })?
    }

    /// Moves the calling thread into this namespace for the rest of its life.
    pub fn enter(&self) -> io::Result<()> {
        set_namespace(self.file.as_fd())
    }

    /// Makes `command` start in this namespace, with no signal blocked.
    pub fn enter_on_exec(&self, command: &mut Command) -> io::Result<()> {
        let file = self.file.try_clone()?;
        let enter = move || {
            signals::unblock_all();
            set_namespace(file.as_fd())
        };
        // SAFETY: setns and pthread_sigmask are async-signal-safe and nothing allocates.
        unsafe { command.pre_exec(enter) };
        Ok(())
    }
}

impl AsFd for NetworkNamespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

fn set_namespace(namespace: BorrowedFd<'_>) -> io::Result<()> {
    Ok(move_into_link_name_space(namespace, Some(LinkNameSpaceType::Network))?)
}

/// Moves the calling thread into new namespaces.
pub(crate) fn unshare(namespaces: UnshareFlags) -> io::Result<()> {
    debug_assert!(!namespaces.contains(UnshareFlags::FILES));
    // SAFETY: the thread still shares its descriptors with the others.
    Ok(unsafe { rustix::thread::unshare_unsafe(namespaces) }?)
}

fn on_own_thread<T: Send>(work: impl FnOnce() -> T + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let worker = thread::Builder::new().spawn_scoped(scope, work)?;
        worker.join().map_err(|_| io::Error::other("the thread in the namespace panicked"))
    })
}
