//! What `serve` and `send` share: the path as typed, and reporting on a transfer.

use std::fs::File;
use std::io::{LineWriter, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use sweetspot_sizing::KnownPath;
use sweetspot_transfer::series::Line;
use sweetspot_transfer::{Observer, Opened, Outcome, TransferError};
use sweetspot_units::{Bytes, Duration, Rate};

/// A path that is known beforehand, as typed.
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

/// One line on standard error.
pub fn say(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "sweetspot: {line}");
}

/// What a transfer came to: JSON on standard output if asked for, else words on standard error.
pub fn print_outcome(outcome: &Outcome, json: bool) {
    if json {
        let _ = print_json(outcome);
        return;
    }
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
        line += &format!(", median RTT {}", Duration::from_secs_f64(rtt));
    }
    say(&line);
    for limit in &outcome.limits {
        say(limit);
    }
}

/// A failed transfer, for programs.
pub fn print_failure(error: &TransferError, json: bool) {
    if json {
        let _ = print_json(&serde_json::json!({ "error": error.to_string() }));
    }
}

fn print_json(value: &impl serde::Serialize) -> std::io::Result<()> {
    let mut stdout = std::io::stdout().lock();
    serde_json::to_writer(&mut stdout, value)?;
    writeln!(stdout)?;
    stdout.flush()
}

/// Reports on transfers while they run.
pub struct Watch {
    series: Option<Arc<Mutex<LineWriter<File>>>>,
    verbose: bool,
}

impl Watch {
    /// Writes series to `series` if given.
    pub fn new(series: Option<&Path>, verbose: bool) -> Result<Watch, String> {
        let open = |path: &Path| {
            let file = File::create(path).map_err(|e| {
                format!("{}: {e}; give --series a file that you may write", path.display())
            })?;
            Ok::<_, String>(Arc::new(Mutex::new(LineWriter::new(file))))
        };
        Ok(Watch { series: series.map(open).transpose()?, verbose })
    }

    /// An observer for the transfer of this number.
    pub fn observer(&self, number: u64) -> Box<dyn Observer> {
        Box::new(Watching { series: self.series.clone(), verbose: self.verbose, number })
    }
}

struct Watching {
    series: Option<Arc<Mutex<LineWriter<File>>>>,
    verbose: bool,
    number: u64,
}

/// A line of the series with the number of its transfer, because a server has many at once.
#[derive(serde::Serialize)]
struct Numbered<'a> {
    transfer: u64,
    #[serde(flatten)]
    line: &'a Line,
}

impl Observer for Watching {
    fn opened(&mut self, opened: &Opened) {
        say(&format!(
            "{}: {} with {}, sizing {}",
            opened.name, opened.size, opened.peer, opened.sizing
        ));
    }

    fn line(&mut self, line: &Line) {
        if let Some(series) = &self.series {
            let mut series = series.lock().unwrap_or_else(PoisonError::into_inner);
            let numbered = Numbered { transfer: self.number, line };
            if serde_json::to_writer(&mut *series, &numbered).is_ok() {
                let _ = writeln!(series);
            }
        }
    }

    fn note(&mut self, note: &str) {
        if self.verbose {
            say(note);
        }
    }
}
