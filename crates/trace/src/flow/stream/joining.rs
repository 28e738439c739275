//! A connection that the capture joins while data is under way.

use sweetspot_units::{Duration, Time};

use super::Stream;
use crate::flow::accounts::Hold;
use crate::flow::ack::Ack;
use crate::flow::holes::Holes;

impl Stream {
    /// The first new data passes, from `start` on: the data before it was sent before the capture began, which so missed
    /// nothing of it.
    pub(super) fn join(&mut self, start: u64) {
        if self.seen_from.is_some() || start < self.next {
            return;
        }
        (self.seen_from, self.joined) = (Some(start), true);
        self.rounds.join();
        (self.holes, self.counts.unseen) = (Holes::default(), 0);
        self.next = start;
    }

    /// The first acknowledgement reaches the sender. If data passed before it, all that it does not acknowledge was under way, too.
    pub(super) fn join_flight(&mut self, ack: &Ack) {
        if self.joined && self.last_heard.is_none() {
            self.una = self.una.min(ack.ack);
        }
    }

    /// Acknowledged data were sent, even if the capture missed them.
    pub(super) fn note_unseen(&mut self, now: Time, ack: &Ack) {
        if ack.ack > self.next && !self.acked_fin(ack.ack) {
            self.holes.open(self.next, ack.ack, now);
            self.unseen.open(self.next, ack.ack, now);
            self.counts.first_unseen.get_or_insert(now);
            // Missing packets prove no pause.
            self.rounds.settle(Hold::Unseen, Duration::ZERO);
            self.next = ack.ack;
        }
        // Data acknowledged selectively before the capture shows new data was sent before it, and so were its holes. If the first
        // acknowledgement has later data than passed, that data was a repair.
        if self.joined && self.counts.acks == 0 && ack.sacked > self.next {
            self.seen_from = None;
        }
        if self.seen_from.is_none() {
            self.next = self.next.max(ack.sacked);
        }
        self.sequence.advance(self.next as u32);
    }

    /// A FIN takes a number that no payload has.
    fn acked_fin(&self, ack: u64) -> bool {
        ack == self.next + 1
    }
}
