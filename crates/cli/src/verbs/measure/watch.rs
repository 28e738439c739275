//! A path over time: gentle measurements, with a line of JSON each.

use std::fs::OpenOptions;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use sweetspot_linux::clock;
use sweetspot_measure::Plan;
use sweetspot_program::print::Shown;
use sweetspot_program::whole_file;
use sweetspot_protocol::clients::rfc3339;
use sweetspot_transfer::{Contact, Measured, TransferError, measure};
use sweetspot_units::{Duration, Rate, Time};

use super::document::document;
use super::outlook::Outlook;
use super::path_file::PathFile;
use super::verdict::verdict;

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

/// Repeated measurements of a path, for `--watch`.
pub struct Watch<'a> {
    pub contact: Contact,
    pub plan: Plan,
    pub interval: Duration,
    /// The number of measurements; `None`: unlimited.
    pub times: Option<u64>,
    /// The file for a line per measurement.
    pub series: &'a Path,
    /// The file for the path so far.
    pub scenario: Option<&'a Path>,
    pub is_quiet: bool,
}

impl Watch<'_> {
    /// The first line: how often it measures, and the files that it writes.
    pub fn announced(&self) -> String {
        let scenario = self
            .scenario
            .map(|path| format!(", and the path so far to {}", path.shown()))
            .unwrap_or_default();
        let (min, max) = self.plan.duration();
        let up_to = format!("one takes up to {:.0} s", max.as_secs_f64());
        let often = match self.interval {
            interval if interval <= min => format!("back to back, as {up_to}"),
            interval if interval < max => format!("every {interval}, or back to back: {up_to}"),
            interval => format!("every {interval}"),
        };
        format!(
            "measuring {often}; results go to {}{scenario}; Ctrl-C ends it",
            self.series.shown()
        )
    }

    /// The last line after a signal.
    pub fn print_interrupted(&self, is_recorded: bool) {
        if self.is_quiet {
            return;
        }
        let series = self.series.shown();
        let left = match is_recorded {
            true => format!("the measurements before this one are in {series}"),
            false => format!("no measurement was complete, so {series} has none"),
        };
        err!("sweetspot: interrupted; {left}");
    }

    /// Measures, and sets `is_recorded` when the series has a line. A failed measurement becomes a line with the reason.
    pub fn run(&self, is_recorded: &AtomicBool) -> Result<(), String> {
        let mut series = Series::default();
        let mut scenario = Err("every measurement failed, so --scenario wrote no file".to_owned());
        let (start, mut is_late) = (clock::now(), false);
        for done in 0..self.times.unwrap_or(u64::MAX) {
            let at = start + self.interval * done;
            clock::sleep_until(at);
            // If a measurement took longer than the interval, the next one follows at once.
            let now = clock::now();
            if now > at + self.interval && !std::mem::replace(&mut is_late, true) {
                self.print_late(now.since(at) + self.interval);
            }
            let measured =
                measure(&self.contact, self.plan.clone(), &mut |_| ControlFlow::Continue(()));
            match measured {
                // It would be refused each time.
                Err(error) if done == 0 && is_for_good(&error) => return Err(error.to_string()),
                Err(error) => {
                    let time = append(self.series, json!({ "unknown": error.to_string() }))?;
                    self.print(done, &time, &format!("not measured: {error}"));
                }
                Ok(measured) => {
                    self.record(done, &measured)?;
                    series.add(now.max(at), &measured);
                    self.update_scenario(&measured, &series, &mut scenario)?;
                }
            }
            is_recorded.store(true, Ordering::Relaxed);
        }
        if self.scenario.is_some() { scenario } else { Ok(()) }
    }

    fn print_late(&self, took: Duration) {
        if !self.is_quiet {
            err!(
                "sweetspot: a measurement took {:.0} s, longer than --watch {}; the next one follows at once",
                took.as_secs_f64(),
                self.interval
            );
        }
    }

    /// Prints the result of a measurement after `done` others.
    fn print(&self, done: u64, time: &str, result: &str) {
        if !self.is_quiet {
            err!("{}, {time}: {result}", done + 1);
        }
    }

    fn record(&self, done: u64, measured: &Measured) -> Result<(), String> {
        let not_simulated = Outlook::of(&Err("not while it is watched".to_owned()));
        let time = append(self.series, document(measured, &not_simulated))?;
        self.print(done, &time, &verdict(measured, &not_simulated).text());
        Ok(())
    }

    /// Writes the path so far, if requested. `written` is success once there is such a file, otherwise the reason.
    fn update_scenario(
        &self,
        measured: &Measured,
        series: &Series,
        written: &mut Result<(), String>,
    ) -> Result<(), String> {
        let Some(path) = self.scenario else { return Ok(()) };
        match PathFile::over_time(measured, series, self.interval) {
            Ok(found) => {
                whole_file::write(path, found.text.as_bytes())?;
                if written.is_err() {
                    note!("wrote {}; each measurement updates it", path.shown());
                }
                *written = Ok(());
            }
            // A file of earlier measurements stays.
            Err(why) => {
                note!("not added to {}: {why}", path.shown());
                if written.is_err() {
                    *written = Err(format!("wrote no {}: {why}", path.shown()));
                }
            }
        }
        Ok(())
    }
}

/// Whether the far end refuses this ticket, or does not have its certificate.
fn is_for_good(error: &TransferError) -> bool {
    error.is_refusal() || matches!(error, TransferError::CertificateMismatch(_))
}

/// Appends `line` to the file with the current time, and returns that time.
fn append(path: &Path, mut line: Value) -> Result<String, String> {
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
