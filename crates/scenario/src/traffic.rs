use core::fmt::Display;
use core::str::FromStr;

use sweetspot_sizing::Sizing;
use sweetspot_units::{Bytes, Duration, Rate, Volume};

use crate::application::{Application, Pace};
use crate::error::{Result, ScenarioError};
use crate::path::Path;
use crate::reader::Reader;
use crate::tcp::{Congestion, Tcp, room};

/// `[[cross]]`: cross traffic.
#[derive(Debug, Clone, PartialEq)]
pub struct Cross {
    /// The kind of traffic.
    pub kind: TrafficKind,
    /// Round-trip propagation delay, spread evenly over the nodes from the first value to the second.
    pub rtt: (Duration, Duration),
    /// Range of start times; each flow starts at a random time within it.
    pub start: (Duration, Duration),
    /// The first and the last hop that it crosses, from 0.
    pub hops: (usize, usize),
    /// Congestion control of its TCP flows.
    pub congestion: Congestion,
    /// TCP parameters of its TCP flows.
    pub tcp: Tcp,
    /// The links that feed the first hop; `None`: every host has its own.
    pub inputs: Option<Inputs>,
}

/// Links that feed the first hop, and the servers behind them. Every connection is opened to a random server; the servers'
/// RTTs are evenly spaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inputs {
    /// Number of links N_in. Their buffers never overflow.
    pub count: u64,
    /// Rate of each link: C_in.
    pub rate: Rate,
    /// Number of servers, spread evenly over the links.
    pub servers: u64,
}

/// The kinds of cross traffic.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum TrafficKind {
    /// UDP packets with Pareto gaps.
    Pareto {
        /// Number of sources.
        count: u64,
        /// Mean rate of a source.
        rate: Rate,
        /// Shape of the gaps' distribution, above 1.
        shape: f64,
    },
    /// UDP packets with exponential gaps.
    Poisson {
        /// Number of sources.
        count: u64,
        /// Mean rate of a source.
        rate: Rate,
    },
    /// Persistent TCP transfers.
    Elephants {
        /// Number of flows.
        count: u64,
        /// Window limit; `None`: only congestion control limits.
        window: Option<Volume>,
    },
    /// Users: each sends a few packets, sleeps, and starts again in slow start.
    Mice {
        /// Number of users.
        count: u64,
        /// Number of nodes over which the users are spread.
        nodes: u64,
        /// Range for the number of packets of a transfer.
        packets: (u64, u64),
        /// Range for the time from the last ACK to the next transfer.
        sleep: (Duration, Duration),
        /// Window limit.
        window: Option<Volume>,
    },
    /// Users that each send a Pareto-sized transfer, think for an exponential time, and repeat.
    ClosedLoop {
        /// Number of users.
        users: u64,
        /// Number of nodes over which the users are spread.
        nodes: u64,
        /// Mean size of a transfer.
        size_mean: Bytes,
        /// Shape of the sizes' distribution, above 1.
        size_shape: f64,
        /// Mean think time.
        think_mean: Duration,
        /// Window limit.
        window: Option<Volume>,
    },
    /// TCP transfers of Pareto size that arrive as a Poisson process, independent of the number of active ones.
    Arrivals {
        /// Mean offered load.
        rate: Rate,
        /// Number of nodes over which the transfers are spread.
        nodes: u64,
        /// Mean size of a transfer.
        size_mean: Bytes,
        /// Shape of the sizes' distribution, above 1.
        size_shape: f64,
        /// Window limit.
        window: Option<Volume>,
    },
}

/// `[[transfer]]`: a bulk TCP transfer that is measured individually.
#[derive(Debug, Clone, PartialEq)]
pub struct Transfer {
    /// Its start time; if it follows another transfer, the time after that one's end.
    pub start: Duration,
    /// Whether it follows the previous transfer, between the same hosts: its sizing then starts with that one's saved
    /// parameters.
    pub follows: bool,
    /// Bytes of payload after which it ends; `None`: never.
    pub size: Option<Bytes>,
    /// Congestion control at the beginning.
    pub congestion: Congestion,
    /// Whether its sizing must not switch the congestion control.
    pub congestion_fixed: bool,
    /// How its window is sized.
    pub sizing: Sizing,
    /// The application that reads at the receiver.
    pub reader: Application,
    /// The application that writes at the sender.
    pub writer: Application,
    /// TCP parameters.
    pub tcp: Tcp,
}

const KINDS: [(&str, Word); 6] = [
    ("pareto", Word::Pareto),
    ("poisson", Word::Poisson),
    ("elephants", Word::Elephants),
    ("mice", Word::Mice),
    ("closed-loop", Word::ClosedLoop),
    ("arrivals", Word::Arrivals),
];

#[derive(Clone, Copy)]
enum Word {
    Pareto,
    Poisson,
    Elephants,
    Mice,
    ClosedLoop,
    Arrivals,
}

