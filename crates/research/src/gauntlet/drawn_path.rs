use core::fmt::Write;

use sweetspot_scenario::Congestion;
use sweetspot_sizing::Sizing;
use sweetspot_units::Duration;

use super::path_basics::{PACKET_BYTES, PathBasics, WARMUP_S};
use super::population::Population;
use super::random_stream::RandomStream;
use super::{change, cross};

/// A random path, determined by its index and the population's seed.
#[derive(Debug, Clone, PartialEq)]
pub struct DrawnPath {
    population: Population,
    seed: u64,
    index: u64,
    duration: Duration,
    /// The tables `[path]`, `[tcp]` and `[[cross]]`, as TOML.
    body: String,
    /// Start times of the transfers, seconds.
    starts: Vec<f64>,
    /// Size of the first transfer and of a second one that follows it, bytes.
    sizes: Option<[f64; 2]>,
    /// The keys of `[[transfer]]` other than start, sizing and congestion control.
    transfer: String,
}

/// Pause between a transfer and the one that follows it, seconds.
const PAUSE_S: f64 = 1.0;

/// Minimum buffer, packets.
const MIN_BUFFER_PACKETS: f64 = 5.0;

/// Share of the rate assumed when choosing a transfer's size, so that it ends in time.
const RATE_CREDIT: f64 = 0.8;

impl DrawnPath {
    /// Path `index` of the population with this `seed`. Transfers are measured for `duration`, or
    /// for the population's default time.
    pub fn new(
        population: Population,
        seed: u64,
        index: u64,
        duration: Option<Duration>,
    ) -> DrawnPath {
        let stream = |quantity: &str| RandomStream::new(seed, index, quantity);
        let (shorter, longer) = population.usual_durations();
        let usual = if stream("long").chance(0.5) { longer } else { shorter };
        let duration = duration.unwrap_or(usual);
        let basics = PathBasics {
            mbit: stream("rate").log_between(2.0, 600.0),
            rtt_ms: stream("rtt").log_between(5.0, 300.0),
        };
        let mut body = path(&stream, basics);
        let changes = match population {
            Population::Changes => true,
            Population::Again => stream("changes").chance(0.3),
            _ => false,
        };
        if changes {
            body.push_str(&change::of_path(&stream, basics));
        }
        body.push_str("\n[tcp]\nflavour = \"linux\"\n");
        body.push_str(&cross::drawn(&stream, basics));
        if changes {
            body.push_str(&change::of_company(&stream, basics));
        }
        // The path's capacity in this many seconds, bytes.
        let carried = |seconds: f64| basics.mbit * 1e6 / 8.0 * seconds * RATE_CREDIT;
        let mut transfer = String::new();
        if population == Population::Sizes {
            let max = carried(duration.as_secs_f64());
            let size = stream("transfer size").log_between(1e6, max.clamp(1e6, 1e9));
            let _ = writeln!(transfer, "size = \"{size:.0}B\"");
        }
        // tcp_rmem[2] of 6 MiB, as before kernel 6.16, at a scaling ratio of one half; otherwise
        // the 32 MiB that the flavour implies.
        if stream("host").chance(0.5) {
            transfer.push_str("window_scale = 7\nmax_window = \"3145728B\"\n");
        }
        let sizes = (population == Population::Again).then(|| {
            let seconds = |which, min, max| stream(which).log_between(min, max);
            [("first transfer", 2.0, 20.0), ("second transfer", 0.2, 10.0)]
                .map(|(which, min, max)| carried(seconds(which, min, max)))
        });
        let starts = starts(&stream, population);
        DrawnPath { population, seed, index, duration, body, starts, sizes, transfer }
    }

    /// The path's index in the population.
    pub fn index(&self) -> u64 {
        self.index
    }

    /// The scenario's seed in repetition `number`.
    pub fn scenario_seed(&self, number: u64) -> u64 {
        RandomStream::new(self.seed, self.index, &format!("repetition {number}")).seed()
    }

    /// The scenario as TOML, with the given sizing and congestion control for its transfers, in
    /// repetition `number`.
    pub fn text(&self, sizing: Sizing, congestion: Congestion, number: u64) -> String {
        self.written(sizing, congestion, false, number)
    }

    /// The scenario as TOML; with `fixed`, the sizing must not switch the congestion control.
    pub(super) fn written(
        &self,
        sizing: Sizing,
        congestion: Congestion,
        fixed: bool,
        number: u64,
    ) -> String {
        let fixed = if fixed { "congestion_fixed = true\n" } else { "" };
        let DrawnPath { population, seed, index, duration, body, starts, sizes, transfer } = self;
        let mut text = format!(
            "title = \"Path {index} of the population {}, seed {seed}\"\nseed = {}\n\
             warmup = \"{WARMUP_S}s\"\nduration = \"{}s\"\n\n{body}",
            population.name(),
            self.scenario_seed(number),
            duration.as_secs_f64(),
        );
        let mut entry = |start: f64, more: &str| {
            let _ = write!(
                text,
                "\n[[transfer]]\nstart = \"{start}s\"\ncongestion = \"{}\"\n{fixed}sizing = \"{sizing}\"\n{transfer}{more}",
                congestion.name()
            );
        };
        match sizes {
            None => starts.iter().for_each(|start| entry(*start, "")),
            Some([first, second]) => {
                entry(WARMUP_S, &format!("size = \"{first:.0}B\"\n"));
                entry(PAUSE_S, &format!("size = \"{second:.0}B\"\nfollows = true\n"));
            }
        }
        text
    }
}

/// `[path]` without any changes over time.
fn path(stream: &impl Fn(&str) -> RandomStream, PathBasics { mbit, rtt_ms }: PathBasics) -> String {
    let bdp = mbit * 1e6 * rtt_ms * 1e-3 / 8.0 / PACKET_BYTES;
    let buffer = (bdp * stream("buffer").log_between(0.08, 4.0)).round().max(MIN_BUFFER_PACKETS);
    let mut text = format!(
        "[path]\nrate = \"{mbit:.3}Mbit/s\"\nrtt = \"{rtt_ms:.3}ms\"\n\
         buffer = \"{buffer}pkt\"   # {:.2} BDP\npacket = \"{PACKET_BYTES}B\"\nreverse = \"clean\"\n",
        buffer / bdp
    );
    let queue = match stream("queue").between(0.0, 1.0) {
        u if u < 0.7 => "drop-tail",
        u if u < 0.8 => "red",
        u if u < 0.9 => "codel",
        _ => "fq-codel",
    };
    let _ = writeln!(text, "queue = \"{queue}\"");
    if stream("random loss").chance(0.4) {
        let loss = stream("loss rate").log_between(1e-5, 1e-2);
        let _ = writeln!(text, "loss = {loss:.7}");
    }
    if stream("jitter").chance(0.4) {
        // Each direction adds it once, so the total is at most half the RTT.
        let jitter = stream("jitter size").between(0.0, f64::min(20.0, rtt_ms / 4.0));
        let _ = writeln!(text, "jitter = \"{jitter:.3}ms\"");
    }
    text
}

/// Start times of the transfers, seconds.
fn starts(stream: &impl Fn(&str) -> RandomStream, population: Population) -> Vec<f64> {
    let count = match population {
        Population::Transfers => stream("transfers").integer(2, 8),
        _ => 1,
    };
    let mut delay = stream("starts");
    let later = (1..count).map(|_| WARMUP_S + (delay.between(0.0, 5.0) * 1e3).round() / 1e3);
    core::iter::once(WARMUP_S).chain(later).collect()
}
