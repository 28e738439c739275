//! Progress of a transfer: a bar on a terminal, otherwise a plain line every few seconds.

use std::time::Duration as StdDuration;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use ratatui::crossterm::terminal;
use sweetspot_control::series::SeriesRow;
use sweetspot_program::print::{GAP, whole_parts};
use sweetspot_transfer::{Agreed, Progress};
use sweetspot_units::{Bytes, Duration, Rate};

/// Interval between plain lines, in seconds.
const LINE_INTERVAL_S: f64 = 5.0;
/// The line with a bar. A wrapped line would be redrawn below itself, so `wide_msg` truncates it.
const BAR: &str = "{prefix} [{bar:6}] {percent:>3} %  {wide_msg}";
/// The line without a bar, if the total length is unknown, as for a pipe.
const NO_BAR: &str = "{prefix}  {wide_msg}";
/// Columns between the name and the details.
const BAR_COLUMNS: usize = 17;
/// Time without data, in seconds, after which the line says so instead of a rate.
const SILENCE_S: f64 = 5.0;
/// The assumed width of a terminal that does not report it; `indicatif` assumes the same.
const UNKNOWN_COLUMNS: usize = 80;
/// The longest name before a bar, so that rate and state still fit into 60 columns.
const NAME_COLUMNS: usize = 14;
/// The length of the longest phase name, `measuring`.
const STATE_COLUMNS: usize = 9;
/// Share of the newest row in the running average of the rate: with 20 rows per second, it averages over about a
/// second.
const RATE_AVERAGE_GAIN: f64 = 0.05;

pub struct TransferProgress {
    name: String,
    /// The total size of all files, once known.
    size: Option<Bytes>,
    /// The number of complete files, and the total if known, if there is more than one.
    files: Option<(u64, Option<u64>)>,
    /// The running average of the rate, and the number of its rows since the first content.
    rate: (f64, u32),
    /// Bytes of content that need not be sent, because the receiver already has them.
    present: u64,
    /// The bytes moved so far, and the time since which their number has not changed.
    moved: (u64, f64),
    /// The last RTT, in seconds, and the last window of any row: a value that was shown stays.
    rtt_s: Option<f64>,
    window_bytes: Option<u64>,
    shown: Shown,
    /// Reads the terminal's width, which may change.
    columns: fn() -> Option<u16>,
}

enum Shown {
    Bar(ProgressBar),
    Lines { next_at_s: f64 },
}

impl TransferProgress {
    /// The progress of a transfer that has just begun: a bar among `bars` if there is a terminal.
    pub fn new(opened: &Agreed, bars: Option<&MultiProgress>) -> TransferProgress {
        let shown = match bars {
            Some(bars) => {
                let bar = bars.add(ProgressBar::new(opened.size.map_or(0, Bytes::get)));
                bar.set_style(style(if opened.size.is_some() { BAR } else { NO_BAR }));
                bar.set_prefix(shortened(&opened.name.to_string()));
                Shown::Bar(bar)
            }
            None => Shown::Lines { next_at_s: LINE_INTERVAL_S },
        };
        let name = opened.name.to_string();
        let (size, columns) = (opened.size, terminal_columns);
        let moved = (0, 0.0);
        TransferProgress {
            name,
            size,
            files: None,
            rate: (0.0, 0),
            present: 0,
            moved,
            rtt_s: None,
            window_bytes: None,
            shown,
            columns,
        }
    }

    /// Notes the number of complete files, and the content already present, for the next row.
    pub fn files(&mut self, progress: &Progress) {
        self.present = progress.present.get();
        if let Some((files, bytes)) = progress.totals {
            self.size = Some(bytes);
            if let Shown::Bar(bar) = &self.shown {
                bar.set_length(bytes.get());
            }
            // A receiver also counts directories with a changed mode.
            self.files = (files > 1).then_some((progress.files.min(files), Some(files)));
        } else if progress.files > 0 {
            self.files = Some((progress.files, None));
        }
    }

