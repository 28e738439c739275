//! Connections that the kernel programs sample and limit.

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

/// A transfer counts as bulk if it moves [`BULK_BYTES`] within this time: 240 kbit/s. Requests and their answers on a
/// connection that is kept open are left alone.
pub const BULK_WITHIN: Duration = Duration::from_secs(2);

/// The time between two samples until the path group says how often it is to be looked at.
const FIRST_INTERVAL: Duration = Duration::from_millis(3);

/// An interval is changed if the new one differs by this factor: rounds take now longer, now shorter.
const MIN_INTERVAL_CHANGE: f64 = 2.0;

/// A connection without a record for this long is queried.
const SILENCE: Duration = Duration::from_secs(30);

/// The connections that the programs should report.
pub fn watch(uploads: bool, dry_run: bool) -> Watch {
    Watch { bulk: BULK_BYTES, within: BULK_WITHIN, interval: FIRST_INTERVAL, uploads, dry_run }
}

/// A network, or a host, and the bits that count.
pub type Network = (IpAddr, u8);

/// All connections that the programs in the kernel report.
#[derive(Debug, Clone)]
pub struct KernelTable(Rc<RefCell<Table>>);

#[derive(Debug)]
struct Table {
    connections: Connections,
    known: BTreeMap<u64, Known>,
    found: VecDeque<Record>,
}

/// The records of a connection.
#[derive(Debug)]
struct Known {
    /// The latest record sampled, or the first.
    looked_at: Record,
    /// Records not sampled yet, oldest first.
    news: Vec<Record>,
    /// When it was heard of or asked after.
    heard: Time,
    over: bool,
}

impl Known {
    /// The state after the first record of a connection.
    fn new(now: Time, first: Record) -> Known {
        Known { looked_at: first.clone(), news: vec![first], heard: now, over: false }
    }

    /// The latest record.
    fn latest(&self) -> &Record {
        self.news.last().unwrap_or(&self.looked_at)
    }

    /// The records that were not looked at yet.
    fn take_news(&mut self) -> Vec<Record> {
        self.looked_at = self.latest().clone();
        std::mem::take(&mut self.news)
    }

    /// Takes another record. Ends and samples come by different ways: a sample may be read after the end that it lies before.
    fn hear(&mut self, now: Time, record: Record) {
        self.heard = now;
        self.over |= record.kind == RecordKind::Over;
        self.news.push(record);
    }
}

impl KernelTable {
    /// The table of what `connections` reports.
    pub fn new(connections: Connections) -> KernelTable {
        let (known, found) = (BTreeMap::new(), VecDeque::new());
        KernelTable(Rc::new(RefCell::new(Table { connections, known, found })))
    }

    /// Renews the lease, without which the programs lift all limits.
    pub fn renew(&self, now: Time) -> Result<(), KernelError> {
        self.0.borrow_mut().connections.renew(now)
    }

    /// Sets whether the tuner only reports, which other tuners see.
    pub fn rehearse(&self, dry_run: bool) {
        self.0.borrow_mut().connections.rehearse(dry_run);
    }

    /// Reads what has been reported since the last call.
    pub fn read(&self, now: Time) {
        self.0.borrow_mut().drain(now);
    }

    /// Whether there are some for [`KernelTable::take_found`].
    pub fn has_found(&self) -> bool {
        !self.0.borrow().found.is_empty()
    }

    /// The connections that were read to have become bulk transfers since the last call, with their first records.
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

    /// Lets the next connection to a network begin with what the path is remembered for; `None` forgets it. Where there is
    /// no room it begins as any other.
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

    /// Lets all that was decided since the last call act.
    pub fn flush(&self) -> Result<(), KernelError> {
        self.0.borrow_mut().connections.flush()
    }

    /// For descriptors to wait for: readable when a connection begins to be bulk, or ends.
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
            if !hear(&mut self.known, now, record) && kind == RecordKind::Over {
                // It was left alone, by a command that is of no use any more.
                self.connections.forget(cookie);
            }
        }
    }
}

/// Adds a record to its connection. Returns whether the connection is known: only its first record makes it so, because later
/// ones may be read after it was left alone or forgotten.
fn hear(known: &mut BTreeMap<u64, Known>, now: Time, record: Record) -> bool {
    match known.entry(record.cookie) {
        Entry::Occupied(mut entry) => entry.get_mut().hear(now, record),
        Entry::Vacant(entry) if record.kind == RecordKind::Bulk => {
            entry.insert(Known::new(now, record));
        }
        Entry::Vacant(_) => return false,
    }
    true
}

