//! Tries windows in the simulator, for paths on which no closed form gives the best one: the rate of a transfer with each window,
//! in competition with a known kind and load of cross traffic.

use std::ops::RangeInclusive;

use sweetspot_advise::window::{
    CrossKind, CrossShare, STEADY_LOSSES, TriedWindow, TriedWindows, WindowQuestion, advise,
};
use sweetspot_scenario::{Engine, Outcome, Scenario, Tcp, TransferOutcome};
use sweetspot_sizing::Sizing;
use sweetspot_statistics::{mean, squared_error};
use sweetspot_theory::host::window_scale::WindowScale;
use sweetspot_units::{Bytes, Duration, Probability, Rate, Volume};

use crate::run::{goodput, run_all, with_sizing};
use crate::{Fastest, StudyError, Workers};

/// Number of seeds for advice, if the work allows it.
const SEEDS: u64 = 8;
/// Minimum number of seeds that distinguish a difference from chance.
const MIN_SEEDS: u64 = 3;
/// Up to this number of packets there are more seeds than the minimum: about half a minute on two cores.
const PACKET_BUDGET: f64 = 150e6;
/// Number of round trips that a run measures.
const MEASURED_ROUND_TRIPS: u64 = 200;
/// Minimum and maximum measured time.
const MIN_MEASURED: Duration = Duration::from_secs(10);
const MAX_MEASURED: Duration = Duration::from_secs(40);
/// Number of losses that a run measures, if losses are the limit.
const MEASURED_LOSSES: f64 = 10.0;
/// Maximum time to wait for recoveries, or for losses that do not limit the rate: rarer ones matter less.
const MAX_LOSS_TIME: Duration = Duration::from_secs(120);
/// Minimum time for cross traffic and slow start to settle.
const SETTLING_TIME: Duration = Duration::from_secs(10);
/// Recoveries to wait before measuring. Slow start leaves a window that is too large or too small; the first recovery still
/// depends on that, the second does not.
const SETTLING_RECOVERIES: f64 = 2.0;
/// The access links' rate relative to the path's, so that bursts reach the bottleneck as bursts. It is at least a scenario's
/// default.
const ACCESS_RATIO: f64 = 10.0;
const MIN_ACCESS: Rate = Rate::from_mbit_per_second(1000);

/// The seeds for `count` windows: fewer if the runs take long.
pub fn seeds(question: &WindowQuestion, count: usize) -> RangeInclusive<u64> {
    let affordable = PACKET_BUDGET / (Plan::of(question).packets() * count as f64);
    1..=(affordable as u64).clamp(MIN_SEEDS, SEEDS)
}

/// The number of simulations that `count` windows need.
pub fn runs(question: &WindowQuestion, count: usize) -> usize {
    count * seeds(question, count).count()
}

/// Number of data packets in these simulations, including cross traffic: a measure of work that is the same on every machine.
pub fn packets(question: &WindowQuestion, count: usize) -> f64 {
    Plan::of(question).packets() * runs(question, count) as f64
}

/// The times of a run, and its load.
struct Plan {
    settling: Duration,
    measured: Duration,
    /// On the link. With cross traffic it may be full; without it, loss may limit the transfer.
    packets_per_second: f64,
}

impl Plan {
    fn of(question: &WindowQuestion) -> Plan {
        let per_second = |rate: Rate| rate.as_f64() / 8.0 / question.mtu.as_f64();
        let closed = advise(question).ok();
        let own = closed.as_ref().and_then(|closed| closed.recommended.rate);
        let own = per_second(own.unwrap_or(question.rate));
        let packets_per_second =
            if question.cross.is_none() { own } else { per_second(question.rate) };
        let window = packets_per_second * question.rtt.as_secs_f64();
        let recovery = question.congestion.recovery(window, question.rtt);
        let recoveries = |count| recovery.scaled(count).min(MAX_LOSS_TIME);
        // Where loss sets the rate, only losses bring the window to its steady state, however rare they are.
        let is_limited = closed.is_some_and(|closed| closed.loss_limited);
        let most = if is_limited { f64::INFINITY } else { MAX_LOSS_TIME.as_secs_f64() };
        let losses = |count: f64| match question.random_loss() {
            None => Duration::ZERO,
            Some(loss) => Duration::from_secs_f64((count / (loss.get() * own)).min(most)),
        };
        let first = if is_limited { losses(SETTLING_RECOVERIES) } else { Duration::ZERO };
        let settling = recoveries(SETTLING_RECOVERIES).max(SETTLING_TIME).max(first);
        let round_trips = (question.rtt * MEASURED_ROUND_TRIPS).clamp(MIN_MEASURED, MAX_MEASURED);
        let measured = round_trips.max(recoveries(STEADY_LOSSES)).max(losses(MEASURED_LOSSES));
        Plan { settling, measured, packets_per_second }
    }