/// Maximum number of flows: more than any study needs, and well within the range of indices.
const MAX_FLOWS: u64 = 10_000_000;

impl Cross {
    pub(crate) fn read(mut reader: Reader<'_>, path: &Path, base: Tcp) -> Result<Cross> {
        let word = reader
            .choice("kind", &KINDS)?
            .ok_or_else(|| reader.missing("kind", "kind = \"elephants\""))?;
        let kind = TrafficKind::read(&mut reader, word)?;
        let rtt = reader.span("rtt")?.unwrap_or((path.rtt, path.rtt));
        let last = path.hops.len() as u64 - 1;
        let first_hop = reader.whole_number("hop", 0, last)?;
        let last_hop = reader.whole_number("last_hop", first_hop.unwrap_or(0), last)?;
        let first = first_hop.unwrap_or(0) as usize;
        // If a source has only a first hop, its flows leave after it; without any hop they cross all hops.
        let until = last_hop.unwrap_or(first_hop.unwrap_or(last)) as usize;
        let delay = path.hops[first..=until].iter().fold(Duration::ZERO, |sum, h| sum + h.delay);
        if rtt.0 < delay * 2 {
            return Err(reader.impossible(
                "rtt",
                &format!(
                    "it must be {} or more, the propagation of the hops it crosses",
                    delay * 2
                ),
            ));
        }
        let cross = Cross {
            kind,
            rtt,
            start: reader.span("start")?.unwrap_or(kind.usual_start()),
            hops: (first, until),
            congestion: reader
                .choice("congestion", &Congestion::CHOICES)?
                .unwrap_or(Congestion::Reno),
            tcp: Tcp::read(&mut reader, base, path.packet)?,
            inputs: Inputs::read(&mut reader, word)?,
        };
        reader.finish()?;
        Ok(cross)
    }
}

/// Router-buffer section VI-A: max(20, N_in) servers.
const DEFAULT_SERVERS: u64 = 20;

impl Inputs {
    fn read(reader: &mut Reader<'_>, word: Word) -> Result<Option<Inputs>> {
        let count = reader.whole_number("inputs", 1, MAX_INPUTS)?;
        let rate: Option<Rate> = reader.quantity("input_rate")?;
        let servers = reader.whole_number("servers", count.unwrap_or(1), MAX_INPUTS)?;
        let Some(count) = count else {
            return match (rate, servers) {
                (None, None) => Ok(None),
                _ => Err(reader.missing("inputs", "inputs = 20")),
            };
        };
        if matches!(word, Word::Pareto | Word::Poisson) {
            return Err(reader.impossible("inputs", "only TCP can use input links"));
        }
        let rate =
            rate.ok_or_else(|| reader.missing("input_rate", "input_rate = \"500Mbit/s\""))?;
        if rate < Rate::from_bits_per_second(1000) {
            return Err(reader.impossible("input_rate", "it must be 1kbit/s or more"));
        }
        Ok(Some(Inputs { count, rate, servers: servers.unwrap_or(count.max(DEFAULT_SERVERS)) }))
    }
}

const MAX_INPUTS: u64 = 1_000_000;

