//! The receiver's segments, which pass the capture point and later reach the sender.

use sweetspot_units::{Duration, Time};

use super::{AckInFlight, RECENT, Stream};
use crate::flow::ack::Ack;
use crate::flow::round_trips::Vantage;
use crate::packet::Segment;

/// Maximum number of acknowledgements between the capture point and the sender. Beyond it, the oldest count as arrived early.
const MAX_ACKS_IN_FLIGHT: usize = 8192;
/// Number of RTT samples after which the capture's position is known.
const FIRST_SAMPLES: u64 = 4;

impl Stream {
    /// A segment from the receiver passes the capture point.
    pub(in crate::flow) fn acknowledge(&mut self, segment: &Segment, scale: u8) {
        let now = segment.time;
        self.round_trips.clock(now, segment.options.timestamps);
        let ack = self.sequence.place(segment.ack);
        if self.next == 0 {
            // No data that it acknowledges was captured, but its window counts.
            let first = self.sequence.advance(segment.ack);
            (self.next, self.una) = (first, first);
            self.seen_from = segment.flags.syn.then_some(first);
            self.unseen.open(0, first, now);
            self.rounds.begin(now);
        }
        if ack > self.next.saturating_add(1 << 30) {
            return;
        }
        let received = Ack::read(segment, ack, scale, &self.sequence);
        self.note_unseen(now, &received);
        self.counts.acks += 1;
        self.counts.timestamps |= segment.options.timestamps.is_some();
        if !segment.options.cut && !segment.flags.syn {
            match segment.options.timestamps {
                Some(_) => self.counts.with_timestamps += 1,
                None => self.counts.without_timestamps += 1,
            }
        }
        self.counts.last_ack = Some(now);
        let sample = self.round_trips.acked(ack, now, segment.options.timestamps);
        // If the handshake shows only one half of the RTT, the first samples of the other half show the capture's position.
        if sample.is_some() && self.round_trips.samples() <= FIRST_SAMPLES {
            let up = self.round_trips.up.min();
            up.into_iter().for_each(|up| self.distance.learn(up, &self.round_trips));
        }
        // The acknowledgement of fewer than two full segments may have been delayed (RFC 1122 §4.2.3.2), which is not a
        // queueing delay.
        let prompt = self.next.saturating_sub(self.passed_ack) >= 2 * self.mss();
        let is_sample = prompt && self.round_trips.vantage() != Vantage::Receiver;
        if let Some(sample) = sample.filter(|_| is_sample) {
            self.rounds.rtt(sample + self.round_trips.up.min().unwrap_or_default());
        }
        self.counts.unseen += self.holes.close_below(ack);
        let flight = self.next.saturating_sub(self.una);
        let repairs = self.losses.in_recovery() || self.withdrawn.is_open(self.una);
        let wait =
            sample.zip(self.round_trips.down.min()).map(|(sample, min)| sample.saturating_sub(min));
        self.trains.acked(now, (ack, wait.unwrap_or_default()), flight, self.mss(), repairs);
        if ack > self.passed_ack {
            (self.passed_ack, self.passed_at) = (ack, Some(now));
        }
        let ack = received;
        let clock = segment.options.timestamps.map(|t| t.value);
        let up = self.distance.up();
        if up == Duration::ZERO && self.acks.is_empty() {
            self.receive_ack(now, ack);
            return;
        }
        if self.acks.len() >= MAX_ACKS_IN_FLIGHT
            && let Some(first) = self.acks.pop_front()
        {
            self.receive_ack(first.due.min(now), first.ack);
        }
        // Acknowledgements do not overtake one another.
        let due = (now + up).max(self.acks.back().map_or(now, |last| last.due));
        self.acks.push_back(AckInFlight { passed: now, due, clock, ack });
        self.receive_acks_until(now, now);
    }

    /// An acknowledgement reaches the sender.
    pub(super) fn receive_ack(&mut self, now: Time, ack: Ack) {
        self.join_flight(&ack);
        let view = self.view(now);
        self.rounds.pass(&view);
        let advanced = ack.ack > self.una;
        let outstanding = self.next > self.una;
        let duplicate = ack.pure
            && ack.ack == self.una
            && outstanding
            && (Some(ack.window) == self.window || ack.sacked > ack.ack);
        self.losses.received(ack.ack, advanced, duplicate, ack.sacked, ack.dsack);
        self.counts.foreign_sacks += u64::from(ack.foreign);
        self.note_grant(now, &ack);
        self.move_edge(&ack, advanced);
        if advanced {
            self.rounds.answered(&view);
            let acked = ack.ack.min(self.next) - self.una;
            self.counts.acked += acked;
            self.deliveries.add(now, acked);
            self.una = ack.ack.min(self.next);
            while self.sizes.front().is_some_and(|(end, _)| *end <= self.una) {
                let Some((_, bytes)) = self.sizes.pop_front() else { break };
                self.counts.largest_acked = self.counts.largest_acked.max(bytes);
            }
            let before = self.last_room.replace(now);
            self.apart = now.since(before.unwrap_or(now));
            self.note_answer(now);
        }
        // The answer to a window probe does not open the window, but it is an answer.
        if advanced || self.is_shut() {
            self.silences.answered(now, self.next > self.una, self.is_at_sender());
        }
        // A proxy may answer a SYN with a window of zero, which is not a closed window.
        if ack.window == 0 && self.window != Some(0) && !ack.opens {
            self.counts.zero_windows += 1;
        }
        // Acknowledged data passed while the window was open.
        let since = self.closed_since.filter(|_| !advanced).unwrap_or(now);
        self.closed_since = (ack.window == 0 && !ack.opens).then_some(since);
        self.window = Some(ack.window);
        self.counts.largest_window = self.counts.largest_window.max(ack.window);
        self.counts.windows.add(ack.window, 1);
        self.last_ack_at = Some(now);
        let view = self.view(now);
        self.rounds.acked(&view);
    }