    fn packets(&self) -> f64 {
        self.packets_per_second * (self.settling + self.measured).as_secs_f64()
    }
}

fn access_rate(question: &WindowQuestion) -> Rate {
    question.rate.scaled(ACCESS_RATIO).max(MIN_ACCESS)
}

/// The scenario: hosts with Linux's 52 bytes of headers, and a drop-tail buffer in bytes. The hosts' own limits allow windows up to
/// `largest`.
fn scenario(
    question: &WindowQuestion,
    plan: &Plan,
    largest: Bytes,
) -> Result<Scenario, StudyError> {
    let scale = WindowScale::for_window(largest)?.bits();
    let path = format!(
        "title = \"windows tried\"\nwarmup = \"{}ms\"\nduration = \"{}ms\"\n\n[path]\nrate = \"{}bit/s\"\n\
         access_rate = \"{}bit/s\"\nrtt = \"{}us\"\nbuffer = \"{}B\"\npacket = \"{}B\"\nloss = {}\n\n[tcp]\nflavour = \"linux\"\n\
         send_buffer = \"unlimited\"\nmax_window = \"{}B\"\nwindow_scale = {}\n\n",
        plan.settling.as_secs_f64() * 1e3,
        plan.measured.as_secs_f64() * 1e3,
        question.rate.bits_per_second(),
        access_rate(question).bits_per_second(),
        question.rtt.as_secs_f64() * 1e6,
        question.buffer.unwrap_or(Bytes::ZERO).max(question.mtu * 2).get(),
        question.mtu.get(),
        question.loss.unwrap_or(Probability::ZERO).get(),
        largest.get(),
        u64::from(scale).max(Tcp::LINUX.window_scale),
    );
    let cross = question.cross.map(|cross| cross_traffic(question, cross).0);
    let cross = cross.map_or(String::new(), |cross| format!("[[cross]]\n{cross}\n"));
    let congestion = question.congestion;
    let text =
        format!("{path}{cross}[[transfer]]\ncongestion = \"{congestion}\"\nsizing = \"max\"\n");
    Ok(Scenario::parse(&text)?)
}

/// The section of a scenario for this cross traffic, and its description.
fn cross_traffic(
    question: &WindowQuestion,
    CrossShare { kind, share }: CrossShare,
) -> (String, String) {
    let bits = question.rate.as_f64() * share.get();
    let packet = question.mtu.as_f64();
    let rtts = round_trips(question);
    match kind {
        CrossKind::Udp => {
            let rate = bits / UDP_SOURCES as f64;
            let (mean, packet) = (Rate::from_f64(rate), question.mtu);
            (
                format!("kind = \"pareto\"\ncount = {UDP_SOURCES}\nrate = \"{rate:.0}bit/s\"\n"),
                format!(
                    "{UDP_SOURCES} UDP sources of {mean} each, packets of {packet} with Pareto gaps"
                ),
            )
        }
        CrossKind::Elephants => {
            // Each flow fills its share of the path; two packets are the minimum for an ACK clock.
            let packets = bits / 8.0 * question.rtt.as_secs_f64() / packet;
            let count = (packets / MIN_ELEPHANT).clamp(1.0, ELEPHANT_COUNT).round();
            let window = (packets / count).round().max(1.0);
            (
                format!("kind = \"elephants\"\ncount = {count}\nwindow = \"{window}pkt\"\n{rtts}"),
                format!(
                    "{count} elephants with a window of {window} packets each, {RTTS_IN_WORDS}"
                ),
            )
        }
        CrossKind::Mice => {
            let (from, to) = MOUSE;
            let mean = (from + to) as f64 / 2.0;
            // A sleep of one second, and a slow start from two packets.
            let cycle = 1.0 + libm::log2(mean / 2.0 + 1.0) * question.rtt.as_secs_f64();
            let count = (bits * cycle / (mean * packet * 8.0)).round().max(1.0);
            (
                format!(
                    "kind = \"mice\"\ncount = {count}\npackets = [{from}, {to}]\nsleep = [\"0.9s\", \"1.1s\"]\n{rtts}"
                ),
                format!(
                    "{count} mice that each send {from} to {to} packets and sleep for about a second, {RTTS_IN_WORDS}"
                ),
            )
        }
    }
}

