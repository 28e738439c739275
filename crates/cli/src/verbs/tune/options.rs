use std::fs::File;
use std::io::{IsTerminal, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use sweetspot_control::policy::loopback;
use sweetspot_control::{Goal, TuneEvent, TuneEventKind, TuneSummary};
use sweetspot_diagnose::counted;
use sweetspot_kernel::KernelError;
use sweetspot_linux::{clock, sysctl};
use sweetspot_tune::{Exporter, TunerOptions, TunerSnapshot};
use sweetspot_units::Time;

use super::inside::Inside;
use sweetspot_program::print::Shown;
use sweetspot_program::values;

/// Options common to all tuning verbs.
#[derive(Debug, clap::Args)]
pub struct Common {
    /// Decide and report, but change nothing
    #[arg(long)]
    dry_run: bool,

    /// Append every action to FILE, one JSON object per line, with each change of a limit
    #[arg(long, value_name = "FILE", value_parser = events_file)]
    events: Option<PathBuf>,

    /// Serve Prometheus metrics at this loopback address, such as 127.0.0.1:9477
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = loopback)]
    metrics: Option<SocketAddr>,

    /// Also pace uploads (SO_MAX_PACING_RATE), just below the path's delivery rate; for send
    /// buffers that are too small, report a sufficient size (they are not changed: SO_SNDBUF cannot
    /// be undone)
    #[arg(long)]
    send: bool,

    /// Mechanism: pidfd duplicates each socket of the processes; bpf acts inside the kernel at every
    /// segment, without access to the processes (root, Linux 5.11); auto is bpf if the host supports it,
    /// else pidfd (tune doctor and -v give the reason) [default: auto, but pidfd for attach]
    #[arg(long, value_name = "WAY", hide_possible_values = true)]
    #[arg(value_parser = values::words::<Via>(&["pidfd", "bpf", "auto"]))]
    via: Option<Via>,

    /// Do not print actions
    #[arg(long, short)]
    quiet: bool,

    /// Print more detail: the mechanism, why auto chose pidfd, and each change of a limit
    #[arg(long, short)]
    verbose: bool,
}

/// The goal where no policy has one for each rule.
#[derive(Debug, clap::Args)]
pub struct GoalOption {
    /// Goal of transfers: throughput, or less-than-best-effort, which yields to other traffic (RFC
    /// 9840)
    #[arg(long, value_name = "GOAL", default_value = "throughput", hide_possible_values = true)]
    #[arg(value_parser = values::words::<Goal>(&["throughput", "less-than-best-effort"]))]
    pub goal: Goal,
}

/// Standard output is the command's own.
fn events_file(text: &str) -> Result<PathBuf, &'static str> {
    match text {
        "-" => Err("expected a file; ./- names one that is called -"),
        _ => Ok(text.into()),
    }
}

/// The mechanism that samples connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Via {
    /// Inside the kernel where that is possible.
    Auto,
    /// Inside the kernel.
    Bpf,
    /// From outside, by borrowing sockets.
    Pidfd,
}

impl FromStr for Via {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Via, &'static str> {
        match text {
            "auto" => Ok(Via::Auto),
            "bpf" => Ok(Via::Bpf),
            "pidfd" => Ok(Via::Pidfd),
            _ => Err("expected auto, bpf or pidfd"),
        }
    }
}

/// The log of events.
pub struct EventLog {
    file: Option<(PathBuf, File)>,
    exporter: Option<Exporter>,
    quiet: bool,
    verbose: bool,
    dry_run: bool,
    /// Whether uploads are tuned, too.
    sends: bool,
    /// Whether an adjustment was not shown.
    hides_changes: bool,
    summary: TuneSummary,
    begun: Time,
}

impl Common {
    /// The tuner that `begin` attaches in the kernel, given whether to pace uploads; `None` if sockets are borrowed instead.
    /// Without `--via` the mechanism is `usual`.
    ///
    /// # Errors
    /// If the mechanism was asked for and is not available, or another tuner is active: both would limit the same connections.
    pub fn inside(
        &self,
        usual: Via,
        begin: impl FnOnce(bool) -> Result<Inside, KernelError>,
    ) -> Result<Option<Inside>, KernelError> {
        let via = self.via.unwrap_or(usual);
        let begun = if via == Via::Pidfd { None } else { Some(begin(self.send)) };
        match begun {
            None => Ok(None),
            Some(Err(error)) if via == Via::Auto && !matches!(error, KernelError::Busy { .. }) => {
                if self.verbose && !self.quiet {
                    err!("sweetspot: {error}; tuning via pidfd");
                }
                Ok(None)
            }
            Some(begun) => begun.map(Some),
        }
    }

