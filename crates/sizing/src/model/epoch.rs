use sweetspot_units::{Bytes, Duration, Rate, Time};

use super::meter::Meter;
use super::round_trip::RoundTrip;

/// If more than this share of the window is unread after a read, the application and not the path limits the transfer. An
/// application that reads four times per round trip stays below it
/// (`a_reader_that_reads_five_times_per_rtt_is_not_behind`).
const STALL_UNREAD_SHARE: f64 = 0.25;

/// Whether `unread` shows that the application, and not the path, limits a transfer with this `window`.
pub(crate) fn is_behind(unread: Bytes, window: Bytes) -> bool {
    unread > window.scaled(STALL_UNREAD_SHARE)
}

/// Measurements of one epoch of one or two round trips.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Epoch {
    /// Receive throughput, payload.
    pub rate: Rate,
    /// The lowest RTT: base RTT and standing queue.
    pub rtt: Duration,
    /// The highest RTT: base RTT and longest queue.
    pub highest_rtt: Duration,
    /// The running average of the RTT at the epoch's end.
    pub average_rtt: Duration,
    /// Whether sender or receiver waited for its application. If so, the rate says nothing about
    /// the path.
    pub stalled: bool,
    /// Number of retransmitted segments, or of lost probes.
    pub losses: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Epochs {
    shortest: Duration,
    meter: Meter,
    stalled: bool,
    /// After a stall the backlog is read faster than the path delivers, so the epoch after a
    /// stalled one is no measurement either.
    stalled_before: bool,
    losses: u64,
    ends: Option<Time>,
}

impl Epochs {
    /// Epochs no shorter than `shortest`.
    pub(crate) fn new(shortest: Duration) -> Epochs {
        Epochs { shortest, ..Epochs::default() }
    }

    /// The application read `bytes` of payload and left `unread` bytes in the buffer.
    pub(crate) fn handle_data(&mut self, now: Time, bytes: Bytes, unread: Bytes, window: Bytes) {
        self.meter.handle_data(now, bytes);
        self.stalled |= is_behind(unread, window);
        self.ends.get_or_insert(now + self.shortest);
    }

    /// The sender had nothing to send.
    pub(crate) fn handle_starvation(&mut self) {
        self.stalled = true;
    }

    /// Segments were retransmitted or probes lost.
    pub(crate) fn handle_losses(&mut self, count: u64) {
        self.losses += count;
    }

    /// When the current epoch ends.
    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        self.ends
    }

    /// Ends an epoch that is over by `now`; the next one lasts for `span`. Returns `None` if the epoch had no data or no RTT
    /// sample.
    pub(crate) fn poll_epoch(
        &mut self,
        now: Time,
        span: Duration,
        round_trip: &mut RoundTrip,
    ) -> Option<Epoch> {
        if now < self.ends? {
            return None;
        }
        let average = round_trip.average().unwrap_or(self.shortest);
        let length = span.max(self.shortest);
        self.ends = Some(now + length);
        let stalled = std::mem::take(&mut self.stalled);
        // Data arrived only at the beginning: their average would be the rate of a burst.
        let silent = self.meter.span() < length / 2;
        let measured = self.meter.take();
        let losses = std::mem::take(&mut self.losses);
        let epoch = measured.zip(round_trip.take_range()).map(|(rate, (rtt, highest_rtt))| Epoch {
            rate,
            rtt,
            highest_rtt,
            average_rtt: average,
            stalled: stalled || silent || self.stalled_before,
            losses,
        });
        self.stalled_before = stalled;
        epoch
    }

    /// Begins a new epoch and discards the current one.
    pub(crate) fn restart(&mut self, now: Time, span: Duration, round_trip: &mut RoundTrip) {
        self.ends = Some(now);
        self.poll_epoch(now, span, round_trip);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_that_reads_five_times_per_rtt_is_not_behind() {
        let (window, round_trip) = (Bytes::new(1_000_000), Duration::from_millis(100));
        // The window arrives in a round trip, and waits for the next read.
        let waiting = |reads: u64| window / round_trip * (round_trip / reads);
        assert!(!is_behind(waiting(5), window));
        assert!(is_behind(waiting(2), window));
    }
}
