use sweetspot_units::Duration;

use super::round_trips::{RoundTrips, Vantage};

/// How much longer acknowledgements take to the sender than the capture shows.
#[derive(Debug, Default)]
pub struct Distance {
    up: Duration,
    /// An upper bound: the sender's data show which acknowledgements it had received.
    max: Option<Duration>,
    /// The latest samples, the newest first.
    samples: [Option<Duration>; 4],
}

impl Distance {
    /// From the capture to the sender and back; zero where the capture is at the sender.
    pub fn up(&self) -> Duration {
        self.up
    }

    /// It took `sample` until the sender answered a segment that passed the capture.
    pub fn learn(&mut self, sample: Duration, round_trips: &RoundTrips) {
        self.up = match round_trips.vantage() {
            Vantage::Sender | Vantage::Unknown => Duration::ZERO,
            // The application's delays are not the path's: the min of a few samples, and twice the min of all at most.
            Vantage::Receiver | Vantage::Middle => {
                self.samples.rotate_right(1);
                self.samples[0] = Some(sample);
                let few = self.samples.iter().flatten().copied().min().unwrap_or(sample);
                few.min(round_trips.up.min().unwrap_or(few) * 2)
            }
        };
        self.up = self.up.min(self.max.unwrap_or(self.up));
    }

    /// The sender reacted within `max` to a segment that passed the capture.
    pub fn bound(&mut self, max: Duration, round_trips: &RoundTrips) {
        self.max = Some(self.max.map_or(max, |known| known.min(max)));
        self.up = match round_trips.vantage() {
            Vantage::Sender | Vantage::Unknown => Duration::ZERO,
            Vantage::Receiver | Vantage::Middle => self.up.min(max),
        };
    }
}
