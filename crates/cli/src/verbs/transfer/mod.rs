//! What `serve` and `send` share: the path arguments, and reporting on a transfer.

mod progress;

use std::fs::File;
use std::io::{IsTerminal, LineWriter, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use indicatif::MultiProgress;
use sweetspot_protocol::TransferSummary;
use sweetspot_protocol::series::SeriesRecord;
use sweetspot_sizing::KnownPath;
use sweetspot_transfer::{Agreed, TransferError, TransferObserver};
use sweetspot_units::{Bytes, Duration, Rate};

use crate::print::try_out;
use progress::TransferProgress;

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
    /// The path, if both of its numbers were given.
    pub fn resolve(&self) -> Result<Option<KnownPath>, &'static str> {
        match (self.path_rate, self.path_rtt) {
            (Some(rate), Some(rtt)) if rate > Rate::ZERO && rtt > Duration::ZERO => {
                Ok(Some(KnownPath::new(rate, rtt)))
            }
            (None, None) => Ok(None),
            (Some(_), Some(_)) => Err("--path-rate and --path-rtt must be more than zero"),
            _ => Err("--path-rate and --path-rtt belong together; give both or none"),
        }
    }
}

/// The outcome of a transfer in words.
fn in_words(outcome: &TransferSummary) -> String {
    let rate = Rate::from_f64(outcome.goodput_bps);
    let mut line = format!(
        "{}: {} in {:.2} s, {rate}, sizing {}",
        outcome.name,
        Bytes::new(outcome.bytes),
        outcome.seconds,
        outcome.sizing
    );
    if let (Some(congestion), Some(n)) = (&outcome.congestion, outcome.retransmitted_segments) {
        line += &format!(", {congestion}, {n} segments retransmitted");
    }
    if let Some(rtt) = outcome.rtt_median_s {
        line += &format!(", median RTT {}", Duration::from_micros((rtt * 1e6) as u64));
    }
    line
}

/// Reports on transfers: progress and words on standard error, JSON on standard output.
pub struct TransferReporter {
    series: Option<Arc<Mutex<LineWriter<File>>>>,
    bars: Option<MultiProgress>,
    json: bool,
    verbose: bool,
}

impl TransferReporter {
    /// Writes series to `series` if given, outcomes as JSON if asked, and detail if `verbose`.
    pub fn new(
        series: Option<&Path>,
        json: bool,
        verbose: bool,
    ) -> Result<TransferReporter, String> {
        let open = |path: &Path| {
            let file = File::create(path).map_err(|e| {
                format!("{}: {e}; give --series a file that you may write", path.display())
            })?;
            Ok::<_, String>(Arc::new(Mutex::new(LineWriter::new(file))))
        };
        let bars = std::io::stderr().is_terminal().then(MultiProgress::new);
        Ok(TransferReporter { series: series.map(open).transpose()?, bars, json, verbose })
    }

    /// An observer of transfer `number`.
    pub fn observer(&self, number: u64) -> Box<dyn TransferObserver> {
        let (series, bars) = (self.series.clone(), self.bars.clone());
        Box::new(Watching { series, bars, verbose: self.verbose, number, progress: None })
    }

    /// Prints a line.
    pub fn print(&self, line: &str) {
        print(self.bars.as_ref(), line);
    }

    /// Prints a line if detail is wanted.
    pub fn detail(&self, line: &str) {
        if self.verbose {
            self.print(line);
        }
    }

    /// Prints the outcome of a transfer.
    pub fn outcome(&self, outcome: &TransferSummary) {
        if self.json {
            self.json(outcome);
        } else {
            self.print(&in_words(outcome));
        }
        for limit in &outcome.limits {
            self.print(limit);
        }
    }

    /// Prints the failure of a transfer as JSON, if wanted.
    pub fn failure(&self, error: &TransferError) {
        if self.json {
            self.json(&serde_json::json!({ "error": error.to_string() }));
        }
    }

    fn json(&self, value: &impl serde::Serialize) {
        let print = || match serde_json::to_string(value) {
            Ok(text) => try_out(format_args!("{text}")),
            Err(error) => Err(error.to_string()),
        };
        let printed = match &self.bars {
            Some(bars) => bars.suspend(print),
            None => print(),
        };
        // The file has arrived or not, whatever becomes of the words about it.
        if let Err(error) = printed {
            self.print(&error);
        }
    }
}

struct Watching {
    series: Option<Arc<Mutex<LineWriter<File>>>>,
    bars: Option<MultiProgress>,
    verbose: bool,
    number: u64,
    progress: Option<TransferProgress>,
}

/// A line of the series with the number of its transfer, because a server has many at once.
#[derive(serde::Serialize)]
struct NumberedRow<'a> {
    transfer: u64,
    #[serde(flatten)]
    line: &'a SeriesRecord,
}

impl TransferObserver for Watching {
    fn opened(&mut self, opened: &Agreed) {
        let Agreed { peer, name, size, sizing } = opened;
        print(self.bars.as_ref(), &format!("{name}: {size} with {peer}, sizing {sizing}"));
        self.progress = Some(TransferProgress::new(opened, self.bars.as_ref()));
    }

    fn line(&mut self, line: &SeriesRecord) {
        if let Some(series) = &self.series {
            let numbered = NumberedRow { transfer: self.number, line };
            if let Ok(mut text) = serde_json::to_vec(&numbered) {
                text.push(b'\n');
                // A series that cannot be written must not end the transfer.
                let _ = series.lock().unwrap_or_else(PoisonError::into_inner).write_all(&text);
            }
        }
        if let (SeriesRecord::Row(row), Some(progress)) = (line, &mut self.progress)
            && let Some(text) = progress.row(row)
        {
            print(self.bars.as_ref(), &text);
        }
    }

    fn note(&mut self, note: &str) {
        if self.verbose {
            print(self.bars.as_ref(), note);
        }
    }
}

/// Prints a line on standard error, above the progress bars if there are any.
fn print(bars: Option<&MultiProgress>, line: &str) {
    let print = || err!("sweetspot: {line}");
    match bars {
        Some(bars) => bars.suspend(print),
        None => print(),
    }
}
