use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};

use sweetspot_diagnose::live::{Live, OBSERVATION, Period, Side, SlidingLive, larger_side};
use sweetspot_diagnose::{
    Class, Flow, SENDER_OR_PATH, have_filling_neighbours, name_shared_paths, percent,
};
use sweetspot_linux::diag::DiagConnection;
use sweetspot_units::{Bytes, Duration, Rate, Time};

use super::diagnosis::diagnosis;
use super::owners::{Owner, Owners};
use super::sample::sample;

/// Number of past readings kept for each connection.
const HISTORY_POINTS: usize = 120;

/// Longer than any observation of connections.
const ANY_TIME: Duration = Duration::from_secs(u32::MAX as u64);

/// The connections seen last, with their history since they were first seen.
#[derive(Debug, Default)]
pub struct ConnectionList {
    rows: HashMap<u64, ConnectionRow>,
    by_ends: HashMap<[SocketAddr; 2], u64>,
    owners: Owners,
    round: u64,
    is_one_interval: bool,
}

/// A connection in the list.
#[derive(Debug)]
pub struct ConnectionRow {
    /// The connection as of the last reading.
    pub connection: DiagConnection,
    /// The process that has it open.
    pub owner: Option<Owner>,
    /// Past rates, bit/s, and RTTs, microseconds, newest last.
    pub past: VecDeque<(u64, u64)>,
    live: SlidingLive,
    /// Payload sent and received at the beginning of the interval that ended with the last reading.
    before: Option<(Time, [Bytes; 2])>,
    /// The length of that interval, its payload rate, and the direction of most of its data.
    interval: Duration,
    rate: Rate,
    side: Side,
    /// The period as measured by the other end, if that is on this host and is the sender, which knows more.
    by_sender: Option<Box<Period>>,
    /// Another connection between its hosts fills the queue of their path.
    is_beside_filling_flow: bool,
    round: u64,
    is_one_interval: bool,
}

impl ConnectionList {
    /// A list that treats all the time since the first reading as one interval.
    pub fn of_one_interval() -> ConnectionList {
        ConnectionList { is_one_interval: true, ..ConnectionList::default() }
    }

    /// Handles a reading of all connections at `now`.
    pub fn handle(&mut self, now: Time, connections: Vec<DiagConnection>) {
        self.round += 1;
        self.owners.learn(connections.iter().map(|c| c.inode), now);
        for connection in connections {
            let Some(sample) = sample(&connection, now) else { continue };
            let owner = self.owners.of(connection.inode);
            let row = self.rows.entry(connection.cookie).or_insert_with(|| {
                self.by_ends.insert([connection.local, connection.remote], connection.cookie);
                ConnectionRow::new(&connection, self.is_one_interval)
            });
            row.live.handle(sample);
            row.end_interval(now);
            row.round = self.round;
            row.connection = connection;
            if row.owner.as_ref() != owner {
                row.owner = owner.cloned();
            }
            row.record_history();
        }
        self.rows.retain(|_, row| row.round == self.round);
        if self.by_ends.len() != self.rows.len() {
            self.by_ends.retain(|_, cookie| self.rows.contains_key(cookie));
        }
        self.share_verdicts();
        self.note_filling_flows();
    }

    /// The `n` connections with the highest receive rate in the interval before the last reading. Leaves out idle connections,
    /// and senders, because their kernel keeps its own time counters (busy, rwnd-limited, sndbuf-limited).
    pub fn busiest_receivers(&self, n: usize) -> Vec<DiagConnection> {
        let is_busy = |row: &&ConnectionRow| row.rate > Rate::ZERO && row.side == Side::Receiver;
        let mut busy: Vec<_> = self.rows.values().filter(is_busy).collect();
        busy.sort_unstable_by_key(|row| std::cmp::Reverse(row.rate));
        busy.into_iter().take(n).map(|row| row.connection.clone()).collect()
    }

    /// Handles a sample of one connection between two readings of the list. It makes the limit more exact, and changes nothing
    /// else.
    pub fn handle_sample(&mut self, now: Time, connection: &DiagConnection) {
        if let Some((row, sample)) =
            self.rows.get_mut(&connection.cookie).zip(sample(connection, now))
        {
            row.live.handle(sample);
        }
    }

    /// Gives each receiver the period measured by its sender, if that is on this host.
    fn share_verdicts(&mut self) {
        let receives = |[sent, received]: [Bytes; 2]| received > sent;
        let receivers = self.rows.values().filter(|row| receives(row.live.payload()));
        let shared: Vec<(u64, Box<Period>)> = receivers
            .filter_map(|row| {
                let other = self.other_end(row)?;
                let [sent, received] = other.live.payload();
                let period = (sent > received).then(|| Box::new(other.live.period()))?;
                Some((row.connection.cookie, period))
            })
            .collect();
        self.rows.values_mut().for_each(|row| row.by_sender = None);
        for (cookie, period) in shared {
            if let Some(row) = self.rows.get_mut(&cookie) {
                row.by_sender = Some(period);
            }
        }
    }

