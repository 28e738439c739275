use std::collections::VecDeque;

use sweetspot_units::{Bytes, Duration, Rate, Time};

use super::accounts::Accounts;
use super::ack::Ack;
use super::counts::Counts;
use super::distance::Distance;
use super::holes::Holes;
use super::losses::{Again, Losses, Resent};
use super::round_trips::{RoundTrips, Vantage};
use super::rounds::{Rounds, View};
use super::sequence::Sequence;
use super::trains::Trains;
use crate::packet::{Segment, Timestamps};

/// Acknowledgements on their way from the capture to the sender; beyond these they arrive early.
const UNDER_WAY: usize = 8192;
/// The usual segment, until larger or smaller ones are known (Ethernet, timestamps).
const USUAL_MSS: u64 = 1448;

/// The data that one side sends, as its sender sees it.
#[derive(Debug, Default)]
pub struct Stream {
    sequence: Sequence,
    next: u64,
    una: u64,
    edge: u64,
    window: u64,
    mss: Option<u64>,
    holes: Holes,
    losses: Losses,
    round_trips: RoundTrips,
    rounds: Rounds,
    trains: Trains,
    acks: VecDeque<(Time, Ack)>,
    last_sent: Option<Time>,
    last_heard: Option<Time>,
    /// The last acknowledgement that made room, and how long before it the one before came.
    last_room: Option<Time>,
    apart: Duration,
    distance: Distance,
    /// How long the latest segment's echo of the receiver's clock took, if it was a new one.
    echo: Option<Duration>,
    /// Acknowledgements since data was last sent, and what was under way then.
    unanswered: u32,
    left_behind: u64,
    burst: u64,
    /// Its sender said that there is no more.
    finished: bool,
    counts: Counts,
}

impl Stream {
    /// The handshake tells the largest segment, how far acknowledgements have to the sender, and
    /// whether the receiver's window can be known.
    pub(super) fn prepare(
        &mut self,
        mss: Option<u64>,
        [up, down]: [Option<Duration>; 2],
        window_known: bool,
    ) {
        self.mss = mss.or(self.mss);
        if let (Some(up), Some(down)) = (up, down) {
            self.round_trips.up.add(up);
            self.round_trips.down.add(down);
            self.distance.learn(up, &self.round_trips);
        }
        self.counts.window_known = window_known;
    }

    /// Time passes until `now`: acknowledgements that have reached the sender by then take effect.
    pub(super) fn pass(&mut self, now: Time) {
        while let Some((due, ack)) = self.acks.front().copied().filter(|(due, _)| *due <= now) {
            self.acks.pop_front();
            self.hear(due, ack);
        }
        let view = self.view(now);
        self.rounds.pass(&view);
    }

    /// A SYN of the stream's sender.
    pub(super) fn synchronise(&mut self, segment: &Segment) {
        let start = self.sequence.advance(segment.seq.wrapping_add(1));
        self.next = self.next.max(start);
        self.una = self.una.max(start);
    }

    /// The stream's sender has no more to send.
    pub(super) fn finish(&mut self) {
        self.finished = true;
    }

    /// The connection is open: the time since `begun` went into that.
    pub(super) fn open(&mut self, begun: Time, now: Time) {
        self.rounds.open(begun, now);
    }

    /// A segment of the stream's sender that carries payload passes the capture.
    pub(super) fn send(&mut self, segment: &Segment) {
        let (now, payload) = (segment.time, u64::from(segment.payload));
        // A SYN has a number of its own, before that of the data it may carry (RFC 7413).
        let first = segment.seq.wrapping_add(segment.flags.syn.into());
        let start = self.sequence.advance(first);
        let end = start + payload;
        self.sequence.advance(first.wrapping_add(segment.payload));
        if self.next == 0 {
            (self.next, self.una) = (start, start);
        }
        // A byte that was sent before, alone: a keep-alive (RFC 9293 §3.8.4).
        if payload == 1 && end <= self.una {
            return;
        }
        // A byte beyond a closed window asks whether it has opened (RFC 9293 §3.8.6.1).
        if payload == 1 && start == self.una && self.una == self.next && self.is_shut() {
            return;
        }
        self.echo(segment);
        self.counts.data_segments += 1;
        self.counts.first_data.get_or_insert(now);
        self.counts.last_data = Some(now);
        if start < self.next {
            self.send_again(now, start, end, segment.options.timestamps);
        } else {
            self.send_new(now, start, end, segment.options.timestamps);
        }
        self.last_sent = Some(now);
        (self.unanswered, self.left_behind) = (0, self.next.saturating_sub(self.una));
    }

    /// Whether the receiver has closed its window; zero is zero, whatever the scale.
    fn is_shut(&self) -> bool {
        self.window == 0 && self.counts.acks > 0
    }

