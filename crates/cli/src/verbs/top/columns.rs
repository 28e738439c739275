//! The table's columns, the same on a screen and as text.

use sweetspot_linux::diag::State;
use sweetspot_units::{Bytes, Duration, Rate};

use crate::watching::Row;

/// A column: its heading, its width (the last has the rest), and what stands in it.
pub struct Column {
    pub heading: &'static str,
    pub width: u16,
    pub right: bool,
    pub text: fn(&Row) -> String,
}

/// All columns.
pub const COLUMNS: [Column; 12] = [
    Column { heading: "program", width: 16, right: false, text: who },
    Column { heading: "peer", width: 22, right: false, text: |r| r.connection.remote.to_string() },
    Column { heading: "state", width: 6, right: false, text: |r| state(r.connection.state) },
    Column { heading: "Mbit/s", width: 9, right: true, text: |r| mbit(r.rate()) },
    Column { heading: "RTT ms", width: 8, right: true, text: |r| ms(r.rtt()) },
    Column { heading: "min", width: 7, right: true, text: |r| ms(r.live.rtt_min()) },
    Column { heading: "cc", width: 6, right: false, text: congestion },
    Column { heading: "window", width: 9, right: true, text: |r| size(r.window()) },
    Column { heading: "cwnd", width: 9, right: true, text: |r| size(r.congestion_window()) },
    Column { heading: "again", width: 6, right: true, text: |r| r.resent().to_string() },
    Column { heading: "bytes", width: 9, right: true, text: |r| size(Some(r.bytes())) },
    Column { heading: "sweet spot", width: 10, right: true, text: |r| size(r.live.sweet_spot()) },
];

/// The last column.
pub const LIMIT: &str = "limited by";

/// Prints the table as text.
pub fn print(rows: &[&Row], all: usize) {
    let mut headings: String = COLUMNS.iter().map(|c| fit(c, c.heading)).collect();
    headings += LIMIT;
    tell!("{headings}");
    for row in rows {
        let mut line: String = COLUMNS.iter().map(|c| fit(c, &(c.text)(row))).collect();
        line += &row.limited_by();
        tell!("{line}");
    }
    if all > rows.len() {
        tell!("{} more connections (--rows N, --filter TEXT)", all - rows.len());
    }
}

/// `text` in the width of its column, and a space.
fn fit(column: &Column, text: &str) -> String {
    let width = usize::from(column.width);
    let cut: String = text.chars().take(width).collect();
    if column.right { format!("{cut:>width$} ") } else { format!("{cut:<width$} ") }
}

fn who(row: &Row) -> String {
    row.owner.as_ref().map_or("-".to_owned(), |owner| format!("{}/{}", owner.name, owner.pid))
}

fn congestion(row: &Row) -> String {
    row.connection.congestion.clone().unwrap_or_default()
}

/// The state in a few letters, as ss(8) has it.
fn state(state: State) -> String {
    match state {
        State::Established => "ESTAB",
        State::FinWait1 => "FIN1",
        State::FinWait2 => "FIN2",
        State::CloseWait => "CLOSEW",
        _ => "other",
    }
    .to_owned()
}

fn mbit(rate: Rate) -> String {
    match rate.as_f64() / 1e6 {
        0.0 => "0".to_owned(),
        m if m < 0.01 => "<0.01".to_owned(),
        m => format!("{m:.2}"),
    }
}

/// Milliseconds.
pub fn ms(time: Option<Duration>) -> String {
    time.map_or("-".to_owned(), |time| format!("{:.1}", time.as_secs_f64() * 1e3))
}

/// A size to three digits.
pub fn size(bytes: Option<Bytes>) -> String {
    let Some(bytes) = bytes else { return "-".to_owned() };
    let units = [(1e9, "GB"), (1e6, "MB"), (1e3, "kB")];
    let n = bytes.as_f64();
    match units.into_iter().find(|(unit, _)| n >= *unit) {
        Some((unit, name)) => {
            let n = n / unit;
            let digits = if n >= 100.0 { 0 } else { 1 };
            format!("{n:.digits$} {name}")
        }
        None => format!("{n} B"),
    }
}
