//! Reads results from column files.

use sweetspot_scenario::{BottleneckOutcome, Outcome, TransferOutcome};

use super::file::{ReadError, ResultFile, SeriesFile};
use crate::columns::{Column, Columns};
use crate::series_row::rows_of;
use crate::sweep::{
    SPOT_FROM, SPOT_TO, SWEEP_FORMAT, SweepFile, SweepFilePoint, SweepPath, column_of,
};

/// Reads the time series of a run, or a sweep, from columns; `ours` is this version of Sweetspot.
pub fn read_columns(columns: &Columns, ours: &str) -> Result<ResultFile, ReadError> {
    if columns.noted("sweetspot_sweep").is_some() {
        return sweep(columns, ours).map(ResultFile::Sweep);
    }
    if let Some(keys) = keys_by_position(columns) {
        return points(columns, ours, keys).map(ResultFile::Sweep);
    }
    if columns.named("at_s").is_none() || columns.named("event").is_none() {
        return Err(ReadError::AlienColumns);
    }
    let version = columns.noted("version").map(str::to_owned);
    Ok(ResultFile::Series(SeriesFile { version, rows: rows_of(columns) }))
}

/// The keys of a sweep without notes, which CSV cannot store: the columns before the seed.
fn keys_by_position(columns: &Columns) -> Option<Vec<String>> {
    columns.named("path_rate_bps")?;
    let mut names = columns.columns().iter().map(|(name, _)| name);
    let seed = names.position(|name| name == "seed")?;
    Some(columns.columns()[..seed].iter().map(|(name, _)| key_of(name)).collect())
}

/// Converts a column's name with underscores to a key with dots. A dot follows a table of the scenario or the number of an
/// entry.
fn key_of(column: &str) -> String {
    let is_table = |key: &str| {
        let last = key.rsplit('.').next().unwrap_or_default();
        TABLES.contains(&key) || last.parse::<u64>().is_ok()
    };
    let join = |key: String, part: &str| match is_table(&key) {
        true => format!("{key}.{part}"),
        false => format!("{key}_{part}"),
    };
    column.split('_').map(str::to_owned).reduce(|key, part| join(key, &part)).unwrap_or_default()
}

/// The scenario tables that may contain a key.
const TABLES: [&str; 8] =
    ["path", "path.hop", "path.backward", "path.change", "path.trace", "tcp", "cross", "transfer"];

/// Reads a sweep, as described by its notes.
fn sweep(columns: &Columns, ours: &str) -> Result<SweepFile, ReadError> {
    let version = columns.noted("version").unwrap_or("of unknown version");
    let other = |reason: String| ReadError::OtherVersion {
        kind: "sweep",
        theirs: version.to_owned(),
        ours: ours.to_owned(),
        reason,
    };
    let format = columns.noted("sweetspot_sweep").unwrap_or_default();
    if format != SWEEP_FORMAT.to_string() {
        return Err(other(format!("its format is {format}, not {SWEEP_FORMAT}")));
    }
    let keys = columns.noted("keys").unwrap_or_default();
    let keys: Vec<String> =
        serde_json::from_str(keys).map_err(|_| other("it does not name its keys".to_owned()))?;
    points(columns, ours, keys)
}

/// Reads a sweep without the parts that have no column: events, cross traffic and the cost of the runs.
fn points(columns: &Columns, ours: &str, keys: Vec<String>) -> Result<SweepFile, ReadError> {
    let version = columns.noted("version").unwrap_or_default();
    let other = |reason: String| ReadError::OtherVersion {
        kind: "sweep",
        theirs: if version.is_empty() { "of unknown version" } else { version }.to_owned(),
        ours: ours.to_owned(),
        reason,
    };
    let reader = OutcomeRows { columns, other: &other };
    let mut points: Vec<SweepFilePoint> = Vec::new();
    for row in 0..columns.rows() {
        let values: Vec<String> =
            keys.iter().map(|key| reader.text(&column_of(key), row)).collect::<Result<_, _>>()?;
        if points.last().is_none_or(|point| point.values != values) {
            points.push(SweepFilePoint { values, path: reader.path(row)?, outcomes: Vec::new() });
        }
        let Some(point) = points.last_mut() else { continue };
        // The transfers of one run are consecutive rows.
        if reader.count("transfer", row)? == 0 {
            point.outcomes.push(reader.outcome(row)?);
        }
        let transfer = reader.transfer(row)?;
        if let Some(outcome) = point.outcomes.last_mut() {
            outcome.transfers.push(transfer);
        }
    }
    let command = columns.noted("command").unwrap_or_default().to_owned();
    Ok(SweepFile {
        sweetspot_sweep: SWEEP_FORMAT,
        version: version.to_owned(),
        command,
        keys,
        points,
    })
}

