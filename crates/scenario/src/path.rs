use sweetspot_path::{DirectionSpec, PolicerSpec, QueueDiscipline, Variation};
use sweetspot_units::{BufferSize, Bytes, Duration, Probability, Rate};

use crate::error::ScenarioError;
use crate::reader::Reader;

/// `[path]`: the path between the target's sender and its receiver.
#[derive(Debug, Clone, PartialEq)]
pub struct Path {
    /// The routers' links, in the order the data takes them, each alike in both directions; one in a dumbbell.
    pub hops: Vec<DirectionSpec>,
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

/// What the reverse path carries besides the target's ACKs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reverse {
    /// The same cross traffic as the forward path.
    Mirror,
    /// The ACKs of the forward path's flows only.
    Clean,
}

impl Path {
    /// Index of the bottleneck: the first hop with the lowest rate that lasts.
    pub fn bottleneck(&self) -> usize {
        let least = self.hops.iter().map(DirectionSpec::lasting_rate).min();
        self.hops.iter().position(|hop| Some(hop.lasting_rate()) == least).unwrap_or(0)
    }

    /// The bottleneck.
    pub fn narrow(&self) -> &DirectionSpec {
        &self.hops[self.bottleneck()]
    }

    /// The changes of hop `index`.
    pub fn changes_of(&self, index: usize) -> impl Iterator<Item = sweetspot_path::Change> {
        let own = self.changes.iter().filter(move |change| change.hop == index);
        own.map(|Change { at, rate, delay, .. }| sweetspot_path::Change {
            at: *at,
            rate: *rate,
            delay: *delay,
        })
    }

    /// How each direction of hop `index` varies where the whole way is played as one `propagation`. The hop's delay is
    /// a part of it: where it changes, the whole changes by as much.
    pub fn variation(&self, index: usize, propagation: Duration) -> Variation {
        let rest = |delay: Duration| (propagation + delay).saturating_sub(self.hops[index].delay);
        let changes = self.changes_of(index);
        let changes = changes
            .map(|change| sweetspot_path::Change { delay: change.delay.map(rest), ..change });
        Variation { trace: None, changes: changes.collect() }
    }

    /// C x T_m.
    pub fn bdp(&self) -> Bytes {
        self.narrow().lasting_rate() * self.rtt
    }

    /// The bottleneck's mean rate between two times.
    pub fn mean_rate(&self, from: Duration, until: Duration) -> Rate {
        let narrow = self.bottleneck();
        let own = self.changes.iter().filter(|change| change.hop == narrow);
        let rates = own.filter_map(|change| Some((change.at, change.rate?)));
        let rate = Rate::from_f64(mean_of_steps(
            self.narrow().rate.as_f64(),
            rates.map(|(at, rate)| (at, rate.as_f64())),
            from,
            until,
        ));
        self.narrow().policer.map_or(rate, |policer| policer.rate.min(rate))
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
        if access_rate < *DirectionSpec::RATES.start() {
            return Err(reader.impossible("access_rate", "it must be 1kbit/s or more"));
        }
        let mut written = reader.tables("hop")?;
        let mut hops = Vec::new();
        let each = rtt / (5 * written.len().max(1) as u64);
        for hop in &mut written {
            hops.push(read_hop(hop, (each, rtt), packet)?);
        }
        for hop in written {
            hop.finish()?;
        }
        if hops.is_empty() {
            // A fifth of the round trip, as between the routers of the paper's Figure 2.
            hops.push(read_hop(&mut reader, (rtt / 5, rtt), packet)?);
        } else {
            for key in DirectionSpec::KEYS {
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
        if change.rate.is_some_and(|rate| !DirectionSpec::RATES.contains(&rate)) {
            return Err(reader.impossible("rate", "it must lie between 1kbit/s and 1Tbit/s"));
        }
        reader.finish()?;
        Ok(change)
    }
}

/// `rtt` is the path's.
fn read_hop(
    reader: &mut Reader<'_>,
    (delay, rtt): (Duration, Duration),
    packet: Bytes,
) -> Result<DirectionSpec, ScenarioError> {
    let policer = match reader.quantity("policer")? {
        Some(rate) => {
            let burst = reader.required("policer_burst", "policer_burst = \"100kB\"")?;
            Some(PolicerSpec { rate, burst })
        }
        None if reader.node("policer_burst").is_some() => {
            return Err(reader.missing("policer", "policer = \"20Mbit/s\""));
        }
        None => None,
    };
    let rate = reader.required("rate", "rate = \"50Mbit/s\"")?;
    let buffer: BufferSize =
        reader.required("buffer", "buffer = \"625pkt\", \"625kB\" or \"1bdp\"")?;
    let hop = DirectionSpec {
        queue: reader.choice("queue", &QueueDiscipline::CHOICES)?.unwrap_or_default(),
        burst: reader.quantity("burst")?.unwrap_or(Bytes::ZERO),
        policer,
        loss: reader.quantity("loss")?.unwrap_or(Probability::ZERO),
        loss_burst: reader.whole("loss_burst", 1, 1_000_000)?.unwrap_or(1) as u32,
        jitter: reader.quantity("jitter")?.unwrap_or(Duration::ZERO),
        jitter_reorders: reader
            .choice("jitter_order", &DirectionSpec::JITTER_ORDERS)?
            .unwrap_or(false),
        reorder: reader.quantity("reorder")?.unwrap_or(Probability::ZERO),
        reorder_by: reader.quantity("reorder_by")?.unwrap_or(Duration::ZERO),
        aggregation: reader.quantity("aggregation")?.unwrap_or(Duration::ZERO),
        ..DirectionSpec::new(rate, reader.quantity("delay")?.unwrap_or(delay), buffer.on(rate, rtt))
    };
    hop.check(packet).map_err(|(key, why)| reader.impossible(key, &why))?;
    Ok(hop)
}
