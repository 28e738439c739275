use sweetspot_units::{Bytes, Duration, Rate, Time};

use super::meter::Meter;
use super::round_trip::RoundTrip;

/// What still waits after a read, as a share of the window, when the application and not the
/// path holds the transfer back.
const STALLED: f64 = 0.25;

/// What one epoch of about a round trip or two showed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Epoch {
    /// Receive throughput, payload.
    pub rate: Rate,
    /// Its lowest round trip: what a standing queue leaves of it.
    pub rtt: Duration,
    /// Its highest round trip: what the queue rose to.
    pub highest_rtt: Duration,
    /// The running average of round trips at its end.
    pub average_rtt: Duration,
    /// Whether the sender or the receiver had its application to wait for. Then the rate says
    /// nothing about the path.
    pub stalled: bool,
    /// Segments that the sender retransmitted, or probes lost.
    pub losses: u64,
}

/// Gathers samples into epochs: "decide per RTT or faster, not per second".
#[derive(Debug)]
pub(crate) struct Epochs {
    shortest: Duration,
    meter: Meter,
    stalled: bool,
    /// A stall's backlog is read faster than the path delivers: the epoch after one is no
    /// measurement either.
    stalled_before: bool,
    losses: u64,
    ends: Option<Time>,
}

impl Epochs {
    /// Epochs no shorter than `shortest`.
    pub(crate) fn new(shortest: Duration) -> Epochs {
        Epochs {
            shortest,
            meter: Meter::default(),
            stalled: false,
            stalled_before: false,
            losses: 0,
            ends: None,
        }
    }

    /// Payload reached the application, and `unread` waited behind it.
    pub(crate) fn handle_data(&mut self, now: Time, bytes: Bytes, unread: Bytes, window: Bytes) {
        self.meter.handle_data(now, bytes);
        self.stalled |= unread > window.scaled(STALLED);
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

    /// When the epoch that runs is over.
    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        self.ends
    }

    /// Ends the epoch that is over by `now`; the next one lasts for `span`. Without data or a round
    /// trip it is silent and only the next one begins.
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
        // Data that came at the beginning only: the average over it would be a burst's rate.
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

    /// Begins a new epoch, and forgets what was seen in the one that ran.
    pub(crate) fn restart(&mut self, now: Time, span: Duration, round_trip: &mut RoundTrip) {
        self.ends = Some(now);
        self.poll_epoch(now, span, round_trip);
    }
}
