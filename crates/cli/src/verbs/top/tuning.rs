//! Connections tuned from the table. Each has its own `sweetspot tune attach`, which lifts its limits on request and
//! when this process ends.

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use sweetspot_control::TuneEventKind;
use sweetspot_diagnose::Class;
use sweetspot_diagnose::live::Side;
use sweetspot_linux::signals::{Signal, unblock_on_exec};
use sweetspot_units::{Bytes, Rate};
use sweetspot_watch::ConnectionRow;
use tempfile::TempDir;

/// Number of samples to average, one second each by default.
const READINGS: usize = 10;

/// Pacing at the flow's own rate would not limit a program that sends little, and would slow a flow that still
/// grows.
const UNKNOWN_CAPACITY: &str =
    "not tuned: a pacing rate needs the path's capacity, which no standing queue has shown so far";

/// Why a connection that sends over a path of unknown capacity is not tuned: its present limit, if that is not the path.
fn untunable(limit: Class) -> String {
    match limit {
        Class::ReceiverWindow | Class::ReceiverApplication | Class::SenderWindow => {
            format!("not tuned: the {limit} limits it, not the path")
        }
        _ => UNKNOWN_CAPACITY.to_owned(),
    }
}

/// A connection that is, or was, tuned from here.
pub struct TunedHere {
    /// The socket's cookie.
    pub cookie: u64,
    /// Mean rate in bit/s and mean RTT in microseconds before tuning.
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
    /// If the process is unknown, if the path to which it sends has an unknown capacity, or if the tuner cannot be
    /// started.
    pub fn begin(row: &ConnectionRow) -> Result<TunedHere, String> {
        let owner = row.owner.as_ref().ok_or(
            "cannot see which process owns this connection; run top as root to tune it".to_owned(),
        )?;
        let sends = row.side() == Side::Sender && row.rate() > Rate::ZERO;
        if sends && !row.knows_capacity() {
            return Err(untunable(row.period().named().cause));
        }
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

    /// Counts a reading of the table.
    pub fn count_reading(&mut self) {
        if self.tuner.is_some() {
            self.readings += 1;
        }
    }

    /// Lifts all limits, and waits until that is done.
    pub fn undo(&mut self) {
        let Some(mut tuner) = self.tuner.take() else { return };
        if let Ok(None) = tuner.try_wait() {
            Signal::TERMINATE.send(tuner.id());
        }
        // The tuner's guardian lifts any limits that remain.
        let _ = tuner.wait();
    }

    /// Whether the tuner runs.
    pub fn is_on(&mut self) -> bool {
        self.tuner.as_mut().is_some_and(|tuner| matches!(tuner.try_wait(), Ok(None)))
    }

    /// Whether the tuner currently limits the connection.
    pub fn holds(&mut self) -> bool {
        self.is_on() && self.last_event().is_some_and(|event| event.limit.is_some())
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.directory.path().join(name)).unwrap_or_default()
    }

    fn last_event(&self) -> Option<TuningEvent> {
        TuningEvent::last_of(&self.read("events"))
    }

    /// The tuner's last action, the rate and RTT before and since, and whether it limits the connection now.
    pub fn summary(&mut self, row: &ConnectionRow) -> (Vec<String>, bool) {
        let (running, last) = (self.is_on(), self.last_event());
        let holds = running && last.as_ref().is_some_and(|event| event.limit.is_some());
        let trouble = self.read("trouble");
        let state = match (running, trouble.lines().last(), last) {
            (_, Some(trouble), _) => format!("Not tuned: {trouble}"),
            (true, None, Some(event)) if holds => format!("Tuning (u removes the limit): {event}"),
            (true, None, Some(event)) => event.without_limit(),
            (true, None, None) => "Tuning, nothing to limit so far (u stops it)".to_owned(),
            (false, None, _) => "Tuning has ended; t tunes again".to_owned(),
        };
        let show = |name: &str, (rate, rtt): (f64, f64)| {
            format!("{name:<7} {:>9.2} Mbit/s   RTT {:>7.1} ms", rate / 1e6, rtt / 1e3)
        };
        let now = mean(row, self.readings.clamp(1, READINGS));
        (vec![state, show("before", self.before), show("now", now)], holds)
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

/// An event of `sweetspot tune`.
#[derive(Debug, PartialEq)]
struct TuningEvent {
    kind: TuneEventKind,
    why: String,
    /// The limit that it sets, in words.
    limit: Option<String>,
}

impl TuningEvent {
    /// The last event in a file.
    fn last_of(events: &str) -> Option<TuningEvent> {
        let event: serde_json::Value = serde_json::from_str(events.lines().last()?).ok()?;
        let (name, why) = (event["event"].as_str()?, event["why"].as_str()?);
        let kind = TuneEventKind::ALL.into_iter().find(|kind| kind.name() == name)?;
        let window = event["to_bytes"].as_u64().map(|b| format!("window {}", Bytes::new(b)));
        let pace = event["pace_to_bps"].as_u64();
        let pace = pace.map(|bps| format!("pacing rate {}", Rate::from_bits_per_second(bps)));
        // The event of a released connection has a window, too, which is larger than the connection uses.
        let limit = window.or(pace).filter(|_| kind != TuneEventKind::LetGo);
        Some(TuningEvent { kind, why: why.into(), limit })
    }

    /// The state after this event, which leaves the connection without a limit.
    fn without_limit(&self) -> String {
        match self.kind {
            TuneEventKind::LetGo => {
                format!("Tuned (u stops it), but the limit was lifted: {}", self.why)
            }
            _ => format!("Tuning, no limit now (u stops it); {self}"),
        }
    }
}

impl fmt::Display for TuningEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limit = self.limit.iter().map(|limit| format!(", {limit}")).collect::<String>();
        write!(f, "{}{limit}: {}", self.kind.words(), self.why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_event_is_shown_with_its_limit() {
        let words = |events: &str| TuningEvent::last_of(events).map(|event| event.to_string());
        let taken = r#"{"event":"taken","why":"bulk","to_bytes":190000}"#;
        let paced = r#"{"event":"held","why":"others","to_bytes":null,"pace_to_bps":95000000}"#;
        assert_eq!(words(taken), Some("limited, window 190 kB: bulk".to_owned()));
        assert_eq!(
            words(&format!("{taken}\n{paced}\n")),
            Some("held, pacing rate 95 Mbit/s: others".to_owned())
        );
        assert_eq!(words(""), None);
    }

    #[test]
    fn an_untuned_connection_names_the_limit_outside_the_path() {
        let window = untunable(Class::ReceiverWindow);
        assert_eq!(window, "not tuned: the receiver's window limits it, not the path");
        assert!(untunable(Class::Transport).contains("needs the path's capacity"));
    }

    #[test]
    fn a_released_connection_has_no_limit() {
        let let_go = r#"{"event":"let_go","why":"others","to_bytes":2016000}"#;
        let event = TuningEvent::last_of(let_go).unwrap();
        let words = event.without_limit();
        assert_eq!(words, "Tuned (u stops it), but the limit was lifted: others");
        assert_eq!((event.to_string().as_str(), event.limit), ("released: others", None));
    }
}
