use std::cell::RefCell;
use std::os::fd::OwnedFd;

use super::error::BorrowError;
use super::{ProcessHandle, inode};
use crate::processes;
use crate::tcp::options;

/// Searches before a socket counts as gone: it may move while descriptors are read.
const MAX_SEARCHES: usize = 3;

/// A socket of another process, identified by descriptor, inode and cookie.
///
/// Programs move sockets to another descriptor (`dup2`) or to a child process. [`LiveSocket::follow`] finds the
/// socket again; inode and cookie never change.
#[derive(Debug, Clone)]
pub struct LiveSocket {
    place: RefCell<SocketPlace>,
    inode: u64,
    cookie: u64,
}

#[derive(Debug, Clone)]
struct SocketPlace {
    process: ProcessHandle,
    fd: i32,
}

impl LiveSocket {
    /// The socket that `process` has open as `fd`. Its inode and, if given, cookie must match; otherwise the error
    /// is `Reused`.
    pub fn name(
        process: &ProcessHandle,
        fd: i32,
        inode: u64,
        cookie: Option<u64>,
    ) -> Result<LiveSocket, BorrowError> {
        let borrowed = process.duplicate(fd)?;
        let reused = BorrowError::Reused { pid: process.pid(), fd };
        let seen = options::cookie(&borrowed).ok();
        match seen {
            Some(seen) if cookie.is_none_or(|expected| expected == seen) => {
                if self::inode(&borrowed).ok() != Some(inode) {
                    return Err(reused);
                }
                let place = RefCell::new(SocketPlace { process: process.clone(), fd });
                Ok(LiveSocket { place, inode, cookie: seen })
            }
            _ => Err(reused),
        }
    }

    /// The socket with this inode and cookie in process `pid`; `None` if the process does not have it.
    pub fn find(pid: u32, inode: u64, cookie: u64) -> Option<LiveSocket> {
        let process = ProcessHandle::open(pid).ok()?;
        let sockets = processes::sockets(pid).or_else(|_| process.sockets()).ok()?;
        sockets
            .into_iter()
            .filter(|descriptor| descriptor.inode == inode)
            .find_map(|d| LiveSocket::name(&process, d.fd, inode, Some(cookie)).ok())
    }

    /// Finds the socket again after it moved: under another descriptor, in a descendant of its process or, if the
    /// process has ended, in any process. The error says why it was not where it was last seen.
    pub fn follow(&self) -> Result<(), BorrowError> {
        let Err(why) = self.with(|_| ()) else { return Ok(()) };
        // If the process has ended, every process is searched. A process that inherits the socket gets it before the
        // old one ends.
        let searches =
            if matches!(why, BorrowError::ProcessEnded { .. }) { 1 } else { MAX_SEARCHES };
        let Some(found) = (0..searches).find_map(|_| self.search(&why)) else { return Err(why) };
        self.place.replace(found.place.into_inner());
        Ok(())
    }

    fn search(&self, why: &BorrowError) -> Option<LiveSocket> {
        let pid = self.process().pid();
        let find = |pid| LiveSocket::find(pid, self.inode, self.cookie);
        let others = || match why {
            BorrowError::ProcessEnded { .. } => processes::all().unwrap_or_default(),
            _ => processes::family(pid),
        };
        find(pid).or_else(|| others().into_iter().find_map(find))
    }

    /// Borrows the socket for `act` after checking that it is still the same.
    pub fn with<T>(&self, act: impl FnOnce(&OwnedFd) -> T) -> Result<T, BorrowError> {
        let SocketPlace { process, fd } = &*self.place.borrow();
        let borrowed = process.duplicate(*fd)?;
        let same = options::cookie(&borrowed).is_ok_and(|cookie| cookie == self.cookie)
            && inode(&borrowed).is_ok_and(|inode| inode == self.inode);
        if !same {
            return Err(BorrowError::Reused { pid: process.pid(), fd: *fd });
        }
        Ok(act(&borrowed))
    }

    /// The process that has the socket open.
    pub fn process(&self) -> ProcessHandle {
        self.place.borrow().process.clone()
    }

