use sweetspot_units::{Bytes, Duration, Probability, Rate, Volume};

use crate::queue::MARK_ECN_THRESHOLD;
use crate::{
    Blue, BlueConfig, Codel, CodelConfig, Discipline, DropTail, FqCodel, FqCodelConfig, Link, Pie,
    PieConfig, Policer, RandomLoss, Red, RedConfig, TokenBucket,
};

/// One direction of a path.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DirectionSpec {
    /// Bottleneck rate C, counted on IP packets.
    pub rate: Rate,
    /// One-way propagation delay.
    pub delay: Duration,
    /// The bottleneck's buffer B.
    pub buffer: Volume,
    /// The bottleneck's queue discipline.
    pub queue: QueueDiscipline,
    /// The burst that the link may send after a pause: the depth of a token bucket that fills at `rate` (Linux's tbf). Zero: a
    /// link of constant rate.
    pub burst: Bytes,
    /// A policer before the queue.
    pub policer: Option<PolicerSpec>,
    /// Random loss: the share of all packets.
    pub loss: Probability,
    /// The mean number of consecutive losses, by Gilbert's model; 1: losses are independent.
    pub loss_burst: u32,
    /// Largest extra delay per packet, uniform from zero.
    pub jitter: Duration,
    /// Whether packets overtake a packet delayed by jitter, instead of waiting behind it.
    pub jitter_reorders: bool,
    /// The share of packets delayed by `reorder_by`, so that other packets overtake them.
    pub reorder: Probability,
    /// The extra delay of these packets.
    pub reorder_by: Duration,
    /// Packets leave together at multiples of this time, as on a link with time slots (Wi-Fi, cable, 4G uplinks). Zero: each
    /// packet leaves at once.
    pub aggregation: Duration,
}

/// A policer: drops packets in excess of a token bucket.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PolicerSpec {
    /// The rate at which the bucket fills.
    pub rate: Rate,
    /// Its depth.
    pub burst: Bytes,
}

/// The name of a queue discipline.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum QueueDiscipline {
    /// First in, first out; packets that do not fit are dropped.
    #[default]
    DropTail,
    /// Random Early Detection.
    Red,
    /// CoDel (RFC 8289).
    CoDel,
    /// FQ-CoDel (RFC 8290).
    FqCoDel,
    /// PIE (RFC 8033).
    Pie,
    /// BLUE (Feng, Kandlur, Saha, Shin 1999).
    Blue,
}

impl QueueDiscipline {
    /// All disciplines with their names in text.
    pub const CHOICES: [(&'static str, QueueDiscipline); 6] = [
        ("drop-tail", QueueDiscipline::DropTail),
        ("red", QueueDiscipline::Red),
        ("codel", QueueDiscipline::CoDel),
        ("fq-codel", QueueDiscipline::FqCoDel),
        ("pie", QueueDiscipline::Pie),
        ("blue", QueueDiscipline::Blue),
    ];

    /// The name in scenarios and on the command line.
    pub fn name(self) -> &'static str {
        QueueDiscipline::CHOICES
            .iter()
            .find(|(_, queue)| *queue == self)
            .map_or("", |(name, _)| name)
    }
}

impl DirectionSpec {
    /// The keys of a direction in text.
    pub const KEYS: [&'static str; 14] = [
        "rate",
        "delay",
        "buffer",
        "queue",
        "burst",
        "policer",
        "policer_burst",
        "loss",
        "loss_burst",
        "jitter",
        "jitter_order",
        "reorder",
        "reorder_by",
        "aggregation",
    ];

