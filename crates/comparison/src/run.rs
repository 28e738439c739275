//! One transfer: a fresh path, a receiver on the far side, and a sender on the near side.

use std::fs;
use std::path::Path;
use std::process::Command;

use sweetspot_control::TransferSummary;
use sweetspot_emulator::{Emulation, PathSample};
use sweetspot_linux::{clock, sysctl};
use sweetspot_path::PathSpec;
use sweetspot_report as report;
use sweetspot_sizing::Sizing;
use sweetspot_units::{Bytes, Duration};

use super::ComparisonError;
use super::certify::certificate;
use super::content::{self, Content};
use super::program::Program;
use super::summary::{self, TransferTraces};
use super::variant::Variant;

/// Progress of a transfer.
pub struct TransferStatus {
    /// Time since it began.
    pub elapsed: Duration,
    /// IP bytes that the path has delivered to the receiver.
    pub delivered: Bytes,
    /// Bytes in the bottleneck's buffer.
    pub queue: Bytes,
}

/// Runs variants on one path.
pub struct VariantRunner<'a> {
    /// The path; each transfer gets a fresh one.
    pub path: &'a PathSpec,
    /// The file to transfer.
    pub content: &'a Content,
    /// A directory for temporary files.
    pub scratch: &'a Path,
    /// The `sweetspot` program.
    pub program: &'a Path,
}

/// Interval between samples of a running transfer.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(50);
/// Time limit for a receiver to print its ticket.
const LISTEN_TIMEOUT: Duration = Duration::from_secs(15);

