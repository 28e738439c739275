use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};

use aya::maps::lpm_trie::{Key, LpmTrie};
use aya::maps::{Array, HashMap, MapData, MapError, RingBuf};
use sweetspot_units::{Duration, Time};

use crate::command::{
    Command, CommandWords, PathWords, RememberedPath, SettingsWords, Transfers, Watch, destination,
    settings,
};
use crate::error::KernelError;
use crate::record::Record;

/// How long limits are held after [`Connections::renew`]. Together with the time until a connection's next segment this is less
/// than the two seconds within which all limits must end, whoever was killed.
pub const LEASE: Duration = Duration::from_millis(1_500);

/// Saved path parameters, by destination.
pub(crate) type Paths = LpmTrie<MapData, [u8; 16], PathWords>;

/// The programs' reports of connections, and the decisions about each.
pub struct Connections {
    watch: Watch,
    settings: Array<MapData, SettingsWords>,
    commands: HashMap<MapData, u64, CommandWords>,
    paths: Paths,
    upload_paths: Paths,
    /// Beginnings, ends and samples.
    records: [RingBuf<MapData>; 2],
    /// Counts changes of commands, from 1: a program that has read none stands at 0.
    generation: u64,
    /// Whether commands were changed since.
    is_dirty: bool,
    lease_ends: Time,
    given: BTreeMap<u64, Command>,
}

impl Connections {
    pub(crate) fn new(
        watch: Watch,
        settings: Array<MapData, SettingsWords>,
        commands: HashMap<MapData, u64, CommandWords>,
        [paths, upload_paths]: [Paths; 2],
        records: [RingBuf<MapData>; 2],
    ) -> Connections {
        let (generation, is_dirty) = (1, false);
        let (lease_ends, given) = (Time::ZERO, BTreeMap::new());
        Connections {
            watch,
            settings,
            commands,
            paths,
            upload_paths,
            records,
            generation,
            is_dirty,
            lease_ends,
            given,
        }
    }

    /// Renews the lease at `now` on CLOCK_MONOTONIC: without it every limit ends after [`LEASE`].
    pub fn renew(&mut self, now: Time) -> Result<(), KernelError> {
        self.lease_ends = now + LEASE;
        self.publish()
    }

    /// The next report, until `None`.
    pub fn poll_record(&mut self) -> Option<Record> {
        self.records
            .iter_mut()
            .find_map(|ring| ring.next().and_then(|bytes| Record::decode(&bytes)))
    }

    /// The command that a connection was given last.
    pub fn given(&self, cookie: u64) -> Option<Command> {
        self.given.get(&cookie).copied()
    }

    /// Lets the commands since the last call act.
    pub fn flush(&mut self) -> Result<(), KernelError> {
        if !std::mem::take(&mut self.is_dirty) {
            return Ok(());
        }
        self.generation += 1;
        self.publish()
    }

    /// Decides about the connection with this cookie. After [`Connections::flush`] it acts at the connection's next segment.
    pub fn command(&mut self, cookie: u64, command: Command) -> Result<(), KernelError> {
        if self.given.get(&cookie) == Some(&command) {
            return Ok(());
        }
        self.commands.insert(cookie, command.words(), 0).map_err(|error| match error {
            MapError::SyscallError(error) if is_full(&error.io_error) => KernelError::Full,
            error => error.into(),
        })?;
        self.given.insert(cookie, command);
        self.is_dirty = true;
        Ok(())
    }

    /// Whether the program has removed a command, as it does when the connection is over.
    pub fn is_over(&self, cookie: u64) -> bool {
        matches!(self.commands.get(&cookie, 0), Err(MapError::KeyNotFound))
    }

    /// Lets the next of these transfers with the network start with the path's saved parameters; `length` is the prefix length
    /// in bits, and `None` deletes the entry. The longest prefix wins; for uploads it must be a host. The error means that the
    /// map is full.
    pub fn remember(
        &mut self,
        transfers: Transfers,
        (network, length): (IpAddr, u8),
        path: Option<RememberedPath>,
    ) -> Result<(), KernelError> {
        let (bits, address) = destination(network, length);
        let key = Key::new(bits, address);
        let paths = match transfers {
            Transfers::Downloads => &mut self.paths,
            Transfers::Uploads => &mut self.upload_paths,
        };
        match path {
            Some(path) => paths.insert(&key, path.words(), 0).map_err(KernelError::from),
            None => {
                // It may not be there.
                let _ = paths.remove(&key);
                Ok(())
            }
        }
    }

    /// Forgets a connection that is over.
    pub fn forget(&mut self, cookie: u64) {
        if self.given.remove(&cookie).is_some() {
            // The program removes it, too.
            let _ = self.commands.remove(&cookie);
        }
    }

    /// Deletes all connections, and the decisions about them.
    pub fn forget_all(&mut self) {
        for cookie in std::mem::take(&mut self.given).into_keys() {
            // The program may have removed it.
            let _ = self.commands.remove(&cookie);
        }
        self.is_dirty = true;
    }

    fn publish(&mut self) -> Result<(), KernelError> {
        let words = settings(&self.watch, self.lease_ends, self.generation);
        self.settings.set(0, words, 0).map_err(KernelError::from)
    }
}

impl fmt::Debug for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connections").field("given", &self.given).finish_non_exhaustive()
    }
}

impl AsFd for Connections {
    /// Readable when a connection becomes a bulk transfer or is over.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.records[0].as_fd()
    }
}

/// Whether a map has no room (E2BIG), or no memory could be had for it.
fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ArgumentListTooLong | io::ErrorKind::OutOfMemory)
}
