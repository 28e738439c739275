//! Shared by the verbs that transfer files: arguments, tickets, and progress.

mod failures;
mod help;
mod progress;
pub mod values;
mod watching;
mod words;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{IsTerminal, LineWriter};
use std::net::SocketAddr;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use indicatif::MultiProgress;
use sweetspot_control::TransferSummary;
use sweetspot_linux::signals;
use sweetspot_protocol::{CodeAddress, Ticket, TicketError, TicketProof};
use sweetspot_sizing::{KnownPath, Sizing, SizingError};
use sweetspot_transfer::{Contact, TransferObserver};
use sweetspot_units::{Duration, Rate, Time};

use super::Fallible;
use crate::option_hints::{HintVerb, with_options};
use crate::own_files::existing_identity;
pub(crate) use help::{members_help, members_pointer, progress_help, ticket_help};
use sweetspot_program::print::{Shown, system, try_out};
use sweetspot_program::text_file;
use sweetspot_program::usage_error::UsageError;
use sweetspot_program::values::congestion;
pub use values::{sizing, sizing_of_path, streams, waiting_time};
pub use watching::PathState;
use watching::Watching;
use words::{in_words, skipped, special_bits};

/// Arguments for a path that is known beforehand.
#[derive(Debug, clap::Args)]
pub struct PathArguments {
    /// Bottleneck rate of the path, for --sizing bdp
    #[arg(long, value_name = "RATE")]
    path_rate: Option<Rate>,
    /// Round-trip time of the idle path, for --sizing bdp
    #[arg(long, value_name = "DURATION")]
    path_rtt: Option<Duration>,
}

impl PathArguments {
    /// The path, if its rate and RTT were given. Rejects a `sizing` that needs more than these.
    pub fn resolve(
        &self,
        sizing: Option<Sizing>,
        hint_verb: HintVerb,
    ) -> Result<Option<KnownPath>, UsageError> {
        let wrong = |words| Err(UsageError::new(words));
        let path = match (self.path_rate, self.path_rtt) {
            (Some(rate), Some(rtt)) if rate > Rate::ZERO && rtt > Duration::ZERO => {
                Some(KnownPath::new(rate, rtt))
            }
            (None, None) => None,
            (Some(_), Some(_)) => {
                return wrong("--path-rate and --path-rtt must be more than zero");
            }
            _ => return wrong("--path-rate and --path-rtt belong together; give both or none"),
        };
        let is_used = match sizing {
            Some(sizing) => matches!(sizing, Sizing::Bdp | Sizing::BdpBy(_)),
            // A sender may ask a receiver for it.
            None => matches!(hint_verb, HintVerb::Serve | HintVerb::Service),
        };
        if path.is_some() && !is_used {
            return wrong(
                "--path-rate and --path-rtt only affect --sizing bdp; add it, or leave them out",
            );
        }
        let missing = match sizing {
            Some(Sizing::Bdp) if path.is_none() => Some(SizingError::PathUnknown),
            Some(Sizing::BdpBy(definition)) => definition.window(path.as_ref()).err(),
            _ => None,
        };
        match missing {
            None => Ok(path),
            Some(error) => Err(UsageError::new(with_options(&error.to_string(), hint_verb))),
        }
    }
}

/// Arguments for the connections of a transfer.
#[derive(Debug, clap::Args)]
pub struct ConnectionArguments {
    /// Congestion control at the sending host, which sobas then keeps [default: the sending host's, which sobas may switch to
    /// bbr]
    #[arg(long, value_name = "NAME", value_parser = congestion(), hide_possible_values = true)]
    pub congestion: Option<String>,
    /// Connections to use, 1 to 64 [default: one; more if one cannot fill the path]
    #[arg(long, value_name = "N", value_parser = streams)]
    pub streams: Option<u32>,
    /// How long to keep trying to reconnect and resume, counted from the last data: after the connection broke, or the peer was
    /// silent for 30 s. A peer that answers and moves nothing does not count
    #[arg(long, value_name = "DURATION", default_value = "15min", value_parser = waiting_time)]
    pub retry_for: Duration,
}

/// Arguments for the files that a receiver accepts from a sender that it need not trust.
#[derive(Debug, clap::Args)]
pub struct TrustArguments {
    /// Accept extended attributes (user.*) from senders that send them
    #[arg(long)]
    pub xattrs: bool,
    /// Accept names that begin with a dot, such as .bashrc, also in directories that the transfer did not create; the
    /// receiver's own directory is one of those
    #[arg(long)]
    pub dotfiles: bool,
}

