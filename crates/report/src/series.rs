use serde::{Deserialize, Serialize};
use sweetspot_units::{Bytes, Duration, Rate};

use crate::wire;

/// The time series of a run, column by column; the n-th entries of `t` to `rtt` belong together. Time starts at zero with
/// the transfer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Times of the receiver's samples.
    #[serde(rename = "t_s", with = "wire")]
    pub t: Vec<Duration>,
    /// Payload received by these times.
    #[serde(rename = "received_bytes", with = "wire")]
    pub received: Vec<Bytes>,
    /// Goodput over the [`Series::SPAN`] before each time, see [`Series::fill_goodput`].
    #[serde(rename = "goodput_bps", with = "wire")]
    pub goodput: Vec<Rate>,
    /// The advertised window.
    #[serde(rename = "window_bytes", with = "wire")]
    pub window: Vec<Option<Bytes>>,
    /// The latest RTT measured.
    #[serde(rename = "rtt_s", with = "wire")]
    pub rtt: Vec<Option<Duration>>,
    /// The bottleneck's queue, sampled at the emulator's own times.
    pub queue: QueueSeries,
    /// The controller's events.
    pub events: Vec<SeriesEvent>,
}

/// Bytes in the bottleneck's buffer over time, in the direction of the data.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct QueueSeries {
    /// Times of the samples.
    #[serde(rename = "t_s", with = "wire")]
    pub t: Vec<Duration>,
    /// Bytes in the buffer.
    #[serde(rename = "bytes", with = "wire")]
    pub bytes: Vec<Bytes>,
}

/// An event of the controller.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SeriesEvent {
    /// The time of the event.
    #[serde(rename = "t_s", with = "wire")]
    pub t: Duration,
    /// The event in words.
    pub what: String,
}

impl Series {
    /// The span over which goodput is counted: five RTTs of a 100 ms path, so that one repaired loss does not look like a
    /// burst above the link rate.
    pub const SPAN: Duration = Duration::from_millis(500);

    /// Computes goodput from the received bytes. Within the first half second it also counts over the whole span, with
    /// nothing received before zero, so that the rate climbs with the transfer.
    pub fn fill_goodput(&mut self) {
        let over_span = |(&t, &received): (&Duration, &Bytes)| {
            let before = self.received_at(t.saturating_sub(Series::SPAN));
            received.saturating_sub(before) / Series::SPAN
        };
        self.goodput = self.t.iter().zip(&self.received).map(over_span).collect();
    }

    /// Bytes received by `t`, interpolated linearly between samples.
    fn received_at(&self, t: Duration) -> Bytes {
        let after = self.t.partition_point(|&sample| sample < t);
        let sample = |i: usize| (self.t[i].as_secs_f64(), self.received[i].as_f64());
        let (t0, r0) = after.checked_sub(1).map_or((0.0, 0.0), sample);
        let (t1, r1) = if after < self.t.len() { sample(after) } else { (t0, r0) };
        let part = if t1 > t0 { (t.as_secs_f64() - t0) / (t1 - t0) } else { 0.0 };
        Bytes::from_f64(r0 + (r1 - r0) * part)
    }

    /// The time at which goodput first reached `rate`.
    pub fn time_to(&self, rate: Rate) -> Option<Duration> {
        self.goodput.iter().position(|&g| g >= rate).map(|i| self.t[i])
    }

    /// All RTTs measured.
    pub fn rtts(&self) -> Vec<Duration> {
        self.rtt.iter().flatten().copied().collect()
    }
}
