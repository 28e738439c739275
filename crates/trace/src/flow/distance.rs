use sweetspot_units::Duration;

use super::round_trips::{RoundTrips, Vantage};

/// The time from the capture to the sender and back: the sender reacts to an acknowledgement this long after it was captured.
#[derive(Debug, Default)]
pub struct Distance {
    up: Duration,
    /// An upper bound, from data that show which acknowledgements the sender had received.
    max: Option<Duration>,
    /// The latest samples, newest first.
    samples: [Option<Duration>; 4],
}

impl Distance {
    /// The time from the capture to the sender and back; zero if the capture is at the sender.
    pub fn up(&self) -> Duration {
        self.up
    }

    /// Handles a sample: the sender answered `sample` after a segment passed the capture.
    pub fn learn(&mut self, sample: Duration, round_trips: &RoundTrips) {
        self.up = match round_trips.vantage() {
            Vantage::Sender | Vantage::Unknown => Duration::ZERO,
            // Samples may include delays of the application: takes the minimum of a few, and at most twice the minimum of all.
            Vantage::Receiver | Vantage::Middle => {
                self.samples.rotate_right(1);
                self.samples[0] = Some(sample);
                let few = self.samples.iter().flatten().copied().min().unwrap_or(sample);
                few.min(round_trips.up.min().unwrap_or(few) * 2)
            }
        };
        self.up = self.up.min(self.max.unwrap_or(self.up));
    }

    /// Handles an upper bound: the sender reacted within `max` after a segment passed the capture.
    pub fn bound(&mut self, max: Duration, round_trips: &RoundTrips) {
        self.max = Some(self.max.map_or(max, |known| known.min(max)));
        self.up = match round_trips.vantage() {
            Vantage::Sender | Vantage::Unknown => Duration::ZERO,
            Vantage::Receiver | Vantage::Middle => self.up.min(max),
        };
    }
}
