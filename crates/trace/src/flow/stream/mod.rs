mod again;
mod beginning;
mod bounds;
mod found;
mod hearing;

use std::collections::VecDeque;

use sweetspot_units::{Duration, Time};

use self::beginning::Beginning;
use self::bounds::Bounds;
use super::accounts::Hold;
use super::ack::Ack;
use super::counts::Counts;
use super::credit::Credit;
use super::distance::Distance;
use super::holes::Holes;
use super::losses::Losses;
use super::round_trips::{RoundTrips, Vantage};
use super::rounds::{Rounds, Sending, View};
use super::sequence::Sequence;
use super::silence::Silences;
use super::spacing::Spacing;
use super::trains::Trains;
use super::withdrawn::Withdrawn;
use crate::Histogram;
use crate::packet::Segment;

/// Acknowledgements on their way from the capture to the sender; beyond these they arrive early.
const UNDER_WAY: usize = 8192;
/// Samples after which it is known where the capture is.
const FIRST_SAMPLES: u64 = 4;
/// No round trip is longer than this (RFC 6298 §2.1 begins with a timeout of a second).
const LONGEST_TRIP: Duration = Duration::from_secs(1);
/// The time that a host needs to react to a packet.
const AT_ONCE: Duration = Duration::from_millis(1);
/// The serialisation time of a full frame on the slowest Ethernet, 10 Mbit/s.
const LONGEST_FRAME: Duration = Duration::from_micros(1250);
/// Acknowledgements since data last went that are remembered one by one.
const RECENT: usize = 256;
/// The default segment of hosts that know no better (RFC 9293 §3.7.1), less options: a largest
/// segment below this says nothing of what is full.
const DEFAULT_MSS: u64 = 500;
/// The largest segment that a packet can hold in use (jumbo frames).
const LARGEST: u64 = 9216;
/// The usual segment, until larger or smaller ones are known (Ethernet, timestamps).
const USUAL_MSS: u64 = 1448;

/// An acknowledgement between the capture and the sender.
#[derive(Debug, Clone, Copy)]
struct Underway {
    /// When it passed the capture.
    passed: Time,
    /// When it reaches the sender.
    due: Time,
    /// The receiver's clock in it.
    clock: Option<u32>,
    ack: Ack,
}

