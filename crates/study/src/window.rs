//! Windows tried on a path in the simulator, where no closed form is sure of the best one: how fast
//! a transfer is with each, beside cross traffic of a known kind and load.

use sweetspot_scenario::{Engine, Outcome, Scenario};
use sweetspot_sizing::Sizing;
use sweetspot_units::{Bytes, Duration, Probability, Rate, Volume};

use crate::play::{goodput, play_all};
use crate::{StudyError, Workers};

/// What cross traffic is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Load {
    /// UDP with Pareto gaps.
    Udp,
    /// Persistent TCP flows that their windows limit.
    Elephants,
    /// Users that send short TCP transfers and sleep.
    Mice,
}

/// A path and what else uses it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SharedPath {
    /// C.
    pub rate: Rate,
    /// T_m.
    pub rtt: Duration,
    /// The bottleneck's buffer.
    pub buffer: Bytes,
    /// A full packet.
    pub packet: Bytes,
    /// Random loss.
    pub loss: Probability,
    /// What cross traffic takes of the rate before the transfer begins, 0 to 1.
    pub cross: Option<(Load, f64)>,
}

/// How a transfer fared with one window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TriedWindow {
    /// The window.
    pub window: Bytes,
    /// Its rate on the bottleneck, headers included; mean over seeds.
    pub rate: Rate,
    /// The standard error of that mean.
    pub rate_error: Rate,
    /// The mean round-trip time beyond T_m.
    pub delay: Duration,
    /// Packets of it lost over packets sent.
    pub loss: f64,
}

/// What came of trying.
#[derive(Debug, Clone, PartialEq)]
pub struct TriedWindows {
    /// By window, smallest first; measured on seeds that did not choose.
    pub windows: Vec<TriedWindow>,
    /// Which of them to hold.
    pub hold: usize,
    /// Seeds of each.
    pub seeds: u64,
}

/// How much of the best rate a smaller window may lack: its queue is shorter, and it stands further
/// from the window at which the buffer overflows.
const TOLERANCE: f64 = 0.02;
/// Seeds that choose, and as many others that measure.
const SEEDS: u64 = 4;
/// A transfer is measured for so many round trips ...
const ROUND_TRIPS: u64 = 200;
/// ... but within these times.
const SHORTEST: Duration = Duration::from_secs(10);
const LONGEST: Duration = Duration::from_secs(40);
/// Cross traffic and the transfer's slow start settle first.
const WARMUP: Duration = Duration::from_secs(10);
/// Packets, each with its ACK, that the simulator moves in a second on a core (docs/results/speed.md
/// has 11 to 16 million).
const PACKETS_PER_SECOND: f64 = 10e6;

impl SharedPath {
    /// How long it takes to try `count` windows, on one core.
    pub fn cost(&self, count: usize) -> Duration {
        let seconds = (WARMUP + self.duration()).as_secs_f64();
        let per_second = self.rate.as_f64() / 8.0 / self.packet.as_f64();
        let packets = per_second * seconds * (count as u64 * 2 * SEEDS) as f64;
        Duration::from_secs_f64(packets / PACKETS_PER_SECOND)
    }

    fn duration(&self) -> Duration {
        (self.rtt * ROUND_TRIPS).clamp(SHORTEST, LONGEST)
    }

    /// Hosts as Linux has them, CUBIC, a drop-tail buffer in bytes; rates count headers.
    fn scenario(&self) -> Result<Scenario, StudyError> {
        let path = format!(
            "title = \"windows tried\"\nwarmup = \"{}ms\"\nduration = \"{}ms\"\n\n[path]\nrate = \"{}bit/s\"\n\
             rtt = \"{}us\"\nbuffer = \"{}B\"\npacket = \"{}B\"\nloss = {}\n\n[tcp]\nflavour = \"linux\"\nheader = \"0B\"\n\n",
            WARMUP.as_secs_f64() * 1e3,
            self.duration().as_secs_f64() * 1e3,
            self.rate.bits_per_second(),
            self.rtt.as_secs_f64() * 1e6,
            self.buffer.max(self.packet * 2).get(),
            self.packet.get(),
            self.loss.get(),
        );
        let cross = self.cross.map_or(String::new(), |(load, share)| self.cross(load, share));
        let text = format!("{path}{cross}[[transfer]]\ncongestion = \"cubic\"\nsizing = \"max\"\n");
        Ok(Scenario::parse(&text)?)
    }