    /// Shows the newest row; without a bar, it returns a line to print.
    pub fn row(&mut self, row: &SeriesRow) -> Option<String> {
        let (mut rate, mut rows) = self.rate;
        if row.goodput_bps > 0.0 || rows > 0 {
            rows = rows.saturating_add(1);
            // At first, the mean of all rows, so that each has the same weight.
            rate += RATE_AVERAGE_GAIN.max(1.0 / f64::from(rows)) * (row.goodput_bps - rate);
        }
        self.rate = (rate, rows);
        let row = &SeriesRow { bytes: row.bytes + self.present, ..row.clone() };
        if row.bytes != self.moved.0 {
            self.moved = (row.bytes, row.t_s);
        }
        let silent_s = row.t_s - self.moved.1;
        self.rtt_s = row.rtt_s.or(self.rtt_s);
        // The window is 0 before the first sample.
        self.window_bytes = row.window_bytes.filter(|window| *window > 0).or(self.window_bytes);
        let (rtt_s, window_bytes) = (self.rtt_s, self.window_bytes);
        let known = SeriesRow { rtt_s, window_bytes, ..row.clone() };
        // The length of a pipe is given as zero, and a file may have grown.
        let size = self.size.filter(|size| *size >= Bytes::new(row.bytes.max(1)));
        let facts = match silent_s >= SILENCE_S {
            true => vec![format!("no data for {silent_s:.0} s")],
            false => describe(&known, size, self.files, Rate::from_f64(rate)),
        };
        let state = row.phase.as_deref().filter(|_| silent_s < SILENCE_S);
        match &mut self.shown {
            Shown::Bar(bar) => {
                let name = bar.prefix().chars().count();
                let columns = (self.columns)().map_or(UNKNOWN_COLUMNS, usize::from);
                let room = |reserved: usize| columns.saturating_sub(name + reserved);
                if size.is_some() {
                    bar.set_style(style(BAR));
                    bar.set_position(row.bytes);
                    bar.set_message(fitted(&facts, state, room(BAR_COLUMNS)));
                } else {
                    bar.set_style(style(NO_BAR));
                    let bytes = Bytes::new(row.bytes);
                    let moved = [vec![format!("{bytes:>8}")], facts].concat();
                    bar.set_message(fitted(&moved, state, room(GAP.len())));
                }
                None
            }
            Shown::Lines { next_at_s } if row.t_s >= *next_at_s => {
                *next_at_s = row.t_s + LINE_INTERVAL_S;
                let done = match size {
                    Some(size) => format!("{:>3.0} %", 100.0 * row.bytes as f64 / size.as_f64()),
                    None => Bytes::new(row.bytes).to_string(),
                };
                let line = fitted(&facts, state, usize::MAX);
                Some(format!("{}: {done}  {line}", self.name))
            }
            Shown::Lines { .. } => None,
        }
    }
}

impl Drop for TransferProgress {
    fn drop(&mut self) {
        if let Shown::Bar(bar) = &self.shown {
            bar.finish_and_clear();
        }
    }
}

fn style(template: &str) -> ProgressStyle {
    let style =
        ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    style.progress_chars("=> ")
}

/// A name shortened to fit the line. Its end is kept, because that distinguishes files.
fn shortened(name: &str) -> String {
    let letters = name.chars().count();
    if letters <= NAME_COLUMNS {
        return name.to_owned();
    }
    let end: String = name.chars().skip(letters + 1 - NAME_COLUMNS).collect();
    format!("…{end}")
}

/// As many whole `facts` as fit into `columns`, then the window's `state`, which takes precedence over the last facts.
fn fitted(facts: &[String], state: Option<&str>, columns: usize) -> String {
    // Reserves room for any state, so that facts do not appear and disappear with it.
    let room = columns.saturating_sub(GAP.len() + STATE_COLUMNS);
    // The most important fact comes first.
    match (whole_parts(facts, room), state) {
        (line, _) if line.is_empty() => whole_parts(facts, columns),
        (line, Some(state)) => line + GAP + state,
        (line, None) => line,
    }
}

/// Rate, time left, files, window and RTT as far as known, the most important first. Each has a fixed width.
fn describe(
    row: &SeriesRow,
    size: Option<Bytes>,
    files: Option<(u64, Option<u64>)>,
    rate: Rate,
) -> Vec<String> {
    // Before the first content, as at the start of a resumed transfer, there is no rate.
    let shown = if rate > Rate::ZERO { rate.to_string() } else { "-".to_owned() };
    let mut facts = vec![format!("{shown:>12}")];
    facts.extend(size.map(|size| {
        let left = size.saturating_sub(Bytes::new(row.bytes));
        let left = if rate > Rate::ZERO { left / rate } else { Duration::ZERO };
        // Rounded up, so that it is never zero before the end.
        match left.as_nanos().div_ceil(1_000_000_000) {
            0 => "eta   -".to_owned(),
            seconds => {
                let left = indicatif::HumanDuration(StdDuration::from_secs(seconds));
                format!("eta {:>3}", format!("{left:#}"))
            }
        }
    }));
    facts.extend(files.map(|(done, all)| match all {
        Some(all) => format!("{done:>width$} of {all} files", width = all.to_string().len()),
        None => format!("{done} files"),
    }));
    let window = row.window_bytes.map(Bytes::new);
    facts.extend(window.map(|window| format!("window {window:>8}")));
    let rtt = row.rtt_s.map(|rtt| Duration::from_micros((rtt * 1e6) as u64));
    facts.extend(rtt.map(|rtt| format!("rtt {rtt:>8}")));
    facts
}

