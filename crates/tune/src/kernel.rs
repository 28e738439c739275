//! Connections that BPF programs sample and limit.

use std::cell::{Cell, Ref, RefCell};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::rc::Rc;

use sweetspot_control::BULK_BYTES;
use sweetspot_kernel::{
    Command, Connections, KernelError, Record, RecordKind, RememberedPath, Transfers, Watch,
};
use sweetspot_linux::clock;
use sweetspot_sizing::SavedWindow;
use sweetspot_units::{Bytes, Duration, Rate, Time};

/// A transfer counts as bulk if it moves [`BULK_BYTES`] within this time: 240 kbit/s. Requests and responses on a kept-open
/// connection stay below that.
pub const BULK_WITHIN: Duration = Duration::from_secs(2);

/// The time between two samples until the path group sets its own interval.
const FIRST_INTERVAL: Duration = Duration::from_millis(3);

/// An interval is changed only by at least this factor, because the time between rounds varies.
const MIN_INTERVAL_CHANGE: f64 = 2.0;

/// A connection without a record for this long is queried.
const SILENCE: Duration = Duration::from_secs(30);

/// Which connections the BPF programs report.
pub fn watch(uploads: bool, dry_run: bool) -> Watch {
    Watch { bulk: BULK_BYTES, within: BULK_WITHIN, interval: FIRST_INTERVAL, uploads, dry_run }
}

/// A network or host, and the length of its prefix.
pub type Network = (IpAddr, u8);

/// All connections that the BPF programs report.
#[derive(Debug, Clone)]
pub struct KernelTable(Rc<RefCell<Table>>);

#[derive(Debug)]
struct Table {
    connections: Connections,
    known: BTreeMap<u64, TrackedConnection>,
    found: VecDeque<Record>,
}

/// The records of a connection.
#[derive(Debug)]
struct TrackedConnection {
    /// The newest record that [`TrackedConnection::take_new_records`] returned, or the first record.
    last_taken: Record,
    /// Records that [`TrackedConnection::take_new_records`] has not returned yet, oldest first.
    new_records: Vec<Record>,
    /// When the last record arrived, or the connection was last queried.
    last_update: Time,
    closed: bool,
}

impl TrackedConnection {
    /// The state after the first record of a connection.
    fn new(now: Time, first: Record) -> TrackedConnection {
        TrackedConnection {
            last_taken: first.clone(),
            new_records: vec![first],
            last_update: now,
            closed: false,
        }
    }

    /// The latest record.
    fn latest(&self) -> &Record {
        self.new_records.last().unwrap_or(&self.last_taken)
    }

    /// Takes the new records.
    fn take_new_records(&mut self) -> Vec<Record> {
        self.last_taken = self.latest().clone();
        std::mem::take(&mut self.new_records)
    }

    /// Adds a record. Ends and samples arrive through different channels: a sample may be read after a later end.
    fn handle_record(&mut self, now: Time, record: Record) {
        self.last_update = now;
        self.closed |= record.kind == RecordKind::Closed;
        self.new_records.push(record);
    }
}

impl KernelTable {
    /// The table of connections that `connections` reports.
    pub fn new(connections: Connections) -> KernelTable {
        let (known, found) = (BTreeMap::new(), VecDeque::new());
        KernelTable(Rc::new(RefCell::new(Table { connections, known, found })))
    }

    /// Renews the lease. When it expires, the BPF programs lift all limits.
    pub fn renew(&self, now: Time) -> Result<(), KernelError> {
        self.0.borrow_mut().connections.renew(now)
    }

    /// Sets whether this is a dry run. Other tuners can see that.
    pub fn rehearse(&self, dry_run: bool) {
        self.0.borrow_mut().connections.rehearse(dry_run);
    }

    /// Reads the records that arrived since the last call.
    pub fn read(&self, now: Time) {
        self.0.borrow_mut().drain(now);
    }

    /// Whether [`KernelTable::take_found`] would return a connection.
    pub fn has_found(&self) -> bool {
        !self.0.borrow().found.is_empty()
    }

