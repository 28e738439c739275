//! Computes a variant's row and curves from the reports of the programs and the emulator.
//!
//! Time zero is when the sender began to connect: the whole transfer counts, including handshakes.

use sweetspot_control::TransferSummary;
use sweetspot_control::series::{SeriesEvent, SeriesRecord};
use sweetspot_path::PathSpec;
use sweetspot_report as report;
use sweetspot_units::{Bytes, Duration, Rate};

/// The records of one transfer.
pub struct TransferTraces {
    /// The sender's outcome.
    pub sender: TransferSummary,
    /// The receiver's outcome.
    pub receiver: TransferSummary,
    /// The receiver's series, a JSON object per line.
    pub series: String,
    /// The emulator's samples.
    pub path: Vec<sweetspot_emulator::PathSample>,
}

/// Fills `row` with what `traces` report.
pub fn fill(row: &mut report::VariantOutcome, traces: &TransferTraces, path: &PathSpec) {
    let (sender, receiver) = (&traces.sender, &traces.receiver);
    let capacity = path.payload_capacity();
    let goodput = Rate::from_f64(sender.goodput_bps);
    row.goodput = Some(goodput);
    row.share_of_capacity = Some(goodput.as_f64() / capacity.as_f64());
    row.duration = Some(Duration::from_secs_f64(sender.seconds));
    row.segments = sender.segments;
    row.retransmitted_segments = sender.retransmitted_segments;
    row.rtt_median = receiver.rtt_median_s.map(Duration::from_secs_f64);
    row.rtt_p99 = receiver.rtt_p99_s.map(Duration::from_secs_f64);
    row.sender_cpu = Some(Duration::from_secs_f64(sender.cpu_seconds));
    row.receiver_cpu = Some(Duration::from_secs_f64(receiver.cpu_seconds));
    row.series = series(&traces.series, path);
    row.series.queue = queue(&traces.path, path);
    row.time_to_90_percent = row.series.time_to(capacity.scaled(0.9));
}

/// The receiver's series. Its time zero is its accept, which on an idle path is one and a half RTTs
/// after the sender's SYN.
fn series(text: &str, path: &PathSpec) -> report::Series {
    let handshake = path.up.delay + path.rtt();
    let at = |t: f64| Duration::from_secs_f64(t) + handshake;
    let mut series = report::Series::default();
    for line in text.lines() {
        match serde_json::from_str(line) {
            Ok(SeriesRecord::Row(row)) => {
                series.t.push(at(row.t_s));
                series.received.push(Bytes::new(row.bytes));
                series.window.push(row.window_bytes.map(Bytes::new));
                series.rtt.push(row.rtt_s.map(Duration::from_secs_f64));
            }
            Ok(SeriesRecord::Event(mark)) => {
                series.events.push(report::SeriesEvent { t: at(mark.t_s), what: in_words(&mark) });
            }
            // The incomplete last line of an interrupted transfer.
            Err(_) => {}
        }
    }
    series.fill_goodput();
    series
}

/// The bottleneck's queue. The SYN is the first packet on the path, and leaves it one propagation
/// delay after it was sent.
fn queue(samples: &[sweetspot_emulator::PathSample], path: &PathSpec) -> report::QueueSeries {
    let arrived = samples.iter().find(|s| s.up.delivered > Bytes::ZERO);
    let zero = arrived.map_or(Duration::ZERO, |s| s.at.saturating_sub(path.up.delay));
    let since = samples.iter().filter(|s| s.at >= zero);
    let (t, bytes) = since.map(|s| (s.at - zero, s.up.backlog)).unzip();
    report::QueueSeries { t, bytes }
}

fn in_words(mark: &SeriesEvent) -> String {
    let mut words = mark.event.replace('_', " ");
    if let Some(rate) = mark.rate_bps {
        words += &format!(", {}", Rate::from_f64(rate));
    }
    if let Some(rtt) = mark.rtt_s {
        words += &format!(", {:.1} ms", rtt * 1e3);
    }
    if let Some(window) = mark.window_bytes {
        words += &format!(", {}", Bytes::new(window));
    }
    words
}
