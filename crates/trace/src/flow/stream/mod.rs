mod again;
mod beginning;
mod bounds;
mod found;
mod joining;
mod pause;
mod receiving;
mod reported;
mod sending;

use std::collections::VecDeque;

use sweetspot_units::{Duration, Time};

use self::beginning::Beginning;
use self::bounds::Bounds;
pub use self::reported::SenderReport;
use super::accounts::Hold;
use super::ack::Ack;
use super::counts::Counts;
use super::credit::Credit;
use super::deliveries::Deliveries;
use super::distance::Distance;
use super::holes::Holes;
use super::losses::Losses;
use super::round_trips::{RoundTrips, Vantage};
use super::rounds::{Rounds, View};
use super::sequence::Sequence;
use super::silence::Silences;
use super::spacing::Spacing;
use super::trains::Trains;
use super::withdrawn::Withdrawn;
use crate::Histogram;
use crate::packet::Segment;

/// Maximum assumed RTT: the initial RTO is a second (RFC 6298 §2.1).
const LONGEST_TRIP: Duration = Duration::from_secs(1);
/// The largest window scale (RFC 7323 §2.3).
const LARGEST_SCALE: u32 = 14;
/// Maximum number of acknowledgements kept individually since data was last sent.
const RECENT: usize = 256;

/// An acknowledgement between the capture point and the sender.
#[derive(Debug, Clone, Copy)]
struct AckInFlight {
    /// The time at which it passed the capture point.
    passed: Time,
    /// The time at which it reaches the sender.
    due: Time,
    /// The receiver's timestamp in it.
    clock: Option<u32>,
    ack: Ack,
}

/// The data that one side sends, from the sender's point of view.
#[derive(Debug, Default)]
pub struct Stream {
    sequence: Sequence,
    /// The position from which on the capture can show data. Earlier data was sent before the capture, and may be in flight.
    seen_from: Option<u64>,
    /// Whether the capture began in mid-connection.
    joined: bool,
    next: u64,
    una: u64,
    /// The window's right edge as the sender knows it, whether it is still the SYN's, and the window, once one has arrived. The
    /// program's first window may be below the SYN's.
    edge: Option<u64>,
    edge_is_of_syn: bool,
    window: Option<u64>,
    /// The time since which the receiver's window has been closed.
    closed_since: Option<Time>,
    mss: Option<u64>,
    mss_offered: bool,
    /// The largest payload of a segment after which more data was available.
    largest_cut: u64,
    holes: Holes,
    losses: Losses,
    withdrawn: Withdrawn,
    round_trips: RoundTrips,
    rounds: Rounds,
    trains: Trains,
    deliveries: Deliveries,
    spacing: Spacing,
    acks: VecDeque<AckInFlight>,
    silences: Silences,
    /// Bytes acknowledged before the capture showed them.
    unseen: Holes,
    /// The latest acknowledgement at the capture point.
    passed_ack: u64,
    passed_at: Option<Time>,
    last_sent: Option<Time>,
    last_ack_at: Option<Time>,
    /// The time at which a small message from the receiver last came after acknowledgements that released nothing.
    granted_at: Option<Time>,
    credit: Credit,
    /// The end positions and payloads of the latest unacknowledged segments.
    sizes: VecDeque<(u64, u64)>,
    /// The time of the last acknowledgement that opened window space, and the time between it and the previous one.
    last_room: Option<Time>,
    apart: Duration,
    distance: Distance,
    bounds: Bounds,
    /// The last RTT before each loss, in nanoseconds.
    before_losses: Histogram,
    /// The delay of the latest segment's echo of the receiver's timestamp, if the timestamp was new.
    echo: Option<Duration>,
    /// Acknowledgements since data was last sent: the time, and the bytes that remained in flight. `more_answers` counts those
    /// that are no longer kept individually.
    answers: VecDeque<(Time, u64)>,
    more_answers: usize,
    /// The stream's beginning, if the handshake is in the capture.
    beginning: Option<Beginning>,
    /// The bytes in flight when data was last sent.
    left_behind: u64,
    burst: u64,
    /// The latest segment ended the data written so far.
    drained: bool,
    /// The sender has sent a FIN.
    finished: bool,
    reported: SenderReport,
    /// Whether the receiver's kernel reported that its program reads late.
    reader_is_late: bool,
    counts: Counts,
}

impl Stream {
    /// Takes from the handshake the MSS, the delay of acknowledgements to the sender, and whether the receiver's window can be
    /// known.
    pub(super) fn prepare(
        &mut self,
        mss: Option<u64>,
        [up, down]: [Option<Duration>; 2],
        window_known: bool,
    ) {
        self.mss = mss.or(self.mss);
        self.mss_offered |= mss.is_some();
        if let Some(down) = down {
            self.round_trips.down.open(down);
        }
        if let Some(up) = up {
            self.round_trips.up.add(up);
            self.distance.learn(up, &self.round_trips);
        }
        self.counts.window_known = window_known;
    }

    /// The receiver's window can be known, although the handshake is not in the capture.
    pub(super) fn know_window(&mut self) {
        self.counts.window_known = true;
    }

    /// The sender's kernel reports on its data.
    pub(super) fn know_sender(&mut self, report: SenderReport) {
        self.reported = report;
        self.round_trips.place_sender_here();
    }

    /// The receiver's kernel reports whether the program mostly reads late.
    pub(super) fn know_reader(&mut self, is_late: bool) {
        self.reader_is_late = is_late;
    }

