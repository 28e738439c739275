use sweetspot_units::{Bytes, Duration, Time, Volume};

use super::Queue;
use super::fifo::{Fifo, WaitingPacket};
use crate::Packet;

/// Controlled Delay (RFC 8289): drops at the head, ever faster, while every packet of the last
/// interval waited longer than a target.
#[derive(Debug, Clone)]
pub struct Codel<P> {
    limit: Volume,
    config: CodelConfig,
    queue: Fifo<P>,
    control: CodelControl,
}

/// The parameters of [`Codel`]. By default the target is 5 ms, the interval 100 ms (RFC 8289, sections 4.2 and 4.3),
/// and packets are not marked.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CodelConfig {
    /// The tolerated standing delay.
    pub target: Duration,
    /// The time for which a delay must persist: about the longest round-trip time.
    pub interval: Duration,
    /// Whether packets that support ECN are marked instead of dropped.
    pub ecn: bool,
}

impl Default for CodelConfig {
    fn default() -> CodelConfig {
        CodelConfig {
            target: Duration::from_millis(5),
            interval: Duration::from_millis(100),
            ecn: false,
        }
    }
}

impl<P> Codel<P> {
    /// An empty queue with the capacity `limit`, including the packet in service.
    pub fn new(limit: Volume, config: CodelConfig) -> Codel<P> {
        Codel { limit, config, queue: Fifo::default(), control: CodelControl::default() }
    }
}

impl<P: Packet> Queue<P> for Codel<P> {
    fn enqueue(&mut self, now: Time, packet: P, size: Bytes, in_service: Bytes) -> Result<(), P> {
        if !self.queue.has_room(self.limit, size, in_service) {
            return Err(packet);
        }
        self.queue.push(now, packet, size);
        Ok(())
    }

    fn dequeue(&mut self, now: Time, dropped: &mut dyn FnMut(P)) -> Option<(P, Bytes)> {
        self.control.dequeue(now, &self.config, &mut self.queue, dropped)
    }

    fn packets(&self) -> u64 {
        self.queue.packets()
    }

    fn bytes(&self) -> Bytes {
        self.queue.bytes()
    }
}

/// CoDel's state for one queue, apart from the queue so that FQ-CoDel can have many.
#[derive(Debug, Clone, Default)]
pub(super) struct CodelControl {
    /// The time at which the delay will have persisted for an interval; `None` while it is below the target.
    first_above: Option<Time>,
    /// Time of the next drop; valid while dropping, and for some time afterwards.
    drop_next: Time,
    /// Packets dropped since the dropping state was entered.
    count: u32,
    /// `count` when the dropping state was entered.
    last_count: u32,
    dropping: bool,
    largest_packet: Bytes,
}

impl CodelControl {
    /// RFC 8289 section 5.5, dequeue().
    pub(super) fn dequeue<P: Packet>(
        &mut self,
        now: Time,
        config: &CodelConfig,
        queue: &mut Fifo<P>,
        dropped: &mut dyn FnMut(P),
    ) -> Option<(P, Bytes)> {
        let (mut head, mut is_standing) = self.next(now, config, queue);
        if self.dropping {
            self.dropping = is_standing;
            while self.dropping && now >= self.drop_next {
                self.count += 1;
                let (spared, next) = punish(head, config, dropped);
                if spared {
                    self.drop_next = self.control_law(self.drop_next, config);
                    return next.map(|w| (w.packet, w.size));
                }
                (head, is_standing) = self.next(now, config, queue);
                self.dropping = is_standing;
                if is_standing {
                    self.drop_next = self.control_law(self.drop_next, config);
                }
            }
        } else if is_standing {
            let (spared, next) = punish(head, config, dropped);
            head = if spared { next } else { self.next(now, config, queue).0 };
            self.enter_dropping(now, config);
        }
        head.map(|w| (w.packet, w.size))
    }

    /// Starts at the previous drop rate if the last dropping state was recent.
    fn enter_dropping(&mut self, now: Time, config: &CodelConfig) {
        self.dropping = true;
        let delta = self.count.saturating_sub(self.last_count);
        let lately = now.since(self.drop_next) < config.interval * 16;
        self.count = if delta > 1 && lately { delta } else { 1 };
        self.drop_next = self.control_law(now, config);
        self.last_count = self.count;
    }

    /// Section 5.4: t + interval / sqrt(count).
    fn control_law(&self, t: Time, config: &CodelConfig) -> Time {
        t + config.interval.scaled(1.0 / f64::from(self.count).sqrt())
    }

    /// Section 5.6, dodequeue(): the head, and whether the delay has persisted for an interval.
    fn next<P: Packet>(
        &mut self,
        now: Time,
        config: &CodelConfig,
        queue: &mut Fifo<P>,
    ) -> (Option<WaitingPacket<P>>, bool) {
        let Some(head) = queue.pop() else {
            self.first_above = None;
            return (None, false);
        };
        self.largest_packet = self.largest_packet.max(head.size);
        let sojourn = now.since(head.arrived);
        let mut is_standing = false;
        if sojourn < config.target || queue.bytes() <= self.largest_packet {
            self.first_above = None;
        } else if let Some(due) = self.first_above {
            is_standing = now >= due;
        } else {
            self.first_above = Some(now + config.interval);
        }
        (Some(head), is_standing)
    }
}

/// Marks the packet and keeps it if possible; otherwise drops it.
fn punish<P: Packet>(
    head: Option<WaitingPacket<P>>,
    config: &CodelConfig,
    dropped: &mut dyn FnMut(P),
) -> (bool, Option<WaitingPacket<P>>) {
    let Some(mut waiting) = head else { return (false, None) };
    if config.ecn && waiting.packet.mark_ecn() {
        return (true, Some(waiting));
    }
    dropped(waiting.packet);
    (false, None)
}