    /// The connections that became bulk transfers since the last call, with their first records.
    pub fn take_found(&self) -> Vec<(KernelConnection, Record)> {
        let mut table = self.0.borrow_mut();
        let found = std::mem::take(&mut table.found);
        let connection = |record: &Record| KernelConnection {
            table: self.clone(),
            cookie: record.cookie,
            interval: Cell::new(FIRST_INTERVAL),
        };
        found.into_iter().map(|record| (connection(&record), record)).collect()
    }

    /// Lets the next connection to a network begin with the saved parameters of its path; `None` deletes them. If no map entry
    /// is free, the connection begins normally.
    pub fn remember(&self, transfers: Transfers, network: Network, memory: Option<SavedWindow>) {
        let path = memory
            .map(|SavedWindow { window, minimum_rtt }| RememberedPath { window, minimum_rtt });
        let _ = self.0.borrow_mut().connections.remember(transfers, network, path);
    }

    /// Forgets all connections.
    pub fn forget_all(&self) {
        let mut table = self.0.borrow_mut();
        table.drain(clock::now());
        table.known.clear();
        table.found.clear();
        table.connections.forget_all();
    }

    /// Puts the commands given since the last call into effect.
    pub fn flush(&self) -> Result<(), KernelError> {
        self.0.borrow_mut().connections.flush()
    }

    /// The connections, as a descriptor to wait for: readable when a connection becomes bulk or ends.
    pub fn connections(&self) -> Ref<'_, Connections> {
        Ref::map(self.0.borrow(), |table| &table.connections)
    }
}

impl Table {
    fn drain(&mut self, now: Time) {
        while let Some(record) = self.connections.poll_record() {
            if record.kind == RecordKind::Bulk {
                self.found.push_back(record.clone());
            }
            let (kind, cookie) = (record.kind, record.cookie);
            if !handle_record(&mut self.known, now, record) && kind == RecordKind::Closed {
                // The tuner left this connection alone; the command for that is no longer needed.
                self.connections.forget(cookie);
            }
        }
    }
}

/// Adds a record to its connection. Returns whether the connection is known. Only its first record adds a connection: later
/// ones may be read after it was left alone or forgotten.
fn handle_record(known: &mut BTreeMap<u64, TrackedConnection>, now: Time, record: Record) -> bool {
    match known.entry(record.cookie) {
        Entry::Occupied(mut entry) => entry.get_mut().handle_record(now, record),
        Entry::Vacant(entry) if record.kind == RecordKind::Bulk => {
            entry.insert(TrackedConnection::new(now, record));
        }
        Entry::Vacant(_) => return false,
    }
    true
}

/// A connection that BPF programs sample and limit.
#[derive(Debug, Clone)]
pub struct KernelConnection {
    table: KernelTable,
    cookie: u64,
    /// The time between two samples.
    interval: Cell<Duration>,
}

/// The latest state of a connection.
pub enum Latest {
    /// The new records, oldest first.
    Records(Vec<Record>),
    /// No new record.
    Nothing,
    /// The connection is over.
    Closed,
}

impl KernelConnection {
    /// The socket's cookie (`SO_COOKIE`).
    pub fn cookie(&self) -> u64 {
        self.cookie
    }

    /// The records since the last call.
    pub fn take_new_records(&self, now: Time) -> Latest {
        let mut table = self.table.0.borrow_mut();
        let Table { connections, known, .. } = &mut *table;
        let Some(known) = known.get_mut(&self.cookie) else { return Latest::Closed };
        if known.new_records.is_empty() && now.since(known.last_update) >= SILENCE {
            known.last_update = now;
            // The report of its end may have been dropped for lack of space.
            known.closed = connections.is_over(self.cookie);
        }
        if known.closed {
            return Latest::Closed;
        }
        match known.new_records.is_empty() {
            true => Latest::Nothing,
            false => Latest::Records(known.take_new_records()),
        }
    }

