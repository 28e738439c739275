//! Detects pauses of the sender, and estimates the accuracy of the times that show them.

use sweetspot_units::{Duration, Time};

use super::Stream;
use crate::packet::Segment;

/// The time within which a host reacts to a packet.
pub(super) const AT_ONCE: Duration = Duration::from_millis(1);
/// The transmission time of a full frame on the slowest Ethernet, at 10 Mbit/s.
const LONGEST_FRAME: Duration = Duration::from_micros(1250);

impl Stream {
    /// Whether the sender paused before it sent at `now`, and if so, whether an acknowledgement ended the pause.
    pub(super) fn pause(&self, now: Time) -> Option<bool> {
        self.round_trips.min()?;
        let up = self.distance.up();
        let short = self.patience();
        let min = if self.drained { short } else { self.blur() };
        if now.since(self.last_sent?) <= min {
            return None;
        }
        // A sender limited by a buffer or a window sends after every few acknowledgements. If it sends nothing until half of
        // the flight is acknowledged, it waited for something else or, if the window may be full, for a window update.
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
            // The echo shows which acknowledgement the sender had received, and how long it waited after that.
            return Some(self.echo.is_some_and(|took| took.saturating_sub(up) <= short));
        }
        let received = self.last_ack_at.is_some_and(|received| now.since(received) <= short);
        Some(received || self.acks.front().is_some_and(|ack| ack.due.since(now) <= short))
    }

    /// Whether the sender continues right after one of many acknowledgements. An application-limited sender rarely does. The
    /// acknowledgement freed the buffer space that a large write waits for (sk_stream_min_wspace), and some data are still
    /// unacknowledged.
    fn goes_on_at_once(&self, now: Time) -> bool {
        self.distance.up() == Duration::ZERO
            && self.next > self.una
            && self.last_room.is_some_and(|room| now.since(room) <= self.apart / 4)
    }

    /// The maximum time between an acknowledgement and the data that it released. At or near the sender: the time of the
    /// handshake's answer, plus the extra time of a full segment at the sender's device and at a switch. Elsewhere: the
    /// accuracy of the known RTT. A sender without queued data continues when its program writes, and then only by chance right
    /// after an acknowledgement.
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

    /// The accuracy of the time at which an acknowledgement reaches the sender. Far from the sender it is limited by a
    /// millisecond of the receiver's timestamp clock, and by the unknown queue on the way.
    pub(super) fn blur(&self) -> Duration {
        let base = self.round_trips.min().unwrap_or_default();
        if self.distance.up() == Duration::ZERO {
            AT_ONCE.max(base / 16)
        } else {
            Duration::from_millis(2).max(base / 8)
        }
    }

    /// Whether the flight is known at any time. It is not if the arrival times of acknowledgements are less accurate than an
    /// RTT.
    pub(super) fn knows_flights(&self) -> bool {
        let base = self.round_trips.min().unwrap_or_default();
        self.distance.up() == Duration::ZERO || self.blur() < base
    }

    /// Whether the sender's timestamps show which segments it has received.
    pub(super) fn echoes(&self, now: Time) -> bool {
        self.counts.timestamps && !self.round_trips.echo_is_stuck(now)
    }

    pub(super) fn echo(&mut self, segment: &Segment) {
        self.echo = self.round_trips.echo(segment.time, segment.options.timestamps);
        let Some(took) = self.echo else { return };
        // If the sender sent other data in the meantime, it did not pause for that long.
        let known = self.round_trips.up.min().and(self.round_trips.min());
        let base = known.unwrap_or(took);
        let paused = self.last_sent.is_none_or(|last| segment.time.since(last) > base / 2);
        // Without a handshake, an immediate answer shows that the sender is near, even if it sent nothing for longer than that.
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
