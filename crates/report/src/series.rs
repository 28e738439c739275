use serde::{Deserialize, Serialize};
use sweetspot_units::{Bytes, Duration, Rate};

use crate::wire;

/// A run over time, column by column; the n-th entries of the first columns belong together.
/// Time is zero when the transfer began.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Times of the receiver's samples.
    #[serde(rename = "t_s", with = "wire")]
    pub t: Vec<Duration>,
    /// Payload received by then.
    #[serde(rename = "received_bytes", with = "wire")]
    pub received: Vec<Bytes>,
    /// Goodput over [`Series::SPAN`] before then, see [`Series::fill_goodput`].
    #[serde(rename = "goodput_bps", with = "wire")]
    pub goodput: Vec<Rate>,
    /// Advertised window.
    #[serde(rename = "window_bytes", with = "wire")]
    pub window: Vec<Option<Bytes>>,
    /// Round-trip time seen last.
    #[serde(rename = "rtt_s", with = "wire")]
    pub rtt: Vec<Option<Duration>>,
    /// The bottleneck's queue, at the emulator's own times.
    pub queue: QueueSeries,
    /// The controller's events.
    pub events: Vec<SeriesEvent>,
}

/// Bytes in the bottleneck's buffer over time, in the direction of the data.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct QueueSeries {
    /// Times.
    #[serde(rename = "t_s", with = "wire")]
    pub t: Vec<Duration>,
    /// Bytes in the buffer.
    #[serde(rename = "bytes", with = "wire")]
    pub bytes: Vec<Bytes>,
}

/// An event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SeriesEvent {
    /// Times.
    #[serde(rename = "t_s", with = "wire")]
    pub t: Duration,
    /// The event in words.
    pub what: String,
}

impl Series {
    /// Goodput is counted over this long: five round trips of a 100 ms path, so that one
    /// repaired hole does not look like a burst above the link's rate.
    pub const SPAN: Duration = Duration::from_millis(500);

    /// Computes goodput from the received bytes. In the first half second, too, it counts over the whole span, with nothing
    /// before zero: the rate climbs as the transfer does.
    pub fn fill_goodput(&mut self) {
        let over_span = |(&t, &received): (&Duration, &Bytes)| {
            let before = self.received_at(t.saturating_sub(Series::SPAN));
            received.saturating_sub(before) / Series::SPAN
        };
        self.goodput = self.t.iter().zip(&self.received).map(over_span).collect();
    }

    /// Bytes received by `t`, interpolated linearly between two samples.
    fn received_at(&self, t: Duration) -> Bytes {
        let after = self.t.partition_point(|&sample| sample < t);
        let sample = |i: usize| (self.t[i].as_secs_f64(), self.received[i].as_f64());
        let (t0, r0) = after.checked_sub(1).map_or((0.0, 0.0), sample);
        let (t1, r1) = if after < self.t.len() { sample(after) } else { (t0, r0) };
        let part = if t1 > t0 { (t.as_secs_f64() - t0) / (t1 - t0) } else { 0.0 };
        Bytes::from_f64(r0 + (r1 - r0) * part)
    }

    /// When goodput first reached `rate`.
    pub fn time_to(&self, rate: Rate) -> Option<Duration> {
        self.goodput.iter().position(|&g| g >= rate).map(|i| self.t[i])
    }

    /// The round-trip times measured.
    pub fn rtts(&self) -> Vec<Duration> {
        self.rtt.iter().flatten().copied().collect()
    }
}
