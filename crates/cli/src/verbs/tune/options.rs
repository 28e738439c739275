use std::fs::File;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use sweetspot_control::Goal;
use sweetspot_control::policy::loopback;
use sweetspot_kernel::{KernelError, Watch};
use sweetspot_linux::sysctl;
use sweetspot_tune::{Exporter, TunerOptions, TunerSnapshot, watch};

use super::inside::Inside;
use super::journal::{EventLog, Watched};
use sweetspot_program::print::{Shown, system};
use sweetspot_program::values;

/// Options common to all tuning verbs.
#[derive(Debug, clap::Args)]
pub struct Common {
    /// Decide and report, but change nothing
    #[arg(long)]
    dry_run: bool,

    /// Append every action to FILE, one JSON object per line, with each change of a limit, and why other
    /// connections were not limited
    #[arg(long, value_name = "FILE", value_parser = events_file)]
    events: Option<PathBuf>,

    /// Serve Prometheus metrics at this loopback address, such as 127.0.0.1:9477
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = loopback)]
    metrics: Option<SocketAddr>,

    /// Also pace uploads (SO_MAX_PACING_RATE) just below the path's delivery rate. Via pidfd, advise a larger SO_SNDBUF if an upload waits for its send buffer for more
    /// than 5 % of its busy time (the buffer is not changed: that cannot be undone)
    #[arg(long)]
    send: bool,

    // Each verb sets its own help with `via_help`.
    #[arg(long, value_name = "WAY", hide_possible_values = true)]
    #[arg(value_parser = values::words::<Via>(&["pidfd", "bpf", "auto"]))]
    via: Option<Via>,

    /// Print nothing but errors
    #[arg(long, short)]
    quiet: bool,

    /// Print more detail: why auto chose pidfd, each change of a limit, and each bulk transfer that was
    /// not limited
    #[arg(long, short, conflicts_with = "quiet")]
    verbose: bool,
}

/// The help of `--via` for a verb with this default.
macro_rules! via_help {
    ($default:literal) => {
        concat!(
            "Mechanism: bpf (programs in the kernel, which act at every segment; root, Linux 5.11), pidfd (from outside: \
             reads and sets duplicates of the processes' sockets) or auto (bpf if this host supports it, else pidfd; tune \
             doctor and -v give the reason) [default: ",
            $default,
            "]"
        )
    };
}
pub(super) use via_help;

/// The goal where no policy has one for each rule.
#[derive(Debug, clap::Args)]
pub struct GoalOption {
    /// Goal of transfers: throughput, or less-than-best-effort, with which downloads, and uploads
    /// with --send, yield to other traffic (RFC 9840): packets are to queue for at most 60 ms, or for half of the delay at which
    /// one was lost
    #[arg(long, value_name = "GOAL", default_value = "throughput", hide_possible_values = true)]
    #[arg(value_parser = values::words::<Goal>(&["throughput", "less-than-best-effort"]))]
    pub goal: Goal,
}

/// Rejects standard output, which belongs to the command.
fn events_file(text: &str) -> Result<PathBuf, &'static str> {
    match text {
        "-" => Err("expected a file; ./- names one that is called -"),
        _ => Ok(text.into()),
    }
}

/// The mechanism that samples connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Via {
    /// BPF if available, or else pidfd.
    Auto,
    /// BPF programs attached to a cgroup.
    Bpf,
    /// Sockets duplicated from their processes.
    Pidfd,
}

impl FromStr for Via {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Via, &'static str> {
        match text {
            "auto" => Ok(Via::Auto),
            "bpf" => Ok(Via::Bpf),
            "pidfd" => Ok(Via::Pidfd),
            _ => Err(
                "expected bpf (inside the kernel), pidfd (from outside, on duplicated sockets) or auto (bpf if the host \
                 supports it)",
            ),
        }
    }
}

impl Common {
    /// The tuner that `begin` attaches via bpf; `None` if sockets are borrowed via pidfd instead. Without `--via`, the
    /// mechanism is `usual`.
    ///
    /// # Errors
    /// If the requested mechanism is not available, or if another tuner is active that would limit the same connections.
    pub fn inside(
        &self,
        usual: Via,
        dry_run: bool,
        begin: impl FnOnce(Watch) -> Result<Inside, KernelError>,
    ) -> Result<Option<Inside>, KernelError> {
        let via = self.via.unwrap_or(usual);
        if via == Via::Pidfd {
            return Ok(None);
        }
        match begin(watch(self.send, dry_run)) {
            // Two sets of programs would overwrite each other's callback flags, but sockets can be borrowed beside a dry run.
            Err(KernelError::Busy { program, dry_run: true, .. }) if via == Via::Auto => {
                if !self.quiet {
                    err!(
                        "sweetspot: a dry run already uses bpf here (BPF program {program}); using pidfd instead"
                    );
                }
                Ok(None)
            }
            Err(error) if via == Via::Auto && !matches!(error, KernelError::Busy { .. }) => {
                if self.verbose && !self.quiet {
                    err!("sweetspot: {error}; using pidfd");
                }
                Ok(None)
            }
            begun => begun.map(Some),
        }
    }

    /// The metrics address on the command line, if any.
    pub fn metrics(&self) -> Option<SocketAddr> {
        self.metrics
    }

    /// Whether the command line asks for a dry run.
    pub fn is_dry_run(&self) -> bool {
        self.dry_run
    }

    /// Whether uploads are tuned, too.
    pub fn sends(&self) -> bool {
        self.send
    }

    /// Whether the command line names a mechanism.
    pub fn names_mechanism(&self) -> bool {
        self.via.is_some()
    }

    pub fn options(&self) -> Result<TunerOptions, Box<dyn std::error::Error>> {
        let max_window = sysctl::tcp_rmem()?.max;
        let (uploads, dry_run) = (self.send, self.dry_run);
        Ok(TunerOptions { memory: None, uploads, dry_run, max_window })
    }

    pub fn journal(&self, watched: Watched) -> Result<EventLog, String> {
        self.journal_with(None, watched)
    }

    /// The log. Metrics are served at `address`, unless the command line names another address.
    pub fn journal_with(
        &self,
        address: Option<SocketAddr>,
        watched: Watched,
    ) -> Result<EventLog, String> {
        let export = |address| {
            Exporter::start(address).map_err(|error| {
                let error = system(&error);
                format!("cannot serve metrics at {address}: {error}; choose another port")
            })
        };
        let exporter = self.metrics.or(address).map(export).transpose()?;
        exporter.iter().for_each(|e| e.publish(TunerSnapshot::default().prometheus()));
        let file = match &self.events {
            None => None,
            Some(path) => {
                let file = File::options().create(true).append(true).open(path);
                let file = file.map_err(|error| {
                    let (path, error) = (path.shown(), system(&error));
                    format!(
                        "cannot write events to {path}: {error}; name a file that you may write to"
                    )
                })?;
                Some((path.clone(), file))
            }
        };
        let flags = [self.quiet, self.verbose, self.send];
        Ok(EventLog::new(file, exporter, flags, watched))
    }
}