/// Arguments for the output about a transfer.
#[derive(Debug, clap::Args)]
pub struct OutputArguments {
    /// Print the outcome of each transfer as a JSON object; an end that prints a ticket or code begins with an object that holds it
    #[arg(long)]
    pub json: bool,
    /// Print only results and errors
    #[arg(long, short)]
    quiet: bool,
    /// Write this end's time series to this file, as JSON lines
    #[arg(long, value_name = "FILE")]
    series: Option<PathBuf>,
    /// Print more detail, such as each file's name and size once its content has arrived
    #[arg(long, short)]
    verbose: bool,
}

/// The exit code of a transfer in which some files failed; rsync uses the same.
const SOME_FAILED: u8 = 23;
const TICKET_VARIABLE: &str = "SWEETSPOT_TICKET";

pub fn ending(outcome: &TransferSummary) -> ExitCode {
    if outcome.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(SOME_FAILED) }
}

/// Whether an argument looks like a ticket.
pub fn is_ticket(argument: &OsStr) -> bool {
    let is_prefix = |(word, _): (&str, &str)| word.eq_ignore_ascii_case("sweetspot");
    argument.to_str().map(str::trim_ascii_start).is_some_and(|text| {
        text.contains(':') && text.split_at_checked("sweetspot".len()).is_some_and(is_prefix)
    })
}

/// The ticket from an argument, a file, or the environment.
fn ticket_from(argument: Option<&OsStr>, file: Option<&Path>) -> Fallible<Option<Ticket>> {
    let (text, source) = match (argument, file) {
        (Some(_), Some(_)) => {
            return Err(
                "two tickets were given: one as an argument, one with --ticket-file; give only one"
                    .into(),
            );
        }
        (Some(argument), None) => {
            let text = argument.to_string_lossy().into_owned();
            let source = text.clone();
            (text, source)
        }
        (None, Some(file)) => {
            (read_small(file, "--ticket-file")?, format!("--ticket-file {}", file.shown()))
        }
        (None, None) => match std::env::var(TICKET_VARIABLE) {
            Ok(text) => (text, TICKET_VARIABLE.to_owned()),
            Err(_) => return Ok(None),
        },
    };
    // Other text may follow the ticket's line, or the ticket may be split across several lines.
    let line = text.lines().next().unwrap_or_default().trim();
    match line.parse::<Ticket>().or_else(|error| text.parse().map_err(|_| error)) {
        Ok(ticket) => Ok(Some(ticket)),
        Err(_) if line.is_empty() && source.is_empty() => {
            Err("the ticket is empty; is a variable unset?".into())
        }
        Err(_) if line.is_empty() => {
            Err(format!("{source}: it is empty; expected a ticket").into())
        }
        Err(_) if line.parse::<CodeAddress>().is_ok() => {
            Err("this is a spoken code: give it with --code".into())
        }
        // A damaged ticket contains most of its secret, so it is not printed.
        Err(error @ TicketError::Prefix) => Err(format!("{source}: {error}").into()),
        Err(error) => Err(error.into()),
    }
}

/// Arguments that name the peer.
#[derive(Debug, clap::Args)]
pub struct ContactArguments {
    /// Read the ticket from this file (`-`: standard input), where other users cannot see it
    #[arg(long, value_name = "FILE", conflicts_with = "code")]
    ticket_file: Option<PathBuf>,
    /// Host and spoken code instead of a ticket, such as example.org/42-crisp-lemon-orbit; without PORT, 7411
    #[arg(long, value_name = "HOST[:PORT]/CODE")]
    code: Option<CodeAddress>,
    /// Private key that identifies you to a service, from `serve key` [default:
    /// ~/.config/sweetspot/identity.pem]
    #[arg(long, value_name = "FILE")]
    identity: Option<PathBuf>,
}

impl ContactArguments {
    /// The file with the ticket.
    pub fn ticket_file(&self) -> Option<&Path> {
        self.ticket_file.as_deref()
    }

    /// Whether an option or the environment names the peer, instead of a ticket argument.
    pub fn names_peer(&self) -> bool {
        self.code.is_some()
            || self.ticket_file.is_some()
            || std::env::var_os(TICKET_VARIABLE).is_some()
    }

    /// The peer from these arguments, the ticket argument `given`, or the environment.
    pub fn contact(&self, given: Option<&OsStr>) -> Fallible<Option<Contact>> {
        if let Some(code) = &self.code {
            return match given {
                Some(_) => {
                    Err(UsageError::new("a ticket and a --code were given; give only one").into())
                }
                None => Ok(Some(Contact::Code(code.clone()))),
            };
        }
        let ticket = ticket_from(given, self.ticket_file.as_deref()).map_err(UsageError::new)?;
        let Some(ticket) = ticket else {
            return Ok(None);
        };
        let is_own = matches!(ticket.proof, TicketProof::OwnKey);
        // A secret counts alone, but a script may name the key for tickets of both kinds.
        let is_needed = is_own || self.identity.is_some();
        let identity =
            is_needed.then(|| existing_identity(self.identity.as_deref())).transpose()?;
        let own = identity.filter(|_| is_own);
        Ok(Some(Contact::Ticket(Box::new(ticket), own)))
    }
}

