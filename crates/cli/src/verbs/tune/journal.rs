//! The log of a tuner: its lines for users, the file of events, and the metrics.

use std::fs::File;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;

use sweetspot_control::{
    BULK_BYTES, NotLimited, TuneEvent, TuneEventKind, TuneSummary, UnlimitedConnections, ended_line,
};
use sweetspot_diagnose::counted;
use sweetspot_linux::clock;
use sweetspot_program::print::{Shown, system};
use sweetspot_tune::{BULK_WITHIN, Exporter, TunerSnapshot};
use sweetspot_units::{Duration, Rate, Time};

/// The connections that a tuner watches.
#[derive(Debug)]
pub struct Watched {
    /// Their owner in words, such as "process 4711 (curl)".
    pub owner: String,
    /// Whether BPF programs report them, which they do only for bulk transfers.
    pub is_inside: bool,
    /// Whether the owner is a host or a cgroup: uploads are then reported only if they are tuned.
    pub is_host: bool,
    /// Whether the user asked for a tuner. If not, it wraps another program, and with nothing to report it is silent in
    /// scripts.
    pub is_explicit: bool,
}

/// The tuner's log: lines for users, the file of events, and the metrics.
pub struct EventLog {
    file: Option<(PathBuf, File)>,
    exporter: Option<Exporter>,
    quiet: bool,
    verbose: bool,
    /// Whether uploads are tuned, too.
    sends: bool,
    watched: Watched,
    dry_run: bool,
    /// Whether an adjustment has been left out of the lines for users.
    hides_changes: bool,
    summary: TuneSummary,
    started: Time,
}

impl EventLog {
    pub(super) fn new(
        file: Option<(PathBuf, File)>,
        exporter: Option<Exporter>,
        [quiet, verbose, sends]: [bool; 3],
        watched: Watched,
    ) -> EventLog {
        let (dry_run, hides_changes) = (false, false);
        let (summary, started) = (TuneSummary::default(), clock::wall());
        EventLog {
            file,
            exporter,
            quiet,
            verbose,
            sends,
            watched,
            dry_run,
            hides_changes,
            summary,
            started,
        }
    }

    /// Whether a user reads lines that report no action.
    fn has_reader(&self) -> bool {
        self.watched.is_explicit || self.verbose || self.dry_run || std::io::stderr().is_terminal()
    }

