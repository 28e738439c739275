//! A path over time: gentle measurements, with a line of JSON each.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use serde_json::{Value, json};
use sweetspot_linux::clock;
use sweetspot_program::print::Shown;
use sweetspot_protocol::clients::rfc3339;
use sweetspot_transfer::Measured;
use sweetspot_units::{Duration, Rate, Time};

/// The path at one point in time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// The time since the first sample.
    pub at: Duration,
    /// The available bandwidth in the direction measured first.
    pub rate: Rate,
    /// The available bandwidth in the other direction, if measured.
    pub reverse: Option<Rate>,
    /// The path's base RTT.
    pub rtt: Duration,
}

/// The path over time.
#[derive(Debug, Clone, Default)]
pub struct Series {
    first: Option<Time>,
    /// The measurements that have a rate and an RTT.
    pub samples: Vec<Sample>,
}

impl Series {
    /// Adds a measurement that began at `at`.
    pub fn add(&mut self, at: Time, measured: &Measured) {
        let first = *self.first.get_or_insert(at);
        let mut rates = measured.report.directions.iter().map(|direction| {
            let rate = direction.available.value().or(direction.capacity.value());
            rate.filter(|rate| *rate > Rate::ZERO)
        });
        let rtt = measured.report.round_trip.base.value();
        if let Some((rate, rtt)) = rates.next().flatten().zip(rtt) {
            let reverse = rates.next().flatten();
            self.samples.push(Sample { at: at.since(first), rate, reverse, rtt });
        }
    }
}

/// The first line of --watch: how often it measures, and the files that it writes.
pub fn announced(interval: Duration, series: &Path, scenario: Option<&Path>) -> String {
    let scenario = scenario
        .map(|path| format!(", and the path so far to {}", path.shown()))
        .unwrap_or_default();
    format!(
        "measuring every {interval}; results go to {}{scenario}; Ctrl-C ends it",
        series.shown()
    )
}

/// Appends `line` to the file with the current time, and returns that time.
pub fn append(path: &Path, mut line: Value) -> Result<String, String> {
    let time = rfc3339(clock::wall()).unwrap_or_else(|| "time unknown".to_owned());
    line["time"] = time.as_str().into();
    let mut file = OpenOptions::new().append(true).create(true).open(path);
    let written = file.as_mut().map_err(|error| error.to_string()).and_then(|file| {
        // One write per line, so that a reader never sees a partial line.
        file.write_all(format!("{line}\n").as_bytes()).map_err(|error| error.to_string())
    });
    written.map_err(|error| format!("{}: {error}", path.shown()))?;
    Ok(time)
}

/// The line for a failed measurement: a gap in the series, with the reason.
pub fn failed(why: &str) -> Value {
    json!({ "unknown": why })
}