    /// Its descriptor in that process.
    pub fn fd(&self) -> i32 {
        self.place.borrow().fd
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;
    use std::fs::File;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;
    use std::process::Command;
    use std::sync::mpsc;
    use sweetspot_units::Duration;

    fn us() -> ProcessHandle {
        ProcessHandle::open(std::process::id()).unwrap()
    }

    #[test]
    fn a_named_socket_is_lent_with_the_same_cookie() {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let inode = inode(&socket).unwrap();
        let cookie = options::cookie(&socket).unwrap();
        let live = LiveSocket::name(&us(), socket.as_raw_fd(), inode, Some(cookie)).unwrap();
        assert_eq!(live.with(|fd| options::cookie(fd).unwrap()).unwrap(), cookie);
    }

    #[test]
    fn a_different_cookie_or_inode_or_a_file_is_never_lent() {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let (fd, inode) = (socket.as_raw_fd(), inode(&socket).unwrap());
        let cookie = options::cookie(&socket).unwrap();
        for (inode, cookie) in [(inode, cookie + 1), (inode + 1, cookie)] {
            let named = LiveSocket::name(&us(), fd, inode, Some(cookie));
            assert!(matches!(named, Err(BorrowError::Reused { .. })));
        }
        let file = File::open("/proc/self/stat").unwrap();
        let named =
            LiveSocket::name(&us(), file.as_raw_fd(), crate::live::inode(&file).unwrap(), None);
        assert!(matches!(named, Err(BorrowError::Reused { .. })));
    }

    #[test]
    fn a_descriptor_reused_for_another_socket_is_refused() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let first = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let second = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let live =
            LiveSocket::name(&us(), first.as_raw_fd(), inode(&first).unwrap(), None).unwrap();
        // SAFETY: dup2 makes the descriptor number of `first`, which `first` still owns, refer to a copy of
        // `second`.
        unsafe { libc::dup2(second.as_raw_fd(), first.as_raw_fd()) };
        let lent = live.with(|_| panic!("lent the wrong socket"));
        assert!(matches!(&lent, Err(e @ BorrowError::Reused { .. }) if e.is_over()));
        assert!(live.follow().is_err());
    }

    #[test]
    fn a_socket_is_followed_to_another_descriptor_and_to_a_child() {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let (fd, inode) = (socket.as_raw_fd(), inode(&socket).unwrap());
        let live = LiveSocket::name(&us(), fd, inode, None).unwrap();
        let moved = socket.try_clone().unwrap();
        drop(socket);
        live.follow().unwrap();
        assert_eq!((live.fd(), live.process().pid()), (moved.as_raw_fd(), std::process::id()));
        // A child with the socket as its standard input.
        let mut child =
            Command::new("sleep").arg("60").stdin(OwnedFd::from(moved)).spawn().unwrap();
        let followed = live.follow();
        let place = (live.fd(), live.process().pid());
        child.kill().unwrap();
        child.wait().unwrap();
        followed.unwrap();
        assert_eq!(place, (0, child.id()));
        // A child that another test forked meanwhile holds the socket until it calls exec or ends.
        while live.follow().is_ok() {
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_socket_that_moves_during_the_search_is_followed() {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let inode = inode(&socket).unwrap();
        let (move_sender, moves) = mpsc::sync_channel(0);
        std::thread::scope(|scope| {
            let live = LiveSocket::name(&us(), socket.as_raw_fd(), inode, None).unwrap();
            scope.spawn(move || {
                let mut socket = socket;
                for pause in moves {
                    let due = clock::now() + Duration::from_micros(pause);
                    while clock::now() < due {}
                    // The copy has another descriptor number, and the old one is closed.
                    socket = socket.try_clone().unwrap();
                }
            });
            let lost = (0..3000).filter(|n| {
                // One move before the search, and one early or late during it.
                move_sender.send(0).unwrap();
                move_sender.send(n % 300).unwrap();
                live.follow().is_err()
            });
            assert_eq!(lost.count(), 0);
            drop(move_sender);
        });
    }
}