    /// How Ctrl-C ends tuning or a dry run, after another clause.
    pub fn ctrl_c(dry_run: bool) -> &'static str {
        match dry_run {
            true => "; Ctrl-C ends the dry run",
            false => "; Ctrl-C ends tuning",
        }
    }

    /// Names the watched process and the mechanism; `end` says how tuning ends.
    pub fn begin(&self, end: &str) {
        if !self.quiet && self.has_reader() {
            let via = if self.watched.is_inside { "bpf" } else { "pidfd" };
            message!("sweetspot: watching {} via {via}{end}", self.watched.owner);
        }
    }

    /// Prints the first line of a daemon, which says whether this is a dry run.
    pub fn begin_host(&mut self, line: &str, dry_run: bool) {
        self.dry_run = dry_run;
        if !self.quiet {
            message!("sweetspot: {line}");
        }
    }

    /// Sets whether the next events belong to a dry run, and reports a change of that.
    pub fn rehearse(&mut self, dry_run: bool) {
        let words = match (self.dry_run, dry_run) {
            (false, true) => {
                "this is a dry run: no connection is changed; each line names an action that a real run would take. The \
                 lines of a transfer stop at the first hold, reduction or pacing rate: what follows depends on its effect"
            }
            (true, false) => "the dry run has ended: connections are changed from here on",
            _ => return,
        };
        self.dry_run = dry_run;
        if !self.quiet {
            message!("sweetspot: {words}");
        }
    }

    /// Reports the effect of tuning on each connection, and why the `unlimited` connections were never limited.
    pub fn summarise(&mut self, unlimited: &UnlimitedConnections) {
        let now = clock::wall().as_secs_f64();
        let tuned = self.summary.connections();
        let mut reasons = unlimited.lines();
        if tuned == 0 && reasons.is_empty() {
            reasons.push(self.no_connections_note());
        }
        if !self.quiet {
            let shown = match self.has_reader() {
                true => reasons.clone(),
                false => unlimited.only(NotLimited::is_bulk).lines(),
            };
            let mark = self.mark();
            for line in self.effects(now).iter().chain(&shown) {
                message!("sweetspot: {mark}{line}");
            }
        }
        let why = Some(reasons.join("; ")).filter(|why| !why.is_empty());
        self.write(&ended_line(now, self.dry_run, why.as_deref(), tuned, unlimited));
    }

    /// The lines about the effect on each tuned connection.
    fn effects(&self, now: f64) -> Vec<String> {
        let count = self.summary.connections();
        if self.dry_run && count > 0 {
            let connections = counted(count as u64, "connection", "connections");
            return vec![format!("{connections} would be tuned; none was changed")];
        }
        self.summary.lines(self.started.as_secs_f64(), now)
    }

    /// Says that no connection was seen. Via bpf, connections that moved little are not reported.
    fn no_connections_note(&self) -> String {
        let Watched { owner, is_inside, is_host, .. } = &self.watched;
        if !is_inside && !is_host {
            return format!("no TCP connection of {owner} was seen");
        }
        let (noun, uploads) = match self.sends || !is_host {
            true => ("transfer", ""),
            false => ("download", "; uploads need --send"),
        };
        match is_inside {
            true => {
                format!(
                    "no TCP {noun} of {owner} moved {BULK_BYTES} within {BULK_WITHIN} (--via pidfd tunes slower ones, too){uploads}"
                )
            }
            false => format!("no bulk {noun} of {owner} was seen{uploads}"),
        }
    }

    /// The beginning of the lines of a dry run.
    fn mark(&self) -> &'static str {
        if self.dry_run { "dry run: " } else { "" }
    }

    pub fn publish(&self, snapshot: impl FnOnce() -> TunerSnapshot) {
        if let Some(exporter) = &self.exporter {
            exporter.publish(snapshot().prometheus());
        }
    }

    /// Notes the current rate and RTT of a connection for the summary.
    pub fn read(&mut self, (cookie, rate, rtt): (u64, Rate, Duration)) {
        self.summary.read(cookie, rate, rtt);
    }

    pub fn record(&mut self, event: &TuneEvent) {
        self.summary.add(event);
        let is_detail = matches!(event.kind, TuneEventKind::Adjusted | TuneEventKind::NotLimited);
        let is_shown = !self.quiet && (!is_detail || self.verbose);
        let hides_change = event.kind == TuneEventKind::Adjusted && !self.quiet && !self.verbose;
        let mark = self.mark();
        if hides_change && !std::mem::replace(&mut self.hides_changes, true) {
            message!(
                "sweetspot: {mark}adjustments between these lines are not shown; -v shows them"
            );
        }
        if is_shown {
            let words = if self.dry_run { event.conditional() } else { event.to_string() };
            message!("sweetspot: {mark}{words}");
        }
        self.write(&event.json(self.dry_run));
    }

    /// Appends a line to the file of events.
    fn write(&mut self, line: &str) {
        let Some((path, file)) = &mut self.file else { return };
        if let Err(error) = writeln!(file, "{line}") {
            let (path, error) = (path.shown(), system(&error));
            message!("sweetspot: cannot write more events to {path}: {error}");
            self.file = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tuner_that_saw_nothing_names_the_traffic_it_looked_for() {
        let no_connections_note = |owner: &str, is_inside, is_host, sends| {
            let owner = owner.to_owned();
            let watched = Watched { owner, is_inside, is_host, is_explicit: true };
            EventLog::new(None, None, [false, false, sends], watched).no_connections_note()
        };
        let process = "process 4711 (curl)";
        for (words, expected) in [
            (
                no_connections_note(process, false, false, false),
                "no TCP connection of process 4711 (curl) was seen",
            ),
            (
                no_connections_note(process, true, false, false),
                "no TCP transfer of process 4711 (curl) moved 60 kB within 2 s (--via pidfd tunes slower ones, too)",
            ),
            // A daemon does not report uploads that it does not tune.
            (
                no_connections_note("any process", true, true, false),
                "no TCP download of any process moved 60 kB within 2 s (--via pidfd tunes slower ones, too); uploads need --send",
            ),
            (
                no_connections_note("any process", false, true, true),
                "no bulk transfer of any process was seen",
            ),
        ] {
            assert_eq!(words, expected);
        }
    }
}
