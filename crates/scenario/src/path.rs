use sweetspot_units::{BufferSize, Bytes, Duration, Probability, Rate, Volume};

use crate::error::ScenarioError;
use crate::reader::Reader;

/// `[path]`: the path between the target's sender and its receiver.
#[derive(Debug, Clone, PartialEq)]
pub struct Path {
    /// The routers' links, in the order the data takes them; one in a dumbbell.
    pub hops: Vec<Hop>,
    /// Two-way propagation of the target: T_m.
    pub rtt: Duration,
    /// A data packet on the wire.
    pub packet: Bytes,
    /// Rate of the links between hosts and routers, which have room for all.
    pub access_rate: Rate,
    /// Traffic on the reverse path.
    pub reverse: Reverse,
    /// Changes of hops during the run, in the order of time.
    pub changes: Vec<Change>,
}

/// `[[path.change]]`: a hop changes at a time, in both directions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// The time, since time 0.
    pub at: Duration,
    /// Index of the hop, from 0.
    pub hop: usize,
    /// Its new rate; `None`: unchanged. A packet in transmission is sent at the old rate.
    pub rate: Option<Rate>,
    /// Its new one-way propagation; `None`: unchanged.
    pub delay: Option<Duration>,
}

/// A link between two routers, alike in both directions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hop {
    /// Rate C.
    pub rate: Rate,
    /// One-way propagation.
    pub delay: Duration,
    /// Buffer B.
    pub buffer: Volume,
    /// Queue discipline.
    pub queue: Queue,
    /// Random loss.
    pub loss: Probability,
    /// Largest random delay added to a packet.
    pub jitter: Duration,
}

/// Queue disciplines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Queue {
    /// Drop-tail: first in, first out; packets that do not fit are dropped.
    DropTail,
    /// Random early detection.
    Red,
    /// CoDel (RFC 8289).
    CoDel,
    /// FQ-CoDel (RFC 8290).
    FqCoDel,
}

/// What the reverse path carries besides the target's ACKs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reverse {
    /// The same cross traffic as the forward path.
    Mirror,
    /// The ACKs of the forward path's flows only.
    Clean,
}

impl Queue {
    const CHOICES: [(&'static str, Queue); 4] = [
        ("drop-tail", Queue::DropTail),
        ("red", Queue::Red),
        ("codel", Queue::CoDel),
        ("fq-codel", Queue::FqCoDel),
    ];

    /// As written in a scenario.
    pub fn name(self) -> &'static str {
        Queue::CHOICES.iter().find(|(_, queue)| *queue == self).map_or("", |(name, _)| name)
    }
}

impl Path {
    /// Index of the bottleneck: the first hop with the lowest rate.
    pub fn bottleneck(&self) -> usize {
        let least = self.hops.iter().map(|hop| hop.rate).min();
        self.hops.iter().position(|hop| Some(hop.rate) == least).unwrap_or(0)
    }

    /// The bottleneck.
    pub fn narrow(&self) -> &Hop {
        &self.hops[self.bottleneck()]
    }

    /// C x T_m.
    pub fn bdp(&self) -> Bytes {
        self.narrow().rate * self.rtt
    }

    /// The bottleneck's mean rate between two times.
    pub fn mean_rate(&self, from: Duration, until: Duration) -> Rate {
        let narrow = self.bottleneck();
        let own = self.changes.iter().filter(|change| change.hop == narrow);
        let rates = own.filter_map(|change| Some((change.at, change.rate?)));
        Rate::from_f64(mean_of_steps(
            self.narrow().rate.as_f64(),
            rates.map(|(at, rate)| (at, rate.as_f64())),
            from,
            until,
        ))
    }

    /// Two-way propagation of the target between two times, averaged, seconds.
    pub fn mean_rtt(&self, from: Duration, until: Duration) -> f64 {
        let hops = self.hops.iter().enumerate().map(|(index, hop)| {
            let own = self.changes.iter().filter(|change| change.hop == index);
            let delays = own.filter_map(|change| Some((change.at, change.delay?.as_secs_f64())));
            let delay = hop.delay.as_secs_f64();
            2.0 * (mean_of_steps(delay, delays, from, until) - delay)
        });
        self.rtt.as_secs_f64() + hops.sum::<f64>()
    }

