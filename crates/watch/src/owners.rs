use std::collections::HashMap;

use sweetspot_linux::processes::{self, Process};
use sweetspot_units::{Duration, Time};

/// Minimum interval between scans of all processes' descriptors, which cost more than everything
/// else.
const RESCAN_INTERVAL: Duration = Duration::from_secs(3);

/// A process that has a socket open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// Process id.
    pub pid: u32,
    /// Name of its program.
    pub name: String,
}

/// The owners of sockets, as far as permissions allow.
#[derive(Debug, Default)]
pub struct Owners {
    by_inode: HashMap<u64, Owner>,
    read: Option<Time>,
}

impl Owners {
    /// Scans again if an inode in `inodes` is unknown, unless the last scan was recent.
    pub fn learn(&mut self, mut inodes: impl Iterator<Item = u64>, now: Time) {
        let lately = self.read.is_some_and(|read| now.since(read) < RESCAN_INTERVAL);
        if lately || inodes.all(|inode| inode == 0 || self.by_inode.contains_key(&inode)) {
            return;
        }
        self.read = Some(now);
        self.by_inode.clear();
        for pid in processes::all().unwrap_or_default() {
            // The process has ended, or may not be inspected.
            let Ok(sockets) = processes::sockets(pid) else { continue };
            if sockets.is_empty() {
                continue;
            }
            let Ok(Process { name, .. }) = Process::read(pid) else { continue };
            for socket in sockets {
                let owner = Owner { pid, name: name.clone() };
                self.by_inode.entry(socket.inode).or_insert(owner);
            }
        }
    }

    /// The owner of the socket with this inode. If there are several, the one with the lowest
    /// process id.
    pub fn of(&self, inode: u64) -> Option<&Owner> {
        self.by_inode.get(&inode)
    }
}
