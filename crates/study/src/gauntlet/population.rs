//! Which paths there are: a population's seed and a path's index decide everything about it.

use core::fmt::Write;
use core::str::FromStr;

use serde::Serialize;
use sweetspot_scenario::Congestion;
use sweetspot_sizing::Sizing;
use sweetspot_units::Duration;

use super::cross;
use super::lot::Lot;

/// A kind of population.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Population {
    /// Paths that stay as they are, and a transfer that lasts.
    Drawn,
}

/// No such population.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no population {0}; there are {known}", known = names())]
pub struct UnknownPopulation(String);

fn names() -> String {
    Population::ALL.map(Population::name).join(", ")
}

impl Population {
    /// All there are.
    pub const ALL: [Population; 1] = [Population::Drawn];

    /// As typed.
    pub fn name(self) -> &'static str {
        match self {
            Population::Drawn => "drawn",
        }
    }
}

impl FromStr for Population {
    type Err = UnknownPopulation;

    fn from_str(text: &str) -> Result<Population, UnknownPopulation> {
        let found = Population::ALL.into_iter().find(|population| population.name() == text);
        found.ok_or_else(|| UnknownPopulation(text.to_owned()))
    }
}

/// A path that was drawn.
#[derive(Debug, Clone, PartialEq)]
pub struct DrawnPath {
    population: Population,
    seed: u64,
    index: u64,
    duration: Duration,
    /// `[path]`, `[tcp]` and `[[cross]]`, as TOML.
    body: String,
    /// What `[[transfer]]` holds besides its sizing and congestion control.
    host: String,
}

/// Cross traffic gets so long to start before the transfer does.
const WARMUP: Duration = Duration::from_secs(2);

/// A data packet on the wire, bytes.
pub(super) const PACKET: f64 = 1500.0;

/// The least buffer, packets: what a router of any make has.
const LEAST_BUFFER: f64 = 5.0;

impl DrawnPath {
    /// Path `index` of the population of this `seed`; the transfer is measured for `duration`.
    pub fn new(population: Population, seed: u64, index: u64, duration: Duration) -> DrawnPath {
        let lot = |quantity: &str| Lot::new(seed, index, quantity);
        let mbit = lot("rate").log_between(2.0, 600.0);
        let rtt_ms = lot("rtt").log_between(5.0, 300.0);
        let bdp = mbit * 1e6 * rtt_ms * 1e-3 / 8.0 / PACKET;
        let buffer = (bdp * lot("buffer").log_between(0.08, 4.0)).round().max(LEAST_BUFFER);
        let mut body = format!(
            "[path]\nrate = \"{mbit:.3}Mbit/s\"\nrtt = \"{rtt_ms:.3}ms\"\n\
             buffer = \"{buffer}pkt\"   # {:.2} BDP\npacket = \"{PACKET}B\"\nreverse = \"clean\"\n",
            buffer / bdp
        );
        let queue = match lot("queue").between(0.0, 1.0) {
            u if u < 0.7 => "drop-tail",
            u if u < 0.8 => "red",
            u if u < 0.9 => "codel",
            _ => "fq-codel",
        };
        let _ = writeln!(body, "queue = \"{queue}\"");
        if lot("random loss").chance(0.4) {
            let loss = lot("loss rate").log_between(1e-5, 1e-2);
            let _ = writeln!(body, "loss = {loss:.7}");
        }
        if lot("jitter").chance(0.4) {
            // Each way takes it once: half the round trip together, at most.
            let jitter = lot("jitter size").between(0.0, f64::min(20.0, rtt_ms / 4.0));
            let _ = writeln!(body, "jitter = \"{jitter:.3}ms\"");
        }
        body.push_str("\n[tcp]\nflavour = \"linux\"\n");
        body.push_str(&cross::drawn(&lot, mbit, rtt_ms));
        // tcp_rmem[2] of 6 MiB, as before kernel 6.16, at a scaling ratio of one half; otherwise
        // the 32 MiB that the flavour stands for.
        let old = lot("host").chance(0.5);
        let host = if old { "window_scale = 7\nmax_window = \"3145728B\"\n" } else { "" };
        DrawnPath { population, seed, index, duration, body, host: host.to_owned() }
    }

    /// Its index in the population.
    pub fn index(&self) -> u64 {
        self.index
    }

    /// The scenario's seed in repetition `number`.
    pub fn scenario_seed(&self, number: u64) -> u64 {
        Lot::new(self.seed, self.index, &format!("repetition {number}")).seed()
    }

    /// The scenario as TOML: its transfer sized and controlled so, in repetition `number`.
    pub fn text(&self, sizing: Sizing, congestion: Congestion, number: u64) -> String {
        let DrawnPath { population, seed, index, duration, body, host } = self;
        format!(
            "title = \"Path {index} of the population {}, seed {seed}\"\nseed = {}\n\
             warmup = \"{}s\"\nduration = \"{}s\"\n\n{body}\n[[transfer]]\nstart = \"{}s\"\n\
             congestion = \"{}\"\nsizing = \"{sizing}\"\n{host}",
            population.name(),
            self.scenario_seed(number),
            WARMUP.as_secs_f64(),
            duration.as_secs_f64(),
            WARMUP.as_secs_f64(),
            congestion.name(),
        )
    }
}
