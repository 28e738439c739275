use sweetspot_path::{DirectionSpec, PathSpec, Variation};
use sweetspot_units::{Bytes, Duration, Rate};

use crate::error::Result;
use crate::hop::{Hops, PathDirection, TracedHop, read_hops};
use crate::reader::Reader;

/// `[path]`: the path between the target's sender and its receiver.
#[derive(Debug, Clone, PartialEq)]
pub struct Path {
    /// The routers' links, in the order in which the data pass them; one in a dumbbell.
    pub hops: Vec<DirectionSpec>,
    /// The reverse directions of the same links, in the same order.
    pub backward: Vec<DirectionSpec>,
    /// Round-trip propagation delay of the target: T_m.
    pub rtt: Duration,
    /// Bytes of a data packet on the wire.
    pub packet: Bytes,
    /// The largest difference between a data packet's size and `packet`, the mean. Sizes are uniformly distributed.
    pub packet_spread: Bytes,
    /// Rate of the links between hosts and routers, which have unlimited buffers.
    pub access_rate: Rate,
    /// Traffic on the reverse path.
    pub reverse: Reverse,
    /// Whether the data come from the far end of an emulation instead of the near one.
    pub is_download: bool,
    /// Changes of hops during the run, in chronological order.
    pub changes: Vec<Change>,
    /// Hops that follow a trace from time 0 on.
    pub traces: Vec<TracedHop>,
}

/// `[[path.change]]`: a hop changes at some time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// The time of the change, relative to time 0.
    pub at: Duration,
    /// Index of the hop, from 0.
    pub hop: usize,
    /// The direction that changes; `None`: both.
    pub way: Option<PathDirection>,
    /// Its new rate; `None`: unchanged. A packet in transmission is sent at the old rate.
    pub rate: Option<Rate>,
    /// Its new one-way propagation delay; `None`: unchanged.
    pub delay: Option<Duration>,
}

/// The traffic on the reverse path in addition to the target's ACKs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reverse {
    /// The same cross traffic as the forward path.
    Mirror,
    /// Only the ACKs of the forward path's flows.
    Clean,
}

/// Links between routers, and the variation of each over time, by direction.
#[derive(Debug, Clone)]
pub struct HopChain {
    /// The links, from the near side.
    pub hops: Vec<PathSpec>,
    /// Their variations from near to far.
    pub up: Vec<Variation>,
    /// Their variations from far to near, in the order of the links.
    pub down: Vec<Variation>,
}

impl HopChain {
    /// The same links, seen from the other end.
    pub fn from_the_far_end(mut self) -> HopChain {
        self.hops.reverse();
        for hop in &mut self.hops {
            std::mem::swap(&mut hop.up, &mut hop.down);
        }
        self.up.reverse();
        self.down.reverse();
        HopChain { hops: self.hops, up: self.down, down: self.up }
    }
}

impl Path {
    /// Index of the bottleneck: the first hop with the lowest sustained rate.
    pub fn bottleneck(&self) -> usize {
        let min = self.hops.iter().map(DirectionSpec::lasting_rate).min();
        self.hops.iter().position(|hop| Some(hop.lasting_rate()) == min).unwrap_or(0)
    }

    /// The bottleneck.
    pub fn narrow(&self) -> &DirectionSpec {
        &self.hops[self.bottleneck()]
    }

    /// The hops of one direction.
    pub fn hops_of(&self, way: PathDirection) -> &[DirectionSpec] {
        match way {
            PathDirection::Forward => &self.hops,
            PathDirection::Backward => &self.backward,
        }
    }

    /// Round-trip propagation delay of the hops from the first to the last. The hosts' links have the rest of the RTT.
    pub fn between(&self, (first, last): (usize, usize)) -> Duration {
        let ways = [&self.hops[first..=last], &self.backward[first..=last]];
        ways.into_iter().flatten().fold(Duration::ZERO, |sum, hop| sum + hop.delay)
    }

    /// One-way propagation delay that remains of `rtt` after the hops from the first to the last.
    pub fn rest(&self, hops: (usize, usize), rtt: Duration) -> Duration {
        rtt.saturating_sub(self.between(hops)) / 2
    }

    /// The variation of hop `index` in one direction.
    pub fn variation(&self, way: PathDirection, index: usize) -> Variation {
        let own =
            |hop: usize, of: Option<PathDirection>| hop == index && of.is_none_or(|of| of == way);
        let changes = self.changes.iter().filter(|change| own(change.hop, change.way));
        let changes = changes.map(|Change { at, rate, delay, .. }| sweetspot_path::Change {
            at: *at,
            rate: *rate,
            delay: *delay,
        });
        let trace = self.traces.iter().find(|traced| own(traced.hop, traced.way));
        Variation { trace: trace.map(|traced| traced.trace.clone()), changes: changes.collect() }
    }

    /// The hops in the form that an emulator needs, with `rest` of propagation delay after the last one in each
    /// direction.
    pub fn chain(&self, rest: Duration, seed: u64) -> HopChain {
        let last = self.hops.len() - 1;
        let behind = |way: PathDirection, index: usize| {
            let ends = if way == PathDirection::Forward { last } else { 0 };
            if index == ends { rest } else { Duration::ZERO }
        };
        let finished = |way: PathDirection, index: usize| {
            let hop = self.hops_of(way)[index];
            DirectionSpec { delay: hop.delay + behind(way, index), ..hop }
        };
        let varied = |way: PathDirection| {
            let each = (0..=last).map(|index| {
                let mut variation = self.variation(way, index);
                for change in &mut variation.changes {
                    change.delay = change.delay.map(|delay| delay + behind(way, index));
                }
                variation
            });
            each.collect()
        };
        let hops = (0..=last).map(|index| PathSpec {
            up: finished(PathDirection::Forward, index),
            down: finished(PathDirection::Backward, index),
            mtu: self.packet,
            seed,
        });
        HopChain {
            hops: hops.collect(),
            up: varied(PathDirection::Forward),
            down: varied(PathDirection::Backward),
        }
    }

