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

/// How long limits hold after [`Connections::renew`]. This plus the time until a connection's next segment must stay below the
/// two seconds within which all limits end, whichever process is killed.
pub const LEASE: Duration = Duration::from_millis(1_500);

/// Saved path parameters, by destination.
pub(crate) type Paths = LpmTrie<MapData, [u8; 16], PathWords>;

/// The programs' reports about connections, and the decisions for each.
pub struct Connections {
    watch: Watch,
    settings: Array<MapData, SettingsWords>,
    commands: HashMap<MapData, u64, CommandWords>,
    paths: Paths,
    upload_paths: Paths,
    /// Starts and ends in one ring, samples in the other.
    records: [RingBuf<MapData>; 2],
    /// Counts changes of commands, from 1; a program that has read no command is at 0.
    generation: u64,
    /// Whether commands have changed since the last flush.
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

    /// Renews the lease at `now` on CLOCK_MONOTONIC; without renewal every limit ends after [`LEASE`].
    pub fn renew(&mut self, now: Time) -> Result<(), KernelError> {
        self.lease_ends = now + LEASE;
        self.publish()
    }

    /// Sets whether this tuner only reports. Other tuners see it at the next [`Connections::renew`].
    pub fn rehearse(&mut self, dry_run: bool) {
        self.watch.dry_run = dry_run;
    }

    /// The next report; `None` if there is none at the moment.
    pub fn poll_record(&mut self) -> Option<Record> {
        self.records
            .iter_mut()
            .find_map(|ring| ring.next().and_then(|bytes| Record::decode(&bytes)))
    }

    /// The last command given to a connection.
    pub fn given(&self, cookie: u64) -> Option<Command> {
        self.given.get(&cookie).copied()
    }

    /// Puts the commands given since the last call into effect.
    pub fn flush(&mut self) -> Result<(), KernelError> {
        if !std::mem::take(&mut self.is_dirty) {
            return Ok(());
        }
        self.generation += 1;
        self.publish()
    }

    /// Sets the command for the connection with this cookie. After [`Connections::flush`] it takes effect at the connection's
    /// next segment.
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

    /// Whether the program has removed the connection's command, which it does when the connection ends.
    pub fn is_over(&self, cookie: u64) -> bool {
        matches!(self.commands.get(&cookie, 0), Err(MapError::KeyNotFound))
    }

    /// Saves the path's parameters for the next of these transfers with the network. `length` is the prefix length in bits; a
    /// path of `None` deletes the entry. The longest prefix wins; for uploads it must be a single host. The error means that
    /// the map is full.
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
                // There may be no entry.
                let _ = paths.remove(&key);
                Ok(())
            }
        }
    }

    /// Removes a connection that has ended.
    pub fn forget(&mut self, cookie: u64) {
        if self.given.remove(&cookie).is_some() {
            // The program removes it, too.
            let _ = self.commands.remove(&cookie);
        }
    }

    /// Removes all connections and their commands.
    pub fn forget_all(&mut self) {
        for cookie in std::mem::take(&mut self.given).into_keys() {
            // The program may have removed it already.
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
    /// Readable when a connection becomes a bulk transfer or ends.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.records[0].as_fd()
    }
}

/// Whether a map is full (E2BIG) or memory for an entry ran out.
fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ArgumentListTooLong | io::ErrorKind::OutOfMemory)
}
