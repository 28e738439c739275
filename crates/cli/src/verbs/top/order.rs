use clap::ValueEnum;
use sweetspot_units::Duration;

use sweetspot_watch::{Row, Table};

/// What the table is sorted by; most first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Order {
    /// Payload per second
    Traffic,
    /// Payload since the connection began
    Bytes,
    /// Round trip
    Rtt,
    /// Segments sent again
    Resent,
    /// Program
    Program,
}

impl Order {
    /// The order after this one, in a circle.
    pub fn next(self) -> Order {
        match self {
            Order::Traffic => Order::Bytes,
            Order::Bytes => Order::Rtt,
            Order::Rtt => Order::Resent,
            Order::Resent => Order::Program,
            Order::Program => Order::Traffic,
        }
    }

    /// What the screen calls it.
    pub fn name(self) -> &'static str {
        match self {
            Order::Traffic => "traffic",
            Order::Bytes => "bytes",
            Order::Rtt => "round trip",
            Order::Resent => "sent again",
            Order::Program => "program",
        }
    }
}

/// The rows that match `filter`, in order. Equals stay in the order of their cookies, which is
/// that of their age.
pub fn select<'a>(table: &'a Table, order: Order, filter: &str) -> Vec<&'a Row> {
    let filter = filter.to_lowercase();
    let mut rows: Vec<&Row> = table.rows().filter(|row| matches(row, &filter)).collect();
    let age = |row: &Row| row.connection.cookie;
    rows.sort_unstable_by(|a, b| {
        let ordered = match order {
            Order::Traffic => (b.rate(), b.bytes()).cmp(&(a.rate(), a.bytes())),
            Order::Bytes => b.bytes().cmp(&a.bytes()),
            Order::Rtt => rtt(b).cmp(&rtt(a)),
            Order::Resent => b.resent().cmp(&a.resent()),
            Order::Program => program(a).cmp(&program(b)),
        };
        ordered.then_with(|| age(a).cmp(&age(b)))
    });
    rows
}

fn rtt(row: &Row) -> Duration {
    row.rtt().unwrap_or(Duration::ZERO)
}

fn program(row: &Row) -> (bool, &str) {
    // Those without a known one come last.
    row.owner.as_ref().map_or((true, ""), |owner| (false, owner.name.as_str()))
}

fn matches(row: &Row, filter: &str) -> bool {
    if filter.is_empty() {
        return true;
    }
    let c = &row.connection;
    let who = row.owner.as_ref().map(|o| format!("{} {}", o.pid, o.name)).unwrap_or_default();
    let text = format!("{who} {} {} {:?} {}", c.local, c.remote, c.state, row.limited_by());
    text.to_lowercase().contains(filter)
}
