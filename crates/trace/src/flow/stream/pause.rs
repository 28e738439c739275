//! Pauses of the sender, and the accuracy of the times that reveal them.

use sweetspot_units::{Duration, Time};

use super::Stream;
use crate::packet::Segment;

/// The time that a host needs to react to a packet.
pub(super) const AT_ONCE: Duration = Duration::from_millis(1);
/// The serialisation time of a full frame on the slowest Ethernet, 10 Mbit/s.
const LONGEST_FRAME: Duration = Duration::from_micros(1250);

impl Stream {
    /// Whether the sender paused before it sent at `now`, and if so whether an acknowledgement
    /// made it go on.
    pub(super) fn pause(&self, now: Time) -> Option<bool> {
        self.round_trips.min()?;
        let up = self.distance.up();
        let short = self.patience();
        let min = if self.drained { short } else { self.blur() };
        if now.since(self.last_sent?) <= min {
            return None;
        }
        // A sender limited by a buffer or a window sends at every few acknowledgements. A sender that lets many pass, until
        // half of the flight has arrived, waited for something else; for the window's next update, if that may be full.
        const MANY: usize = 4;
        let passed = self.answers.partition_point(|(at, _)| now.since(*at) > short);
        let left = passed.checked_sub(1).map_or(self.left_behind, |last| self.answers[last].1);
        let many = self.more_answers + passed >= MANY;
        if many
            && !self.may_be_full(self.left_behind)
            && 2 * left < self.left_behind
            && !self.goes_on_at_once(now)
        {
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

    /// The time after an acknowledgement by which the data that it released may appear. If the capture is at the sender or
    /// near: as soon as the handshake was answered and a full segment, longer than those of the handshake, has passed its
    /// device and a switch. Elsewhere: within the accuracy of the known RTT. A sender without data at hand continues when its
    /// program writes; an acknowledgement then coincides only by chance.
    pub(super) fn patience(&self) -> Duration {
        match self.distance.up() {
            Duration::ZERO => {
                let longer = self.spacing.min().unwrap_or_default().min(LONGEST_FRAME) * 2;
                AT_ONCE + self.round_trips.up.min().unwrap_or_default() + longer
            }
            _ if self.drained => AT_ONCE * 2,
            _ => self.blur(),
        }
    }

    /// How well the time is known at which an acknowledgement reaches the sender: seen from afar,
    /// to a millisecond of the receiver's clock, and as well as the queue on the way is known.
    pub(super) fn blur(&self) -> Duration {
        let base = self.round_trips.min().unwrap_or_default();
        if self.distance.up() == Duration::ZERO {
            AT_ONCE.max(base / 16)
        } else {
            Duration::from_millis(2).max(base / 8)
        }
    }

    /// Whether the flight at any time is known: not if acknowledgements arrive at times known less well than to a round trip.
    pub(super) fn knows_flights(&self) -> bool {
        let base = self.round_trips.min().unwrap_or_default();
        self.distance.up() == Duration::ZERO || self.blur() < base
    }

    /// Whether the sender's timestamps name what it has heard.
    pub(super) fn echoes(&self, now: Time) -> bool {
        self.counts.timestamps && !self.round_trips.echo_is_stuck(now)
    }

    pub(super) fn echo(&mut self, segment: &Segment) {
        self.echo = self.round_trips.echo(segment.time, segment.options.timestamps);
        let Some(took) = self.echo else { return };
        // A sender that sent other data meanwhile did not pause for that long.
        let known = self.round_trips.up.min().and(self.round_trips.min());
        let base = known.unwrap_or(took);
        let paused = self.last_sent.is_none_or(|last| segment.time.since(last) > base / 2);
        // Without the handshake, an answer at once shows that the sender is near, even if it has sent nothing for longer than that.
        let is_near = known.is_none() && took <= AT_ONCE;
        if paused && !is_near {
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
}
