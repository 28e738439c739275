//! Progress of a transfer: a bar on a terminal, else a plain line every few seconds.

use std::time::Duration as StdDuration;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use sweetspot_control::series::SeriesRow;
use sweetspot_transfer::{Agreed, Progress};
use sweetspot_units::{Bytes, Duration, Rate};

/// Interval between two plain lines, seconds.
const LINE_INTERVAL_S: f64 = 5.0;
/// Share of the newest row in the running average of the rate: with 20 rows per second an average
/// over about a second.
const RATE_AVERAGE_GAIN: f64 = 0.05;

/// The progress of one transfer.
pub struct TransferProgress {
    name: String,
    /// Content of all files, once it is known.
    size: Option<Bytes>,
    /// Files that are whole, and how many there are, where there is more than one.
    files: Option<(u64, Option<u64>)>,
    rate: Option<f64>,
    /// The last round trip that a row told, seconds.
    rtt_s: Option<f64>,
    shown: Shown,
}

enum Shown {
    Bar(ProgressBar),
    Lines { next_at_s: f64 },
}

impl TransferProgress {
    /// The progress of a transfer that has just opened: a bar among `bars` if there is a terminal
    /// for them.
    pub fn new(opened: &Agreed, bars: Option<&MultiProgress>) -> TransferProgress {
        let shown = match bars {
            Some(bars) => {
                let bar = bars.add(ProgressBar::new(opened.size.map_or(0, Bytes::get)));
                let style =
                    ProgressStyle::with_template("{prefix} [{bar:24}] {percent:>3} %  {msg}")
                        .unwrap_or_else(|_| ProgressStyle::default_bar());
                bar.set_style(style.progress_chars("=> "));
                bar.set_prefix(opened.name.to_string());
                Shown::Bar(bar)
            }
            None => Shown::Lines { next_at_s: LINE_INTERVAL_S },
        };
        let name = opened.name.to_string();
        TransferProgress { name, size: opened.size, files: None, rate: None, rtt_s: None, shown }
    }

    /// Takes in how many files are whole, for the next row.
    pub fn files(&mut self, progress: &Progress) {
        if let Some((files, bytes)) = progress.totals {
            self.size = Some(bytes);
            if let Shown::Bar(bar) = &self.shown {
                bar.set_length(bytes.get());
            }
            self.files = (files > 1).then_some((progress.files, Some(files)));
        } else if progress.files > 0 {
            self.files = Some((progress.files, None));
        }
    }

    /// Shows the newest row; returns a line to print, where there is no bar.
    pub fn row(&mut self, row: &SeriesRow) -> Option<String> {
        let rate = match self.rate {
            Some(rate) => rate + RATE_AVERAGE_GAIN * (row.goodput_bps - rate),
            None => row.goodput_bps,
        };
        self.rate = Some(rate);
        self.rtt_s = row.rtt_s.or(self.rtt_s);
        let known = SeriesRow { rtt_s: self.rtt_s, ..row.clone() };
        let mut text = describe(&known, self.size, Rate::from_f64(rate));
        match self.files {
            Some((done, Some(all))) => text = format!("{done} of {all} files  {text}"),
            Some((done, None)) => text = format!("{done} files  {text}"),
            None => {}
        }
        match &mut self.shown {
            Shown::Bar(bar) => {
                bar.set_position(self.size.map_or(0, |size| row.bytes.min(size.get())));
                bar.set_message(text);
                None
            }
            Shown::Lines { next_at_s } if row.t_s >= *next_at_s => {
                *next_at_s = row.t_s + LINE_INTERVAL_S;
                // A pipe has no size.
                let done = match self.size.filter(|size| *size >= Bytes::new(row.bytes.max(1))) {
                    Some(size) => format!("{:.0} %", 100.0 * row.bytes as f64 / size.as_f64()),
                    None => Bytes::new(row.bytes).to_string(),
                };
                Some(format!("{}: {done}  {text}", self.name))
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

/// Rate, time left, window, round trip and phase, as far as they are known.
fn describe(row: &SeriesRow, size: Option<Bytes>, rate: Rate) -> String {
    let mut text = rate.to_string();
    if let Some(size) = size.filter(|_| rate > Rate::ZERO) {
        let left = size.saturating_sub(Bytes::new(row.bytes)) / rate;
        let seconds = StdDuration::from_secs(StdDuration::from(left).as_secs());
        text += &format!("  eta {}", indicatif::HumanDuration(seconds));
    }
    if let Some(window) = row.window_bytes {
        text += &format!("  window {}", Bytes::new(window));
    }
    if let Some(rtt) = row.rtt_s {
        text += &format!("  rtt {}", Duration::from_micros((rtt * 1e6) as u64));
    }
    if let Some(phase) = &row.phase {
        text += &format!("  {phase}");
    }
    text
}

#[cfg(test)]
mod tests {
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
    fn a_line_tells_rate_time_left_window_round_trip_and_phase() {
        // 75 MB left at 100 Mbit/s: 6 s.
        let text =
            describe(&row(1.0), Some(Bytes::new(100_000_000)), Rate::from_mbit_per_second(100));
        assert_eq!(text, "100 Mbit/s  eta 6 seconds  window 1.25 MB  rtt 100.5 ms  holding");
    }

    #[test]
    fn without_a_terminal_a_line_comes_every_five_seconds() {
        let peer = ([127, 0, 0, 1], 1).into();
        let sizing = sweetspot_sizing::Sizing::Sobas;
        let size = Some(Bytes::new(100_000_000));
        let opened = Agreed { peer, name: "f".into(), size, sizing };
        let mut progress = TransferProgress::new(&opened, None);
        let shown: Vec<bool> =
            (0..240).map(|n| progress.row(&row(f64::from(n) * 0.05)).is_some()).collect();
        assert_eq!(shown.iter().filter(|shown| **shown).count(), 2);
        assert!(shown[100] && shown[200]);
    }
}
