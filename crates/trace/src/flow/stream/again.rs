//! Retransmitted segments.

use sweetspot_units::{Duration, Time};

use super::Stream;
use crate::flow::accounts::Hold;
use crate::flow::losses::{Again, RetransmissionKind};
use crate::packet::Timestamps;

impl Stream {
    /// A segment with bytes that were sent before passes the capture point.
    pub(super) fn send_again(
        &mut self,
        now: Time,
        start: u64,
        end: u64,
        timestamps: Option<Timestamps>,
    ) {
        let since = self.holes.fill(start, end);
        let base = self.round_trips.min().unwrap_or_default();
        let soon = base.max(Duration::from_millis(6)) / 2;
        let crossed = self.unseen.fill(start, end).is_some_and(|at| now.since(at) < soon);
        if crossed {
            // It was captured after its own acknowledgement.
            self.counts.out_of_order += 1;
            self.counts.bytes += end - start;
            self.counts.unseen = self.counts.unseen.saturating_sub(end - start);
        } else if since.is_some_and(|since| now.since(since) < soon) {
            // It was overtaken on the path: a retransmission would take a round trip.
            self.counts.out_of_order += 1;
            self.counts.bytes += end - start;
        } else {
            self.lost(now, [start, end], base);
            self.counts.bytes += if since.is_some() { end - start } else { 0 };
        }
        self.round_trips.retransmitted(start, end, now, timestamps);
        if self.silences.repeats() >= 2 {
            let smallest = self.counts.smallest_lost.get_or_insert(end - start);
            *smallest = (*smallest).min(end - start);
        }
        if end > self.next {
            self.counts.bytes += end - self.next;
            self.next = end;
            self.round_trips.sent(end, now, timestamps);
        }
    }

    fn lost(&mut self, now: Time, [start, end]: [u64; 2], rtt: Duration) {
        let active = self.last_sent.max(self.last_ack_at).unwrap_or(now);
        let edge = self.edge.unwrap_or(u64::MAX);
        let again = Again {
            now,
            end,
            next: self.next,
            una: self.una,
            mss: self.mss(),
            pause: now.since(active),
            rtt,
            taken_back: self.withdrawn.retransmitted(start, end, edge),
        };
        let before = self.losses.retransmissions.events;
        let kind = self.losses.sent_again(&again);
        if self.losses.retransmissions.events > before
            && let Some(latest) = self.round_trips.latest()
        {
            self.before_losses.add(latest.as_nanos(), 1);
        }
        match kind {
            RetransmissionKind::Timeout if again.is_timed_out() => {
                self.silences.timed_out(now, again.pause)
            }
            RetransmissionKind::TakenBack if again.is_timed_out() => self.silences.repeated(now),
            RetransmissionKind::Needless if again.is_timed_out() => {
                // The sender's timer expired all the same.
                self.silences.beyond(self.passed_at.unwrap_or(active), now);
                if self.next > self.una {
                    self.silences.repeated(now);
                }
                self.rounds.settle(Hold::Silent, Duration::ZERO);
            }
            _ => {}
        }
    }
}
