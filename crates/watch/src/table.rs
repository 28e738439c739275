use std::collections::{HashMap, VecDeque};

use sweetspot_diagnose::live::{Live, Side};
use sweetspot_diagnose::{Class, Limits, percent};
use sweetspot_linux::diag::DiagConnection;
use sweetspot_units::{Bytes, Duration, Rate, Time};

use super::owners::{Owner, Owners};
use super::sample::sample;

/// Number of past readings kept per connection.
const HISTORY_POINTS: usize = 120;

/// The connections seen last, each followed from when it was first seen.
#[derive(Debug, Default)]
pub struct ConnectionList {
    rows: HashMap<u64, ConnectionRow>,
    owners: Owners,
    round: u64,
    is_one_interval: bool,
}

/// A connection.
#[derive(Debug)]
pub struct ConnectionRow {
    /// The connection as of the last reading.
    pub connection: DiagConnection,
    /// Its limit.
    pub live: Live,
    /// The process that has it open.
    pub owner: Option<Owner>,
    /// Rates, bit/s, and RTTs, microseconds, the newest last.
    pub past: VecDeque<(u64, u64)>,
    round: u64,
    is_one_interval: bool,
}

impl ConnectionList {
    /// A list with rows that treat all the time since the first reading as one interval.
    pub fn of_one_interval() -> ConnectionList {
        ConnectionList { is_one_interval: true, ..ConnectionList::default() }
    }

    /// Takes a reading of all connections at `now`.
    pub fn handle(&mut self, now: Time, connections: Vec<DiagConnection>) {
        self.round += 1;
        self.owners.learn(connections.iter().map(|c| c.inode), now);
        for connection in connections {
            let Some(sample) = sample(&connection, now) else { continue };
            let owner = self.owners.of(connection.inode);
            let row = self
                .rows
                .entry(connection.cookie)
                .or_insert_with(|| ConnectionRow::new(&connection));
            row.is_one_interval = self.is_one_interval;
            row.live.handle(sample);
            row.round = self.round;
            row.connection = connection;
            if row.owner.as_ref() != owner {
                row.owner = owner.cloned();
            }
            row.record_history();
        }
        self.rows.retain(|_, row| row.round == self.round);
    }

    /// The connections, in no order.
    pub fn rows(&self) -> impl Iterator<Item = &ConnectionRow> {
        self.rows.values()
    }

    /// The connection with this cookie, if there is one.
    pub fn row(&self, cookie: u64) -> Option<&ConnectionRow> {
        self.rows.get(&cookie)
    }
}

impl ConnectionRow {
    /// A new connection.
    pub fn new(connection: &DiagConnection) -> ConnectionRow {
        ConnectionRow {
            connection: connection.clone(),
            live: Live::between(connection.local.ip(), connection.remote.ip()),
            owner: None,
            past: VecDeque::new(),
            round: 0,
            is_one_interval: false,
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

    /// Payload per second.
    pub fn rate(&self) -> Rate {
        if self.is_one_interval { self.live.evidence().goodput } else { self.live.rate() }
    }

    /// The RTT by this end's kernel.
    pub fn rtt(&self) -> Option<Duration> {
        self.live.rtt()
    }

    /// The advertised window that bounds it: the peer's, or our own where we receive.
    pub fn window(&self) -> Option<Bytes> {
        let sample = self.live.last()?;
        match self.live.side() {
            Side::Sender => sample.peer_window,
            Side::Receiver => sample.window,
        }
    }

    /// The congestion window.
    pub fn congestion_window(&self) -> Option<Bytes> {
        let sample = self.live.last()?;
        Some(sample.mss * u64::from(sample.congestion_window))
    }

    /// Payload in both directions since it began.
    pub fn bytes(&self) -> Bytes {
        self.live.last().map_or(Bytes::ZERO, |s| s.acked + s.received)
    }

    /// Segments retransmitted since it began.
    pub fn retransmitted(&self) -> u64 {
        self.live.last().map_or(0, |s| s.retransmitted)
    }

    /// Its limit in the interval before the last reading.
    pub fn limits(&self) -> &Limits {
        if self.is_one_interval { self.live.limits() } else { self.live.recent() }
    }

    /// Its limit, in words: the share first, so that it is not cut off.
    pub fn limited_by(&self) -> String {
        self.limited_in(Class::words)
    }

    /// The same in 20 characters at most, for a table.
    pub fn limited_by_briefly(&self) -> String {
        self.limited_in(briefly)
    }

    fn limited_in(&self, words: fn(Class) -> &'static str) -> String {
        let limits = self.limits();
        match (limits.dominant(), self.live.side()) {
            // A connection that another cause stops is not idle.
            (Class::Application | Class::Unknown, _) if self.rate() == Rate::ZERO => {
                "idle".to_owned()
            }
            (Class::Unknown, Side::Receiver) => "sender or path".to_owned(),
            (Class::Unknown, Side::Sender) => "not known yet".to_owned(),
            (class, _) => {
                format!("{:.0} % {}", percent(limits.family_share(class)), words(class))
            }
        }
    }
}

/// The limit in 14 characters at most: "100 % " precedes it.
fn briefly(class: Class) -> &'static str {
    match class {
        Class::Congestion => "losses",
        Class::Transport => "cwnd growing",
        Class::ReceiverWindow => "receiver's wnd",
        Class::ReceiverApplication => "receiving app",
        Class::SenderWindow => "send buffer",
        Class::Bandwidth => "at capacity",
        Class::WaitingForPeer => "waits for peer",
        Class::NeverEstablished => "never opened",
        other => other.words(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_limits_is_never_cut_in_a_table() {
        for class in Class::ALL {
            assert!(briefly(class).chars().count() <= 14, "{class}");
        }
    }
}