impl TrafficKind {
    /// The name in a scenario.
    pub fn name(&self) -> &'static str {
        match self {
            TrafficKind::Pareto { .. } => "pareto",
            TrafficKind::Poisson { .. } => "poisson",
            TrafficKind::Elephants { .. } => "elephants",
            TrafficKind::Mice { .. } => "mice",
            TrafficKind::ClosedLoop { .. } => "closed-loop",
            TrafficKind::Arrivals { .. } => "arrivals",
        }
    }

    /// Whether it consists of transfers that finish.
    pub fn finishes(&self) -> bool {
        match self {
            TrafficKind::Pareto { .. }
            | TrafficKind::Poisson { .. }
            | TrafficKind::Elephants { .. } => false,
            TrafficKind::Mice { .. }
            | TrafficKind::ClosedLoop { .. }
            | TrafficKind::Arrivals { .. } => true,
        }
    }

    fn read(reader: &mut Reader<'_>, word: Word) -> Result<TrafficKind> {
        let flows = |reader: &mut Reader<'_>, key, example| {
            reader.whole_number(key, 1, MAX_FLOWS)?.ok_or_else(|| reader.missing(key, example))
        };
        let count = |reader: &mut Reader<'_>| flows(reader, "count", "count = 20");
        let shape = |reader: &mut Reader<'_>, key| {
            Ok::<_, ScenarioError>(reader.number_above(key, 1.0)?.unwrap_or(1.5))
        };
        let nodes = |reader: &mut Reader<'_>, users: u64| {
            Ok::<_, ScenarioError>(reader.whole_number("nodes", 1, users)?.unwrap_or(users.min(10)))
        };
        let rate = |reader: &mut Reader<'_>| above_zero(reader, "rate", "rate = \"3.5Mbit/s\"");
        let size_mean =
            |reader: &mut Reader<'_>| above_zero(reader, "size_mean", "size_mean = \"80kB\"");
        Ok(match word {
            Word::Pareto => TrafficKind::Pareto {
                count: count(reader)?,
                rate: rate(reader)?,
                shape: shape(reader, "shape")?,
            },
            Word::Poisson => TrafficKind::Poisson { count: count(reader)?, rate: rate(reader)? },
            Word::Elephants => {
                TrafficKind::Elephants { count: count(reader)?, window: room(reader, "window")? }
            }
            Word::Mice => {
                let count = count(reader)?;
                TrafficKind::Mice {
                    count,
                    nodes: nodes(reader, count)?,
                    packets: reader
                        .whole_span("packets")?
                        .ok_or_else(|| reader.missing("packets", "packets = [10, 15]"))?,
                    sleep: reader
                        .span("sleep")?
                        .ok_or_else(|| reader.missing("sleep", "sleep = [\"4.85s\", \"5.35s\"]"))?,
                    window: room(reader, "window")?,
                }
            }
            Word::ClosedLoop => {
                let users = flows(reader, "users", "users = 20")?;
                TrafficKind::ClosedLoop {
                    users,
                    nodes: nodes(reader, users)?,
                    size_mean: size_mean(reader)?,
                    size_shape: shape(reader, "size_shape")?,
                    think_mean: reader.required("think_mean", "think_mean = \"1s\"")?,
                    window: room(reader, "window")?,
                }
            }
            Word::Arrivals => TrafficKind::Arrivals {
                rate: rate(reader)?,
                nodes: nodes(reader, 10)?,
                size_mean: size_mean(reader)?,
                size_shape: shape(reader, "size_shape")?,
                window: room(reader, "window")?,
            },
        })
    }

    /// A default range of start times that keeps flows from synchronising.
    fn usual_start(&self) -> (Duration, Duration) {
        let max = match self {
            TrafficKind::Pareto { .. }
            | TrafficKind::Poisson { .. }
            | TrafficKind::Arrivals { .. } => Duration::from_secs(1),
            TrafficKind::Elephants { .. } => Duration::from_secs(3),
            // One cycle: the sleep and about four RTTs of a tenth of a second.
            TrafficKind::Mice { sleep, .. } => sleep.1 + Duration::from_millis(400),
            TrafficKind::ClosedLoop { think_mean, .. } => *think_mean * 2,
        };
        (Duration::ZERO, max)
    }
}

fn above_zero<T>(reader: &mut Reader<'_>, key: &'static str, example: &'static str) -> Result<T>
where
    T: FromStr<Err: Display> + Default + PartialEq,
{
    let quantity: T = reader.required(key, example)?;
    if quantity == T::default() {
        return Err(reader.impossible(key, "it must be above zero"));
    }
    Ok(quantity)
}

impl Transfer {
    /// Parses an entry, which may stand for several equal transfers.
    pub(crate) fn read(
        mut reader: Reader<'_>,
        base: Tcp,
        packet: Bytes,
        before: Option<&Transfer>,
    ) -> Result<Vec<Transfer>> {
        let count = reader.whole_number("count", 1, 10_000)?.unwrap_or(1);
        let transfer = Transfer {
            start: reader.quantity("start")?.unwrap_or(Duration::ZERO),
            follows: reader.truth("follows")?.unwrap_or(false),
            size: reader.quantity("size")?,
            congestion: reader
                .choice("congestion", &Congestion::CHOICES)?
                .unwrap_or(Congestion::Reno),
            congestion_fixed: reader.truth("congestion_fixed")?.unwrap_or(false),
            sizing: reader.name("sizing", &Sizing::NAMES)?.unwrap_or(Sizing::Max),
            reader: reader.quantity("reader")?.unwrap_or_default(),
            writer: reader.quantity("writer")?.unwrap_or_default(),
            tcp: Tcp::read(&mut reader, base, packet)?,
        };
        if transfer.size == Some(Bytes::ZERO) {
            return Err(reader.impossible("size", "nothing would be sent; it must be 1B or more"));
        }
        if transfer.reader.pace.is_some_and(Pace::is_random) {
            return Err(reader
                .impossible("reader", "a reader needs a constant rate, such as rate=20Mbit/s"));
        }
        if transfer.follows && !(transfer.reader.is_greedy() && transfer.writer.is_greedy()) {
            let reason = "a transfer that follows another reads and writes at once; leave out reader and writer";
            return Err(reader.impossible("follows", reason));
        }
        let has_end = |transfer: &Transfer| transfer.size.is_some();
        let ends = before.is_some_and(has_end) && (count == 1 || has_end(&transfer));
        if transfer.follows && !ends {
            let reason = "no transfer before it ends; give the previous one a size";
            return Err(reader.impossible("follows", reason));
        }
        reader.finish()?;
        Ok(vec![transfer; count as usize])
    }
}