/// The data that one side sends, as its sender sees it.
#[derive(Debug, Default)]
pub struct Stream {
    sequence: Sequence,
    next: u64,
    una: u64,
    /// The right edge of the window as the sender knows it, and the window, once one arrived; whether it is still the SYN's,
    /// which a program's first window may be below.
    edge: Option<u64>,
    edge_is_of_syn: bool,
    window: Option<u64>,
    mss: Option<u64>,
    mss_offered: bool,
    /// The most payload of a segment behind which there was more at hand.
    largest_cut: u64,
    holes: Holes,
    losses: Losses,
    withdrawn: Withdrawn,
    round_trips: RoundTrips,
    rounds: Rounds,
    trains: Trains,
    spacing: Spacing,
    acks: VecDeque<Underway>,
    silences: Silences,
    /// Bytes acknowledged before the capture showed them.
    unseen: Holes,
    /// The latest acknowledgement at the capture point.
    passed_ack: u64,
    passed_at: Option<Time>,
    last_sent: Option<Time>,
    last_heard: Option<Time>,
    /// When a small message of the receiver last came after acknowledgements that released nothing.
    granted_at: Option<Time>,
    credit: Credit,
    /// The ends and payloads of unacknowledged segments, the latest of them.
    sizes: VecDeque<(u64, u64)>,
    /// The last acknowledgement that made room, and how long before it the one before came.
    last_room: Option<Time>,
    apart: Duration,
    distance: Distance,
    bounds: Bounds,
    /// The round trip that was measured last before each loss, in nanoseconds.
    before_losses: Histogram,
    /// How long the latest segment's echo of the receiver's clock took, if it was a new one.
    echo: Option<Duration>,
    /// Acknowledgements since data was last sent: when, and what they left under way; and those
    /// too long ago to be told one by one.
    answers: VecDeque<(Time, u64)>,
    more_answers: usize,
    /// How it began, if the handshake is in the capture.
    beginning: Option<Beginning>,
    /// The flight size when data was last sent.
    left_behind: u64,
    burst: u64,
    /// The latest segment ended what was written.
    drained: bool,
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
        self.mss_offered |= mss.is_some();
        if let Some(down) = down {
            self.round_trips.down.add(down);
        }
        if let Some(up) = up {
            self.round_trips.up.add(up);
            self.distance.learn(up, &self.round_trips);
        }
        self.counts.window_known = window_known;
    }

    /// Time passes until `now`: acknowledgements that have reached the sender by then take effect.
    pub(super) fn pass(&mut self, now: Time) {
        while let Some(underway) = self.acks.front().copied().filter(|ack| ack.due <= now) {
            self.acks.pop_front();
            self.hear(underway.due, underway.ack);
        }
        let view = self.view(now);
        self.rounds.pass(&view);
    }

    /// The sender has heard all that it would hear until `due`, and at `now` acts on it.
    fn hear_until(&mut self, due: Time, now: Time) {
        while let Some(underway) = self.acks.front().copied().filter(|ack| ack.due <= due) {
            self.acks.pop_front();
            self.hear(underway.due.min(now), underway.ack);
        }
    }

    /// Whether the sender, and the receiver, are on the network of the capture.
    pub(super) fn place(&mut self, sender: bool, receiver: bool) {
        self.round_trips.place(sender, receiver);
    }

    /// The sender, which paused, names by its clock's echo what it heard last. Of several with that
    /// clock those are meant that are due, to the blur of it.
    fn hear_named(&mut self, segment: &Segment, now: Time) {
        let Some(echo) = segment.options.timestamps.map(|t| t.echo) else { return };
        let due = now + self.blur();
        let meant = |ack: &Underway| {
            let named = |clock: u32| echo.wrapping_sub(clock) as i32 >= 0;
            ack.due <= due && ack.clock.is_some_and(named)
        };
        while let Some(underway) = self.acks.front().copied().filter(meant) {
            self.acks.pop_front();
            self.hear(underway.due.min(now), underway.ack);
        }
    }

    /// Whether acknowledging `number` acknowledges all that was sent.
    pub(super) fn is_acknowledged_by(&self, number: u32) -> bool {
        self.sequence.place(number) >= self.next
    }

    /// At `now` the sender answers what the other side `asked`. Where nothing else tells how far it
    /// is, that is no shorter than the way there and back, if it had been silent for as long.
    pub(super) fn answer(&mut self, now: Time, asked: Time) {
        let took = now.since(asked);
        let silent = self.last_sent.is_none_or(|last| asked.since(last) >= took);
        if silent && took < LONGEST_TRIP && self.round_trips.guess(took) {
            self.distance.learn(took, &self.round_trips);
        }
    }

    /// Time in which nothing was under way is over: it was `hold`.
    pub(super) fn settle(&mut self, now: Time, hold: Hold) {
        let gap = self.last_sent.map_or(Duration::ZERO, |last| now.since(last));
        let hold = match hold {
            // Whether the sender waited for an RTT or for its program is unknown.
            Hold::Idle if self.is_blind() && gap < LONGEST_TRIP && !self.drained => Hold::Unseen,
            hold => hold,
        };
        let away = match self.round_trips.vantage() {
            Vantage::Sender => Duration::ZERO,
            _ => self.round_trips.up.min().unwrap_or_default(),
        };
        self.rounds.settle(hold, now, away);
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

    /// From now on what was when is remembered, too.
    pub(super) fn record(&mut self) {
        self.rounds.accounts.record();
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
    pub(super) fn send(&mut self, segment: &Segment, answers: bool) {
        let (now, payload) = (segment.time, u64::from(segment.payload));
        // A SYN has its own sequence number, before its data's numbers (RFC 7413).
        let first = segment.seq.wrapping_add(segment.flags.syn.into());
        let start = self.sequence.advance(first);
        let end = start + payload;
        self.sequence.advance(first.wrapping_add(segment.payload));
        if self.next == 0 {
            (self.next, self.una) = (start, start);
        }
        // A byte that was sent before, alone: a keep-alive (RFC 9293 §3.8.4).
        if payload == 1 && end <= self.una {
            if self.is_shut() {
                self.probe(now);
            } else {
                self.counts.keep_alives += 1;
            }
            return;
        }
        // A byte beyond a closed window asks whether it has opened (RFC 9293 §3.8.6.1).
        if payload == 1 && start == self.una && self.una == self.next && self.is_shut() {
            self.probe(now);
            return;
        }
        if self.is_copy(start, end, now) {
            self.counts.copies += 1;
            return;
        }
        self.echo(segment);
        self.catch_up(end, segment);
        self.counts.data_segments += 1;
        self.counts.largest_segment = self.counts.largest_segment.max(payload);
        self.counts.offloaded += u64::from(payload > self.mss() && payload > LARGEST);
        self.counts.first_data.get_or_insert(now);
        self.counts.last_data = Some(now);
        if start < self.next {
            self.send_again(now, start, end, segment.options.timestamps);
        } else {
            self.send_new(start, end, segment, answers);
        }
        self.last_sent = Some(now);
        self.left_behind = self.next.saturating_sub(self.una);
        self.answers.clear();
        self.more_answers = 0;
    }

    /// A segment of the stream's sender without payload passes the capture. One numbered before
    /// what was sent last asks for an acknowledgement: to a closed window a probe as Linux sends
    /// it, else a keep-alive.
    pub(super) fn ask(&mut self, segment: &Segment) {
        if self.next == 0 || self.sequence.place(segment.seq) + 1 != self.next {
            return;
        }
        if self.is_shut() {
            self.probe(segment.time);
        } else {
            self.counts.keep_alives += 1;
        }
    }

    fn probe(&mut self, now: Time) {
        self.counts.window_probes += 1;
        self.silences.repeated(now);
    }

    /// Whether the same bytes passed within a fraction of a round trip, and nothing can have made
    /// the sender send them again: they were captured twice.
    fn is_copy(&self, start: u64, end: u64, now: Time) -> bool {
        let Some(passed) = self.round_trips.passed(end).filter(|_| start < self.next) else {
            return false;
        };
        let min = self.round_trips.min().unwrap_or(Duration::from_millis(8));
        now.since(passed) < min / 8 && !self.losses.has_evidence(self.una)
    }

    /// The sender's segments show which acknowledgements it has received: it never sends beyond the window that it knows, nor
    /// more than an initial window before its first acknowledgement, and its timestamp echo names the latest one.
    /// Acknowledgements that seemed to be in flight have then arrived, which bounds the path's delay.
    fn catch_up(&mut self, end: u64, segment: &Segment) {
        let now = segment.time;
        let echo = segment.options.timestamps.map(|t| t.echo);
        let echoed = |ack: &Underway| {
            echo.zip(ack.clock).is_some_and(|(echo, clock)| (echo.wrapping_sub(clock) as i32) > 0)
        };
        while self.acks.front().is_some_and(echoed) {
            let Some(first) = self.acks.pop_front() else { break };
            self.hear(now, first.ack);
        }
        // Earlier data may lie beyond a window that the receiver took back.
        let is_new = end > self.next;
        let beyond_window =
            is_new && self.counts.window_known && self.edge.is_some_and(|edge| end > edge);
        let beyond_start =
            self.beginning.is_some_and(|beginning| beginning.is_over(self.una, end, self.mss()));
        if !beyond_window && !beyond_start {
            return;
        }
        let una = self.una;
        let known = |ack: &Underway| {
            let edge = ack.ack.ack.saturating_add(ack.ack.window);
            (!beyond_window || edge >= end) && (!beyond_start || ack.ack.ack > una)
        };
        let Some(allowing) = self.acks.iter().find(|ack| known(ack)).map(|ack| ack.passed) else {
            return;
        };
        if let Some(max) = self.bounds.learn(now, now.since(allowing), beyond_start, &self.counts) {
            self.bound(max);
        }
        while self.acks.front().is_some_and(|ack| ack.passed <= allowing) {
            let Some(first) = self.acks.pop_front() else { break };
            self.hear(now, first.ack);
        }
        let up = self.distance.up();
        self.acks.iter_mut().for_each(|ack| ack.due = ack.due.min(ack.passed + up));
    }

    /// A sent segment shows that the round trip to the sender is at most `max`.
    fn bound(&mut self, max: Duration) {
        if let Some(min) = self.round_trips.up.min().filter(|min| *min > max) {
            self.counts.handshake_was_slow = true;
            if min > max + self.blur() {
                self.rounds.forget_flights();
            }
            self.round_trips.bound_up(max);
        }
        self.distance.bound(max, &self.round_trips);
    }

    /// Whether the receiver has closed its window; zero is zero, whatever the scale.
    fn is_shut(&self) -> bool {
        self.window == Some(0)
    }

    fn send_new(&mut self, start: u64, end: u64, segment: &Segment, answers: bool) {
        let now = segment.time;
        let missing = start > self.next;
        if missing {
            self.holes.open(self.next, start, now);
        }
        let pause = self.pause(now);
        if pause.is_some() && !self.echoes(now) {
            // An acknowledgement due within the clock's resolution may have ended the pause; timestamps tell.
            self.hear_until(now + self.patience(), now);
        } else if pause.is_some() {
            self.hear_named(segment, now);
        }
        let bytes = end - start;
        self.note_nagle(now, bytes, answers);
        let granted = self.granted_at.take().is_some_and(|at| now.since(at) <= self.patience());
        let midway = granted && self.next > self.una && self.knows_flights();
        if self.sizes.len() == RECENT {
            self.sizes.pop_front();
        }
        self.sizes.push_back((end, bytes));
        self.counts.bytes += bytes;
        if self.mss_offered && self.counts.first_data == Some(now) && self.beginning.is_none() {
            self.beginning = Some(Beginning::new(start));
        }
        self.beginning.iter_mut().for_each(|beginning| beginning.sent(end, pause.is_some()));
        self.burst = if pause.is_some() { bytes } else { self.burst + bytes };
        self.counts.largest_burst = self.counts.largest_burst.max(self.burst);
        self.learn_mss(bytes, segment.flags.psh);
        self.next = end;
        let full = self.is_full(bytes, segment.flags.psh);
        self.drained = !full;
        if !full {
            self.trains.sent_short(end);
        }
        self.spacing.sent(now, bytes, full);
        self.silences.asked(now);
        self.round_trips.sent(end, now, segment.options.timestamps);
        let view = self.view(now);
        let gap = self.last_sent.map_or(Duration::ZERO, |last| now.since(last));
        let sending = Sending { bytes, pause, gap, answers, granted, midway, missing, full };
        self.rounds.sent(&view, &sending);
    }

    /// Counts a small segment that left as soon as the small one before it was acknowledged, late: Nagle's algorithm
    /// waited for a delayed acknowledgement (RFC 1122 §4.2.3.2 allows 500 ms, Linux takes 40 ms and more).
    fn note_nagle(&mut self, now: Time, bytes: u64, answers: bool) {
        const DELAYED: Duration = Duration::from_millis(30);
        let small = bytes < self.mss() && self.drained && self.next == self.una && !answers;
        let (Some(sent), Some(heard), true) = (self.last_sent, self.last_heard, small) else {
            return;
        };
        let waited = heard.since(sent);
        let base = self.round_trips.min().unwrap_or_default();
        if now.since(heard) <= AT_ONCE && waited >= base + DELAYED && base < DELAYED {
            self.counts.nagle_waits += 1;
            self.counts.nagle_time += waited;
        }
    }

    /// Whether a segment of `bytes` is full. One that was not `pushed` was cut off from more that was at hand: it is if it
    /// has nine tenths (options vary) of the largest that the handshake allows or, where the path takes less, of the
    /// largest that was so cut. One that was is full only if it has all of that: else it is the end of what was written.
    fn is_full(&self, bytes: u64, pushed: bool) -> bool {
        let largest = match self.largest_cut {
            0 => self.mss(),
            cut => cut.max(DEFAULT_MSS).min(self.mss()),
        };
        let known = self.mss_offered || self.largest_cut > 0;
        if pushed { known && bytes >= largest } else { 10 * bytes >= 9 * largest }
    }

    /// How well the time is known at which an acknowledgement reaches the sender: seen from afar,
    /// to a millisecond of the receiver's clock, and as well as the queue on the way is known.
    fn blur(&self) -> Duration {
        let base = self.round_trips.min().unwrap_or_default();
        if self.distance.up() == Duration::ZERO {
            AT_ONCE.max(base / 16)
        } else {
            Duration::from_millis(2).max(base / 8)
        }
    }

    /// Whether the flight at any time is known: not if acknowledgements arrive at times known less well than to a round trip.
    fn knows_flights(&self) -> bool {
        let base = self.round_trips.min().unwrap_or_default();
        self.distance.up() == Duration::ZERO || self.blur() < base
    }

    /// The time after an acknowledgement by which the data that it released may appear. If the capture is at the sender or
    /// near: as soon as the handshake was answered and a full segment, longer than those of the handshake, has passed its
    /// device and a switch. Elsewhere: within the accuracy of the known RTT. A sender without data at hand continues when its
    /// program writes; an acknowledgement then coincides only by chance.
    fn patience(&self) -> Duration {
        match self.distance.up() {
            Duration::ZERO => {
                let longer = self.spacing.min().unwrap_or_default().min(LONGEST_FRAME) * 2;
                AT_ONCE + self.round_trips.up.min().unwrap_or_default() + longer
            }
            _ if self.drained => AT_ONCE * 2,
            _ => self.blur(),
        }
    }

    /// Whether the sender paused before it sent at `now`, and if so whether an acknowledgement
    /// made it go on.
    fn pause(&self, now: Time) -> Option<bool> {
        self.round_trips.min()?;
        let up = self.distance.up();
        let short = self.patience();
        let min = if self.drained { short } else { self.blur() };
        if now.since(self.last_sent?) <= min {
            return None;
        }
        // A sender limited by a buffer or a window sends at every few acknowledgements. A sender that lets many pass, until
        // half of the flight has arrived, waited for something else.
        const MANY: usize = 4;
        let passed = self.answers.partition_point(|(at, _)| now.since(*at) > short);
        let left = passed.checked_sub(1).map_or(self.left_behind, |last| self.answers[last].1);
        let many = self.more_answers + passed >= MANY;
        if many && 2 * left < self.left_behind && !self.goes_on_at_once(now) {
            return Some(false);
        }
        if up > Duration::ZERO && self.echoes(now) {
            // The echo tells which acknowledgement the sender had heard, and how long it sat on it.
            return Some(self.echo.is_some_and(|took| took.saturating_sub(up) <= short));
        }
        let heard = self.last_heard.is_some_and(|heard| now.since(heard) <= short);
        Some(heard || self.acks.front().is_some_and(|ack| ack.due.since(now) <= short))
    }

    /// Whether the sender continues right after one of many acknowledgements, which an application-limited sender seldom does:
    /// the acknowledgement freed the space that a large write waits for (sk_stream_min_wspace). Data that wait for space are
    /// not all acknowledged yet.
    fn goes_on_at_once(&self, now: Time) -> bool {
        self.distance.up() == Duration::ZERO
            && self.next > self.una
            && self.last_room.is_some_and(|room| now.since(room) <= self.apart / 4)
    }

    /// Whether the sender's timestamps name what it has heard.
    fn echoes(&self, now: Time) -> bool {
        self.counts.timestamps && !self.round_trips.echo_is_stuck(now)
    }

    fn echo(&mut self, segment: &Segment) {
        self.echo = self.round_trips.echo(segment.time, segment.options.timestamps);
        let Some(took) = self.echo else { return };
        // A sender that sent other data meanwhile did not pause for that long.
        let known = self.round_trips.up.min().and(self.round_trips.min());
        let base = known.unwrap_or(took);
        let paused = self.last_sent.is_none_or(|last| segment.time.since(last) > base / 2);
        if paused {
            return;
        }
        self.round_trips.up.add(took);
        let sample = took;
        if let Some(down) = self.round_trips.down.min() {
            self.distance.learn(sample, &self.round_trips);
            if self.distance.up() > Duration::ZERO {
                self.rounds.rtt(sample + down);
            }
        }
    }

    /// The capture or the connection is over.
    pub(super) fn end(&mut self, now: Time) {
        while let Some(underway) = self.acks.pop_front() {
            self.hear(underway.due.min(now), underway.ack);
        }
        let view = self.view(now);
        let rest = if self.silences.is_unheard() { Hold::Silent } else { Hold::Quiet };
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
        }
    }

    /// Without a handshake the largest segment tells that did not end what was written, unless several are put together.
    fn learn_mss(&mut self, payload: u64, pushed: bool) {
        if payload > LARGEST {
            return;
        }
        if !pushed {
            self.largest_cut = self.largest_cut.max(payload);
        }
        let known = self.mss();
        let larger = payload > known && !payload.is_multiple_of(known);
        let part = !pushed && payload >= DEFAULT_MSS && known.is_multiple_of(payload);
        if !self.mss_offered && (larger || part || (self.mss.is_none() && !pushed)) {
            self.mss = Some(payload);
        }
    }
}
