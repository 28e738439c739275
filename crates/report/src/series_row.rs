use serde::Deserialize;

use crate::columns::Columns;

/// A row of a time series; unknown values are `None`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct SeriesRow {
    /// Which transfer.
    #[serde(default)]
    pub transfer: u64,
    /// Seconds since the start.
    pub t_s: f64,
    /// Goodput since the row before, bit/s.
    pub goodput_bps: Option<f64>,
    /// The advertised window, bytes.
    pub window_bytes: Option<f64>,
    /// Round-trip time, seconds.
    pub rtt_s: Option<f64>,
    /// Packets waiting at the bottleneck.
    pub queue_packets: Option<f64>,
    /// Packets that the bottleneck has dropped so far.
    pub dropped_packets: Option<f64>,
    /// Congestion window, bytes.
    pub cwnd_bytes: Option<f64>,
    /// Congestion window, packets.
    pub cwnd_packets: Option<f64>,
    /// The controller's event, if this row is one.
    pub event: Option<String>,
}

/// The rows of the time series in `columns`, which docs/scenario.md describes; those without a time are
/// left out.
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