    fn send_new(&mut self, now: Time, start: u64, end: u64, timestamps: Option<Timestamps>) {
        if start > self.next {
            self.holes.open(self.next, start, now);
        }
        let pause = self.pause(now);
        self.counts.bytes += end - start;
        self.burst = if pause.is_some() { end - start } else { self.burst + (end - start) };
        self.counts.largest_burst = self.counts.largest_burst.max(self.burst);
        self.learn_mss(end - start);
        self.next = end;
        self.round_trips.sent(end, now, timestamps);
        let view = self.view(now);
        self.rounds.sent(&view, end - start, pause);
    }

    fn send_again(&mut self, now: Time, start: u64, end: u64, timestamps: Option<Timestamps>) {
        let since = self.holes.fill(start, end);
        let base = self.round_trips.least().unwrap_or_default();
        if since.is_some_and(|since| now.since(since) < base.max(Duration::from_millis(6)) / 2) {
            // Overtaken on its way: a retransmission takes a round trip.
            self.counts.out_of_order += 1;
            self.counts.bytes += end - start;
        } else {
            let active = self.last_sent.max(self.last_heard).unwrap_or(now);
            self.losses.sent_again(&Again {
                now,
                start,
                end,
                next: self.next,
                una: self.una,
                mss: self.mss(),
                pause: now.since(active),
                rtt: base,
            });
            self.counts.bytes += if since.is_some() { end - start } else { 0 };
        }
        self.round_trips.resent(start, end, now, timestamps);
        if end > self.next {
            self.counts.bytes += end - self.next;
            self.next = end;
            self.round_trips.sent(end, now, timestamps);
        }
    }

    /// Whether the sender paused before it sent at `now`, and if so whether an acknowledgement
    /// made it go on.
    fn pause(&self, now: Time) -> Option<bool> {
        let base = self.round_trips.least()?;
        let up = self.distance.up();
        // Where acknowledgements reach the sender is estimated when seen from afar: to a
        // millisecond of the receiver's clock, and as well as the queue on the way is known.
        let blur = if up == Duration::ZERO { base / 16 } else { base / 8 };
        let short = Duration::from_millis(if up == Duration::ZERO { 1 } else { 2 }).max(blur);
        if now.since(self.last_sent?) <= short {
            return None;
        }
        // Who is held by a buffer or a window sends at every few acknowledgements. Who lets many
        // pass, until half of what was under way has arrived, waited for something else.
        const MANY: u32 = 4;
        let left = self.next.saturating_sub(self.una);
        if self.unanswered >= MANY && 2 * left < self.left_behind && !self.goes_on_at_once(now) {
            return Some(false);
        }
        if up > Duration::ZERO && self.counts.timestamps {
            // The echo tells which acknowledgement the sender had heard, and how long it sat on it.
            return Some(self.echo.is_some_and(|took| took.saturating_sub(up) <= short));
        }
        let heard = self.last_heard.is_some_and(|heard| now.since(heard) <= short);
        Some(heard || self.acks.front().is_some_and(|(due, _)| due.since(now) <= short))
    }

    /// Whether the sender goes on right after one of many acknowledgements, as who chooses a time of
    /// his own seldom does: it made the room that a large write waits for (sk_stream_min_wspace). What
    /// waits for room is not all acknowledged yet.
    fn goes_on_at_once(&self, now: Time) -> bool {
        self.distance.up() == Duration::ZERO
            && self.next > self.una
            && self.last_room.is_some_and(|room| now.since(room) <= self.apart / 4)
    }

    fn echo(&mut self, segment: &Segment) {
        let base = self.round_trips.least().unwrap_or(Duration::MAX);
        let paused = self.last_sent.is_none_or(|last| segment.time.since(last) > base / 2);
        self.echo = self.round_trips.echo(segment.time, segment.options.timestamps, paused);
        let sample = self.echo.filter(|_| !paused);
        if let Some((sample, down)) = sample.zip(self.round_trips.down.least()) {
            self.distance.learn(sample, &self.round_trips);
            if self.distance.up() > Duration::ZERO {
                self.rounds.rtt(sample + down);
            }
        }
    }

