use std::collections::HashMap;

use sweetspot_linux::processes::{self, Process};
use sweetspot_units::{Duration, Time};

/// Reading every process's descriptors costs more than everything else: not more often than this.
const RESCAN_INTERVAL: Duration = Duration::from_secs(3);

/// A process that has a socket open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// Its number.
    pub pid: u32,
    /// Its program.
    pub name: String,
}

/// Who has which socket open, as far as we may look.
#[derive(Debug, Default)]
pub struct Owners {
    by_inode: HashMap<u64, Owner>,
    read: Option<Time>,
}

impl Owners {
    /// Looks again if one of `inodes` is not known, unless that was done lately.
    pub fn learn(&mut self, mut inodes: impl Iterator<Item = u64>, now: Time) {
        let lately = self.read.is_some_and(|read| now.since(read) < RESCAN_INTERVAL);
        if lately || inodes.all(|inode| inode == 0 || self.by_inode.contains_key(&inode)) {
            return;
        }
        self.read = Some(now);
        self.by_inode.clear();
        for pid in processes::all().unwrap_or_default() {
            // A process that ended meanwhile, or that we may not look into, has none for us.
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

    /// Who has the socket with that inode open; the lowest process number if several have.
    pub fn of(&self, inode: u64) -> Option<&Owner> {
        self.by_inode.get(&inode)
    }
}
