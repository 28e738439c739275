use sweetspot_units::{Bytes, Duration, Time, Volume};

use super::Queue;
use super::fifo::Fifo;
use crate::{Packet, Random};

/// Random Early Detection (Floyd and Jacobson, IEEE/ACM ToN 1(4), 1993) with the gentle option
/// (Floyd, "Recommendation on using the gentle variant of RED", 2000).
#[derive(Debug, Clone)]
pub struct Red<P> {
    config: RedConfig,
    queue: Fifo<P>,
    average: f64,
    /// Packets admitted since the last drop, while the average is above the lower threshold.
    since_drop: u32,
    /// The time at which the link became idle.
    idle_since: Option<Time>,
    random: Random,
}

/// The parameters of [`Red`]. Thresholds and average are in the unit of `limit`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RedConfig {
    /// The limit, including the packet in service. Its unit determines whether the queue is measured in packets or in
    /// bytes.
    pub limit: Volume,
    /// Below this average nothing is dropped: min_th.
    pub lower: f64,
    /// At this average the drop probability is `max_probability`: max_th.
    pub upper: f64,
    /// Weight of a new queue length in the average: w_q.
    pub weight: f64,
    /// The drop probability at `upper`: max_p.
    pub max_probability: f64,
    /// Whether the probability continues to rise from `upper` to one at twice `upper`, instead of
    /// jumping to one.
    pub gentle: bool,
    /// Whether packets that support ECN are marked instead of dropped early.
    pub ecn: bool,
    /// The serialisation time of a mean packet. While the link is idle, the average decays as if one packet per such time
    /// had found the queue empty.
    pub packet_time: Duration,
    /// If the queue is measured in bytes, a packet of this size is dropped with the computed probability, a smaller one
    /// with a proportionally lower probability.
    pub mean_packet: Bytes,
}

impl RedConfig {
    /// The common configuration for a buffer of `limit` behind a link that sends a packet of `mean_packet` in
    /// `packet_time`. w_q is 0.002 and max_th = 3 min_th (section 7 of the paper); max_p is 0.1, with gentle (Floyd's
    /// later advice). max_th is half of the limit, so twice max_th is the whole limit.
    pub fn new(limit: Volume, mean_packet: Bytes, packet_time: Duration) -> RedConfig {
        let room = match limit {
            Volume::Bytes(room) => room.as_f64(),
            Volume::Packets(room) => room as f64,
        };
        RedConfig {
            limit,
            lower: room / 6.0,
            upper: room / 2.0,
            weight: 0.002,
            max_probability: 0.1,
            gentle: true,
            ecn: false,
            packet_time,
            mean_packet,
        }
    }
}

/// The decision about an arrival, from the average queue length.
enum RedDecision {
    Admit,
    Early,
    Forced,
}

impl<P> Red<P> {
    /// An empty queue. `seed` determines which packets are dropped early.
    pub fn new(config: RedConfig, seed: u64) -> Red<P> {
        Red {
            config,
            queue: Fifo::default(),
            average: 0.0,
            since_drop: 0,
            idle_since: Some(Time::ZERO),
            random: Random::new(seed),
        }
    }

    /// The average queue length, in the unit of the limit.
    pub fn average(&self) -> f64 {
        self.average
    }

    fn length(&self) -> f64 {
        match self.config.limit {
            Volume::Bytes(_) => self.queue.bytes().as_f64(),
            Volume::Packets(_) => self.queue.packets() as f64,
        }
    }

    fn update_average(&mut self, now: Time) {
        let weight = self.config.weight;
        if let Some(since) = self.idle_since.take() {
            // m = (time - q_time) / s; avg = (1 - w_q)^m avg
            let missed = now.since(since).as_nanos() as f64
                / (self.config.packet_time.as_nanos().max(1)) as f64;
            self.average *= libm::pow(1.0 - weight, missed);
        }
        // avg = (1 - w_q) avg + w_q q
        self.average += weight * (self.length() - self.average);
    }

    /// p_b: the drop probability from the average alone; `None`: every packet is dropped.
    fn base_probability(&self) -> Option<f64> {
        let RedConfig { lower, upper, max_probability: max, gentle, .. } = self.config;
        if self.average < upper {
            // p_b = max_p (avg - min_th) / (max_th - min_th)
            Some(max * (self.average - lower) / (upper - lower))
        } else if gentle && self.average < 2.0 * upper {
            // from max_p at max_th to one at 2 max_th
            Some(max + (1.0 - max) * (self.average - upper) / upper)
        } else {
            None
        }
    }

    fn judge(&mut self, size: Bytes) -> RedDecision {
        if self.average < self.config.lower {
            self.since_drop = 0;
            return RedDecision::Admit;
        }
        let Some(mut base) = self.base_probability() else {
            self.since_drop = 0;
            return RedDecision::Forced;
        };
        if let Volume::Bytes(_) = self.config.limit {
            // p_b = p_b PacketSize / MaximumPacketSize
            base *= size.as_f64() / self.config.mean_packet.as_f64();
        }
        // p_a = p_b / (1 - count p_b), count from 0: the gap between drops is uniform on 1 .. 1/p_b packets (section 7,
        // method 2), so that drops are not clustered.
        let spread = 1.0 - f64::from(self.since_drop) * base;
        let drops = spread <= 0.0 || self.random.unit() < base / spread;
        self.since_drop = if drops { 0 } else { self.since_drop + 1 };
        if drops { RedDecision::Early } else { RedDecision::Admit }
    }
}

impl<P: Packet> Queue<P> for Red<P> {
    fn enqueue(
        &mut self,
        now: Time,
        mut packet: P,
        size: Bytes,
        in_service: Bytes,
    ) -> Result<(), P> {
        self.update_average(now);
        let dropped = match self.judge(size) {
            RedDecision::Admit => false,
            RedDecision::Early => !(self.config.ecn && packet.mark_ecn()),
            // RFC 3168 section 7: above the thresholds, marking is no longer enough.
            RedDecision::Forced => true,
        };
        if dropped || !self.queue.has_room(self.config.limit, size, in_service) {
            return Err(packet);
        }
        self.queue.push(now, packet, size);
        Ok(())
    }

    fn dequeue(&mut self, now: Time, _dropped: &mut dyn FnMut(P)) -> Option<(P, Bytes)> {
        let Some(head) = self.queue.pop() else {
            self.idle_since = Some(now);
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
