//! The results of a sweep: flat columns for CSV and Parquet, whole outcomes for JSON.

use serde::{Deserialize, Serialize};
use sweetspot_experiment::{Metric, SweepPoint};
use sweetspot_scenario::{Outcome, Scenario, TransferOutcome};
use sweetspot_theory::engine::sweet_spot;

use crate::columns::{Column, Columns};

/// The content of a sweep's JSON file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SweepFile {
    /// The version of the format; the member's name also identifies the kind of file.
    pub sweetspot_sweep: u32,
    /// Sweetspot's version.
    pub version: String,
    /// The command that repeats the sweep.
    pub command: String,
    /// The keys that vary.
    pub keys: Vec<String>,
    /// The variants.
    pub points: Vec<SweepFilePoint>,
}

/// A variant in a sweep's JSON file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SweepFilePoint {
    /// The values of the keys, in their order.
    pub values: Vec<String>,
    /// The path of the run.
    pub path: SweepPath,
    /// The outcomes, one per seed.
    pub outcomes: Vec<Outcome>,
}

/// The properties of a variant's path that pictures use.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SweepPath {
    /// The bottleneck rate C, in bit/s.
    pub rate_bps: u64,
    /// The RTT without queues T_m, in seconds.
    pub rtt_s: f64,
    /// The bottleneck's buffer B_t, in bytes.
    pub buffer_bytes: u64,
    /// The size of a data packet on the wire, in bytes.
    pub packet_bytes: u64,
    /// The smallest and the largest window with which the transfer fills the path without loss, beside
    /// its cross traffic, in bytes on the wire; `None` without a closed form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sweet_spot_bytes: Option<(u64, u64)>,
}

impl SweepPath {
    /// The path of `scenario`.
    pub fn of(scenario: &Scenario) -> SweepPath {
        let (path, hop) = (&scenario.path, scenario.path.narrow());
        let spot = sweet_spot(scenario).ok();
        SweepPath {
            rate_bps: hop.rate.bits_per_second(),
            rtt_s: path.rtt.as_secs_f64(),
            buffer_bytes: hop.buffer.in_bytes(path.packet).get(),
            packet_bytes: path.packet.get(),
            sweet_spot_bytes: spot.map(|spot| (spot.low.get(), spot.high.get())),
        }
    }
}

/// The column of the sweet spot's lower end.
pub(crate) const SPOT_FROM: &str = "path_sweet_spot_from_bytes";
pub(crate) const SPOT_TO: &str = "path_sweet_spot_to_bytes";

/// The version of the format.
pub const SWEEP_FORMAT: u32 = 1;

/// A table with one row per variant, seed and transfer. A key's column has the key's name, with `_` for
/// dots.
pub fn sweep_columns(sweep: &SweepFile) -> Columns {
    let rows: Vec<SweepRow<'_>> = sweep.points.iter().flat_map(rows_of).collect();
    let mut columns = Columns::default();
    columns.note("sweetspot_sweep", sweep.sweetspot_sweep.to_string());
    columns.note("version", sweep.version.as_str());
    columns.note("command", sweep.command.as_str());
    columns.note("keys", serde_json::json!(sweep.keys).to_string());
    let first = sweep.points.iter().flat_map(|point| &point.outcomes).next();
    columns.note("scenario", first.map_or("", |outcome| outcome.scenario.as_str()));
    columns.note("engine", first.map_or("", |outcome| outcome.engine.as_str()));
    for (k, key) in sweep.keys.iter().enumerate() {
        let values = rows.iter().map(|row| Some(row.point.values[k].clone()));
        columns.push(&column_of(key), Column::Text(values.collect()));
    }
    let mut integer = |name: &str, of: &dyn Fn(&SweepRow<'_>) -> u64| {
        let values = rows.iter().map(|row| i64::try_from(of(row)).ok());
        columns.push(name, Column::Integer(values.collect()));
    };
    integer("seed", &|row| row.outcome.seed);
    integer("transfer", &|row| row.number as u64);
    integer("retransmitted_packets", &|row| row.transfer.retransmitted_packets);
    integer("timeouts", &|row| row.transfer.timeouts);
    integer("window_final_bytes", &|row| row.transfer.window_final_bytes);
    integer("queue_max_packets", &|row| row.outcome.bottleneck.queue_max_packets);
    integer("path_rate_bps", &|row| row.point.path.rate_bps);
    integer("path_buffer_bytes", &|row| row.point.path.buffer_bytes);
    integer("path_packet_bytes", &|row| row.point.path.packet_bytes);
    let mut spot = |name: &str, end: fn((u64, u64)) -> u64| {
        let values = rows.iter().map(|row| row.point.path.sweet_spot_bytes.map(end));
        let signed = values.map(|bytes| bytes.and_then(|bytes| i64::try_from(bytes).ok()));
        columns.push(name, Column::Integer(signed.collect()));
    };
    spot(SPOT_FROM, |spot| spot.0);
    spot(SPOT_TO, |spot| spot.1);
    let mut number = |name: &str, of: &dyn Fn(&SweepRow<'_>) -> f64| {
        let values = rows.iter().map(|row| Some(of(row)));
        columns.push(name, Column::Real(values.collect()));
    };
    number("path_rtt_s", &|row| row.point.path.rtt_s);
    number("goodput_bps", &|row| row.transfer.goodput_bps);
    number("rtt_mean_s", &|row| row.transfer.rtt_mean_s);
    number("rtt_p99_s", &|row| row.transfer.rtt_p99_s);
    number("loss_rate", &|row| row.transfer.loss_rate);
    number("utilisation", &|row| row.outcome.bottleneck.utilisation);
    number("bottleneck_loss_rate", &|row| row.outcome.bottleneck.loss_rate);
    number("queue_mean_packets", &|row| row.outcome.bottleneck.queue_mean_packets);
    number("queue_delay_mean_s", &|row| row.outcome.bottleneck.queue_delay_mean_s);
    let mut text = |name: &str, of: &dyn Fn(&SweepRow<'_>) -> String| {
        columns.push(name, Column::Text(rows.iter().map(|row| Some(of(row))).collect()));
    };
    text("sizing", &|row| row.transfer.sizing.clone());
    text("scenario", &|row| row.outcome.scenario.clone());
    text("engine", &|row| row.outcome.engine.clone());
    columns
}

