//! The findings on a stream.

use sweetspot_units::{Bytes, Duration, Rate, Time};

use super::Stream;
use crate::Histogram;
use crate::flow::accounts::{Accounts, Span};
use crate::flow::counts::Counts;
use crate::flow::deliveries::Deliveries;
use crate::flow::losses::Retransmissions;
use crate::flow::round_trips::RoundTrips;
use crate::flow::rounds::Held;
use crate::flow::silence::{Silence, TimerWaits};

/// The usual segment, until larger or smaller ones are known (Ethernet, timestamps).
const USUAL_MSS: u64 = 1448;

/// Full segments from which on their spacing shows a pace.
const SPACED: u64 = 100;

impl Stream {
    /// Payload of a full segment.
    pub fn mss(&self) -> u64 {
        self.mss.unwrap_or(USUAL_MSS).max(1)
    }

    /// Its totals.
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

    /// The flight size as the sender knows it.
    pub fn under_way(&self) -> Bytes {
        Bytes::new(self.next.saturating_sub(self.una))
    }

    /// The position of the right edge of the window that the sender knows of, if it is known.
    pub fn edge(&self) -> Option<u64> {
        self.edge.filter(|_| self.counts.window_known || self.is_shut())
    }

    /// Whether the capture is far from the sender and how far is unknown: neither the handshake nor
    /// timestamps tell.
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

    /// How long the receiver's window was shut.
    pub fn shut(&self) -> Duration {
        self.rounds.shut
    }

    /// Since when the receiver's window has been closed, if it is.
    pub fn closed_since(&self) -> Option<Time> {
        self.closed_since
    }

    /// Rounds that a full window held: the window, and how long a round took, in the mean.
    pub fn full_rounds(&self) -> &Held {
        &self.rounds.full_rounds
    }

    /// Rounds limited by neither the window nor a pause, likewise with their flights.
    pub fn free_rounds(&self) -> &Held {
        &self.rounds.free_rounds
    }

    /// The largest flight of rounds that small messages of the receiver limited; zero if there were none.
    pub fn granted_flight(&self) -> Bytes {
        Bytes::new(self.rounds.granted_flight)
    }

    /// Whether small messages of the receiver released data so often that a window above TCP, and not chance, made it so.
    pub fn is_granted_by_rule(&self) -> bool {
        self.rounds.is_granted_by_rule()
    }

    /// Round trips.
    pub fn round_trips(&self) -> &RoundTrips {
        &self.round_trips
    }

    /// Where its time went.
    pub fn accounts(&self) -> &Accounts {
        &self.rounds.accounts
    }

    /// The intervals booked since they were last taken; empty unless the connection [records](super::super::Connection::record) them.
    pub fn take_spans(&mut self) -> Vec<Span> {
        self.rounds.accounts.take_spans()
    }

    /// The most that was under way in a round that neither the receiver's window nor a pause
    /// bounded, in the median.
    pub fn flight(&self) -> Option<Bytes> {
        self.rounds.flights_seen.quantile(0.5).map(Bytes::new)
    }

    /// The most data that was ever in flight.
    pub fn largest_flight(&self) -> Bytes {
        Bytes::new(self.rounds.largest_flight)
    }

    /// The round trips, in nanoseconds, measured last before each loss event: what had been sent
    /// just before what was lost.
    pub fn before_losses(&self) -> &Histogram {
        &self.before_losses
    }

    /// By how much the largest flight may be too large, seen from afar: by the data that is about to be acknowledged, as well as the time
    /// is known at which acknowledgements, each of up to two segments (RFC 1122 §4.2.3.2), reach the sender.
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

    /// How much was acknowledged when.
    pub fn deliveries(&self) -> &Deliveries {
        &self.deliveries
    }

    /// The rate at which the path delivers what waits at its bottleneck, if trains showed it.
    pub fn train_rate(&self) -> Option<Rate> {
        self.trains.rate()
    }

    /// Whether full segments, a hundred at least, passed the capture evenly spaced.
    pub fn is_even(&self) -> bool {
        self.spacing.is_even(SPACED * self.mss())
    }

    /// The rate at which pieces of different sizes passed the capture, each taking the time of its bytes, if a hundred full
    /// segments did.
    pub fn pace(&self) -> Option<Rate> {
        self.spacing.pace(SPACED * self.mss()).map(Rate::from_f64)
    }
}
