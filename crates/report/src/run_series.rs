use sweetspot_scenario::{Outcome, Recorder, Sample, Scenario, Transfer};
use sweetspot_units::Duration;
use thiserror::Error;

use crate::columns::{Column, Columns};

/// Records the time series of a run and returns it by columns. docs/scenario.md describes the
/// columns.
#[derive(Debug, Clone)]
pub struct RunSeries {
    interval: Duration,
    /// The start of each transfer; zero if it follows another and its start is unknown.
    starts: Vec<Duration>,
    samples: Vec<Sample>,
}

/// Maximum number of samples: each row occupies half a kilobyte of memory until it is written.
const MAX_SAMPLES: u64 = 4_000_000;

/// The error that an interval is too short, because it would give too many samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{interval}: more than {MAX_SAMPLES} samples; use {min} or more")]
pub struct TooManySamples {
    /// The interval.
    pub interval: Duration,
    /// The shortest allowed interval, in whole microseconds.
    pub min: Duration,
}

impl RunSeries {
    /// Prepares to sample every transfer of `scenario` at each `interval`.
    ///
    /// # Errors
    /// If this would give more than 4 million samples, or more than one per microsecond.
    pub fn of(scenario: &Scenario, interval: Duration) -> Result<RunSeries, TooManySamples> {
        let span = scenario.warmup + scenario.duration;
        let transfers = scenario.transfers.len().max(1) as u64;
        let min = span * transfers / MAX_SAMPLES;
        if interval < min.max(Duration::from_micros(1)) {
            let min = Duration::from_micros(min.as_nanos().div_ceil(1000).max(1));
            return Err(TooManySamples { interval, min });
        }
        let start = |transfer: &Transfer| match transfer.follows {
            true => Duration::ZERO,
            false => transfer.start,
        };
        let starts = scenario.transfers.iter().map(start).collect();
        Ok(RunSeries { interval, starts, samples: Vec::new() })
    }

    /// The samples of a run that ended with `outcome`, merged with the events of its controllers. A window set before the transfer
    /// starts takes effect at the start.
    pub fn columns(&self, outcome: &Outcome) -> Columns {
        let mut rows: Vec<SeriesEntry> = Vec::with_capacity(self.samples.len());
        // For each transfer: the time of its last sample, and its bytes at that time.
        let mut sampled = vec![(0.0, 0); outcome.transfers.len()];
        for sample in &self.samples {
            let Some(before) = sampled.get_mut(sample.transfer) else { continue };
            rows.push(SeriesEntry::of_sample(sample, *before));
            *before = (sample.at_s, sample.acked_bytes);
        }
        for (transfer, finished) in outcome.transfers.iter().enumerate() {
            let start_s = self.starts.get(transfer).map_or(0.0, |start| start.as_secs_f64());
            rows.extend(finished.events.iter().map(|event| SeriesEntry {
                at_s: event.at_s.max(start_s),
                transfer,
                event: Some(event.kind.clone()),
                window_bytes: event.window_bytes,
                rate_bps: event.rate_bps,
                rtt_s: event.rtt_s,
                ..SeriesEntry::default()
            }));
        }
        // The sort is stable: at equal times, samples stay before events.
        rows.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
        let mut columns = by_columns(&rows);
        columns.note("scenario", outcome.scenario.as_str());
        columns.note("engine", outcome.engine.as_str());
        columns.note("seed", outcome.seed.to_string());
        columns.note("version", outcome.version.as_str());
        columns.note("interval_s", self.interval.as_secs_f64().to_string());
        columns
    }
}

impl Recorder for RunSeries {
    fn interval(&self) -> Option<Duration> {
        Some(self.interval)
    }

    fn record(&mut self, sample: &Sample) {
        self.samples.push(*sample);
    }
}

/// One row: a sample, or an event.
#[derive(Debug, Clone, Default)]
struct SeriesEntry {
    at_s: f64,
    transfer: usize,
    event: Option<String>,
    goodput_bps: Option<f64>,
    acked_bytes: Option<u64>,
    cwnd_packets: Option<f64>,
    ssthresh_packets: Option<f64>,
    window_bytes: Option<u64>,
    rtt_s: Option<f64>,
    rate_bps: Option<f64>,
    queue_packets: Option<u64>,
    dropped_packets: Option<u64>,
    utilisation: Option<f64>,
}

impl SeriesEntry {
    fn of_sample(sample: &Sample, (since, acked_before): (f64, u64)) -> SeriesEntry {
        let bits = sample.acked_bytes.saturating_sub(acked_before) as f64 * 8.0;
        let seconds = sample.at_s - since;
        SeriesEntry {
            at_s: sample.at_s,
            transfer: sample.transfer,
            event: None,
            goodput_bps: (seconds > 0.0).then(|| bits / seconds),
            acked_bytes: Some(sample.acked_bytes),
            cwnd_packets: Some(sample.cwnd_packets),
            ssthresh_packets: Some(sample.ssthresh_packets).filter(|s| s.is_finite()),
            window_bytes: Some(sample.window_bytes),
            rtt_s: sample.rtt_s,
            rate_bps: None,
            queue_packets: Some(sample.queue_packets),
            dropped_packets: Some(sample.dropped_packets),
            utilisation: sample.utilisation,
        }
    }
}

fn by_columns(rows: &[SeriesEntry]) -> Columns {
    let real =
        |of: fn(&SeriesEntry) -> Option<f64>| Column::Real(rows.iter().map(of).collect::<Vec<_>>());
    let integer = |of: fn(&SeriesEntry) -> Option<u64>| {
        let to_signed = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        Column::Integer(rows.iter().map(|row| of(row).map(to_signed)).collect())
    };
    let mut columns = Columns::default();
    columns.push("at_s", real(|row| Some(row.at_s)));
    columns.push("transfer", integer(|row| Some(row.transfer as u64)));
    columns.push("event", Column::Text(rows.iter().map(|row| row.event.clone()).collect()));
    columns.push("goodput_bps", real(|row| row.goodput_bps));
    columns.push("acked_bytes", integer(|row| row.acked_bytes));
    columns.push("cwnd_packets", real(|row| row.cwnd_packets));
    columns.push("ssthresh_packets", real(|row| row.ssthresh_packets));
    columns.push("window_bytes", integer(|row| row.window_bytes));
    columns.push("rtt_s", real(|row| row.rtt_s));
    columns.push("rate_bps", real(|row| row.rate_bps));
    columns.push("queue_packets", integer(|row| row.queue_packets));
    columns.push("dropped_packets", integer(|row| row.dropped_packets));
    columns.push("utilisation", real(|row| row.utilisation));
    columns
}