    /// C x T_m.
    pub fn bdp(&self) -> Bytes {
        self.narrow().lasting_rate() * self.rtt
    }

    /// The bottleneck's mean rate between two times.
    pub fn mean_rate(&self, from: Duration, until: Duration) -> Rate {
        let variation = self.variation(PathDirection::Forward, self.bottleneck());
        let rate = match variation.trace {
            Some(trace) => trace.mean_rate_between(from, until),
            None => {
                let steps = variation.changes.iter();
                let steps = steps.filter_map(|change| Some((change.at, change.rate?.as_f64())));
                Rate::from_f64(mean_of_steps(self.narrow().rate.as_f64(), steps, from, until))
            }
        };
        self.narrow().policer.map_or(rate, |policer| policer.rate.min(rate))
    }

    /// The target's mean round-trip propagation delay between two times, seconds.
    pub fn mean_rtt(&self, from: Duration, until: Duration) -> f64 {
        let change = |way: PathDirection| {
            self.hops_of(way).iter().enumerate().map(move |(index, hop)| {
                let changes = self.variation(way, index).changes;
                let delays = changes.iter();
                let delays = delays.filter_map(|c| Some((c.at, c.delay?.as_secs_f64())));
                let delay = hop.delay.as_secs_f64();
                mean_of_steps(delay, delays, from, until) - delay
            })
        };
        self.rtt.as_secs_f64()
            + change(PathDirection::Forward).chain(change(PathDirection::Backward)).sum::<f64>()
    }

    pub(crate) fn read(mut reader: Reader<'_>) -> Result<Path> {
        let rtt: Duration = reader.required("rtt", "rtt = \"100ms\"")?;
        let packet = reader.quantity("packet")?.unwrap_or(Bytes::new(1000));
        if !(100..=65_000).contains(&packet.get()) {
            return Err(reader.impossible("packet", "it must be between 100B and 65kB"));
        }
        let packet_spread = reader.quantity("packet_spread")?.unwrap_or(Bytes::ZERO);
        if packet_spread + Bytes::new(60) > packet || (packet + packet_spread).get() > 65_000 {
            let reason = "sizes must be between 60B and 65kB";
            return Err(reader.impossible("packet_spread", reason));
        }
        let reverse = [("mirror", Reverse::Mirror), ("clean", Reverse::Clean)];
        let reverse = reader.choice("reverse", &reverse)?.unwrap_or(Reverse::Mirror);
        let forward = [("up", false), ("down", true)];
        let is_download = reader.choice("forward", &forward)?.unwrap_or(false);
        let access_rate =
            reader.quantity("access_rate")?.unwrap_or(Rate::from_mbit_per_second(1000));
        if access_rate < *DirectionSpec::RATES.start() {
            return Err(reader.impossible("access_rate", "it must be 1kbit/s or more"));
        }
        let mut traces = Vec::new();
        for trace in reader.tables("trace")? {
            traces.push(TracedHop::read(trace)?);
        }
        let Hops { hops, backward } = read_hops(&mut reader, rtt, packet, &traces)?;
        if let Some(traced) = traces.iter().position(|traced| traced.hop >= hops.len()) {
            let reason = format!("there is no such hop; hops are 0 to {}", hops.len() - 1);
            return Err(reader.impossible_in("trace", traced, "hop", &reason));
        }
        for (number, traced) in traces.iter().enumerate() {
            let same = |other: &TracedHop| {
                other.hop == traced.hop
                    && (other.way.is_none() || traced.way.is_none() || other.way == traced.way)
            };
            if traces[..number].iter().any(same) {
                let reason = "another trace drives this hop in that direction";
                return Err(reader.impossible_in("trace", number, "hop", reason));
            }
        }
        let mut changes = Vec::new();
        for change in reader.tables("change")? {
            changes.push(Change::read(change, hops.len() as u64)?);
        }
        changes.sort_by_key(|change| change.at);
        reader.finish()?;
        Ok(Path {
            hops,
            backward,
            rtt,
            packet,
            packet_spread,
            access_rate,
            reverse,
            is_download,
            changes,
            traces,
        })
    }
}

/// The mean, between two times, of a step function that starts with `first`.
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
    fn read(mut reader: Reader<'_>, hops: u64) -> Result<Change> {
        let change = Change {
            at: reader.required("at", "at = \"10s\"")?,
            hop: reader.whole_number("hop", 0, hops - 1)?.unwrap_or(0) as usize,
            way: reader.choice("way", &PathDirection::CHOICES)?,
            rate: reader.quantity("rate")?,
            delay: reader.quantity("delay")?,
        };
        if change.rate.is_none() && change.delay.is_none() {
            return Err(reader.missing("rate", "rate = \"20Mbit/s\""));
        }
        if change.rate.is_some_and(|rate| !DirectionSpec::RATES.contains(&rate)) {
            return Err(reader.impossible("rate", "it must be between 1kbit/s and 1Tbit/s"));
        }
        reader.finish()?;
        Ok(change)
    }
}