    /// The latest record, even one that [`KernelConnection::take_new_records`] has returned.
    pub fn latest(&self) -> Option<Record> {
        let mut table = self.table.0.borrow_mut();
        table.drain(clock::now());
        table.known.get(&self.cookie).map(|known| known.latest().clone())
    }

    /// Limits its window; `None` lifts the limit.
    pub fn limit(&self, limit: Option<Bytes>) -> Result<(), KernelError> {
        self.change(|command| Command { limit, ..command })
    }

    /// Limits its pacing rate; `None` restores the program's own limit.
    pub fn pace(&self, pace: Option<Rate>) -> Result<(), KernelError> {
        self.change(|command| Command { pace, ..command })
    }

    /// Chooses its congestion control, by a zero-padded name; `None` restores the host's.
    pub fn choose_congestion(&self, congestion: Option<[u8; 16]>) -> Result<(), KernelError> {
        self.change(|command| Command { congestion, ..command })
    }

    /// Sets the time between two samples.
    pub fn set_interval(&self, interval: Duration) -> Result<(), KernelError> {
        let ratio = interval.as_secs_f64() / self.interval.get().as_secs_f64();
        if (1.0 / MIN_INTERVAL_CHANGE..MIN_INTERVAL_CHANGE).contains(&ratio) {
            return Ok(());
        }
        self.interval.set(interval);
        self.change(|command| Command { interval, ..command })
    }

    /// Leaves the connection alone for good.
    pub fn leave(&self) -> Result<(), KernelError> {
        self.change(|command| Command {
            limit: None,
            pace: None,
            congestion: None,
            left: true,
            ..command
        })?;
        self.table.0.borrow_mut().known.remove(&self.cookie);
        Ok(())
    }

    /// Forgets the connection, because it is over.
    pub fn forget(&self) {
        let mut table = self.table.0.borrow_mut();
        table.known.remove(&self.cookie);
        table.connections.forget(self.cookie);
    }

    fn change(&self, to: impl FnOnce(Command) -> Command) -> Result<(), KernelError> {
        let mut table = self.table.0.borrow_mut();
        // A connection on a remembered path may have begun with its saved limit and pacing rate.
        let latest = table.known.get(&self.cookie).map(TrackedConnection::latest);
        let (limit, pace) = latest.map_or((None, None), |latest| (latest.limit, latest.saved_pace));
        let (congestion, interval) = (None, FIRST_INTERVAL);
        let first = Command { limit, pace, congestion, interval, left: false };
        let given = table.connections.given(self.cookie).unwrap_or(first);
        table.connections.command(self.cookie, to(given))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A record as the BPF programs write it: its kind (1 bulk, 2 sample, 3 end), cookie and time.
    pub fn record(kind: u64, time: u64) -> Record {
        let mut words = [0; 38];
        (words[0], words[1], words[2]) = (kind, 7, time);
        let bytes: Vec<u8> = words.iter().flat_map(|word: &u64| word.to_ne_bytes()).collect();
        Record::decode(&bytes).unwrap()
    }

    #[test]
    fn an_ended_connection_stays_ended_despite_a_late_sample() {
        let mut known = TrackedConnection::new(Time::ZERO, record(1, 1));
        known.handle_record(Time::ZERO, record(2, 2));
        assert!(!known.closed);
        known.handle_record(Time::ZERO, record(3, 4));
        known.handle_record(Time::ZERO, record(2, 3));
        assert!(known.closed);
    }

    #[test]
    fn a_sample_of_an_unknown_connection_is_ignored() {
        let mut known = BTreeMap::new();
        assert!(handle_record(&mut known, Time::ZERO, record(1, 1)));
        assert!(handle_record(&mut known, Time::ZERO, record(2, 2)));
        known.clear();
        assert!(!handle_record(&mut known, Time::ZERO, record(2, 3)));
        assert!(!handle_record(&mut known, Time::ZERO, record(3, 4)));
        assert!(known.is_empty());
    }
}
