use std::fmt;
use std::io::{IsTerminal, Write, stderr};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use sweetspot_report as report;

use super::{TransferStatus, VariantRunner};

/// Shows a transfer's progress on standard error: a bar on a terminal, else a line at its start and
/// one at its end.
pub struct Ticker {
    name: String,
    bar: ProgressBar,
}

impl Ticker {
    /// Announces the transfer called `name`.
    pub fn new(name: &str, runner: &VariantRunner<'_>) -> Ticker {
        if !stderr().is_terminal() {
            status(format_args!("{name}: running"));
        }
        // The path delivers headers as well.
        let on_the_wire = runner.content.size.as_f64() / runner.path.payload_share();
        let bar = ProgressBar::with_draw_target(
            Some(on_the_wire as u64),
            ProgressDrawTarget::stderr_with_hz(10),
        );
        // The template is a constant that parses; without it the bar only looks plainer.
        if let Ok(style) =
            ProgressStyle::with_template("{prefix:24} {bar:24} {percent:>3} %  {elapsed:>4}  {msg}")
        {
            bar.set_style(style);
        }
        bar.set_prefix(name.to_owned());
        Ticker { name: name.to_owned(), bar }
    }

    /// Shows the transfer's progress.
    pub fn show(&self, now: &TransferStatus) {
        self.bar.set_position(now.delivered.get());
        self.bar.set_message(format!("{}, queue {}", now.delivered / now.elapsed, now.queue));
    }

    /// The transfer has ended.
    pub fn finish(self, row: &report::VariantOutcome) {
        self.bar.finish_and_clear();
        match (&row.failure, row.duration, row.goodput) {
            (Some(why), ..) => status(format_args!("{}: failed: {why}", self.name)),
            (None, Some(duration), Some(goodput)) => {
                let seconds = duration.as_secs_f64();
                status(format_args!("{}: {seconds:.1} s, {goodput}", self.name));
            }
            _ => {}
        }
    }
}

/// A line on standard error; lost if that cannot be written.
fn status(words: fmt::Arguments<'_>) {
    let _ = writeln!(stderr().lock(), "{words}");
}