struct SweepRow<'a> {
    point: &'a SweepFilePoint,
    outcome: &'a Outcome,
    number: usize,
    transfer: &'a TransferOutcome,
}

fn rows_of(point: &SweepFilePoint) -> impl Iterator<Item = SweepRow<'_>> {
    point.outcomes.iter().flat_map(move |outcome| {
        let transfers = outcome.transfers.iter().enumerate();
        transfers.map(move |(number, transfer)| SweepRow { point, outcome, number, transfer })
    })
}

pub(crate) fn column_of(key: &str) -> String {
    key.replace('.', "_")
}

/// A unit in which the rate of the fastest transfer is at least one, and the factor from bit/s to it.
fn rate_unit(points: &[SweepPoint]) -> (&'static str, f64) {
    let transfers = points.iter().flat_map(|point| &point.outcomes).flat_map(|o| &o.transfers);
    let fastest = transfers.map(|transfer| transfer.goodput_bps).fold(0.0, f64::max);
    match fastest {
        // Without any data, the usual unit.
        0.0 | 1e6.. => ("Mbit/s", 1e-6),
        1e3.. => ("kbit/s", 1e-3),
        _ => ("bit/s", 1.0),
    }
}

/// The text table: one row per variant and transfer, with means and 95 % confidence intervals.
pub fn sweep_table(keys: &[String], points: &[SweepPoint]) -> String {
    let (unit, per_bit) = rate_unit(points);
    let mut rows = vec![keys.to_vec()];
    rows[0].extend(["transfer", unit, "RTT, ms", "loss, %"].map(str::to_owned));
    let metric = |name| Metric::ALL.into_iter().find(|metric| metric.name == name);
    let columns = [("goodput_bps", per_bit), ("rtt_mean_s", 1e3), ("loss_rate", 100.0)];
    for point in points {
        let transfers = point.outcomes.first().map_or(0, |outcome| outcome.transfers.len());
        for transfer in 0..transfers {
            let mut row = point.values.clone();
            row.push(transfer.to_string());
            row.extend(columns.map(|(name, scale)| {
                let spread = metric(name).and_then(|metric| point.spread(metric, transfer));
                spread.map_or(String::new(), |spread| {
                    let half = spread.half_width.map(|half| format!(" ± {:.2}", half * scale));
                    format!("{:.2}{}", spread.mean * scale, half.unwrap_or_default())
                })
            }));
            rows.push(row);
        }
    }
    right_aligned(&rows)
}

/// The rows, with each column as wide as its widest cell and right-aligned.
fn right_aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max()
    };
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:>width$}"));
        format!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
    };
    rows.iter().map(line).collect()
}
