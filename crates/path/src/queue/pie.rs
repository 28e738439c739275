use sweetspot_units::{Bytes, Duration, Time, Volume};

use super::Queue;
use super::fifo::Fifo;
use crate::{Packet, Random};

/// Proportional Integral controller Enhanced (RFC 8033): drops arrivals with a probability that a proportional integral
/// controller adjusts so that the queueing delay meets a target. The delay is that measured on the last served packet.
/// Section 5.2 allows timestamps instead of an estimated rate, as in Linux.
#[derive(Debug, Clone)]
pub struct Pie<P> {
    limit: Volume,
    config: PieConfig,
    queue: Fifo<P>,
    /// drop_prob.
    probability: f64,
    /// The sum of `probability` since the last drop: accu_prob.
    accumulated: f64,
    /// The remaining time for which bursts pass: burst_allowance.
    allowance: Duration,
    delay: Duration,
    /// The delay at the last update: qdelay_old.
    last_delay: Duration,
    next_update: Time,
    random: Random,
}

/// The parameters of [`Pie`]; the defaults are in RFC 8033, section 4.2 and appendix A.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PieConfig {
    /// The target delay: QDELAY_REF.
    pub target: Duration,
    /// Time between two updates of the probability: T_UPDATE.
    pub update: Duration,
    /// The longest burst that passes without drops: MAX_BURST.
    pub max_burst: Duration,
    /// Weight of the difference from the target, 1/s.
    pub alpha: f64,
    /// Weight of the trend, 1/s.
    pub beta: f64,
    /// A queue of up to two packets of this size never drops: MEAN_PKTSIZE.
    pub mean_packet: Bytes,
    /// Up to this probability, packets that support ECN are marked instead of dropped; zero: never (section 5.1).
    pub marks_up_to: f64,
}

impl PieConfig {
    /// The defaults for packets of `mean_packet`, without marking.
    pub fn new(mean_packet: Bytes) -> PieConfig {
        PieConfig {
            target: Duration::from_millis(15),
            update: Duration::from_millis(15),
            max_burst: Duration::from_millis(150),
            alpha: 0.125,
            beta: 1.25,
            mean_packet,
            marks_up_to: 0.0,
        }
    }
}

/// Section 5.1's mark_ecnth.
pub(crate) const MARK_ECN_THRESHOLD: f64 = 0.1;

impl<P> Pie<P> {
    /// An empty queue with the capacity `limit`, including the packet in service. `seed` determines which packets are
    /// dropped.
    pub fn new(limit: Volume, config: PieConfig, seed: u64) -> Pie<P> {
        Pie {
            limit,
            config,
            queue: Fifo::default(),
            probability: 0.0,
            accumulated: 0.0,
            allowance: config.max_burst,
            delay: Duration::ZERO,
            last_delay: Duration::ZERO,
            next_update: Time::ZERO + config.update,
            random: Random::new(seed),
        }
    }

    /// The current drop probability.
    pub fn probability(&self) -> f64 {
        self.probability
    }

    /// Performs the updates due by `now`. The delay changes only when a packet is served, so late updates have the same
    /// result.
    fn catch_up(&mut self, now: Time) {
        while self.next_update <= now {
            if self.at_rest() {
                // Further updates would change nothing.
                let missed = now.since(self.next_update).as_nanos() / self.config.update.as_nanos();
                self.next_update += self.config.update * (missed + 1);
                return;
            }
            self.update();
            self.next_update += self.config.update;
        }
    }

    fn at_rest(&self) -> bool {
        self.probability == 0.0
            && self.delay == Duration::ZERO
            && self.last_delay == Duration::ZERO
            && self.allowance == self.config.max_burst
    }

    /// Section 4.2 and appendix A, calculate_drop_prob().
    fn update(&mut self) {
        let (delay, last) = (self.delay.as_secs_f64(), self.last_delay.as_secs_f64());
        let target = self.config.target.as_secs_f64();
        let change = self.config.alpha * (delay - target) + self.config.beta * (delay - last);
        let mut change = change / damping(self.probability);
        if self.probability >= 0.1 {
            // Appendix A: large steps are capped once the probability is high.
            change = change.min(0.02);
        }
        self.probability += change;
        if self.delay == Duration::ZERO && self.last_delay == Duration::ZERO {
            // 1 - 1/64
            self.probability *= 0.98;
        }
        self.probability = self.probability.clamp(0.0, 1.0);
        self.allowance = self.allowance.saturating_sub(self.config.update);
        let half = self.config.target / 2;
        if self.probability == 0.0 && self.delay < half && self.last_delay < half {
            self.allowance = self.config.max_burst;
        }
        self.last_delay = self.delay;
    }

    /// Appendix A, drop_early().
    fn drops_early(&mut self) -> bool {
        let idle = self.last_delay < self.config.target / 2 && self.probability < 0.2;
        if self.allowance > Duration::ZERO
            || idle
            || self.queue.bytes() <= self.config.mean_packet * 2
        {
            return false;
        }
        if self.probability == 0.0 {
            self.accumulated = 0.0;
        }
        // Section 5.4: drops are neither clustered nor too far apart.
        self.accumulated += self.probability;
        let drops = match self.accumulated {
            sum if sum < 0.85 => false,
            sum if sum >= 8.5 => true,
            _ => self.random.unit() < self.probability,
        };
        if drops {
            self.accumulated = 0.0;
        }
        drops
    }
}

/// Section 4.2 (appendix A for the smallest values): the lower the probability, the smaller its steps.
fn damping(probability: f64) -> f64 {
    match probability {
        p if p < 1e-6 => 2048.0,
        p if p < 1e-5 => 512.0,
        p if p < 1e-4 => 128.0,
        p if p < 1e-3 => 32.0,
        p if p < 1e-2 => 8.0,
        p if p < 1e-1 => 2.0,
        _ => 1.0,
    }
}

impl<P: Packet> Queue<P> for Pie<P> {
    fn enqueue(
        &mut self,
        now: Time,
        mut packet: P,
        size: Bytes,
        in_service: Bytes,
    ) -> Result<(), P> {
        self.catch_up(now);
        if !self.queue.has_room(self.limit, size, in_service) {
            return Err(packet);
        }
        if self.drops_early() {
            let marked = self.probability <= self.config.marks_up_to && packet.mark_ecn();
            if !marked {
                return Err(packet);
            }
        }
        self.queue.push(now, packet, size);
        Ok(())
    }

    fn dequeue(&mut self, now: Time, _dropped: &mut dyn FnMut(P)) -> Option<(P, Bytes)> {
        self.catch_up(now);
        let head = self.queue.pop();
        self.delay = match &head {
            Some(head) if self.queue.packets() > 0 => now.since(head.arrived),
            _ => Duration::ZERO,
        };
        head.map(|head| (head.packet, head.size))
    }

    fn packets(&self) -> u64 {
        self.queue.packets()
    }

    fn bytes(&self) -> Bytes {
        self.queue.bytes()
    }
}
