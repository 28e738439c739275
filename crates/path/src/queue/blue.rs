use sweetspot_units::{Bytes, Duration, Time, Volume};

use super::Queue;
use super::fifo::Fifo;
use crate::{Packet, Random};

/// BLUE (Feng, Kandlur, Saha, Shin: "BLUE: a new class of active queue management algorithms", University of Michigan
/// CSE-TR-387-99, 1999): one probability drops or marks arrivals. A full queue raises it, an idle link lowers it.
#[derive(Debug, Clone)]
pub struct Blue<P> {
    limit: Volume,
    config: BlueConfig,
    queue: Fifo<P>,
    /// p_m.
    probability: f64,
    last_update: Time,
    idle_since: Option<Time>,
    random: Random,
}

/// The parameters of [`Blue`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BlueConfig {
    /// Added to the probability when the queue overflows: delta1.
    pub increment: f64,
    /// Subtracted from the probability while the link is idle: delta2.
    pub decrement: f64,
    /// The shortest time between two changes: freeze_time.
    pub freeze: Duration,
    /// Whether packets that support ECN are marked instead of dropped early.
    pub ecn: bool,
}

impl Default for BlueConfig {
    /// The fastest of the paper's settings, with a freeze time in the range of the paper's round-trip times, without
    /// marking.
    fn default() -> BlueConfig {
        BlueConfig {
            increment: 0.02,
            decrement: 0.002,
            freeze: Duration::from_millis(100),
            ecn: false,
        }
    }
}

impl<P> Blue<P> {
    /// An empty queue with the capacity `limit`, including the packet in service. `seed` determines which packets are
    /// dropped.
    pub fn new(limit: Volume, config: BlueConfig, seed: u64) -> Blue<P> {
        Blue {
            limit,
            config,
            queue: Fifo::default(),
            probability: 0.0,
            last_update: Time::ZERO,
            idle_since: Some(Time::ZERO),
            random: Random::new(seed),
        }
    }

    /// The current probability.
    pub fn probability(&self) -> f64 {
        self.probability
    }

    /// "Upon link idle event": while a link stays idle, there is one such event per freeze time.
    fn end_idleness(&mut self, now: Time) {
        let Some(since) = self.idle_since.take() else { return };
        if self.probability == 0.0 {
            // The probability is already zero: the next overflow must not wait for the freeze time.
            return;
        }
        let freeze = self.config.freeze.as_nanos().max(1);
        // The first event is due when the queue ran empty, or a freeze time after the last change, whichever is
        // later.
        let first = since.max(self.last_update + self.config.freeze);
        if now < first {
            return;
        }
        let times = now.since(first).as_nanos() / freeze;
        self.probability = (self.probability - self.config.decrement * (times + 1) as f64).max(0.0);
        self.last_update = first + self.config.freeze * times;
    }

    /// "Upon packet loss event".
    fn handle_overflow(&mut self, now: Time) {
        if now.since(self.last_update) > self.config.freeze {
            self.probability = (self.probability + self.config.increment).min(1.0);
            self.last_update = now;
        }
    }
}

impl<P: Packet> Queue<P> for Blue<P> {
    fn enqueue(
        &mut self,
        now: Time,
        mut packet: P,
        size: Bytes,
        in_service: Bytes,
    ) -> Result<(), P> {
        self.end_idleness(now);
        if !self.queue.has_room(self.limit, size, in_service) {
            self.handle_overflow(now);
            return Err(packet);
        }
        let chosen = self.random.unit() < self.probability;
        if chosen && !(self.config.ecn && packet.mark_ecn()) {
            return Err(packet);
        }
        self.queue.push(now, packet, size);
        Ok(())
    }

    fn dequeue(&mut self, now: Time, _dropped: &mut dyn FnMut(P)) -> Option<(P, Bytes)> {
        let Some(head) = self.queue.pop() else {
            self.idle_since.get_or_insert(now);
            return None;
        };
        Some((head.packet, head.size))
    }

    fn packets(&self) -> u64 {
        self.queue.packets()
    }

    fn bytes(&self) -> Bytes {
        self.queue.bytes()
    }
}
