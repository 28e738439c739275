use sweetspot_scenario::{Congestion, Flavour, Outcome, Scenario, TrafficKind, Transfer};
use sweetspot_sizing::Sizing;
use sweetspot_units::{Bytes, Duration};

/// An assumption that does not hold in every engine, and its effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokenAssumption {
    /// Name of the assumption.
    pub assumption: &'static str,
    /// Why it does not hold, with numbers.
    pub words: String,
}

/// A kernel segment's headers: IPv4, TCP and timestamps (RFC 7323).
const KERNEL_HEADERS: Bytes = Bytes::new(52);
/// A kernel segment's headers without timestamps.
const BARE_HEADERS: Bytes = Bytes::new(40);
/// The kernel's maximum delay of an ACK when traffic is not interactive (TCP_DELACK_MIN).
const KERNEL_ACK_DELAY: Duration = Duration::from_millis(40);
/// Utilisation from which a link counts as full.
const FULL_UTILISATION: f64 = 0.98;
/// Minimum relative deviation of a window that is reported.
const WINDOW_DEVIATION: f64 = 0.01;

/// All known violations of assumptions by the engines in this scenario.
pub fn findings(scenario: &Scenario, outcomes: &[Outcome]) -> Vec<BrokenAssumption> {
    let of = |name: &str| outcomes.iter().find(|outcome| outcome.engine == name);
    let (theory, sim, lab) = (of("theory"), of("sim"), of("lab"));
    let mut found = Vec::new();
    let mut note = |assumption, words| found.push(BrokenAssumption { assumption, words });
    for (i, transfer) in scenario.transfers.iter().enumerate() {
        if lab.is_some() {
            headers(scenario, i, transfer, &mut note);
            acknowledgements(i, transfer, &mut note);
            recovery(scenario, i, transfer, lab, &mut note);
        }
        granularity(i, transfer, outcomes, &mut note);
        if theory.is_some() || outcomes.len() > 1 {
            regime(i, transfer, outcomes, &mut note);
        }
        slow_start(scenario, i, transfer, &mut note);
    }
    if let (Some(sim), Some(lab)) = (sim, lab) {
        fullness(sim, lab, &mut note);
    }
    heavy_tails(scenario, &mut note);
    found
}