/// Reads outcomes back from the rows of a column file.
struct OutcomeRows<'a> {
    columns: &'a Columns,
    other: &'a dyn Fn(String) -> ReadError,
}

impl OutcomeRows<'_> {
    fn cell<T>(
        &self,
        name: &str,
        row: usize,
        read: impl Fn(&Column, usize) -> Option<T>,
    ) -> Result<T, ReadError> {
        let cell = self.columns.named(name).and_then(|column| read(column, row));
        cell.ok_or_else(|| (self.other)(format!("column {name} is empty in row {row}")))
    }

    fn text(&self, name: &str, row: usize) -> Result<String, ReadError> {
        self.cell(name, row, Column::words)
    }

    fn if_any(&self, name: &str, row: usize) -> Option<u64> {
        self.columns.named(name)?.count(row)
    }

    fn count(&self, name: &str, row: usize) -> Result<u64, ReadError> {
        self.cell(name, row, Column::count)
    }

    fn number(&self, name: &str, row: usize) -> Result<f64, ReadError> {
        self.cell(name, row, Column::number)
    }

    fn path(&self, row: usize) -> Result<SweepPath, ReadError> {
        Ok(SweepPath {
            rate_bps: self.count("path_rate_bps", row)?,
            rtt_s: self.number("path_rtt_s", row)?,
            buffer_bytes: self.count("path_buffer_bytes", row)?,
            packet_bytes: self.count("path_packet_bytes", row)?,
            sweet_spot_bytes: self.if_any(SPOT_FROM, row).zip(self.if_any(SPOT_TO, row)),
        })
    }

    fn transfer(&self, row: usize) -> Result<TransferOutcome, ReadError> {
        Ok(TransferOutcome {
            goodput_bps: self.number("goodput_bps", row)?,
            rtt_mean_s: self.number("rtt_mean_s", row)?,
            rtt_p99_s: self.number("rtt_p99_s", row)?,
            loss_rate: self.number("loss_rate", row)?,
            retransmitted_packets: self.count("retransmitted_packets", row)?,
            timeouts: self.count("timeouts", row)?,
            window_final_bytes: self.count("window_final_bytes", row)?,
            completion_s: None,
            sizing: self.text("sizing", row)?,
            events: Vec::new(),
        })
    }

    /// The run of this row, without its transfers.
    fn outcome(&self, row: usize) -> Result<Outcome, ReadError> {
        let noted = |key: &str| {
            let column = || self.columns.named(key).and_then(|column| column.text(row));
            self.columns.noted(key).or_else(column).unwrap_or_default().to_owned()
        };
        Ok(Outcome {
            scenario: noted("scenario"),
            engine: noted("engine"),
            seed: self.count("seed", row)?,
            version: noted("version"),
            bottleneck: BottleneckOutcome {
                utilisation: self.number("utilisation", row)?,
                utilisation_before: 0.0,
                loss_rate: self.number("bottleneck_loss_rate", row)?,
                queue_mean_packets: self.number("queue_mean_packets", row)?,
                queue_max_packets: self.count("queue_max_packets", row)?,
                queue_delay_mean_s: self.number("queue_delay_mean_s", row)?,
            },
            ..Outcome::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn column_names_map_back_to_scenario_keys() {
        for key in [
            "path.buffer",
            "path.access_rate",
            "path.hop.0.buffer",
            "path.backward.rate",
            "transfer.sizing",
            "transfer.0.start",
            "cross.1.think_mean",
            "tcp.min_rto",
            "duration",
        ] {
            assert_eq!(key_of(&column_of(key)), key);
        }
    }
}