    /// A segment of the receiver passes the capture.
    pub(super) fn acknowledge(&mut self, segment: &Segment, scale: u8) {
        let now = segment.time;
        self.round_trips.clock(now, segment.options.timestamps);
        let ack = self.sequence.place(segment.ack);
        if self.next == 0 || ack > self.next.saturating_add(1 << 30) {
            return;
        }
        // What was acknowledged was sent, even if the capture missed it.
        if ack > self.next && !self.acked_fin(ack) {
            self.holes.open(self.next, ack, now);
            self.next = ack;
            self.sequence.advance(segment.ack);
        }
        self.counts.acks += 1;
        self.counts.timestamps |= segment.options.timestamps.is_some();
        self.counts.last_ack = Some(now);
        let sample = self.round_trips.acked(ack, now, segment.options.timestamps);
        if let Some(sample) = sample.filter(|_| self.round_trips.vantage() != Vantage::Receiver) {
            self.rounds.rtt(sample + self.round_trips.up.least().unwrap_or_default());
        }
        self.counts.unseen += self.holes.close_below(ack);
        let flight = self.next.saturating_sub(self.una);
        self.trains.acked(now, ack, flight, self.mss(), self.losses.in_recovery());
        let ack = Ack::read(segment, ack, scale, &self.sequence);
        if self.distance.up() == Duration::ZERO || self.acks.len() >= UNDER_WAY {
            if let Some((due, first)) = self.acks.pop_front() {
                self.hear(due.min(now), first);
                self.acks.push_back((now, ack));
            } else {
                self.hear(now, ack);
            }
        } else {
            // Acknowledgements do not overtake one another.
            let due = (now + self.distance.up()).max(self.acks.back().map_or(now, |(due, _)| *due));
            self.acks.push_back((due, ack));
        }
    }

    /// A FIN takes a number that no payload has.
    fn acked_fin(&self, ack: u64) -> bool {
        ack == self.next + 1
    }

    /// An acknowledgement reaches the sender.
    fn hear(&mut self, now: Time, ack: Ack) {
        let view = self.view(now);
        self.rounds.pass(&view);
        let advanced = ack.ack > self.una;
        let outstanding = self.next > self.una;
        let duplicate = ack.pure
            && ack.ack == self.una
            && outstanding
            && (ack.window == self.window || ack.sacked > ack.ack);
        self.losses.heard(ack.ack, advanced, duplicate, ack.sacked, ack.dsack);
        if advanced {
            self.counts.acked += ack.ack.min(self.next) - self.una;
            self.una = ack.ack.min(self.next);
            let before = self.last_room.replace(now);
            self.apart = now.since(before.unwrap_or(now));
        }
        if ack.window == 0 && self.window > 0 {
            self.counts.zero_windows += 1;
        }
        self.window = ack.window;
        self.counts.largest_window = self.counts.largest_window.max(ack.window);
        self.edge = self.edge.max(ack.ack.saturating_add(ack.window));
        self.last_heard = Some(now);
        self.unanswered += u32::from(advanced);
        let view = self.view(now);
        self.rounds.acked(&view);
    }

    /// The capture or the connection is over.
    pub(super) fn end(&mut self, now: Time) {
        while let Some((due, ack)) = self.acks.pop_front() {
            self.hear(due.min(now), ack);
        }
        let view = self.view(now);
        self.rounds.end(&view);
    }

    fn view(&self, now: Time) -> View {
        View {
            now,
            next: self.next,
            una: self.una,
            edge: (self.counts.window_known || self.is_shut()).then_some(self.edge),
            mss: self.mss(),
            largest: self.counts.largest_window,
            finished: self.finished,
            last_loss: self.losses.last_loss(),
            base: self.round_trips.least(),
        }
    }

    /// Without a handshake the largest segment tells, unless it was not cut up yet.
    fn learn_mss(&mut self, payload: u64) {
        const LARGEST: u64 = 9216;
        if self.mss.is_none_or(|mss| payload > mss) && payload <= LARGEST {
            self.mss = Some(payload);
        }
    }

    /// Payload of a full segment.
    pub fn mss(&self) -> u64 {
        self.mss.unwrap_or(USUAL_MSS).max(1)
    }

    /// What it adds up to.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// What was sent again, and why.
    pub fn resent(&self) -> &Resent {
        &self.losses.resent
    }

    /// Round trips.
    pub fn round_trips(&self) -> &RoundTrips {
        &self.round_trips
    }

    /// Where its time went.
    pub fn accounts(&self) -> &Accounts {
        &self.rounds.accounts
    }

    /// The window that was found full, in the median; if it ever was.
    pub fn full_window(&self) -> Option<Bytes> {
        self.rounds.full_windows.quantile(0.5).map(Bytes::new)
    }

    /// The most that was under way in a round that neither the receiver's window nor a pause
    /// bounded, in the median.
    pub fn flight(&self) -> Option<Bytes> {
        self.rounds.flights_seen.quantile(0.5).map(Bytes::new)
    }

    /// The most that ever was under way.
    pub fn largest_flight(&self) -> Bytes {
        Bytes::new(self.rounds.largest_flight)
    }

    /// The rate at which the path delivers what waits at its bottleneck, if trains showed it.
    pub fn train_rate(&self) -> Option<Rate> {
        self.trains.rate()
    }
}
