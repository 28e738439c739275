//! Reads the hops of a path, in both directions.

use sweetspot_path::{DirectionSpec, PolicerSpec, QueueDiscipline, Trace};
use sweetspot_units::{BufferSize, Bytes, Duration, Rate};

use crate::error::Result;
use crate::reader::Reader;

/// A direction of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathDirection {
    /// The direction of the measured transfers' data.
    Forward,
    /// The direction of their ACKs.
    Backward,
}

impl PathDirection {
    /// Both directions with their names in text.
    pub const CHOICES: [(&'static str, PathDirection); 2] =
        [("forward", PathDirection::Forward), ("backward", PathDirection::Backward)];
}

/// `[[path.trace]]`: a hop that follows a recorded, varying capacity.
#[derive(Debug, Clone, PartialEq)]
pub struct TracedHop {
    /// Index of the hop, from 0.
    pub hop: usize,
    /// The direction; `None`: both.
    pub way: Option<PathDirection>,
    /// The trace; its time 0 is the start of the run.
    pub trace: Trace,
}

impl TracedHop {
    pub(crate) fn read(mut reader: Reader<'_>) -> Result<TracedHop> {
        if let Some(node) = reader.node("file") {
            let reason = "no files can be read here; give the file's text as content";
            return Err(reader.error("file", node, reason));
        }
        let trace = reader.required("content", "file = \"lte.trace\"")?;
        let hop = reader.whole_number("hop", 0, u64::from(u16::MAX))?.unwrap_or(0) as usize;
        let traced = TracedHop { hop, way: reader.choice("way", &PathDirection::CHOICES)?, trace };
        reader.finish()?;
        Ok(traced)
    }
}

/// The hops in the direction of the data, and in the direction of the ACKs.
pub(crate) struct Hops {
    pub hops: Vec<DirectionSpec>,
    pub backward: Vec<DirectionSpec>,
}

/// The defaults for a hop's missing keys.
#[derive(Clone, Copy)]
enum HopDefaults {
    /// A one-way propagation delay, and the mean rate of the hop's trace, if it has one.
    Forward(Duration, Option<Rate>),
    /// The values of the other direction, and the mean rate of this direction's own trace, if it
    /// has one.
    Backward(DirectionSpec, Option<Rate>),
}

/// Parses the hops in `[path]` or `[[path.hop]]`; `rtt` is the path's.
pub(crate) fn read_hops(
    reader: &mut Reader<'_>,
    rtt: Duration,
    packet: Bytes,
    traces: &[TracedHop],
) -> Result<Hops> {
    let mut found = Hops { hops: Vec::new(), backward: Vec::new() };
    let tables = reader.tables("hop")?;
    if tables.is_empty() {
        // A fifth of the RTT, as between the routers of the paper's Figure 2.
        found.read_one(reader, rtt / 5, (rtt, packet), traces)?;
    } else {
        for key in DirectionSpec::KEYS.into_iter().chain(["backward"]) {
            if let Some(node) = reader.node(key) {
                return Err(reader.error(key, node, "it belongs in each [[path.hop]]"));
            }
        }
        let each = rtt / (5 * tables.len() as u64);
        for mut table in tables {
            found.read_one(&mut table, each, (rtt, packet), traces)?;
            table.finish()?;
        }
    }
    let all = found.hops.iter().chain(&found.backward);
    if all.fold(Duration::ZERO, |sum, hop| sum + hop.delay) > rtt {
        let reason = "it is less than the hops' total delay in both directions";
        return Err(reader.impossible("rtt", reason));
    }
    Ok(found)
}

impl Hops {
    fn read_one(
        &mut self,
        table: &mut Reader<'_>,
        delay: Duration,
        path: (Duration, Bytes),
        traces: &[TracedHop],
    ) -> Result<()> {
        let index = self.hops.len();
        let traced = |way: PathDirection| {
            let own = |t: &&TracedHop| t.hop == index && t.way.is_none_or(|of| of == way);
            traces.iter().find(own).map(|traced| traced.trace.mean_rate())
        };
        let hop =
            read_hop(table, HopDefaults::Forward(delay, traced(PathDirection::Forward)), path)?;
        let defaults = HopDefaults::Backward(hop, traced(PathDirection::Backward));
        let reverse = match table.table("backward")? {
            Some(mut own) => {
                let reverse = read_hop(&mut own, defaults, path)?;
                own.finish()?;
                reverse
            }
            None => {
                DirectionSpec { rate: traced(PathDirection::Backward).unwrap_or(hop.rate), ..hop }
            }
        };
        self.hops.push(hop);
        self.backward.push(reverse);
        Ok(())
    }
}

fn read_hop(
    reader: &mut Reader<'_>,
    defaults: HopDefaults,
    (rtt, packet): (Duration, Bytes),
) -> Result<DirectionSpec> {
    let base = match defaults {
        HopDefaults::Backward(other, traced) => {
            DirectionSpec { rate: traced.unwrap_or(other.rate), ..other }
        }
        HopDefaults::Forward(delay, traced) => {
            let rate = match (traced, reader.quantity("rate")?) {
                (_, Some(rate)) | (Some(rate), None) => rate,
                (None, None) => return Err(reader.missing("rate", "rate = \"50Mbit/s\"")),
            };
            let buffer: BufferSize =
                reader.required("buffer", "buffer = \"625pkt\", \"625kB\" or \"1bdp\"")?;
            DirectionSpec::new(rate, delay, buffer.on(rate, rtt))
        }
    };
    let rate = reader.quantity("rate")?.unwrap_or(base.rate);
    let buffer: Option<BufferSize> = reader.quantity("buffer")?;
    let hop = DirectionSpec {
        rate,
        delay: reader.quantity("delay")?.unwrap_or(base.delay),
        buffer: buffer.map_or(base.buffer, |buffer| buffer.on(rate, rtt)),
        queue: reader.choice("queue", &QueueDiscipline::CHOICES)?.unwrap_or(base.queue),
        burst: reader.quantity("burst")?.unwrap_or(base.burst),
        policer: read_policer(reader, base.policer)?,
        loss: reader.quantity("loss")?.unwrap_or(base.loss),
        loss_burst: reader
            .whole_number("loss_burst", 1, 1_000_000)?
            .map_or(base.loss_burst, |packets| packets as u32),
        jitter: reader.quantity("jitter")?.unwrap_or(base.jitter),
        jitter_reorders: reader
            .choice("jitter_order", &DirectionSpec::JITTER_ORDERS)?
            .unwrap_or(base.jitter_reorders),
        reorder: reader.quantity("reorder")?.unwrap_or(base.reorder),
        reorder_by: reader.quantity("reorder_by")?.unwrap_or(base.reorder_by),
        aggregation: reader.quantity("aggregation")?.unwrap_or(base.aggregation),
    };
    hop.check(packet).map_err(|(key, why)| reader.impossible(key, &why))?;
    Ok(hop)
}

/// Parses the policer of a table. Without a key it is `base`; `"none"` removes it.
fn read_policer(reader: &mut Reader<'_>, base: Option<PolicerSpec>) -> Result<Option<PolicerSpec>> {
    if reader.is_word("policer", "none") {
        return Ok(None);
    }
    match reader.quantity("policer")? {
        Some(rate) => {
            let burst = reader.required("policer_burst", "policer_burst = \"100kB\"")?;
            Ok(Some(PolicerSpec { rate, burst }))
        }
        None if reader.node("policer_burst").is_some() => {
            Err(reader.missing("policer", "policer = \"20Mbit/s\""))
        }
        None => Ok(base),
    }
}