fn headers(
    scenario: &Scenario,
    i: usize,
    transfer: &Transfer,
    note: &mut impl FnMut(&'static str, String),
) {
    let packet = scenario.path.packet;
    let kernel = if transfer.tcp.timestamps { KERNEL_HEADERS } else { BARE_HEADERS };
    let (written, real) = (packet - transfer.tcp.header, packet - kernel);
    if written != real {
        let percent = 100.0 * (real.as_f64() / written.as_f64() - 1.0);
        note(
            "header overhead",
            format!(
                "transfer {i}: the scenario counts {written} of a packet of {packet} as payload, the kernel sends {real}: a full link's goodput is {percent:+.1} % in the lab; tcp.header={} would make them alike",
                kernel.to_string().replace(' ', "")
            ),
        );
    }
}

fn acknowledgements(i: usize, transfer: &Transfer, note: &mut impl FnMut(&'static str, String)) {
    let tcp = &transfer.tcp;
    if tcp.delayed_ack && tcp.ack_delay != KERNEL_ACK_DELAY {
        note(
            "delayed ACK",
            format!(
                "transfer {i}: an ACK is delayed by {} at most in the scenario, by {KERNEL_ACK_DELAY} in the kernel; the first packets of a connection and the last of a window feel it",
                tcp.ack_delay
            ),
        );
    }
    if tcp.flavour == Flavour::Ns2 {
        note(
            "kernel habits",
            format!(
                "transfer {i}: the scenario's TCP is ns-2's; the kernel times with timestamps, acknowledges the first 16 segments at once, and grows its window per packet: flavour=linux comes closer",
            ),
        );
    }
}

fn recovery(
    scenario: &Scenario,
    i: usize,
    transfer: &Transfer,
    lab: Option<&Outcome>,
    note: &mut impl FnMut(&'static str, String),
) {
    let lossy = lab.is_some_and(|lab| {
        lab.transfers.get(i).is_some_and(|t| t.retransmitted_packets > 0)
            || lab.bottleneck.loss_rate > 0.0
    });
    if lossy && matches!(transfer.congestion, Congestion::Reno | Congestion::NewReno) {
        note(
            "loss recovery",
            format!(
                "transfer {i}: packets were lost, and {} recovers without SACK in the scenario; the kernel's reno has SACK, RACK and PRR: congestion=\"sack\" comes closer",
                transfer.congestion.name()
            ),
        );
    }
    if lossy && scenario.path.narrow().buffer.in_packets(scenario.path.packet) < 30 {
        note(
            "bursts",
            format!(
                "transfer {i}: the buffer holds {} packets, and a kernel's bursts are as long as its ACKs are late; how many are lost depends on the machine",
                scenario.path.narrow().buffer.in_packets(scenario.path.packet)
            ),
        );
    }
}

/// Compares a fixed window with the window that each engine advertised.
fn granularity(
    i: usize,
    transfer: &Transfer,
    outcomes: &[Outcome],
    note: &mut impl FnMut(&'static str, String),
) {
    let Sizing::Fixed(_) = transfer.sizing else { return };
    let windows: Vec<(&str, f64)> = outcomes
        .iter()
        .filter_map(|o| Some((o.engine.as_str(), o.transfers.get(i)?.window_final_bytes as f64)))
        .filter(|(_, window)| *window > 0.0)
        .collect();
    let min = windows.iter().map(|(_, w)| *w).fold(f64::INFINITY, f64::min);
    let max = windows.iter().map(|(_, w)| *w).fold(0.0, f64::max);
    if windows.len() > 1 && max / min - 1.0 > WINDOW_DEVIATION {
        let each: Vec<String> =
            windows.iter().map(|(name, w)| format!("{name} {:.1} kB", w / 1e3)).collect();
        note(
            "window granularity",
            format!(
                "transfer {i}: asked for {}, advertised: {}; a simulated window is whole packets, a kernel's is a multiple of 2 to the window scale",
                transfer.sizing,
                each.join(", ")
            ),
        );
    }
}

/// Whether a transfer is limited as its sizing, and a closed form, assume.
fn regime(
    i: usize,
    transfer: &Transfer,
    outcomes: &[Outcome],
    note: &mut impl FnMut(&'static str, String),
) {
    let lossy: Vec<&str> = outcomes
        .iter()
        .filter(|o| o.transfers.get(i).is_some_and(|t| t.loss_rate > 0.0))
        .map(|o| o.engine.as_str())
        .collect();
    if lossy.is_empty() {
        return;
    }
    let among = lossy.join(" and ");
    let words = match transfer.sizing {
        Sizing::Max | Sizing::Kernel => format!(
            "transfer {i}: only losses ({among}) limit it; its rate is that of a sawtooth whose losses come at random"
        ),
        sizing => format!(
            "transfer {i}: sized by {sizing}, but packets were lost ({among}): congestion control limits it, not its window, so window over RTT does not estimate its rate"
        ),
    };
    note("buffer-limited", words);
}

fn slow_start(
    scenario: &Scenario,
    i: usize,
    transfer: &Transfer,
    note: &mut impl FnMut(&'static str, String),
) {
    // Handshake, TLS, and slow start to a window of thousands of packets, doubling per RTT.
    const START_ROUND_TRIPS: u64 = 20;
    let settled = transfer.start + scenario.path.rtt * START_ROUND_TRIPS;
    if settled > scenario.warmup {
        note(
            "steady state",
            format!(
                "transfer {i}: starts {} after the beginning and measurement {}: handshakes (in the lab TLS too) and slow start are measured with it; a longer warmup leaves them out",
                transfer.start, scenario.warmup
            ),
        );
    }
}

fn fullness(sim: &Outcome, lab: &Outcome, note: &mut impl FnMut(&'static str, String)) {
    let (a, b) = (sim.bottleneck.utilisation, lab.bottleneck.utilisation);
    if (a >= FULL_UTILISATION) != (b >= FULL_UTILISATION) {
        let (full, idle) = if a >= FULL_UTILISATION { ("sim", "lab") } else { ("lab", "sim") };
        note(
            "saturation",
            format!(
                "the link is full in {full} and not in {idle} ({:.1} % and {:.1} % used): near the edge a little more or less window decides",
                100.0 * a.max(b),
                100.0 * a.min(b)
            ),
        );
    }
}

fn heavy_tails(scenario: &Scenario, note: &mut impl FnMut(&'static str, String)) {
    let heavy = scenario.cross.iter().any(|cross| {
        matches!(
            cross.kind,
            TrafficKind::Pareto { .. }
                | TrafficKind::ClosedLoop { .. }
                | TrafficKind::Arrivals { .. }
        )
    });
    if heavy {
        note(
            "one draw",
            format!(
                "cross traffic has heavy tails and the engines draw different random numbers: over {} one run of each says little; compare several seeds",
                scenario.duration
            ),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sweetspot_scenario::{BottleneckOutcome, TransferOutcome};

    fn scenario(overrides: &[&str]) -> Scenario {
        let text = "duration = \"10s\"\nwarmup = \"10s\"\n[path]\nrate = \"50Mbit/s\"\nrtt = \"60ms\"\nbuffer = \"100pkt\"\n[tcp]\nflavour = \"linux\"\n[[transfer]]\nsizing = \"fixed:50kB\"\n";
        let overrides: Vec<String> = overrides.iter().map(|o| (*o).to_owned()).collect();
        Scenario::parse_with(text, &overrides).unwrap()
    }

    fn outcome(engine: &str, window: u64, loss: f64) -> Outcome {
        Outcome {
            scenario: String::new(),
            engine: engine.into(),
            seed: 1,
            version: String::new(),
            transfers: vec![TransferOutcome {
                goodput_bps: 1e6,
                rtt_mean_s: 0.06,
                rtt_p99_s: 0.06,
                loss_rate: loss,
                retransmitted_packets: (loss * 1e4) as u64,
                timeouts: 0,
                window_final_bytes: window,
                completion_s: None,
                sizing: "fixed:50kB".into(),
                events: Vec::new(),
            }],
            cross: Vec::new(),
            bottleneck: BottleneckOutcome {
                utilisation: 0.5,
                utilisation_before: 0.0,
                loss_rate: loss,
                queue_mean_packets: 0.0,
                queue_max_packets: 0,
                queue_delay_mean_s: 0.0,
            },
            events: 0,
            packets_forwarded: 0,
            derivation: None,
            socket_memory: None,
            wall_s: 0.0,
        }
    }

    fn assumptions(scenario: &Scenario, outcomes: &[Outcome]) -> Vec<&'static str> {
        findings(scenario, outcomes).into_iter().map(|finding| finding.assumption).collect()
    }

    #[test]
    fn intact_assumptions_give_no_findings() {
        let both = [outcome("sim", 50_000, 0.0), outcome("lab", 50_100, 0.0)];
        assert_eq!(assumptions(&scenario(&[]), &both), [""; 0]);
    }

    #[test]
    fn each_broken_assumption_is_named() {
        let found = |set: &[&str], lab_window, loss| {
            let both = [outcome("sim", 50_000, 0.0), outcome("lab", lab_window, loss)];
            assumptions(&scenario(set), &both)
        };
        assert_eq!(found(&["tcp.header=0B"], 50_000, 0.0), ["header overhead"]);
        assert_eq!(found(&["tcp.ack_delay=100ms"], 50_000, 0.0), ["delayed ACK"]);
        assert_eq!(found(&[], 51_200, 0.0), ["window granularity"]);
        assert_eq!(found(&[], 50_000, 0.01), ["loss recovery", "buffer-limited"]);
        assert_eq!(found(&["warmup=0s"], 50_000, 0.0), ["steady state"]);
    }

    #[test]
    fn the_finding_states_the_header_share() {
        let both = [outcome("sim", 50_000, 0.0), outcome("lab", 50_000, 0.0)];
        let found = findings(&scenario(&["tcp.header=0B"]), &both);
        // 948 / 1000 - 1 = -5.2 %.
        assert!(found[0].words.contains("-5.2 %"), "{}", found[0].words);
    }
}