/// Rejects standard input for more than one of `places`: only the first reader would get its content.
pub fn one_standard_input<'a>(places: impl Iterator<Item = &'a Path>) -> Result<(), UsageError> {
    let is_standard_input =
        |place: &&Path| [Path::new("-"), Path::new("/dev/stdin")].contains(place);
    match places.filter(is_standard_input).count() {
        0 | 1 => Ok(()),
        _ => Err(UsageError::new("standard input can be used only once; name a file instead")),
    }
}

/// The paths of `--files-from`, one per line, in any encoding.
pub fn files_from(file: &Path) -> Result<Vec<PathBuf>, String> {
    let bytes = read_bytes(file, "--files-from")?;
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    Ok(lines.map(|line| OsString::from_vec(line.to_vec()).into()).collect())
}

fn read_small(file: &Path, option: &str) -> Result<String, String> {
    let bytes = read_bytes(file, option)?;
    String::from_utf8(bytes).map_err(|_| format!("{option} {}: expected UTF-8 text", file.shown()))
}

fn read_bytes(file: &Path, option: &str) -> Result<Vec<u8>, String> {
    text_file::read_any_size(file).map_err(|error| {
        let (file, why) = (file.shown(), system(&error));
        format!("{option} {file}: {why}; check the path and its permissions")
    })
}

/// Reports on transfers: progress and messages on standard error, JSON on standard output.
pub struct TransferReporter {
    /// Whether existing files are left unchanged, whatever their content.
    pub leaves_existing: bool,
    /// The sender's own rate limit. The time that its packets wait for their turn is not part of the path's RTT.
    pub rate_limit: Option<Rate>,
    /// Whether a peer at a loopback address is this program or an ssh tunnel. Its address, RTT and retransmissions are then not
    /// the path's.
    pub relays_loopback: bool,
    series: Option<Arc<Mutex<LineWriter<File>>>>,
    screen: ProgressScreen,
    json: bool,
    verbose: bool,
    quiet: bool,
    path: Arc<Mutex<PathState>>,
}

impl OutputArguments {
    /// Creates a reporter as these arguments request.
    pub fn reporter(&self, hint_verb: HintVerb) -> Result<TransferReporter, String> {
        let &OutputArguments { json, quiet, ref series, verbose } = self;
        let open = |path: &PathBuf| {
            let file = File::create(path).map_err(|e| {
                let (path, why) = (path.shown(), system(&e));
                format!("{path}: {why}; give --series a file that you may write to")
            })?;
            Ok::<_, String>(Arc::new(Mutex::new(LineWriter::new(file))))
        };
        if series.as_ref().is_some_and(|path| path.as_os_str() == "-") {
            return Err(
                "--series -: standard output is for results; name a file (./- is a file called -)"
                    .into(),
            );
        }
        let series = series.as_ref().map(open).transpose()?;
        let bars = (std::io::stderr().is_terminal() && !quiet).then(MultiProgress::new);
        let screen = ProgressScreen { bars, hint_verb };
        Ok(TransferReporter {
            leaves_existing: false,
            rate_limit: None,
            relays_loopback: false,
            series,
            screen,
            json,
            verbose,
            quiet,
            path: Arc::default(),
        })
    }
}

impl TransferReporter {
    pub fn observer(&self, number: u64) -> Box<dyn TransferObserver> {
        self.observer_of(number, None)
    }

    /// The observer for a transfer of `client`, given by name and address.
    pub fn observer_of(&self, number: u64, client: Option<String>) -> Box<dyn TransferObserver> {
        let (series, screen) = (self.series.clone(), self.screen.clone());
        let (verbose, quiet, relays_loopback) = (self.verbose, self.quiet, self.relays_loopback);
        let rate_limit = self.rate_limit;
        let path = Arc::clone(&self.path);
        let progress = None;
        Box::new(Watching {
            series,
            screen,
            verbose,
            quiet,
            relays_loopback,
            rate_limit,
            number,
            client,
            progress,
            path,
        })
    }