/// The terminal's columns, if it reports a size; one without rows does not.
fn terminal_columns() -> Option<u16> {
    terminal::size().ok().filter(|(_, rows)| *rows > 0).map(|(columns, _)| columns)
}

#[cfg(test)]
mod tests {
    use sweetspot_testing::terminal::LineTerminal;

    use super::*;

    fn row(t_s: f64) -> SeriesRow {
        SeriesRow {
            t_s,
            bytes: 25_000_000,
            goodput_bps: 1e8,
            window_bytes: Some(1_250_000),
            rtt_s: Some(0.1005),
            phase: Some("holding".into()),
            ..SeriesRow::default()
        }
    }

    #[test]
    fn a_line_shows_rate_eta_files_window_rtt_and_phase() {
        // 75 MB remain at 100 Mbit/s: 6 s.
        let size = Some(Bytes::new(100_000_000));
        let facts = describe(&row(1.0), size, Some((3, Some(7))), Rate::from_mbit_per_second(100));
        let all = "  100 Mbit/s  eta  6s  3 of 7 files  window  1.25 MB  rtt 100.5 ms  holding";
        assert_eq!(fitted(&facts, Some("holding"), 200), all);
    }

    /// 25 MB of 26 MB at 100 Mbit/s: 80 ms remain.
    #[test]
    fn an_eta_is_never_zero() {
        let facts = |mb: u64| {
            let size = Some(Bytes::new(mb * 1_000_000));
            describe(&row(1.0), size, None, Rate::from_mbit_per_second(100))
        };
        assert_eq!(facts(26)[1], "eta  1s");
        assert_eq!(facts(25)[1], "eta   -", "nothing is left");
    }

    #[test]
    fn a_window_without_a_sample_is_omitted() {
        let mut progress = without_terminal();
        let first = SeriesRow { window_bytes: Some(0), ..row(6.0) };
        let line = progress.row(&first).unwrap();
        assert_eq!(line, "f:  25 %    100 Mbit/s  eta  6s  rtt 100.5 ms  holding");
    }

    /// From 8 bit/s to 1 Tbit/s, and from 1 s to 50 days for 100 MB.
    #[test]
    fn progress_fields_keep_their_columns() {
        let line = |bits: u64, rtt_s: f64, window: u64, done: u64| {
            let row = SeriesRow { rtt_s: Some(rtt_s), window_bytes: Some(window), ..row(1.0) };
            let size = Some(Bytes::new(100_000_000));
            let rate = Rate::from_bits_per_second(bits);
            describe(&row, size, Some((done, Some(12_345))), rate).join(GAP)
        };
        let lengths = [
            line(1_000_000_000_000, 0.000_02, 999, 0),
            line(98_700_000, 0.1005, 1_250_000, 9),
            line(1_020_000_000, 1.25, 12_500, 12_345),
            line(150, 0.099_99, 130_000_000, 120),
            line(0, 0.0123, 65_536, 1000),
        ]
        .map(|line| line.chars().count());
        assert_eq!(lengths, [lengths[0]; 5]);
    }

    /// Rows of a connection without data in the first second; half of the later rows have 100 Mbit/s, and half have
    /// 300.
    #[test]
    fn the_first_rates_average_since_the_first_data() {
        let mut progress = without_terminal();
        let rates = [&[0.0; 20][..], &[3e8, 1e8, 3e8, 1e8]].concat();
        let shown: Vec<f64> = rates
            .iter()
            .map(|goodput_bps| {
                progress.row(&SeriesRow { goodput_bps: *goodput_bps, ..row(1.0) });
                progress.rate.0.round()
            })
            .collect();
        assert_eq!(shown[19..], [0.0, 3e8, 2e8, 233_333_333.0, 2e8]);
    }

    /// A bar on a terminal of `width` columns.
    fn drawn(width: u16, columns: fn() -> Option<u16>) -> String {
        let size = Some(Bytes::new(100_000_000));
        drawn_of(width, columns, ("a-long-name-of-a-release-2026-11.tar.gz", size), None)
    }