    /// Updates the window's right edge. It may move left by more than the rounding of the scale, because some receivers
    /// withdraw part of their window (RFC 7323 §2.4). The later of two acknowledgements with the same number may be the older
    /// one.
    fn move_edge(&mut self, ack: &Ack, advanced: bool) {
        let edge = ack.ack.saturating_add(ack.window);
        let latest = advanced || (ack.window == 0 && ack.ack == self.una);
        let is_first = std::mem::replace(&mut self.edge_is_of_syn, ack.opens) && !ack.opens;
        match self.edge {
            Some(before) if edge < before && !is_first => {
                if latest && before - edge >= ack.grain {
                    self.edge = Some(edge);
                    self.counts.shrunk_windows += 1;
                    if self.counts.window_known || ack.window == 0 {
                        self.withdrawn.take_back(edge, self.next);
                    }
                }
            }
            _ => self.edge = Some(edge),
        }
    }

    /// Records a small message from the receiver that may release more data than acknowledgements do, such as an HTTP/2
    /// WINDOW_UPDATE, an SSH window adjustment or an SFTP request. It comes after an acknowledgement that released nothing, or
    /// in the middle of a flight that ended with a short segment.
    fn note_grant(&mut self, now: Time, ack: &Ack) {
        let unused = self.more_answers + self.answers.len() > 0;
        let midway = self.drained && ack.ack < self.next;
        if ack.payload == 0 || 2 * ack.payload > self.mss() {
            return;
        }
        if unused || midway {
            self.granted_at = Some(now);
        }
        if let Some(window) = self.credit.received(ack.ack, self.next, self.mss()) {
            self.rounds.grant(window);
        }
    }

    fn note_answer(&mut self, now: Time) {
        if self.answers.len() == RECENT {
            self.answers.pop_front();
            self.more_answers += 1;
        }
        self.answers.push_back((now, self.next.saturating_sub(self.una)));
    }

    /// The sender has received all acknowledgements due until `due`, and acts on them at `now`.
    pub(super) fn receive_acks_until(&mut self, due: Time, now: Time) {
        while let Some(in_flight) = self.acks.front().copied().filter(|ack| ack.due <= due) {
            self.acks.pop_front();
            self.receive_ack(in_flight.due.min(now), in_flight.ack);
        }
    }

    /// After a pause, the sender's timestamp echo shows the latest acknowledgement it received. If several have this
    /// timestamp, those that are due count, within the uncertainty of the delay.
    pub(super) fn receive_echoed_acks(&mut self, segment: &Segment, now: Time) {
        let Some(echo) = segment.options.timestamps.map(|t| t.echo) else { return };
        let due = now + self.blur();
        let is_echoed = |ack: &AckInFlight| {
            let named = |clock: u32| echo.wrapping_sub(clock) as i32 >= 0;
            ack.due <= due && ack.clock.is_some_and(named)
        };
        while let Some(in_flight) = self.acks.front().copied().filter(is_echoed) {
            self.acks.pop_front();
            self.receive_ack(in_flight.due.min(now), in_flight.ack);
        }
    }

    /// The sender's segments show which acknowledgements it has received: it never sends beyond the window that it knows, nor
    /// more than an initial window before its first acknowledgement, and its timestamp echo names the latest one.
    /// Acknowledgements that seemed to be in flight have then arrived, which bounds the path's delay.
    pub(super) fn catch_up(&mut self, end: u64, segment: &Segment) {
        let now = segment.time;
        let echo = segment.options.timestamps.map(|t| t.echo);
        let echoed = |ack: &AckInFlight| {
            echo.zip(ack.clock).is_some_and(|(echo, clock)| (echo.wrapping_sub(clock) as i32) > 0)
        };
        while self.acks.front().is_some_and(echoed) {
            let Some(first) = self.acks.pop_front() else { break };
            self.receive_ack(now, first.ack);
        }
        // Earlier data may be beyond a window that the receiver withdrew.
        let is_new = end > self.next;
        let beyond_window =
            is_new && self.counts.window_known && self.edge.is_some_and(|edge| end > edge);
        let beyond_start =
            self.beginning.is_some_and(|beginning| beginning.is_over(self.una, end, self.mss()));
        if !beyond_window && !beyond_start {
            return;
        }
        let una = self.una;
        let known = |ack: &AckInFlight| {
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
            self.receive_ack(now, first.ack);
        }
        let up = self.distance.up();
        self.acks.iter_mut().for_each(|ack| ack.due = ack.due.min(ack.passed + up));
    }

    /// A sent segment shows that the RTT to the sender is at most `max`.
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
}