    /// The values of `jitter_order`, and whether packets overtake each other.
    pub const JITTER_ORDERS: [(&'static str, bool); 2] = [("kept", false), ("free", true)];

    /// The rates that a link may have.
    pub const RATES: core::ops::RangeInclusive<Rate> =
        Rate::from_bits_per_second(1000)..=Rate::from_mbit_per_second(1_000_000);

    /// The value of `jitter_order`.
    pub fn jitter_order(&self) -> &'static str {
        DirectionSpec::JITTER_ORDERS[usize::from(self.jitter_reorders)].0
    }

    /// Only a drop-tail buffer in front of a link of constant rate.
    pub const fn new(rate: Rate, delay: Duration, buffer: Volume) -> DirectionSpec {
        DirectionSpec {
            rate,
            delay,
            buffer,
            queue: QueueDiscipline::DropTail,
            burst: Bytes::ZERO,
            policer: None,
            loss: Probability::ZERO,
            loss_burst: 1,
            jitter: Duration::ZERO,
            jitter_reorders: false,
            reorder: Probability::ZERO,
            reorder_by: Duration::ZERO,
            aggregation: Duration::ZERO,
        }
    }

    /// The sustained rate: the lower of the link's and the policer's.
    pub fn lasting_rate(&self) -> Rate {
        self.policer.map_or(self.rate, |policer| policer.rate.min(self.rate))
    }

    /// Whether a packet's fate at the queue is known on arrival, and packets keep their order.
    pub fn is_plain(&self) -> bool {
        self.queue == QueueDiscipline::DropTail
            && self.burst == Bytes::ZERO
            && !self.jitter_reorders
            && self.reorder == Probability::ZERO
    }

    /// Rejects impossible values, with the key and the reason. `packet` is the largest packet.
    pub fn check(&self, packet: Bytes) -> Result<(), (&'static str, String)> {
        let refuse = |key, why: &str| Err((key, why.to_owned()));
        if self.rate < *DirectionSpec::RATES.start() {
            return refuse("rate", "it must be 1kbit/s or more");
        }
        if self.rate > *DirectionSpec::RATES.end() {
            return refuse("rate", "it must be 1Tbit/s or less");
        }
        if self.delay > Duration::from_secs(60) {
            return refuse("delay", "it must be 60s or less in one direction");
        }
        let min = match self.buffer {
            Volume::Bytes(_) => packet,
            Volume::Packets(_) => Bytes::new(1),
        };
        if self.buffer.in_bytes(packet) < min {
            let why =
                format!("it is below one packet, so nothing would pass; use {packet} or more");
            return Err(("buffer", why));
        }
        if let Some(policer) = self.policer {
            if !DirectionSpec::RATES.contains(&policer.rate) {
                return refuse("policer", "it must be between 1kbit/s and 1Tbit/s");
            }
            if policer.burst < packet {
                let why = format!("a full packet would never pass; use {packet} or more");
                return Err(("policer_burst", why));
            }
        }
        if self.loss.get() >= 1.0 {
            return refuse("loss", "nothing would pass; it must be below 1");
        }
        if self.loss_burst == 0 {
            return refuse("loss_burst", "it must be a whole number of packets, 1 or more");
        }
        // The extreme case: runs of losses with a single packet between them.
        let max = f64::from(self.loss_burst) / f64::from(self.loss_burst + 1);
        if self.loss_burst > 1 && self.loss.get() > max {
            return refuse(
                "loss",
                "bursts of this length cannot reach this loss rate; raise loss_burst",
            );
        }
        if self.reorder > Probability::ZERO && self.reorder_by == Duration::ZERO {
            return refuse("reorder", "no packet is delayed; add reorder_by, such as 5ms");
        }
        for (key, time) in [
            ("jitter", self.jitter),
            ("reorder_by", self.reorder_by),
            ("aggregation", self.aggregation),
        ] {
            if time > Duration::from_secs(60) {
                return refuse(key, "it must be 60s or less");
            }
        }
        Ok(())
    }

    /// The queue, for packets of up to `mtu`. An AQM marks packets that support ECN instead of dropping them.
    pub fn discipline<P>(&self, mtu: Bytes, seed: u64) -> Discipline<P> {
        let codel = CodelConfig { ecn: true, ..CodelConfig::default() };
        match self.queue {
            QueueDiscipline::DropTail => Discipline::DropTail(DropTail::new(self.buffer)),
            QueueDiscipline::Red => {
                let config = RedConfig::new(self.buffer, mtu, mtu / self.rate);
                Discipline::Red(Box::new(Red::new(RedConfig { ecn: true, ..config }, seed)))
            }
            QueueDiscipline::CoDel => Discipline::Codel(Box::new(Codel::new(self.buffer, codel))),
            QueueDiscipline::FqCoDel => {
                let config = FqCodelConfig::new(self.buffer.in_packets(mtu));
                Discipline::FqCodel(Box::new(FqCodel::new(FqCodelConfig { codel, ..config }, seed)))
            }
            QueueDiscipline::Pie => {
                let config = PieConfig { marks_up_to: MARK_ECN_THRESHOLD, ..PieConfig::new(mtu) };
                Discipline::Pie(Box::new(Pie::new(self.buffer, config, seed)))
            }
            QueueDiscipline::Blue => {
                let config = BlueConfig { ecn: true, ..BlueConfig::default() };
                Discipline::Blue(Box::new(Blue::new(self.buffer, config, seed)))
            }
        }
    }

    /// The link behind this queue.
    pub fn link_behind<P: crate::Packet>(&self, queue: Discipline<P>) -> Link<P, Discipline<P>> {
        if self.burst > Bytes::ZERO {
            Link::shaper(TokenBucket::new(self.rate, self.burst), queue)
        } else {
            Link::new(self.rate, queue)
        }
    }

    /// The random loss before the queue.
    pub fn random_loss(&self, seed: u64) -> RandomLoss {
        match self.loss_burst {
            0 | 1 => RandomLoss::new(self.loss, seed),
            run => RandomLoss::in_bursts(self.loss, run, seed),
        }
    }

    /// The policer before the queue.
    pub fn policer(&self) -> Option<Policer> {
        self.policer.map(|policer| Policer::new(policer.rate, policer.burst))
    }

    /// The keys and values in text: the first five always, the others if they differ from the default.
    pub(crate) fn written(&self) -> Vec<(&'static str, String)> {
        let squeezed = |value: &dyn core::fmt::Display| value.to_string().replace(' ', "");
        let mut written = vec![
            ("rate", squeezed(&self.rate)),
            ("delay", squeezed(&self.delay)),
            ("buffer", squeezed(&self.buffer)),
            ("loss", self.loss.get().to_string()),
            ("jitter", squeezed(&self.jitter)),
        ];
        let mut add = |is_given: bool, key, value: String| {
            if is_given {
                written.push((key, value));
            }
        };
        add(self.queue != QueueDiscipline::DropTail, "queue", self.queue.name().to_owned());
        add(self.burst > Bytes::ZERO, "burst", squeezed(&self.burst));
        if let Some(policer) = self.policer {
            add(true, "policer", squeezed(&policer.rate));
            add(true, "policer_burst", squeezed(&policer.burst));
        }
        add(self.loss_burst > 1, "loss_burst", self.loss_burst.to_string());
        add(self.jitter_reorders, "jitter_order", self.jitter_order().to_owned());
        add(self.reorder > Probability::ZERO, "reorder", self.reorder.get().to_string());
        add(self.reorder > Probability::ZERO, "reorder_by", squeezed(&self.reorder_by));
        add(self.aggregation > Duration::ZERO, "aggregation", squeezed(&self.aggregation));
        written
    }
}
