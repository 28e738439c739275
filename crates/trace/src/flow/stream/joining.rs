//! Handles connections with data in flight when the capture began.

use sweetspot_units::{Duration, Time};

use super::Stream;
use crate::flow::accounts::Hold;
use crate::flow::ack::Ack;
use crate::flow::holes::Holes;

impl Stream {
    /// Handles the first new data, from `start` on. Earlier data were sent before the capture began, so the capture missed none
    /// of them.
    pub(super) fn join(&mut self, start: u64) {
        if self.seen_from.is_some() || start < self.next {
            return;
        }
        (self.seen_from, self.joined) = (Some(start), true);
        self.rounds.join();
        (self.holes, self.counts.unseen) = (Holes::default(), 0);
        self.next = start;
    }

    /// Handles the first acknowledgement at the sender. If data passed before, everything beyond this acknowledgement was in
    /// flight, too.
    pub(super) fn join_flight(&mut self, ack: &Ack) {
        if self.joined && self.last_ack_at.is_none() {
            self.una = self.una.min(ack.ack);
        }
    }

    /// Handles acknowledged data that were not captured: they must have been sent.
    pub(super) fn note_unseen(&mut self, now: Time, ack: &Ack) {
        if ack.ack > self.next && !self.acked_fin(ack.ack) {
            self.holes.open(self.next, ack.ack, now);
            self.unseen.open(self.next, ack.ack, now);
            self.counts.first_unseen.get_or_insert(now);
            // If packets are missing, the gap proves no pause.
            self.rounds.settle(Hold::Unseen, Duration::ZERO);
            self.next = ack.ack;
        }
        // Data selectively acknowledged before the first new data were sent before the capture began, and so were the holes
        // between them. If the first acknowledgement covers later data than have passed, the data that passed were a repair.
        if self.joined && self.counts.acks == 0 && ack.sacked > self.next {
            self.seen_from = None;
        }
        if self.seen_from.is_none() {
            self.next = self.next.max(ack.sacked);
        }
        self.sequence.advance(self.next as u32);
    }

    /// Whether `ack` acknowledges a FIN, which takes one sequence number after the payload.
    fn acked_fin(&self, ack: u64) -> bool {
        ack == self.next + 1
    }
}