    fn cross(&self, load: Load, share: f64) -> String {
        let bits = self.rate.as_f64() * share;
        let packet = self.packet.as_f64();
        match load {
            Load::Udp => {
                let rate = bits / UDP_SOURCES as f64;
                format!(
                    "[[cross]]\nkind = \"pareto\"\ncount = {UDP_SOURCES}\nrate = \"{rate:.0}bit/s\"\n\n"
                )
            }
            Load::Elephants => {
                // Each fills its share of the path; two packets are the least that keeps an ACK clock.
                let packets = bits / 8.0 * self.rtt.as_secs_f64() / packet;
                let count = (packets / LEAST_ELEPHANT).clamp(1.0, ELEPHANTS).round();
                let window = (packets / count).round().max(1.0);
                format!(
                    "[[cross]]\nkind = \"elephants\"\ncount = {count}\nwindow = \"{window}pkt\"\n{}\n",
                    self.round_trips()
                )
            }
            Load::Mice => {
                let mean = (MOUSE.0 + MOUSE.1) as f64 / 2.0;
                // A second of sleep, and a slow start from two packets.
                let cycle = 1.0 + libm::log2(mean / 2.0 + 1.0) * self.rtt.as_secs_f64();
                let count = (bits * cycle / (mean * packet * 8.0)).round().max(1.0);
                format!(
                    "[[cross]]\nkind = \"mice\"\ncount = {count}\npackets = [{}, {}]\nsleep = [\"0.9s\", \"1.1s\"]\n{}\n",
                    MOUSE.0,
                    MOUSE.1,
                    self.round_trips()
                )
            }
        }
    }

    /// A fifth to either side, so that flows are not in step.
    fn round_trips(&self) -> String {
        let at = |share: f64| self.rtt.as_secs_f64() * 1e6 * share;
        format!("rtt = [\"{:.0}us\", \"{:.0}us\"]\n", at(0.8), at(1.2))
    }
}

const UDP_SOURCES: u64 = 10;
const ELEPHANTS: f64 = 20.0;
const LEAST_ELEPHANT: f64 = 2.0;
/// Packets of a mouse, from and to: the first paper's.
const MOUSE: (u64, u64) = (10, 15);

/// Tries `windows` on `path`, each under the same seeds, and says which to hold: the smallest that
/// lacks no more than 2 % of the best rate.
pub fn try_windows<E: Engine + Sync + ?Sized>(
    engine: &E,
    path: &SharedPath,
    windows: &[Bytes],
    workers: Workers,
) -> Result<TriedWindows, StudyError> {
    let scenario = path.scenario()?;
    let mut windows = windows.to_vec();
    windows.sort();
    windows.dedup();
    let seeded = |window: &Bytes| {
        let mut sized = scenario.clone();
        for transfer in &mut sized.transfers {
            transfer.sizing = Sizing::Fixed(Volume::Bytes(*window));
        }
        (1..=2 * SEEDS).map(move |seed| Scenario { seed, ..sized.clone() })
    };
    let runs: Vec<Scenario> = windows.iter().flat_map(seeded).collect();
    let outcomes = play_all(engine, &runs, workers)?;
    let of_windows: Vec<&[Outcome]> = outcomes.chunks(2 * SEEDS as usize).collect();
    let chosen_by: Vec<f64> = of_windows
        .iter()
        .map(|outcomes| mean(outcomes[..SEEDS as usize].iter().map(goodput)))
        .collect();
    let best = chosen_by.iter().copied().fold(0.0, f64::max);
    let hold = chosen_by.iter().position(|rate| *rate >= best * (1.0 - TOLERANCE)).unwrap_or(0);
    let measured = of_windows.iter().zip(&windows);
    Ok(TriedWindows {
        windows: measured.map(|(o, window)| tried(path, *window, &o[SEEDS as usize..])).collect(),
        hold,
        seeds: SEEDS,
    })
}

fn tried(path: &SharedPath, window: Bytes, outcomes: &[Outcome]) -> TriedWindow {
    let transfers = || outcomes.iter().filter_map(|outcome| outcome.transfers.first());
    let rate = mean(outcomes.iter().map(goodput));
    let n = outcomes.len() as f64;
    let squares: f64 = outcomes.iter().map(|o| (goodput(o) - rate) * (goodput(o) - rate)).sum();
    let error = (squares / (n - 1.0).max(1.0) / n).sqrt();
    let rtt = Duration::from_secs_f64(mean(transfers().map(|t| t.rtt_mean_s)));
    TriedWindow {
        window,
        rate: Rate::from_f64(rate),
        rate_error: Rate::from_f64(error),
        delay: rtt.saturating_sub(path.rtt),
        loss: mean(transfers().map(|t| t.loss_rate)),
    }
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut count) = (0.0, 0.0);
    for value in values {
        sum += value;
        count += 1.0;
    }
    if count == 0.0 { 0.0 } else { sum / count }
}