/// RTTs within a fifth of the given one, so that flows do not synchronise.
fn round_trips(question: &WindowQuestion) -> String {
    let at = |share: f64| question.rtt.as_secs_f64() * 1e6 * share;
    format!("rtt = [\"{:.0}us\", \"{:.0}us\"]\n", at(0.8), at(1.2))
}

const RTTS_IN_WORDS: &str = "at 0.8 to 1.2 times the RTT";
const UDP_SOURCES: u64 = 10;
const ELEPHANT_COUNT: f64 = 20.0;
const MIN_ELEPHANT: f64 = 2.0;
/// Minimum and maximum size of a mouse, packets, as in the first paper.
const MOUSE: (u64, u64) = (10, 15);

/// Tries `windows` on the path of `question`, all with the same `seeds`, and marks those that are as fast as the fastest, by a
/// sweep's rule.
pub fn try_windows<E: Engine + Sync + ?Sized>(
    engine: &E,
    question: &WindowQuestion,
    windows: &[Bytes],
    seeds: RangeInclusive<u64>,
    workers: Workers,
) -> Result<TriedWindows, StudyError> {
    let mut windows = windows.to_vec();
    windows.sort();
    windows.dedup();
    let plan = Plan::of(question);
    let largest = windows.last().copied().unwrap_or_default();
    let without_window = scenario(question, &plan, largest)?;
    let seeded = |window: &Bytes| {
        let sized = with_sizing(&without_window, Sizing::Fixed(Volume::Bytes(*window)));
        seeds.clone().map(move |seed| Scenario { seed, ..sized.clone() })
    };
    let runs: Vec<Scenario> = windows.iter().flat_map(seeded).collect();
    let outcomes = run_all(engine, &runs, workers)?;
    let count = seeds.count();
    let on_the_link = |outcome: &Outcome| goodput(outcome) / question.payload_share();
    let of_windows: Vec<&[Outcome]> = outcomes.chunks(count.max(1)).collect();
    let rates: Vec<Vec<f64>> =
        of_windows.iter().map(|outcomes| outcomes.iter().map(on_the_link).collect()).collect();
    let fastest = Fastest::by_rates(&rates);
    let (level, unsure) = fastest.map_or_else(Default::default, |all| (all.level, all.unsure));
    let mut tried: Vec<TriedWindow> = windows
        .iter()
        .zip(of_windows.iter().zip(&rates))
        .map(|(window, (outcomes, rates))| tried(*window, outcomes, rates))
        .collect();
    for (place, _) in level {
        tried[place].as_fast = true;
    }
    for (place, _) in unsure {
        tried[place].is_unsure = !tried[place].as_fast;
    }
    let cross = question.cross.map(|cross| cross_traffic(question, cross).1);
    Ok(TriedWindows {
        windows: tried,
        seeds: count as u64,
        settling: plan.settling,
        measured: plan.measured,
        access_rate: access_rate(question),
        cross,
    })
}

fn tried(window: Bytes, outcomes: &[Outcome], rates: &[f64]) -> TriedWindow {
    let transfers = || outcomes.iter().filter_map(|outcome| outcome.transfers.first());
    let of_transfers = |of: fn(&TransferOutcome) -> f64| {
        mean(&transfers().map(of).collect::<Vec<f64>>()).unwrap_or(0.0)
    };
    // RTTs would count delayed ACKs as a queue.
    let delays: Vec<f64> = outcomes.iter().map(|o| o.bottleneck.queue_delay_mean_s).collect();
    TriedWindow {
        window,
        rate: Rate::from_f64(mean(rates).unwrap_or(0.0)),
        rate_error: Rate::from_f64(squared_error(rates).map_or(0.0, libm::sqrt)),
        as_fast: false,
        is_unsure: false,
        delay: Duration::from_secs_f64(mean(&delays).unwrap_or(0.0)),
        loss: of_transfers(|t| t.loss_rate),
    }
}