/// One of these connections.
#[derive(Debug, Clone)]
pub struct KernelConnection {
    table: KernelTable,
    cookie: u64,
    /// The time between two samples.
    interval: Cell<Duration>,
}

/// The latest state of a connection.
pub enum Latest {
    /// The records that were not looked at yet, oldest first.
    News(Vec<Record>),
    /// Nothing new.
    Nothing,
    /// It is over.
    Over,
}

impl KernelConnection {
    /// Its socket's cookie.
    pub fn cookie(&self) -> u64 {
        self.cookie
    }

    /// The records that were read since the last call.
    pub fn take_news(&self, now: Time) -> Latest {
        let mut table = self.table.0.borrow_mut();
        let Table { connections, known, .. } = &mut *table;
        let Some(known) = known.get_mut(&self.cookie) else { return Latest::Over };
        if known.news.is_empty() && now.since(known.heard) >= SILENCE {
            known.heard = now;
            // Its end may have been announced when there was no room for it.
            known.over = connections.is_over(self.cookie);
        }
        if known.over {
            return Latest::Over;
        }
        match known.news.is_empty() {
            true => Latest::Nothing,
            false => Latest::News(known.take_news()),
        }
    }

    /// The latest record, read before or not.
    pub fn latest(&self) -> Option<Record> {
        let mut table = self.table.0.borrow_mut();
        table.drain(clock::now());
        table.known.get(&self.cookie).map(|known| known.latest().clone())
    }

    /// Limits its window; `None` lifts the limit.
    pub fn limit(&self, limit: Option<Bytes>) -> Result<(), KernelError> {
        self.change(|command| Command { limit, ..command })
    }

    /// Limits its pace; `None` brings the program's own limit back.
    pub fn pace(&self, pace: Option<Rate>) -> Result<(), KernelError> {
        self.change(|command| Command { pace, ..command })
    }

    /// Chooses its congestion control, by a name filled up with zeros; `None` brings the host's back.
    pub fn choose_congestion(&self, congestion: Option<[u8; 16]>) -> Result<(), KernelError> {
        self.change(|command| Command { congestion, ..command })
    }

    /// Asks for samples so often.
    pub fn set_interval(&self, interval: Duration) -> Result<(), KernelError> {
        let ratio = interval.as_secs_f64() / self.interval.get().as_secs_f64();
        if (1.0 / MIN_INTERVAL_CHANGE..MIN_INTERVAL_CHANGE).contains(&ratio) {
            return Ok(());
        }
        self.interval.set(interval);
        self.change(|command| Command { interval, ..command })
    }

    /// Leaves it alone for good.
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

    /// Forgets it, because it is over.
    pub fn forget(&self) {
        let mut table = self.table.0.borrow_mut();
        table.known.remove(&self.cookie);
        table.connections.forget(self.cookie);
    }

    fn change(&self, to: impl FnOnce(Command) -> Command) -> Result<(), KernelError> {
        let mut table = self.table.0.borrow_mut();
        // A connection may have begun with what its path is remembered for.
        let latest = table.known.get(&self.cookie).map(Known::latest);
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

    /// A record as the programs in the kernel write it: its kind (1 bulk, 2 a sample, 3 the end), cookie and time.
    pub fn record(kind: u64, time: u64) -> Record {
        let mut words = [0; 38];
        (words[0], words[1], words[2]) = (kind, 7, time);
        let bytes: Vec<u8> = words.iter().flat_map(|word: &u64| word.to_ne_bytes()).collect();
        Record::decode(&bytes).unwrap()
    }

    #[test]
    fn what_is_over_stays_over_though_a_sample_from_before_is_read_later() {
        let mut known = Known::new(Time::ZERO, record(1, 1));
        known.hear(Time::ZERO, record(2, 2));
        assert!(!known.over);
        known.hear(Time::ZERO, record(3, 4));
        known.hear(Time::ZERO, record(2, 3));
        assert!(known.over);
    }

    #[test]
    fn a_sample_of_a_connection_that_was_left_alone_leaves_no_trace() {
        let mut known = BTreeMap::new();
        assert!(hear(&mut known, Time::ZERO, record(1, 1)));
        assert!(hear(&mut known, Time::ZERO, record(2, 2)));
        known.clear();
        assert!(!hear(&mut known, Time::ZERO, record(2, 3)));
        assert!(!hear(&mut known, Time::ZERO, record(3, 4)));
        assert!(known.is_empty());
    }
}
