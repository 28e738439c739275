//! Handles the sender's segments as they pass the capture.

use sweetspot_units::{Duration, Time};

use super::beginning::Beginning;
use super::pause::AT_ONCE;
use super::{RECENT, Stream};
use crate::flow::rounds::Sending;
use crate::packet::Segment;

/// About the default MSS of hosts without the option (RFC 9293 §3.7.1), less options. A largest segment below this does not
/// show the size of a full segment.
const DEFAULT_MSS: u64 = 500;
/// The largest segment of packets in use (jumbo frames).
const LARGEST: u64 = 9216;

impl Stream {
    /// Handles a segment with payload from the stream's sender.
    pub(in crate::flow) fn send(&mut self, segment: &Segment, answers: bool) {
        let (now, payload) = (segment.time, u64::from(segment.payload));
        // The SYN itself takes the sequence number before its data (RFC 7413).
        let first = segment.seq.wrapping_add(segment.flags.syn.into());
        let start = self.sequence.advance(first);
        let end = start + payload;
        self.sequence.advance(first.wrapping_add(segment.payload));
        if self.next == 0 {
            (self.next, self.una) = (start, start);
        }
        // A single byte that was sent before: a keep-alive (RFC 9293 §3.8.4).
        if payload == 1 && end <= self.una {
            if self.is_shut() {
                self.probe(now);
            } else {
                self.counts.keep_alives += 1;
            }
            return;
        }
        // A single byte beyond a closed window: a window probe (RFC 9293 §3.8.6.1).
        if payload == 1 && start == self.una && self.una == self.next && self.is_shut() {
            self.probe(now);
            return;
        }
        if self.is_copy(start, end, now) {
            self.counts.copies += 1;
            return;
        }
        self.join(start);
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

    /// Handles a segment without payload from the stream's sender. If its number is one below the next, it requests an
    /// acknowledgement: at a closed window it is a window probe of Linux, otherwise a keep-alive.
    pub(in crate::flow) fn handle_probe(&mut self, segment: &Segment) {
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

    /// Whether the same bytes passed within a fraction of the RTT, and no evidence of a loss can explain a retransmission. Then
    /// they were captured twice.
    fn is_copy(&self, start: u64, end: u64, now: Time) -> bool {
        let Some(passed) = self.round_trips.passed(end).filter(|_| start < self.next) else {
            return false;
        };
        let min = self.round_trips.min().unwrap_or(Duration::from_millis(8));
        now.since(passed) < min / 8 && !self.losses.has_evidence(self.una)
    }

    fn send_new(&mut self, start: u64, end: u64, segment: &Segment, answers: bool) {
        let now = segment.time;
        let missing = start > self.next;
        if missing {
            self.holes.open(self.next, start, now);
        }
        let pause = self.pause(now);
        if pause.is_some() && !self.echoes(now) {
            // An acknowledgement due within the accuracy of its time may have ended the pause. With timestamps, the echo shows
            // which.
            self.receive_acks_until(now + self.patience(), now);
        } else if pause.is_some() {
            self.receive_echoed_acks(segment, now);
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
        self.silences.sent_data(now);
        self.round_trips.sent(end, now, segment.options.timestamps);
        let view = self.view(now);
        let gap = self.last_sent.map_or(Duration::ZERO, |last| now.since(last));
        let sending = Sending { bytes, pause, gap, answers, granted, midway, missing, full };
        self.rounds.sent(&view, &sending);
    }

    /// Counts a small segment that was sent right after the late acknowledgement of the small segment before: Nagle's algorithm
    /// waited for a delayed acknowledgement (RFC 1122 §4.2.3.2 allows 500 ms, Linux takes 40 ms or more).
    fn note_nagle(&mut self, now: Time, bytes: u64, answers: bool) {
        const DELAYED: Duration = Duration::from_millis(30);
        let small = bytes < self.mss() && self.drained && self.next == self.una && !answers;
        let (Some(sent), Some(received), true) = (self.last_sent, self.last_ack_at, small) else {
            return;
        };
        let waited = received.since(sent);
        let base = self.round_trips.min().unwrap_or_default();
        if now.since(received) <= AT_ONCE && waited >= base + DELAYED {
            self.counts.nagle_waits += 1;
            self.counts.nagle_time += waited;
        }
    }

    /// Whether a segment of `bytes` is full. A segment that was not `pushed` was cut from more queued data: it is full if it
    /// has nine tenths (options vary) of the handshake's MSS or, if the path carries less, of the largest segment cut in this
    /// way. A `pushed` segment may be the end of a write: it is full only if it has all of that.
    fn is_full(&self, bytes: u64, pushed: bool) -> bool {
        let largest = match self.largest_cut {
            0 => self.mss(),
            cut => cut.max(DEFAULT_MSS).min(self.mss()),
        };
        let known = self.mss_offered || self.largest_cut > 0;
        if pushed { known && bytes >= largest } else { 10 * bytes >= 9 * largest }
    }

    /// Without a handshake, the largest segment that did not end a write gives the MSS, unless it is several segments combined.
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
