use sweetspot_units::{Bytes, Duration};

use crate::error::Result;
use crate::path::Path;
use crate::reader::Reader;
use crate::tcp::Tcp;
use crate::traffic::{Cross, Transfer};
use crate::tree::Node;

/// The content of a scenario file: a path, its cross traffic, the measured transfers, and the measured time.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// The title.
    pub title: String,
    /// The seed of all random numbers.
    pub seed: u64,
    /// Time from time 0 to the start of measurement.
    pub warmup: Duration,
    /// The measured time.
    pub duration: Duration,
    /// The order of simultaneous events.
    pub ties: Ties,
    /// The path.
    pub path: Path,
    /// Cross traffic.
    pub cross: Vec<Cross>,
    /// The transfers that are measured individually.
    pub transfers: Vec<Transfer>,
    /// Memory shared by the senders of all transfers (Semke, Mahdavi, Mathis 1998); `None`: each sender has its
    /// own buffer.
    pub send_pool: Option<Bytes>,
}

/// The order of simultaneous events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ties {
    /// Random, from the seed: the order in which flows are declared has no influence.
    Seeded,
    /// In the order in which they were scheduled, as in ns-2: flows declared first go first.
    Declared,
}

/// The keys that follow the duration.
const LATER_KEYS: [&str; 6] = ["ties", "path", "tcp", "cross", "transfer", "send_pool"];

impl Scenario {
    /// Parses a scenario from TOML.
    pub fn parse(text: &str) -> Result<Scenario> {
        Scenario::parse_with(text, &[])
    }

    /// Parses a scenario from TOML, with `key=value` overrides.
    pub fn parse_with(text: &str, overrides: &[String]) -> Result<Scenario> {
        let mut tree = Node::parse(text)?;
        for assignment in overrides {
            tree.set(assignment)?;
        }
        let mut reader = Reader::new("", &tree)?;
        let title = match reader.node("title") {
            None => String::new(),
            Some(node) => match &node.value {
                crate::tree::Value::Text(text) => text.clone(),
                _ => return Err(reader.error("title", node, "it must be a quoted string")),
            },
        };
        // TOML and JSON readers both keep integers below 2^53 exactly; 2^53 + 1 would become 2^53.
        let seed = reader.whole_number("seed", 0, (1 << 53) - 1)?.unwrap_or(1);
        let warmup = reader.quantity("warmup")?.unwrap_or(Duration::ZERO);
        let duration: Duration = match reader.required("duration", "duration = \"150s\"") {
            Err(missing) => return Err(reader.unknown_or(missing, &LATER_KEYS)),
            Ok(duration) => duration,
        };
        if duration == Duration::ZERO {
            return Err(
                reader.impossible("duration", "nothing would be measured; use more than 0 s")
            );
        }
        let ties = [("seeded", Ties::Seeded), ("declared", Ties::Declared)];
        let ties = reader.choice("ties", &ties)?.unwrap_or(Ties::Seeded);
        let path = reader
            .table("path")?
            .ok_or_else(|| reader.missing_table("path", "[path] with rate, rtt and buffer"))?;
        let path = Path::read(path)?;
        let tcp = match reader.table("tcp")? {
            None => Tcp::NS2,
            Some(mut table) => {
                let tcp = Tcp::read(&mut table, Tcp::NS2, path.packet)?;
                table.finish()?;
                tcp
            }
        };
        let mut cross = Vec::new();
        for entry in reader.tables("cross")? {
            cross.push(Cross::read(entry, &path, tcp)?);
        }
        let mut transfers = Vec::new();
        for entry in reader.tables("transfer")? {
            let before = transfers.last();
            transfers.extend(Transfer::read(entry, tcp, path.packet, before)?);
        }
        let send_pool: Option<Bytes> = reader.quantity("send_pool")?;
        if send_pool.is_some_and(|pool| pool < path.packet * transfers.len() as u64) {
            let reason = "it must hold a packet of each transfer";
            return Err(reader.impossible("send_pool", reason));
        }
        reader.finish()?;
        Ok(Scenario { title, seed, warmup, duration, ties, path, cross, transfers, send_pool })
    }
}
