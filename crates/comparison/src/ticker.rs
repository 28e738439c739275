use std::fmt;
use std::io::{IsTerminal, Write, stderr};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use sweetspot_report as report;

use super::{TransferStatus, VariantRunner};

/// Shows a transfer's progress on standard error: on a terminal an updated line, otherwise a line at the start
/// and one at the end.
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
        // The path also delivers headers.
        let on_the_wire = runner.content.size.as_f64() / runner.path.payload_share();
        let bar = ProgressBar::with_draw_target(
            Some(on_the_wire as u64),
            ProgressDrawTarget::stderr_with_hz(10),
        );
        style(&bar, name);
        Ticker { name: name.to_owned(), bar }
    }

    /// Shows the transfer's progress.
    pub fn show(&self, now: &TransferStatus) {
        self.bar.set_position(now.delivered.get());
        self.bar.set_message(facts(now));
    }

    /// Shows that the transfer has ended.
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

/// The message gets the columns that the other parts leave. A line that is one column too wide would wrap.
const LINE: &str = "{prefix:21!} {percent:>3} % in {elapsed}, {wide_msg}";

fn style(bar: &ProgressBar, name: &str) {
    // The template is a valid constant; if it failed, the bar would only look plainer.
    if let Ok(style) = ProgressStyle::with_template(LINE) {
        bar.set_style(style);
    }
    bar.set_prefix(name.to_owned());
}

fn facts(now: &TransferStatus) -> String {
    format!("{}, queue {}", now.delivered / now.elapsed, now.queue)
}

/// Prints a line on standard error; failures are ignored.
fn status(words: fmt::Arguments<'_>) {
    let _ = writeln!(stderr().lock(), "{words}");
}

#[cfg(test)]
mod tests {
    use sweetspot_testing::terminal::LineTerminal;
    use sweetspot_units::{Bytes, Duration};

    use super::*;

    #[test]
    fn progress_fits_one_line_and_shows_all_facts_from_60_columns() {
        for width in [40, 60, 80, 120] {
            let terminal = LineTerminal::new(width);
            let bar = ProgressBar::with_draw_target(Some(100), terminal.target());
            style(&bar, "5/5 sobas:paper+cubic");
            bar.set_position(50);
            // 12.5 MB per second are 100 Mbit/s.
            let status = TransferStatus {
                delivered: Bytes::new(12_500_000),
                elapsed: Duration::from_secs(1),
                queue: Bytes::new(125_000),
            };
            bar.set_message(facts(&status));
            bar.force_draw();
            let line = terminal.line();
            assert!(terminal.columns() <= usize::from(width), "{width}: {line}");
            assert!(line.starts_with("5/5 sobas:paper+cubic  50 % in 0s, "), "{width}: {line}");
            let has_facts = line.contains("100 Mbit/s, queue 125 kB");
            assert!(has_facts || width < 60, "{width}: {line}");
        }
    }
}
