use clap::ValueEnum;
use sweetspot_units::Duration;

use sweetspot_watch::{ConnectionList, ConnectionRow, limited_by, limited_by_briefly};

/// Sort order of the table; largest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SortOrder {
    /// Payload per second
    Traffic,
    /// Payload since the connection began
    Bytes,
    /// Round trip
    Rtt,
    /// Retransmitted segments
    Retransmitted,
    /// Program
    Program,
}

impl SortOrder {
    /// The next order, cyclically.
    pub fn next(self) -> SortOrder {
        match self {
            SortOrder::Traffic => SortOrder::Bytes,
            SortOrder::Bytes => SortOrder::Rtt,
            SortOrder::Rtt => SortOrder::Retransmitted,
            SortOrder::Retransmitted => SortOrder::Program,
            SortOrder::Program => SortOrder::Traffic,
        }
    }

    /// The heading of the column with this order's key.
    pub fn column(self) -> &'static str {
        match self {
            SortOrder::Traffic => "Mbit/s",
            SortOrder::Bytes => "bytes",
            SortOrder::Rtt => "RTT ms",
            SortOrder::Retransmitted => "retrans",
            SortOrder::Program => "program",
        }
    }

    /// The name on the screen.
    pub fn name(self) -> &'static str {
        match self {
            SortOrder::Traffic => "traffic",
            SortOrder::Bytes => "bytes",
            SortOrder::Rtt => "round trip",
            SortOrder::Retransmitted => "retransmitted",
            SortOrder::Program => "program",
        }
    }
}

/// The rows that match `filter`, in order. Ties keep the order of their cookies, oldest first.
pub fn select<'a>(
    table: &'a ConnectionList,
    order: SortOrder,
    filter: &str,
) -> Vec<&'a ConnectionRow> {
    let filter = filter.to_lowercase();
    let mut rows: Vec<&ConnectionRow> = table.rows().filter(|row| matches(row, &filter)).collect();
    let age = |row: &ConnectionRow| row.connection.cookie;
    rows.sort_unstable_by(|a, b| {
        let ordered = match order {
            SortOrder::Traffic => (b.rate(), b.bytes()).cmp(&(a.rate(), a.bytes())),
            SortOrder::Bytes => b.bytes().cmp(&a.bytes()),
            SortOrder::Rtt => rtt(b).cmp(&rtt(a)),
            SortOrder::Retransmitted => b.retransmitted().cmp(&a.retransmitted()),
            SortOrder::Program => program(a).cmp(&program(b)),
        };
        ordered.then_with(|| age(a).cmp(&age(b)))
    });
    rows
}

fn rtt(row: &ConnectionRow) -> Duration {
    row.rtt().unwrap_or(Duration::ZERO)
}

fn program(row: &ConnectionRow) -> (bool, &str) {
    // Connections without a known owner come last.
    row.owner.as_ref().map_or((true, ""), |owner| (false, owner.name.as_str()))
}

fn matches(row: &ConnectionRow, filter: &str) -> bool {
    if filter.is_empty() {
        return true;
    }
    let c = &row.connection;
    let owner_key = row.owner.as_ref().map(|o| format!("{} {}", o.pid, o.name)).unwrap_or_default();
    // The limit as named in JSON and in the table.
    let period = row.period();
    let limit = format!("{} {}", limited_by(&period), limited_by_briefly(&period));
    let text = format!("{owner_key} {} {} {:?} {limit}", c.local, c.remote, c.state);
    text.to_lowercase().contains(filter)
}
