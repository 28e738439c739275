use sweetspot_units::{Bytes, Duration, Probability, Rate, Volume};

use crate::error::ScenarioError;
use crate::reader::Reader;

/// `[path]`: what lies between the target's sender and its receiver.
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
    /// What the way back carries.
    pub reverse: Reverse,
}

/// A link between two routers, alike in both directions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hop {
    /// C.
    pub rate: Rate,
    /// One-way propagation.
    pub delay: Duration,
    /// B.
    pub buffer: Volume,
    /// Who waits and who is dropped.
    pub queue: Queue,
    /// Random loss.
    pub loss: Probability,
    /// What a packet takes besides the delay, at most.
    pub jitter: Duration,
}

/// Queue disciplines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Queue {
    /// First in, first out, and no more than fits.
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
}

impl Path {
    /// The hop with the least rate, the first of them: the narrow link.
    pub fn bottleneck(&self) -> usize {
        let least = self.hops.iter().map(|hop| hop.rate).min();
        self.hops.iter().position(|hop| Some(hop.rate) == least).unwrap_or(0)
    }

    /// The narrow link itself.
    pub fn narrow(&self) -> &Hop {
        &self.hops[self.bottleneck()]
    }

    /// C x T_m.
    pub fn bdp(&self) -> Bytes {
        self.narrow().rate * self.rtt
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
            hops.push(Hop::read(hop, each, packet)?);
        }
        for hop in written {
            hop.finish()?;
        }
        if hops.is_empty() {
            // A fifth of the round trip, as between the routers of the paper's Figure 2.
            hops.push(Hop::read(&mut reader, rtt / 5, packet)?);
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
        reader.finish()?;
        Ok(Path { hops, rtt, packet, access_rate, reverse })
    }
}

const LEAST_RATE: Rate = Rate::from_bits_per_second(1000);

impl Hop {
    const KEYS: [&'static str; 6] = ["rate", "delay", "buffer", "queue", "loss", "jitter"];

    fn read(reader: &mut Reader<'_>, delay: Duration, packet: Bytes) -> Result<Hop, ScenarioError> {
        let hop = Hop {
            rate: reader.required("rate", "rate = \"50Mbit/s\"")?,
            delay: reader.quantity("delay")?.unwrap_or(delay),
            buffer: reader.required("buffer", "buffer = \"625pkt\" or \"625kB\"")?,
            queue: reader.choice("queue", &Queue::CHOICES)?.unwrap_or(Queue::DropTail),
            loss: reader.quantity("loss")?.unwrap_or(Probability::ZERO),
            jitter: reader.quantity("jitter")?.unwrap_or(Duration::ZERO),
        };
        if !(LEAST_RATE..=Rate::from_mbit_per_second(1_000_000)).contains(&hop.rate) {
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