    pub(crate) fn read(mut reader: Reader<'_>) -> Result<Path, ScenarioError> {
        let rtt: Duration = reader.required("rtt", "rtt = \"100ms\"")?;
        let packet = reader.quantity("packet")?.unwrap_or(Bytes::new(1000));
        if !(100..=65_000).contains(&packet.get()) {
            return Err(reader.impossible("packet", "it must lie between 100B and 65kB"));
        }
        let reverse = [("mirror", Reverse::Mirror), ("clean", Reverse::Clean)];
        let reverse = reader.choice("reverse", &reverse)?.unwrap_or(Reverse::Mirror);
        let access_rate =
            reader.quantity("access_rate")?.unwrap_or(Rate::from_mbit_per_second(1000));
        if access_rate < LEAST_RATE {
            return Err(reader.impossible("access_rate", "it must be 1kbit/s or more"));
        }
        let mut written = reader.tables("hop")?;
        let mut hops = Vec::new();
        let each = rtt / (5 * written.len().max(1) as u64);
        for hop in &mut written {
            hops.push(Hop::read(hop, (each, rtt), packet)?);
        }
        for hop in written {
            hop.finish()?;
        }
        if hops.is_empty() {
            // A fifth of the round trip, as between the routers of the paper's Figure 2.
            hops.push(Hop::read(&mut reader, (rtt / 5, rtt), packet)?);
        } else {
            for key in Hop::KEYS {
                if let Some(node) = reader.node(key) {
                    return Err(reader.error(key, node, "it belongs in each [[path.hop]]"));
                }
            }
        }
        if hops.iter().map(|hop| hop.delay).fold(Duration::ZERO, |a, b| a + b) > rtt / 2 {
            return Err(reader.impossible("rtt", "its half is less than the hops' delays together"));
        }
        let mut changes = Vec::new();
        for change in reader.tables("change")? {
            changes.push(Change::read(change, hops.len() as u64)?);
        }
        changes.sort_by_key(|change| change.at);
        reader.finish()?;
        Ok(Path { hops, rtt, packet, access_rate, reverse, changes })
    }
}

/// The mean between two times of what is `first` until it steps.
fn mean_of_steps(
    first: f64,
    steps: impl Iterator<Item = (Duration, f64)>,
    from: Duration,
    until: Duration,
) -> f64 {
    let (mut value, mut since, mut sum) = (first, from, 0.0);
    for (at, next) in steps.filter(|(at, _)| *at < until) {
        sum += value * at.saturating_sub(since).as_secs_f64();
        (value, since) = (next, since.max(at));
    }
    let elapsed = until.saturating_sub(from).as_secs_f64();
    sum += value * until.saturating_sub(since).as_secs_f64();
    if elapsed > 0.0 { sum / elapsed } else { value }
}

impl Change {
    fn read(mut reader: Reader<'_>, hops: u64) -> Result<Change, ScenarioError> {
        let change = Change {
            at: reader.required("at", "at = \"10s\"")?,
            hop: reader.whole("hop", 0, hops - 1)?.unwrap_or(0) as usize,
            rate: reader.quantity("rate")?,
            delay: reader.quantity("delay")?,
        };
        if change.rate.is_none() && change.delay.is_none() {
            return Err(reader.missing("rate", "rate = \"20Mbit/s\""));
        }
        if change.rate.is_some_and(|rate| !RATES.contains(&rate)) {
            return Err(reader.impossible("rate", "it must lie between 1kbit/s and 1Tbit/s"));
        }
        reader.finish()?;
        Ok(change)
    }
}

const RATES: core::ops::RangeInclusive<Rate> = LEAST_RATE..=Rate::from_mbit_per_second(1_000_000);
const LEAST_RATE: Rate = Rate::from_bits_per_second(1000);

impl Hop {
    const KEYS: [&'static str; 6] = ["rate", "delay", "buffer", "queue", "loss", "jitter"];

    /// `rtt` is the path's.
    fn read(
        reader: &mut Reader<'_>,
        (delay, rtt): (Duration, Duration),
        packet: Bytes,
    ) -> Result<Hop, ScenarioError> {
        let rate = reader.required("rate", "rate = \"50Mbit/s\"")?;
        let buffer: BufferSize =
            reader.required("buffer", "buffer = \"625pkt\", \"625kB\" or \"1bdp\"")?;
        let hop = Hop {
            rate,
            delay: reader.quantity("delay")?.unwrap_or(delay),
            buffer: buffer.on(rate, rtt),
            queue: reader.choice("queue", &Queue::CHOICES)?.unwrap_or(Queue::DropTail),
            loss: reader.quantity("loss")?.unwrap_or(Probability::ZERO),
            jitter: reader.quantity("jitter")?.unwrap_or(Duration::ZERO),
        };
        if !RATES.contains(&hop.rate) {
            return Err(reader.impossible("rate", "it must lie between 1kbit/s and 1Tbit/s"));
        }
        if hop.buffer.in_bytes(packet) < packet {
            return Err(reader.impossible("buffer", "nothing fits; it must be 1pkt or more"));
        }
        if hop.loss.get() >= 1.0 {
            return Err(reader.impossible("loss", "nothing would pass; it must be below 1"));
        }
        Ok(hop)
    }
}