    /// Notes which connections have one beside them, between the same hosts, that fills the queue of their path.
    fn note_filling_flows(&mut self) {
        let mut by_hosts: HashMap<[IpAddr; 2], Vec<u64>> = HashMap::new();
        for row in self.rows.values_mut() {
            row.is_beside_filling_flow = false;
            by_hosts.entry(row.hosts()).or_default().push(row.connection.cookie);
        }
        for beside in by_hosts.into_values().filter(|beside| beside.len() > 1) {
            let periods = beside.iter().filter_map(|cookie| Some(self.rows.get(cookie)?.period()));
            let limits: Vec<_> =
                periods.map(|period| (period.named().class, period.evidence)).collect();
            for (cookie, fills) in beside.iter().zip(have_filling_neighbours(&limits)) {
                if let Some(row) = self.rows.get_mut(cookie) {
                    row.is_beside_filling_flow = fills;
                }
            }
        }
    }

    /// The connections, in no particular order.
    pub fn rows(&self) -> impl Iterator<Item = &ConnectionRow> {
        self.rows.values()
    }

    /// The connection with this cookie, if there is one.
    pub fn row(&self, cookie: u64) -> Option<&ConnectionRow> {
        self.rows.get(&cookie)
    }

    /// The diagnosis of the connection in `row`, for the same period as its limit, beside the other connections between the same
    /// hosts. `is_own_namespace` is as for [`diagnosis`].
    pub fn diagnosis(&self, row: &ConnectionRow, is_own_namespace: bool) -> Flow {
        let is_beside = |other: &&ConnectionRow| {
            other.hosts() == row.hosts() && other.connection.cookie != row.connection.cookie
        };
        let all = std::iter::once(row).chain(self.rows().filter(is_beside));
        let mut flows: Vec<Flow> =
            all.map(|row| self.diagnosis_alone(row, is_own_namespace)).collect();
        name_shared_paths(&mut flows);
        flows.swap_remove(0)
    }

    fn diagnosis_alone(&self, row: &ConnectionRow, is_own_namespace: bool) -> Flow {
        let other = self.other_end(row);
        let (teller, other) = match other.filter(|_| row.by_sender.is_some()) {
            Some(sender) => (sender, Some(row)),
            None => (row, other),
        };
        let ends = [Some(teller), other];
        let pid = |end: &DiagConnection| {
            let row = ends.into_iter().flatten().find(|row| row.connection.cookie == end.cookie)?;
            row.owner.as_ref().map(|owner| owner.pid)
        };
        let other = other.map(|row| &row.connection);
        diagnosis(&teller.connection, other, &row.period(), pid, is_own_namespace)
            .with_deliveries(teller.live().deliveries())
    }

    /// The other end of the connection in `row`, if it is in this list.
    fn other_end(&self, row: &ConnectionRow) -> Option<&ConnectionRow> {
        self.row(*self.by_ends.get(&[row.connection.remote, row.connection.local])?)
    }
}

impl ConnectionRow {
    fn new(connection: &DiagConnection, is_one_interval: bool) -> ConnectionRow {
        let [local, remote] = [connection.local.ip(), connection.remote.ip()];
        let judged = if is_one_interval { ANY_TIME } else { OBSERVATION };
        ConnectionRow {
            connection: connection.clone(),
            owner: None,
            past: VecDeque::new(),
            live: SlidingLive::between(local, remote, judged),
            before: None,
            interval: Duration::ZERO,
            rate: Rate::ZERO,
            side: Side::default(),
            by_sender: None,
            is_beside_filling_flow: false,
            round: 0,
            is_one_interval,
        }
    }

    fn hosts(&self) -> [IpAddr; 2] {
        [self.connection.local, self.connection.remote].map(|end| end.ip())
    }

    /// Ends the interval since the previous reading, or since the first one if all is one interval.
    fn end_interval(&mut self, now: Time) {
        let Some(sample) = self.live().last() else { return };
        let moved = [sample.acked, sample.received];
        let (first_seen, before) = *self.before.get_or_insert((now, moved));
        let [sent, received] = [0, 1].map(|n| moved[n].saturating_sub(before[n]));
        self.side = larger_side(sent, received).unwrap_or(self.live().side());
        let (bytes, time) = (sent.max(received), now.since(first_seen));
        self.interval = time;
        self.rate = if time > Duration::ZERO { bytes / time } else { Rate::ZERO };
        if !self.is_one_interval {
            self.before = Some((now, moved));
        }
    }

