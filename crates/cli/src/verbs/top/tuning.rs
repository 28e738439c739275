//! Connections tuned from the table: each by a `sweetspot tune attach` of its own, which lifts its
//! limits when it is told to end, and when this process ends.

use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use sweetspot_linux::signals::{Signal, unblock_on_exec};
use sweetspot_watch::ConnectionRow;
use tempfile::TempDir;

/// Readings whose mean is shown: of a second each by default.
const READINGS: usize = 10;

/// A connection that is, or was, tuned from here.
pub struct TunedHere {
    /// Its cookie.
    pub cookie: u64,
    /// Mean rate, bit/s, and RTT, microseconds, before.
    before: (f64, f64),
    /// Readings since tuning began.
    readings: usize,
    tuner: Option<Child>,
    directory: TempDir,
}

impl TunedHere {
    /// Starts to tune the connection of `row`.
    ///
    /// # Errors
    /// If its process is not known, or the tuner cannot be started.
    pub fn begin(row: &ConnectionRow) -> Result<TunedHere, String> {
        let owner = row.owner.as_ref().ok_or(
            "whose connection this is cannot be seen; run top as root to tune it".to_owned(),
        )?;
        let start = || -> io::Result<(Child, TempDir)> {
            let directory = tempfile::tempdir()?;
            let trouble = File::create(directory.path().join("trouble"))?;
            let mut command = Command::new(std::env::current_exe()?);
            command.args(["tune", "attach", "--quiet", "--send", "--events"]);
            command.arg(directory.path().join("events")).arg("--peer");
            command.arg(row.connection.remote.to_string());
            command.args(["--until", &std::process::id().to_string(), &owner.pid.to_string()]);
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(trouble).process_group(0);
            unblock_on_exec(&mut command);
            Ok((command.spawn()?, directory))
        };
        let (child, directory) = start().map_err(|error| format!("cannot tune it: {error}"))?;
        let cookie = row.connection.cookie;
        let before = mean(row, READINGS);
        Ok(TunedHere { cookie, before, readings: 0, tuner: Some(child), directory })
    }

    /// Notes that the table was read.
    pub fn count_reading(&mut self) {
        if self.tuner.is_some() {
            self.readings += 1;
        }
    }

    /// Lifts all limits, and returns when that is done.
    pub fn undo(&mut self) {
        let Some(mut tuner) = self.tuner.take() else { return };
        if let Ok(None) = tuner.try_wait() {
            Signal::TERMINATE.send(tuner.id());
        }
        // Its guardian lifts what it does not.
        let _ = tuner.wait();
    }

    /// Whether the tuner runs.
    pub fn is_on(&mut self) -> bool {
        self.tuner.as_mut().is_some_and(|tuner| matches!(tuner.try_wait(), Ok(None)))
    }

    /// What it did last, and rate and RTT before and since.
    pub fn words(&mut self, row: &ConnectionRow) -> Vec<String> {
        let running = self.is_on();
        let read = |name| fs::read_to_string(self.directory.path().join(name)).unwrap_or_default();
        let trouble = read("trouble");
        let state = match (running, trouble.lines().last(), last_event(&read("events"))) {
            (_, Some(trouble), _) => format!("Not tuned: {trouble}"),
            (true, None, Some(event)) => format!("Tuned (u undoes it): {event}"),
            (true, None, None) => "Tuned (u undoes it): nothing to limit so far".to_owned(),
            (false, None, _) => "Tuning was undone; t tunes again".to_owned(),
        };
        let show = |name: &str, (rate, rtt): (f64, f64)| {
            format!("{name:<7} {:>9.2} Mbit/s   RTT {:>7.1} ms", rate / 1e6, rtt / 1e3)
        };
        let now = mean(row, self.readings.clamp(1, READINGS));
        vec![state, show("before", self.before), show("now", now)]
    }
}

impl Drop for TunedHere {
    fn drop(&mut self) {
        self.undo();
    }
}

/// The mean of the newest readings.
fn mean(row: &ConnectionRow, readings: usize) -> (f64, f64) {
    let newest: Vec<&(u64, u64)> = row.past.iter().rev().take(readings).collect();
    let count = newest.len().max(1) as f64;
    let sum = |of: fn(&(u64, u64)) -> u64| newest.iter().map(|past| of(past) as f64).sum::<f64>();
    (sum(|past| past.0) / count, sum(|past| past.1) / count)
}

/// The last event of a file of events, in words.
fn last_event(events: &str) -> Option<String> {
    let event: serde_json::Value = serde_json::from_str(events.lines().last()?).ok()?;
    let (name, why) = (event["event"].as_str()?, event["why"].as_str()?);
    let limit = match (event["to_bytes"].as_u64(), event["pace_to_bps"].as_u64()) {
        (Some(window), _) => format!(", window {}", sweetspot_units::Bytes::new(window)),
        (None, Some(bps)) => {
            format!(", pace {}", sweetspot_units::Rate::from_bits_per_second(bps))
        }
        (None, None) => String::new(),
    };
    Some(format!("{}{limit}: {why}", name.replace('_', " ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_event_is_told_with_its_limit() {
        let taken = r#"{"event":"taken","why":"bulk","to_bytes":190000}"#;
        let paced = r#"{"event":"let_go","why":"others","to_bytes":null,"pace_to_bps":95000000}"#;
        assert_eq!(last_event(taken), Some("taken, window 190 kB: bulk".to_owned()));
        assert_eq!(
            last_event(&format!("{taken}\n{paced}\n")),
            Some("let go, pace 95 Mbit/s: others".to_owned())
        );
        assert_eq!(last_event(""), None);
    }
}
