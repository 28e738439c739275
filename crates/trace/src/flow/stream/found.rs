//! The findings on a stream.

use sweetspot_units::{Bytes, Duration, Rate, Time};

use super::{SenderReport, Stream};
use crate::Histogram;
use crate::flow::accounts::{Accounts, Span};
use crate::flow::counts::Counts;
use crate::flow::deliveries::Deliveries;
use crate::flow::losses::Retransmissions;
use crate::flow::round_trips::RoundTrips;
use crate::flow::rounds::Held;
use crate::flow::silence::{Silence, TimerWaits};

/// The usual MSS (Ethernet, timestamps), until the stream's own is known.
const USUAL_MSS: u64 = 1448;

/// Minimum number of full segments for even spacing or a pace.
const SPACED: u64 = 100;

impl Stream {
    /// Payload of a full segment.
    pub fn mss(&self) -> u64 {
        self.mss.unwrap_or(USUAL_MSS).max(1)
    }

    /// The stream's totals.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Retransmissions, by cause.
    pub fn retransmissions(&self) -> &Retransmissions {
        &self.losses.retransmissions
    }

    /// The position of sequence number `number` in the stream, which never wraps.
    pub fn position(&self, number: u32) -> u64 {
        self.sequence.place(number)
    }

    /// The bytes in flight as the sender knows them (FlightSize).
    pub fn bytes_in_flight(&self) -> Bytes {
        Bytes::new(self.next.saturating_sub(self.una))
    }

    /// The right edge of the window as the sender knows it; `None` if the window is unknown.
    pub fn edge(&self) -> Option<u64> {
        self.edge.filter(|_| self.counts.window_known || self.is_shut())
    }

    /// Whether the capture is at an unknown distance from the sender: neither the handshake nor timestamps show it.
    pub fn is_blind(&self) -> bool {
        self.round_trips.is_blind()
    }

    /// The longest time in which the receiver left repeated retransmissions unanswered, if any.
    pub fn silence(&self) -> Option<Silence> {
        self.silences.longest()
    }

    /// The waits for the sender's retransmission timer before retransmissions that were answered.
    pub fn timer_waits(&self) -> TimerWaits {
        self.silences.timer_waits()
    }

    /// The time in which unread data closed the receiver's window, or left no space for a segment.
    pub fn shut(&self) -> Duration {
        self.rounds.shut
    }

    /// The time since which the receiver's window has been closed, if it is closed.
    pub fn closed_since(&self) -> Option<Time> {
        self.closed_since
    }

    /// Rounds limited by a full window: the mean window, and the mean duration of a round.
    pub fn full_rounds(&self) -> &Held {
        &self.rounds.full_rounds
    }

    /// Rounds limited by neither the window nor a pause: the bytes that each delivered, and how long it took.
    pub fn free_rounds(&self) -> &Held {
        &self.rounds.free_rounds
    }

    /// The largest flight of rounds limited by small messages from the receiver; zero if there were none.
    pub fn granted_flight(&self) -> Bytes {
        Bytes::new(self.rounds.granted_flight)
    }

    /// Whether small messages from the receiver released data so often that a window above TCP is the cause, not chance.
    pub fn is_granted_by_rule(&self) -> bool {
        self.rounds.is_granted_by_rule()
    }

    /// Round trips.
    pub fn round_trips(&self) -> &RoundTrips {
        &self.round_trips
    }

    /// The stream's time, divided by the sender's limits.
    pub fn accounts(&self) -> &Accounts {
        &self.rounds.accounts
    }

    /// The intervals booked since they were last taken; empty unless the connection [records](super::super::Connection::record) them.
    pub fn take_spans(&mut self) -> Vec<Span> {
        self.rounds.accounts.take_spans()
    }

    /// The median over rounds limited by neither the receiver's window nor a pause of the maximum in flight.
    pub fn flight(&self) -> Option<Bytes> {
        self.rounds.flights_seen.quantile(0.5).map(Bytes::new)
    }

    /// The maximum in flight.
    pub fn largest_flight(&self) -> Bytes {
        Bytes::new(self.rounds.largest_flight)
    }

    /// The last RTT before each loss event, in nanoseconds, measured with data sent just before the lost data.
    pub fn before_losses(&self) -> &Histogram {
        &self.before_losses
    }

    /// Maximum error of the largest flight for a capture far from the sender. The times at which acknowledgements reach the
    /// sender are known only roughly, and each covers up to two segments (RFC 1122 §4.2.3.2).
    pub fn flight_error(&self) -> u64 {
        let base = self.round_trips.min().unwrap_or_default().as_secs_f64();
        if self.distance.up() == Duration::ZERO || base == 0.0 {
            return 0;
        }
        let part = (self.blur().as_secs_f64() / base).min(1.0);
        (self.rounds.largest_flight as f64 * part) as u64 + 2 * self.mss()
    }

    /// The rates of trains of acknowledgements in bits per second, weighted with their bytes.
    pub fn train_rates(&self) -> &Histogram {
        self.trains.rates()
    }

    /// The rates of the trains that waited in a queue between the capture and the receiver.
    pub fn queued_train_rates(&self) -> &Histogram {
        self.trains.queued()
    }

    /// Acknowledged data over time.
    pub fn deliveries(&self) -> &Deliveries {
        &self.deliveries
    }

    /// The rate at which the bottleneck delivers queued data, if trains showed it.
    pub fn train_rate(&self) -> Option<Rate> {
        self.trains.rate()
    }

    /// Whether at least a hundred full segments passed the capture point evenly spaced.
    pub fn is_even(&self) -> bool {
        self.spacing.is_even(SPACED * self.mss())
    }

    /// The report of the sender's kernel, if there was one.
    pub fn reported(&self) -> SenderReport {
        self.reported
    }

    /// Whether the receiver's kernel reported that its program mostly reads late.
    pub fn reader_is_late(&self) -> bool {
        self.reader_is_late
    }

    /// The rate at which pieces of different sizes passed the capture point, if each took a time proportional to its bytes. Needs
    /// at least a hundred full segments.
    pub fn pace(&self) -> Option<Rate> {
        self.spacing.pace(SPACED * self.mss()).map(Rate::from_f64)
    }
}