    fn record_history(&mut self) {
        let rate = self.rate().bits_per_second();
        if rate == 0 && self.past.is_empty() {
            return;
        }
        if self.past.len() == HISTORY_POINTS {
            self.past.pop_front();
        }
        let rtt = self.rtt().map_or(0, Duration::as_micros);
        self.past.push_back((rate, rtt));
    }

    /// All statistics since the connection was first read.
    pub fn live(&self) -> &Live {
        self.live.live()
    }

    /// The period of its limit: the last [`OBSERVATION`], or the whole interval if there is only one. If both ends are on this
    /// host, as measured by the sender.
    pub fn period(&self) -> Period {
        let period = self.by_sender.as_deref().map_or_else(|| self.live.period(), |sent| *sent);
        if self.is_beside_filling_flow { period.beside_filling_flow() } else { period }
    }

    /// Whether an interval has passed since the connection was first read.
    pub fn is_measured(&self) -> bool {
        self.interval > Duration::ZERO
    }

    /// Payload rate in the interval before the last reading.
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// The direction of most of that payload, or the previous direction if there was none.
    pub fn side(&self) -> Side {
        self.side
    }

    /// The RTT measured by this end's kernel, without a sender's pauses.
    pub fn rtt(&self) -> Option<Duration> {
        self.live().path_rtt()
    }

    /// Whether that RTT is an upper bound: it may contain short pauses of the sender, and no queue explains it.
    pub fn may_time_pauses(&self) -> bool {
        self.live().may_time_pauses() && self.period().named().class != Class::Bandwidth
    }

    /// The advertised window that bounds it: the peer's, or our own where we receive.
    pub fn window(&self) -> Option<Bytes> {
        let sample = self.live().last()?;
        match self.side {
            Side::Sender => sample.peer_window,
            Side::Receiver => sample.window,
        }
    }

    /// The congestion window.
    pub fn congestion_window(&self) -> Option<Bytes> {
        let sample = self.live().last()?;
        Some(sample.mss * u64::from(sample.congestion_window))
    }

    /// The window that would be as fast without a queue, once the path's capacity is known. There is none beside a connection
    /// that keeps the queue full.
    pub fn sweet_spot(&self) -> Option<Bytes> {
        let evidence = self.period().evidence;
        evidence.sweet_spot().filter(|_| !self.is_beside_filling_flow)
    }

    /// Whether a standing queue has shown the path's capacity.
    pub fn knows_capacity(&self) -> bool {
        self.period().evidence.sweet_spot().is_some()
    }

    /// Payload in both directions since the connection began.
    pub fn bytes(&self) -> Bytes {
        self.live().last().map_or(Bytes::ZERO, |s| s.acked + s.received)
    }

    /// Segments retransmitted since the connection began.
    pub fn retransmitted(&self) -> u64 {
        self.live().last().map_or(0, |s| s.retransmitted)
    }

    /// The limit as text. The share comes first, so that it is never cut off.
    pub fn limited_by(&self) -> String {
        limited_by(&self.period())
    }

    /// The limit as text of at most 20 characters, for a table.
    pub fn limited_by_briefly(&self) -> String {
        limited_by_briefly(&self.period())
    }
}

/// The text shown until an interval has passed.
pub const MEASURING: &str = "measuring";

/// The limit of a period, in the form of [`ConnectionRow::limited_by`].
pub fn limited_by(period: &Period) -> String {
    limited_by_in(period, Class::words)
}

/// The limit of a period in at most 20 characters, in the form of [`ConnectionRow::limited_by_briefly`].
pub fn limited_by_briefly(period: &Period) -> String {
    limited_by_in(period, Class::brief)
}

fn limited_by_in(period: &Period, words: fn(Class) -> &'static str) -> String {
    if period.evidence.lasted == Duration::ZERO {
        return MEASURING.to_owned();
    }
    // A connection stopped by another cause is not idle.
    if period.is_idle() {
        return "idle".to_owned();
    }
    let named = period.named();
    match named.class {
        Class::Unknown if period.evidence.is_beyond_receiver() => SENDER_OR_PATH.to_owned(),
        Class::Unknown => Class::Unknown.words().to_owned(),
        class => format!("{:.0} % {}", percent(named.share_of_time), words(class)),
    }
}

#[cfg(test)]
mod tests {
    use sweetspot_diagnose::live::Sample;

    use super::*;

    #[test]
    fn a_connection_read_once_is_not_called_idle() {
        let mut live = Live::default();
        let mut limit = |at| {
            live.handle(Sample { at, ..Sample::default() });
            limited_by_briefly(&live.period())
        };
        assert_eq!(limit(Time::ZERO), MEASURING);
        assert_eq!(limit(Time::ZERO + Duration::from_secs(1)), "idle");
    }
}