    /// The line for a transfer with this name and size, after a row and, if given, these totals.
    fn drawn_of(
        width: u16,
        columns: fn() -> Option<u16>,
        (name, size): (&str, Option<Bytes>),
        totals: Option<(u64, Bytes)>,
    ) -> String {
        let terminal = LineTerminal::new(width);
        let bars = MultiProgress::with_draw_target(terminal.target());
        let peer = ([127, 0, 0, 1], 1).into();
        let (sizing, name) = (sweetspot_sizing::Sizing::Sobas, name.into());
        let mut progress = TransferProgress::new(&Agreed { peer, name, size, sizing }, Some(&bars));
        progress.columns = columns;
        let (bytes, present) = (Bytes::ZERO, Bytes::ZERO);
        progress.files(&Progress { bytes, present, files: 0, totals });
        progress.row(&row(1.0));
        if let Shown::Bar(bar) = &progress.shown {
            bar.force_draw();
        }
        terminal.line()
    }

    /// The name has 14 columns, bar and share 17, and the state 11. This leaves 18 of 60 columns for the details, 38 of
    /// 80, and 78 of 120.
    #[test]
    fn a_progress_bar_fits_one_line_with_only_whole_fields() {
        let of = |width, columns, facts: &str| {
            let line = drawn(width, columns);
            assert_eq!(line, format!("…026-11.tar.gz [=>    ]  25 %    {facts}"));
        };
        of(60, || Some(60), "100 Mbit/s  holding");
        of(80, || Some(80), "100 Mbit/s  eta  6s  window  1.25 MB  holding");
        let all = "100 Mbit/s  eta  6s  window  1.25 MB  rtt 100.5 ms  holding";
        of(120, || Some(120), all);
        // A terminal that does not report its width is assumed to have 80 columns.
        of(80, || None, "100 Mbit/s  eta  6s  window  1.25 MB  holding");
        // A width that is unknown, or that has changed since, breaks no line either.
        let line = drawn(60, || None);
        assert_eq!(line.chars().count(), 60, "{line}");
    }

    #[test]
    fn data_from_a_pipe_has_no_percentage_and_no_eta() {
        // The totals give its length as zero.
        for totals in [None, Some((1, Bytes::ZERO))] {
            let line = drawn_of(80, || Some(80), ("src.tar", None), totals);
            let facts = "   25 MB    100 Mbit/s  window  1.25 MB  rtt 100.5 ms  holding";
            assert_eq!(line, format!("src.tar  {facts}"), "{totals:?}");
        }
    }

    /// The progress of a file f of 100 MB, as lines.
    fn without_terminal() -> TransferProgress {
        let peer = ([127, 0, 0, 1], 1).into();
        let sizing = sweetspot_sizing::Sizing::Sobas;
        let size = Some(Bytes::new(100_000_000));
        TransferProgress::new(&Agreed { peer, name: "f".into(), size, sizing }, None)
    }

    /// 25 MB were moved, and 50 MB were already there.
    #[test]
    fn data_already_present_counts_as_progress() {
        let mut progress = without_terminal();
        let (bytes, present) = (Bytes::new(25_000_000), Bytes::new(50_000_000));
        progress.files(&Progress { bytes, present, files: 0, totals: None });
        let line = progress.row(&row(6.0)).unwrap();
        // 25 MB remain at 100 Mbit/s: 2 s.
        assert!(line.starts_with("f:  75 %    100 Mbit/s  eta  2s"), "{line}");
        let mut resumed = without_terminal();
        resumed.files(&Progress { bytes: Bytes::ZERO, present, files: 0, totals: None });
        let line = resumed.row(&SeriesRow { bytes: 0, goodput_bps: 0.0, ..row(6.0) }).unwrap();
        assert!(line.starts_with("f:  50 %             -  eta   -"), "{line}");
    }

    #[test]
    fn without_a_terminal_a_line_is_printed_every_five_seconds() {
        let mut progress = without_terminal();
        let shown: Vec<bool> =
            (0..240).map(|n| progress.row(&row(f64::from(n) * 0.05)).is_some()).collect();
        assert_eq!(shown.iter().filter(|shown| **shown).count(), 2);
        assert!(shown[100] && shown[200]);
    }

    #[test]
    fn an_outage_replaces_the_rate_and_the_eta() {
        let mut progress = without_terminal();
        // The same 25 MB in every second from the first on.
        let lines: Vec<_> =
            (1..21).filter_map(|second| progress.row(&row(f64::from(second)))).collect();
        let silent: Vec<_> = [9, 14, 19].map(|s| format!("f:  25 %  no data for {s} s")).into();
        assert_eq!(lines[1..], silent);
        assert!(lines[0].contains("Mbit/s"), "{lines:?}");
    }
}
