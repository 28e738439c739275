use serde::Deserialize;

use crate::columns::Columns;

/// A row of a time series; unknown values are `None`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct SeriesRow {
    /// The transfer's number.
    #[serde(default)]
    pub transfer: u64,
    /// Time since the start, in seconds.
    pub t_s: f64,
    /// Goodput since the previous row, in bit/s.
    pub goodput_bps: Option<f64>,
    /// The advertised window, in bytes.
    pub window_bytes: Option<f64>,
    /// The RTT, in seconds.
    pub rtt_s: Option<f64>,
    /// Packets queued at the bottleneck.
    pub queue_packets: Option<f64>,
    /// Packets dropped so far by the bottleneck.
    pub dropped_packets: Option<f64>,
    /// The congestion window, in bytes.
    pub cwnd_bytes: Option<f64>,
    /// The congestion window, in packets.
    pub cwnd_packets: Option<f64>,
    /// The controller's event, if this row is an event.
    pub event: Option<String>,
}

/// The rows of a time series from `columns`, which docs/scenario.md describes. Rows without a time are
/// skipped.
pub fn rows_of(columns: &Columns) -> Vec<SeriesRow> {
    let number = |name: &str, row| columns.named(name)?.number(row);
    let row = |row| SeriesRow {
        transfer: columns.named("transfer").and_then(|column| column.count(row)).unwrap_or(0),
        t_s: number("at_s", row).unwrap_or(f64::NAN),
        goodput_bps: number("goodput_bps", row),
        window_bytes: number("window_bytes", row),
        rtt_s: number("rtt_s", row),
        queue_packets: number("queue_packets", row),
        dropped_packets: number("dropped_packets", row),
        cwnd_bytes: None,
        cwnd_packets: number("cwnd_packets", row),
        event: columns.named("event").and_then(|c| c.text(row)).map(str::to_owned),
    };
    (0..columns.rows()).map(row).filter(|row| row.t_s.is_finite()).collect()
}