impl VariantRunner<'_> {
    /// The reason why this machine cannot run `variant`, with the next step; `None` if it can.
    pub fn obstacle(variant: &Variant) -> Option<ComparisonError> {
        refuse_missing_congestion_control(&variant.congestion).err()
    }

    /// Transfers the file with `variant`, and returns the result. A failure is a result, too.
    pub fn run(
        &self,
        variant: &Variant,
        progress: &mut dyn FnMut(&TransferStatus),
    ) -> report::VariantOutcome {
        let mut row =
            report::VariantOutcome::new(variant.sizing.to_string(), variant.congestion.clone());
        let inbox = self.scratch.join("received");
        let outcome = refuse_missing_congestion_control(&variant.congestion)
            .and_then(|()| Ok(fs::create_dir(&inbox)?))
            .and_then(|()| self.transfer(variant, &inbox, &mut row, progress));
        row.failure = outcome.err().map(|error| error.to_string());
        // The received files have been checked; the next variant needs the space.
        let _ = fs::remove_dir_all(&inbox);
        row
    }

    fn transfer(
        &self,
        variant: &Variant,
        inbox: &Path,
        row: &mut report::VariantOutcome,
        progress: &mut dyn FnMut(&TransferStatus),
    ) -> Result<(), ComparisonError> {
        let emulation = Emulation::start(self.path)?;
        let moved = self.move_file(&emulation, variant, inbox, progress);
        let certified = emulation.finish()?;
        row.bottleneck_drops = Some(certified.up.dropped_by_buffer);
        row.certificate = Some(certificate(&certified));
        let traces = moved?;
        summary::fill(row, &traces, self.path);
        let arrived = inbox.join(traces.receiver.name.raw());
        let hash = content::hash(&arrived)
            .map_err(|source| ComparisonError::Arrived { path: arrived, source })?;
        row.hash_ok = hash == self.content.hash;
        if row.hash_ok { Ok(()) } else { Err(ComparisonError::Differs) }
    }

    fn move_file(
        &self,
        emulation: &Emulation,
        variant: &Variant,
        inbox: &Path,
        progress: &mut dyn FnMut(&TransferStatus),
    ) -> Result<TransferTraces, ComparisonError> {
        let series = self.scratch.join("series");
        let mut serve =
            Program::start(emulation.far(), &mut self.serve(emulation, inbox, &series))?;
        let ticket = match wait_for_ticket(&mut serve) {
            Some(ticket) => ticket,
            None => {
                return Err(serve.stop().map_or(ComparisonError::Silent, ComparisonError::Program));
            }
        };
        let mut send = Program::start(emulation.near(), &mut self.send(variant, &ticket))?;
        let samples = self.watch(emulation, &mut send, progress)?;
        let sent = match send.finish() {
            Ok(lines) => lines,
            Err(why) => {
                let _ = serve.stop();
                return Err(why);
            }
        };
        let received = serve.finish()?;
        let series = fs::read_to_string(&series).map_err(ComparisonError::Series)?;
        Ok(TransferTraces {
            sender: outcome("sender", &sent)?,
            receiver: outcome("receiver", &received)?,
            series,
            path: samples,
        })
    }

    fn serve(&self, emulation: &Emulation, inbox: &Path, series: &Path) -> Command {
        let mut command = Command::new(self.program);
        command.args(["serve", "--once", "--json", "--listen"]);
        command.arg(format!("{}:0", emulation.far().address()));
        command.arg("--dir").arg(inbox).arg("--series").arg(series);
        command
    }

    fn send(&self, variant: &Variant, ticket: &str) -> Command {
        let mut command = Command::new(self.program);
        command.args(["send", "--json", "--sizing", &variant.sizing.to_string()]);
        if variant.sizing == Sizing::Bdp {
            let (rate, rtt) = (self.path.up.rate.bits_per_second(), self.path.rtt().as_nanos());
            command.args([
                "--path-rate",
                &format!("{rate}bit/s"),
                "--path-rtt",
                &format!("{rtt}ns"),
            ]);
        }
        command.args(["--congestion", &variant.congestion]);
        if variant.may_switch {
            command.arg("--may-switch");
        }
        command.arg(&self.content.path).arg(ticket);
        command
    }

    /// Watches the path until the sender ends, at most for the time of a transfer at a fiftieth of
    /// the path's rate.
    fn watch(
        &self,
        emulation: &Emulation,
        send: &mut Program,
        progress: &mut dyn FnMut(&TransferStatus),
    ) -> Result<Vec<PathSample>, ComparisonError> {
        let started = clock::now();
        let at_best = self.content.size / self.path.payload_capacity();
        let limit = LISTEN_TIMEOUT + at_best * 50;
        let mut samples = emulation.observe();
        while send.ended().is_none() {
            let elapsed = clock::now().since(started);
            if elapsed > limit {
                return Err(ComparisonError::TooSlow(limit));
            }
            clock::sleep_until(clock::now() + SAMPLE_INTERVAL);
            samples.extend(emulation.observe());
            if let Some(last) = samples.last() {
                let (delivered, queue) = (last.up.delivered, last.up.backlog);
                progress(&TransferStatus { elapsed, delivered, queue });
            }
        }
        samples.extend(emulation.observe());
        Ok(samples)
    }
}

fn wait_for_ticket(serve: &mut Program) -> Option<String> {
    let until = clock::now() + LISTEN_TIMEOUT;
    while clock::now() < until && serve.ended().is_none() {
        let words = serve.printed().iter().flat_map(|line| line.split('"'));
        if let Some(ticket) =
            words.flat_map(str::split_whitespace).find(|w| w.starts_with("sweetspot1:"))
        {
            return Some(ticket.to_owned());
        }
        clock::sleep_until(clock::now() + Duration::from_millis(10));
    }
    None
}

/// The last object printed by `--json`.
fn outcome(end: &'static str, lines: &[String]) -> Result<TransferSummary, ComparisonError> {
    let last = lines.iter().rfind(|line| line.starts_with('{')).map_or("", String::as_str);
    serde_json::from_str(last).map_err(|source| ComparisonError::NoReport { end, source })
}

fn refuse_missing_congestion_control(name: &str) -> Result<(), ComparisonError> {
    // If the list cannot be read, assume that it is available.
    if sysctl::offers_congestion_control(name).unwrap_or(true) {
        return Ok(());
    }
    let available = sysctl::available_congestion_controls().unwrap_or_default();
    Err(ComparisonError::Congestion { name: name.to_owned(), available })
}