    /// Names the mechanism, if details are wanted and no line about a missing one did.
    pub fn tell_mechanism(&self, usual: Via, inside: Option<&Inside>) {
        let name = match (inside, self.via.unwrap_or(usual)) {
            (Some(_), _) => "bpf",
            (None, Via::Pidfd) => "pidfd",
            (None, _) => return,
        };
        if self.verbose && !self.quiet {
            err!("sweetspot: tuning via {name}");
        }
    }

    /// Whether actions are not printed.
    pub fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// The address of the metrics, if the command line names one.
    pub fn metrics(&self) -> Option<SocketAddr> {
        self.metrics
    }

    /// Whether uploads are tuned, too.
    pub fn sends(&self) -> bool {
        self.send
    }

    /// Whether the user named a mechanism.
    pub fn names_a_way(&self) -> bool {
        self.via.is_some()
    }

    pub fn options(&self) -> Result<TunerOptions, Box<dyn std::error::Error>> {
        let max_window = sysctl::tcp_rmem()?.max;
        let (uploads, dry_run) = (self.send, self.dry_run);
        Ok(TunerOptions { memory: None, uploads, dry_run, max_window })
    }

    pub fn journal(&self) -> Result<EventLog, String> {
        self.journal_with(None)
    }

    /// The log, with metrics at `address` unless the command line names another address.
    pub fn journal_with(&self, address: Option<SocketAddr>) -> Result<EventLog, String> {
        let export = |address| {
            Exporter::start(address)
                .map_err(|e| format!("cannot serve metrics at {address}: {e}; choose another port"))
        };
        let exporter = self.metrics.or(address).map(export).transpose()?;
        exporter.iter().for_each(|e| e.publish(TunerSnapshot::default().prometheus()));
        let file = match &self.events {
            None => None,
            Some(path) => {
                let file = File::options().create(true).append(true).open(path);
                let file = file.map_err(|e| {
                    format!(
                        "cannot write events to {}: {e}; name a file that you may write to",
                        path.shown()
                    )
                })?;
                Some((path.clone(), file))
            }
        };
        let (summary, begun) = (TuneSummary::default(), clock::wall());
        let (quiet, verbose) = (self.quiet, self.verbose);
        let (dry_run, hides_changes) = (false, false);
        let sends = self.send;
        Ok(EventLog {
            file,
            exporter,
            quiet,
            verbose,
            dry_run,
            sends,
            hides_changes,
            summary,
            begun,
        })
    }
}

impl EventLog {
    /// Sets whether the events that follow belong to a dry run, and reports a change.
    pub fn rehearse(&mut self, dry_run: bool) {
        let words = match (self.dry_run, dry_run) {
            (false, true) => {
                "this is a dry run: no connection is changed; each line names an action that a real run would take. The \
                 lines of a transfer stop at the first hold or reduction: what follows depends on its effect"
            }
            (true, false) => "the dry run has ended: connections are changed from here on",
            _ => return,
        };
        self.dry_run = dry_run;
        if !self.quiet {
            err!("sweetspot: {words}");
        }
    }

    /// Prints the effect of tuning on each connection; that there was none only to a reader, as a wrapper of other programs is
    /// silent in scripts.
    pub fn summarise(&self) {
        let count = self.summary.connections();
        if self.quiet {
            return;
        }
        if count == 0 {
            if !self.verbose && !std::io::stderr().is_terminal() {
                return;
            }
            let uploads = if self.sends { "" } else { "; uploads need --send" };
            err!(
                "sweetspot: no connection was tuned: none moved enough data, or none built a queue{uploads}"
            );
            return;
        }
        if self.dry_run {
            let connections = counted(count as u64, "connection", "connections");
            err!("sweetspot: dry run: {connections} would be tuned; none was changed");
            return;
        }
        let [begun, now] = [self.begun, clock::wall()].map(|time| time.as_secs_f64());
        for line in self.summary.lines(begun, now) {
            err!("sweetspot: {line}");
        }
    }

    pub fn publish(&self, snapshot: impl FnOnce() -> TunerSnapshot) {
        if let Some(exporter) = &self.exporter {
            exporter.publish(snapshot().prometheus());
        }
    }

    pub fn record(&mut self, event: &TuneEvent) {
        self.summary.add(event);
        let is_shown = event.kind != TuneEventKind::Adjusted || self.verbose;
        if !is_shown && !self.quiet && !std::mem::replace(&mut self.hides_changes, true) {
            let mark = if self.dry_run { "dry run: " } else { "" };
            err!("sweetspot: {mark}adjustments between these lines are not shown; -v shows them");
        }
        if is_shown && !self.quiet {
            match self.dry_run {
                true => err!("sweetspot: dry run: {}", event.conditional()),
                false => err!("sweetspot: {event}"),
            }
        }
        let Some((path, file)) = &mut self.file else { return };
        if let Err(error) = writeln!(file, "{}", event.json(self.dry_run)) {
            err!("sweetspot: cannot write more events to {}: {error}", path.shown());
            self.file = None;
        }
    }
}
