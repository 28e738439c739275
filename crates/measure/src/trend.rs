//! Detects whether one-way delays grow over a stream (Jain, Dovrolis 2003, "End-to-end available bandwidth:
//! measurement methodology, dynamics, and relation with TCP throughput", section IV).

use sweetspot_statistics::{Line, median};
use sweetspot_units::Duration;

use crate::observation::StreamRecord;

/// Growth of delays below this is noise of clocks and schedulers.
pub(crate) const MIN_NOISE: Duration = Duration::from_micros(300);

/// Thresholds of the metric, from the paper's section IV-B: above the first the delays grow, below the second they do
/// not.
const PCT: (f64, f64) = (0.66, 0.54);
const PDT: (f64, f64) = (0.55, 0.45);
/// Minimum number of packets that show a trend.
const MIN_PACKETS: usize = 16;

/// Whether the delays of a stream grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trend {
    /// The delays grow: the stream was faster than the available bandwidth.
    Increasing,
    /// The delays do not grow.
    Steady,
    /// The two metrics disagree.
    Ambiguous,
}

/// A stream with more losses was too fast for the path, whatever the other packets' delays (section IV-B).
pub(crate) const OVERFLOW_SHARE: f64 = 0.05;

/// The trend of a stream's delays: pairwise comparison (PCT) and pairwise difference (PDT) of the medians of sqrt(n)
/// groups. Growth below `noise` over the stream counts as none. `None` if too few packets arrived.
pub fn trend(stream: &StreamRecord, noise: Duration) -> Option<Trend> {
    let delays = delays(stream);
    if delays.len() < MIN_PACKETS {
        return None;
    }
    if f64::from(stream.lost()) > f64::from(stream.sent) * OVERFLOW_SHARE {
        return Some(Trend::Increasing);
    }
    let groups = (delays.len() as f64).sqrt() as usize;
    let size = delays.len().div_ceil(groups);
    let medians: Vec<f64> =
        delays.chunks(size).filter_map(|group| median(group.iter().map(|d| d.1))).collect();
    let steps: Vec<f64> = medians.windows(2).map(|two| two[1] - two[0]).collect();
    let change: f64 = steps.iter().sum();
    if change < noise.as_secs_f64() {
        return Some(Trend::Steady);
    }
    let pct = steps.iter().filter(|step| **step > 0.0).count() as f64 / steps.len() as f64;
    let pdt = change / steps.iter().map(|step| step.abs()).sum::<f64>();
    let votes = |value: f64, (above, below): (f64, f64)| {
        i32::from(value > above) - i32::from(value < below)
    };
    Some(match votes(pct, PCT) + votes(pdt, PDT) {
        1.. => Trend::Increasing,
        ..=-1 => Trend::Steady,
        0 => Trend::Ambiguous,
    })
}

/// Seconds of delay added per second of sending: (R - A) / C for a stream of rate R above the available bandwidth A of
/// a link of capacity C.
pub(crate) fn growth(stream: &StreamRecord) -> Option<f64> {
    let delays = delays(stream);
    if delays.len() < MIN_PACKETS {
        return None;
    }
    Line::through(&delays).map(|line| line.slope)
}

/// Sending time after the first packet, and one-way delay, in seconds, in order of sending.
fn delays(stream: &StreamRecord) -> Vec<(f64, f64)> {
    let mut arrivals = stream.arrivals.clone();
    arrivals.sort_unstable_by_key(|arrival| arrival.index);
    let first = arrivals.first().map_or(0, |arrival| arrival.sent.as_nanos());
    let since = |sent: u64| sent.wrapping_sub(first) as i64 as f64 / 1e9;
    arrivals.iter().map(|a| (since(a.sent.as_nanos()), a.delay_s())).collect()
}
