//! Sums over the samples of a connection.

use sweetspot_units::{Bytes, Duration, Rate, Time};

/// Windows weighted with the time in which they held the sender, and the RTT during it.
#[derive(Debug, Clone, Copy, Default)]
pub struct HeldWindows {
    byte_seconds: f64,
    round_trip_seconds: f64,
    pub seconds: f64,
    /// Bytes acknowledged in that time.
    pub acked: f64,
}

impl HeldWindows {
    /// The rate while the windows held, relative to one window per round trip.
    pub fn rate_ratio(&self) -> Option<f64> {
        let (window, rtt) = self.mean()?;
        Some(self.acked / self.seconds * rtt.as_secs_f64() / window.as_f64().max(1.0))
    }

    pub fn add(&mut self, window: Bytes, rtt: Duration, time: Duration) {
        let seconds = time.as_secs_f64();
        self.byte_seconds += window.as_f64() * seconds;
        self.round_trip_seconds += rtt.as_secs_f64() * seconds;
        self.seconds += seconds;
    }

    /// The part since `before`, an earlier state.
    pub fn since(&self, before: &HeldWindows) -> HeldWindows {
        HeldWindows {
            byte_seconds: self.byte_seconds - before.byte_seconds,
            round_trip_seconds: self.round_trip_seconds - before.round_trip_seconds,
            seconds: self.seconds - before.seconds,
            acked: self.acked - before.acked,
        }
    }

    /// The rate while the windows held.
    pub fn rate(&self) -> Option<Rate> {
        let time = Duration::from_nanos((self.seconds * 1e9) as u64);
        (time > Duration::ZERO).then(|| Bytes::new(self.acked as u64) / time)
    }

    /// The mean window and RTT, if the windows held the sender for any time.
    pub fn mean(&self) -> Option<(Bytes, Duration)> {
        let rtt = Duration::from_nanos((self.round_trip_seconds / self.seconds * 1e9) as u64);
        let window = Bytes::new((self.byte_seconds / self.seconds) as u64);
        (self.seconds > 0.0 && rtt > Duration::ZERO).then_some((window, rtt))
    }
}

/// Bytes received in the last round trips, with exponentially decaying weight. A single interval may contain one window more or
/// less, and data behind a hole is delivered with the retransmission.
#[derive(Debug, Clone, Copy, Default)]
pub struct RecentArrivals {
    bytes: f64,
    seconds: f64,
}

impl RecentArrivals {
    /// Adds `bytes` that arrived in `time`. Data as old as `horizon` have the weight 1/e.
    pub fn add(&mut self, bytes: Bytes, time: Duration, horizon: Duration) {
        let horizon = horizon.max(time).as_secs_f64();
        let kept = if horizon > 0.0 { (-time.as_secs_f64() / horizon).exp() } else { 0.0 };
        self.bytes = self.bytes * kept + bytes.as_f64();
        self.seconds = self.seconds * kept + time.as_secs_f64();
    }

    pub fn rate(&self) -> Rate {
        Rate::from_f64(if self.seconds > 0.0 { self.bytes * 8.0 / self.seconds } else { 0.0 })
    }
}

/// The windows that one end was seen to advertise.
#[derive(Debug, Clone, Copy, Default)]
pub struct WindowsSeen {
    pub largest: Bytes,
    /// The smallest window that came after a larger one; `None` if the window only grew.
    pub shrunk_to: Option<Bytes>,
    /// Number of times the window closed.
    pub closed: u64,
    /// The time since which it has been closed.
    pub closed_since: Option<Time>,
    /// Bytes that the end had received in the latest sample.
    received: Bytes,
}

impl WindowsSeen {
    /// Takes the window in a sample, and the bytes that the end had `received` until then. An unknown window may be
    /// open. If bytes arrived since the last sample, the window was open between the two.
    pub fn see(&mut self, window: Option<Bytes>, received: Bytes, at: Time) {
        if window.is_none() || received > self.received {
            self.closed_since = None;
        }
        self.received = received;
        if let Some(window) = window {
            self.add(window, at);
        }
    }

    fn add(&mut self, window: Bytes, at: Time) {
        if window < self.largest {
            self.shrunk_to = Some(self.shrunk_to.map_or(window, |min| min.min(window)));
        }
        self.largest = self.largest.max(window);
        let is_closed = window == Bytes::ZERO;
        self.closed += u64::from(is_closed && self.closed_since.is_none());
        self.closed_since = is_closed.then(|| self.closed_since.unwrap_or(at));
    }
}