    /// `outcome` without an RTT and retransmissions that do not belong to the path.
    fn of_the_path(&self, outcome: &TransferSummary) -> TransferSummary {
        let peer = outcome.peer.parse::<SocketAddr>();
        let relayed = self.relays_loopback && peer.is_ok_and(|peer| peer.ip().is_loopback());
        let segments = outcome.retransmitted_segments.filter(|_| !relayed);
        let shows_rtt = !relayed && self.rate_limit.is_none();
        TransferSummary {
            rtt_min_s: outcome.rtt_min_s.filter(|_| shows_rtt),
            rtt_median_s: outcome.rtt_median_s.filter(|_| shows_rtt),
            retransmitted_segments: segments,
            window_final_bytes: outcome.window_final_bytes.filter(|_| !relayed),
            ..outcome.clone()
        }
    }

    /// The state of the path since the last call.
    pub fn take_path(&self) -> PathState {
        std::mem::take(&mut *self.path.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Notes that the path broke, and that the last data arrived at `since`.
    pub fn lost(&self, since: Time) {
        self.path.lock().unwrap_or_else(PoisonError::into_inner).lost = Some(since);
    }

    /// Whether JSON goes to standard output.
    pub fn prints_json(&self) -> bool {
        self.json
    }

    pub fn print(&self, line: &str) {
        self.screen.print(line);
    }

    /// On Ctrl-C, prints the consequence for the transfer.
    pub fn print_when_interrupted(&self) {
        if !self.quiet {
            let begin = if self.screen.bars.is_some() { "\n" } else { "" };
            signals::print_when_interrupted(format!(
                "{begin}sweetspot: interrupted; received data is kept, and the same command transfers the rest\n"
            ));
        }
    }

    /// Prints a line unless only errors are wanted.
    pub fn remark(&self, line: &str) {
        if !self.quiet {
            self.print(line);
        }
    }

    /// Prints a line if more detail is wanted.
    pub fn detail(&self, line: &str) {
        if self.verbose {
            self.print(line);
        }
    }

    /// Lists the files that a dry run would transfer.
    pub fn would(&self, verb: &str, outcome: &TransferSummary) {
        for file in &outcome.would_move {
            self.list(&format!("would {verb} {file}"));
        }
    }

    /// Prints a line of a dry run's result; with `--json`, the object is the result instead.
    pub fn list(&self, line: &str) {
        if self.json {
            self.print(line);
        } else {
            self.screen.without_progress_bar(|| out!("{line}"));
        }
    }

    /// Prints the outcome of a transfer. Returns false if writing to standard output failed.
    pub fn outcome(&self, outcome: &TransferSummary) -> bool {
        let failures = outcome
            .failures
            .iter()
            .map(|line| with_options(line, self.screen.hint_verb).into_owned())
            .collect();
        let outcome = &TransferSummary { failures, ..outcome.clone() };
        let printed = !self.json || self.json(outcome);
        let label = outcome.client.as_ref().map(|client| format!("{client} at {}: ", outcome.peer));
        let label = label.unwrap_or_default();
        if !self.json && !self.quiet {
            let outcome = self.of_the_path(outcome);
            let words = in_words(&outcome, self.leaves_existing, self.rate_limit);
            self.print(&format!("{label}{words}"));
        }
        self.failed_entries(&label, &outcome.failures, outcome.files.failed);
        if let Some(line) = skipped(&outcome.skipped).filter(|_| !self.quiet) {
            self.print(&line);
        }
        if let Some(line) = special_bits(outcome.special_bits_dropped).filter(|_| !self.quiet) {
            self.print(&line);
        }
        for name in outcome.grown.iter().filter(|_| !self.quiet) {
            self.print(&format!(
                "{name} grew during the transfer and arrived with its length at the start"
            ));
        }
        for limit in outcome.limits.iter().filter(|_| !self.quiet) {
            self.print(&limit.to_string());
        }
        printed
    }

    /// Prints an object. If writing to standard output fails, prints the reason and returns false.
    fn json(&self, value: &impl serde::Serialize) -> bool {
        let print = || match serde_json::to_string(value) {
            Ok(text) => try_out(format_args!("{text}")),
            Err(error) => Err(error.to_string()),
        };
        let printed = self.screen.without_progress_bar(print);
        if let Err(error) = &printed {
            self.print(error);
        }
        printed.is_ok()
    }
}

/// Standard error, with progress bars if they are shown.
#[derive(Clone)]
struct ProgressScreen {
    bars: Option<MultiProgress>,
    /// The verb that prints hints.
    hint_verb: HintVerb,
}

impl ProgressScreen {
    /// Prints a line above the bars.
    fn print(&self, line: &str) {
        let line = with_options(line, self.hint_verb);
        self.without_progress_bar(|| err!("sweetspot: {line}"));
    }

    /// Calls `write` while no progress bar is drawn.
    fn without_progress_bar<R>(&self, write: impl FnOnce() -> R) -> R {
        match &self.bars {
            Some(bars) => bars.suspend(write),
            None => write(),
        }
    }
}