    /// Advances the time to `now`: acknowledgements that have reached the sender by then take effect.
    pub(super) fn pass(&mut self, now: Time) {
        while let Some(in_flight) = self.acks.front().copied().filter(|ack| ack.due <= now) {
            self.acks.pop_front();
            self.receive_ack(in_flight.due, in_flight.ack);
        }
        let view = self.view(now);
        self.rounds.pass(&view);
    }

    /// Sets whether the sender and the receiver are on the network of the capture.
    pub(super) fn place(&mut self, sender: bool, receiver: bool) {
        self.round_trips.place(sender, receiver);
    }

    /// Whether an acknowledgement of `number` acknowledges all data sent.
    pub(super) fn is_acknowledged_by(&self, number: u32) -> bool {
        self.sequence.place(number) >= self.next
    }

    /// At `now` the sender answers a request that the other side sent at `requested_at`. If nothing else shows the sender's distance,
    /// this time is an upper bound of the RTT to it, provided that it had been silent for as long.
    pub(super) fn answer(&mut self, now: Time, requested_at: Time) {
        let took = now.since(requested_at);
        let silent = self.last_sent.is_none_or(|last| requested_at.since(last) >= took);
        if silent && took < LONGEST_TRIP && self.round_trips.guess(took) {
            self.distance.learn(took, &self.round_trips);
        }
    }

    /// Ends a time without data in flight, which was `hold`.
    pub(super) fn settle(&mut self, now: Time, hold: Hold) {
        let gap = self.last_sent.map_or(Duration::ZERO, |last| now.since(last));
        let hold = match hold {
            // Whether the sender waited for an RTT or for its program is unknown.
            Hold::Idle if self.is_blind() && gap < LONGEST_TRIP && !self.drained => Hold::Unseen,
            Hold::Idle if self.may_be_full(0) => Hold::IdleOrFull,
            hold => hold,
        };
        let away = match self.round_trips.vantage() {
            Vantage::Sender => Duration::ZERO,
            _ => self.round_trips.up.min().unwrap_or_default(),
        };
        self.rounds.settle(hold, away);
    }

    /// Whether the receiver's window, of unknown scale, may have stopped the sender at `flight`. The last segment was full, and
    /// the smallest window has no space for two more at the smallest scale at which the largest flight fits the largest window.
    fn may_be_full(&self, flight: u64) -> bool {
        if self.counts.window_known || self.drained || self.next == 0 {
            return false;
        }
        let (min, max) = (self.counts.windows.min().unwrap_or(0), self.counts.largest_window);
        let scale = (0..=LARGEST_SCALE).find(|scale| max << scale >= self.rounds.largest_flight);
        scale.is_none_or(|scale| min << scale < flight + 2 * self.mss())
    }

    /// Whether the capture misses data between the last segment and `segment`.
    pub(super) fn misses(&self, segment: &Segment) -> bool {
        self.next > 0 && self.sequence.place(segment.seq) > self.next
    }

    /// Whether `segment` has new data.
    pub(super) fn is_new(&self, segment: &Segment) -> bool {
        let first = segment.seq.wrapping_add(segment.flags.syn.into());
        self.next == 0 || self.sequence.place(first.wrapping_add(segment.payload)) > self.next
    }

    /// Records from now on the intervals of each account.
    pub(super) fn record(&mut self) {
        self.rounds.accounts.record();
    }

    /// A SYN of the stream's sender.
    pub(super) fn synchronise(&mut self, segment: &Segment) {
        let start = self.sequence.advance(segment.seq.wrapping_add(1));
        self.seen_from.get_or_insert(start);
        self.next = self.next.max(start);
        self.una = self.una.max(start);
    }

    /// The stream's sender has no more to send.
    pub(super) fn finish(&mut self) {
        self.finished = true;
    }

    /// The connection is open: the time since `begun` was needed to open it.
    pub(super) fn open(&mut self, begun: Time, now: Time) {
        self.rounds.open(begun, now);
    }

    /// The bytes of data, and of a FIN, that were sent and not acknowledged.
    pub fn unacknowledged(&self) -> u64 {
        self.next.saturating_sub(self.una)
    }

    /// Whether the receiver has closed its window. Zero does not depend on the scale.
    fn is_shut(&self) -> bool {
        self.window == Some(0)
    }

    /// Whether the capture is known to be at the sender, so that it shows everything sent.
    fn is_at_sender(&self) -> bool {
        self.round_trips.vantage() == Vantage::Sender
    }

    /// The capture or the connection has ended.
    pub(super) fn end(&mut self, now: Time) {
        while let Some(in_flight) = self.acks.pop_front() {
            self.receive_ack(in_flight.due.min(now), in_flight.ack);
        }
        let view = self.view(now);
        let rest = if self.silences.is_missing_acks() { Hold::Silent } else { Hold::Quiet };
        self.rounds.end(&view, rest);
        self.silences.end(now);
    }

    fn view(&self, now: Time) -> View {
        View {
            now,
            next: self.next,
            una: self.una,
            edge: self.edge(),
            mss: self.mss(),
            largest: self.counts.largest_window,
            finished: self.finished,
            last_repair: self.losses.last_repair(),
            base: self.round_trips.min(),
            repeats: self.silences.repeats(),
            at_sender: self.is_at_sender(),
        }
    }
}
