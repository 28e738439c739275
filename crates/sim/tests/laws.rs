//! Invariants of every simulation.

mod common;

use common::{DUMBBELL, ELEPHANTS, goodput, simulate, simulate_recorded};
use proptest::prelude::*;
use sweetspot_scenario::{Engine, NoRecorder, Recorder, Sample, Scenario};
use sweetspot_sim::scheduler::{BinaryHeapScheduler, QuadHeap, Wheel};
use sweetspot_sim::{ControllerMaker, Simulator, run_steered, run_with};
use sweetspot_sizing::Sizing;
use sweetspot_units::Duration;

#[test]
fn same_seed_same_outcome_on_every_scheduler() {
    let text = format!("{DUMBBELL}{ELEPHANTS}");
    let overrides = ["transfer.0.sizing=max".to_owned(), "path.buffer=100pkt".to_owned()];
    let scenario = Scenario::parse_with(&text, &overrides).unwrap();
    let fast = run_with(&scenario, &mut NoRecorder, QuadHeap::default);
    let slow = run_with(&scenario, &mut NoRecorder, BinaryHeapScheduler::default);
    assert_eq!(fast, slow);
    assert_eq!(fast, run_with(&scenario, &mut NoRecorder, || Wheel::of(&scenario.path)));
    assert_eq!(fast, run_with(&scenario, &mut NoRecorder, QuadHeap::default));
}

#[test]
fn recording_changes_nothing() {
    for queue in ["drop-tail", "red", "codel", "fq-codel"] {
        let times = ["path.rtt=10ms", "warmup=100ms", "duration=300ms"];
        let queue = format!("path.queue={queue}");
        let sets = ["path.buffer=20pkt", "transfer.0.sizing=max", &queue];
        let sets = [&times[..], &sets].concat();
        let looked = simulate_recorded(DUMBBELL, &sets, &mut AlignedSamples);
        assert_eq!(looked, simulate(DUMBBELL, &sets), "{queue}");
    }
}

/// Requests samples at whole multiples of the times that packets of 1000 bytes and ACKs of 40 take on the dumbbell's links.
struct AlignedSamples;

impl Recorder for AlignedSamples {
    fn interval(&self) -> Option<Duration> {
        Some(Duration::from_nanos(320))
    }

    fn record(&mut self, _sample: &Sample) {}
}

#[test]
fn different_seeds_give_different_runs() {
    let text = format!("{DUMBBELL}{ELEPHANTS}");
    let one = simulate(&text, &["transfer.0.sizing=max", "path.buffer=100pkt"]);
    let two = simulate(&text, &["transfer.0.sizing=max", "path.buffer=100pkt", "seed=2"]);
    assert_ne!(one.cross, two.cross);
}

#[test]
fn doubling_rates_and_halving_times_only_rescales_the_run() {
    // All times are even in nanoseconds, so halving them needs no rounding.
    let slow = simulate(
        DUMBBELL,
        &["transfer.0.sizing=max", "path.buffer=100pkt", "tcp.clock=10ms", "tcp.min_rto=200ms"],
    );
    let fast = simulate(
        DUMBBELL,
        &[
            "transfer.0.sizing=max",
            "path.buffer=100pkt",
            "path.rate=100Mbit/s",
            "path.access_rate=2Gbit/s",
            "path.rtt=50ms",
            "warmup=10s",
            "duration=20s",
            "tcp.clock=5ms",
            "tcp.min_rto=100ms",
            "tcp.initial_rto=1.5s",
        ],
    );
    assert_eq!(slow.events, fast.events);
    assert_eq!(slow.packets_forwarded, fast.packets_forwarded);
    assert_eq!(slow.bottleneck.queue_max_packets, fast.bottleneck.queue_max_packets);
    let (slow, fast) = (&slow.transfers[0], &fast.transfers[0]);
    assert_eq!(slow.goodput_bps * 2.0, fast.goodput_bps);
    assert_eq!(slow.retransmitted_packets, fast.retransmitted_packets);
    assert_eq!(slow.loss_rate, fast.loss_rate);
    assert!((slow.rtt_mean_s - 2.0 * fast.rtt_mean_s).abs() < 1e-8);
}

#[test]
fn the_declaration_order_favours_no_flow() {
    // Ten identical transfers start together and compete for a small buffer, so ties decide the drops (the artefact of Table I
    // of the Dynamic Right-Sizing paper).
    let text = r#"
        duration = "60s"
        [path]
        rate = "100Mbit/s"
        rtt = "60ms"
        delay = "10ms"
        buffer = "100pkt"
        packet = "1500B"
        access_rate = "100Mbit/s"
        [[transfer]]
        count = 10
        sizing = "fixed:400pkt"
    "#;
    let mut by_place = [0.0; 10];
    for seed in 1..=8 {
        let outcome = simulate(text, &[&format!("seed={seed}")]);
        for (sum, transfer) in by_place.iter_mut().zip(&outcome.transfers) {
            *sum += transfer.goodput_bps / 8.0;
        }
    }
    let mean: f64 = by_place.iter().sum::<f64>() / 10.0;
    // The mean of the list's first half must be close to the overall mean: no trend. Over eight seeds a flow's mean varies by
    // about 20 %, the mean of five by about 9 %.
    let first: f64 = by_place[..5].iter().sum::<f64>() / 5.0;
    assert!((first / mean - 1.0).abs() < 0.2, "{by_place:?}");
}

#[test]
fn goodput_never_exceeds_capacity_or_window_over_rtt() {
    for (window, buffer) in [(100, 100), (450, 313), (700, 100), (2000, 313)] {
        let window_set = format!("transfer.0.sizing=fixed:{window}pkt");
        let mbit = goodput(DUMBBELL, &[&window_set, &format!("path.buffer={buffer}pkt")]);
        // S / T_m = S x 8000 bit / 0.1 s; one packet of slack for the edges of the interval.
        let limit = (window as f64 * 8000.0 / 0.1 / 1e6).min(50.0);
        assert!(mbit <= limit * 1.0001, "{window} {buffer}: {mbit} > {limit}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn every_scenario_conserves_packets_and_respects_its_bounds(
        rate in 2u64..40,
        rtt in 10u64..150,
        buffer in 2u64..200,
        window in 1u64..400,
        queue in prop::sample::select(vec!["drop-tail", "red", "codel", "fq-codel"]),
        congestion in prop::sample::select(vec![
            "reno", "newreno", "sack", "sack1", "cubic", "vegas", "bbr",
        ]),
        loss in prop::sample::select(vec!["0", "1e-3", "2%"]),
        jitter in prop::sample::select(vec!["0ms", "1ms", "9ms"]),
        delayed in any::<bool>(),
        seed in 0u64..1000,
    ) {
        let text = format!(
            r#"
            seed = {seed}
            warmup = "1s"
            duration = "5s"
            [path]
            rate = "{rate}Mbit/s"
            rtt = "{rtt}ms"
            buffer = "{buffer}pkt"
            queue = "{queue}"
            loss = "{loss}"
            jitter = "{jitter}"
            [tcp]
            delayed_ack = {delayed}
            ecn = true
            [[transfer]]
            sizing = "fixed:{window}pkt"
            congestion = "{congestion}"
            [[cross]]
            kind = "mice"
            count = 5
            packets = [3, 9]
            sleep = ["200ms", "400ms"]
            rtt = "{rtt}ms"
            "#
        );
        // Conservation is asserted inside, in every element.
        let outcome = simulate(&text, &[]);
        let transfer = &outcome.transfers[0];
        let max = (rate as f64 * 1e6).min(window as f64 * 8000.0 / (rtt as f64 / 1e3));
        // Plus a window that is acknowledged right after the interval's start.
        let slack = window as f64 * 8000.0 / 5.0;
        prop_assert!(transfer.goodput_bps <= max + slack, "{} > {max}", transfer.goodput_bps);
        prop_assert!(transfer.rtt_mean_s == 0.0 || transfer.rtt_mean_s >= rtt as f64 / 1e3);
        prop_assert!((0.0..=1.0).contains(&outcome.bottleneck.loss_rate));
        prop_assert!((0.0..=1.0).contains(&transfer.loss_rate));
        prop_assert!(outcome.bottleneck.utilisation <= 1.0);
        prop_assert!(outcome.bottleneck.queue_max_packets <= buffer);
        let max = outcome.bottleneck.queue_max_packets as f64;
        prop_assert!(outcome.bottleneck.queue_mean_packets <= max);
    }
}

/// The same controller, configured in the scenario or passed by the caller, gives equal results.
#[test]
fn an_external_controller_steers_like_the_scenarios_own() {
    let text = |sizing: &str| {
        format!(
            "duration = \"20s\"\n[path]\nrate = \"10Mbit/s\"\nrtt = \"50ms\"\nbuffer = \"60pkt\"\n\
             [[transfer]]\nsizing = \"{sizing}\"\n"
        )
    };
    let simulate = |sizing: &str| {
        Simulator.run(&Scenario::parse(&text(sizing)).unwrap(), &mut NoRecorder).unwrap()
    };
    let make: ControllerMaker = Box::new(|setting| Sizing::Sobas.controller(setting).unwrap());
    let kernel = Scenario::parse(&text("kernel")).unwrap();
    let steered = run_steered(&kernel, &mut NoRecorder, vec![Some(make)]);
    let own = simulate("sobas");
    assert_eq!(steered.transfers[0].goodput_bps, own.transfers[0].goodput_bps);
    assert_eq!(steered.transfers[0].events, own.transfers[0].events);
    // The scenario's own sizing gives a different result.
    assert_ne!(simulate("kernel").transfers[0].events, own.transfers[0].events);
}

/// A hundred packets at once on a link that takes 12 ms for each, observed for a short time.
const BURST: &str = r#"
    warmup = "500ms"
    duration = "5ms"
    [path]
    rate = "1Mbit/s"
    rtt = "20ms"
    packet = "1500B"
    buffer = "100pkt"
    reverse = "clean"
    [tcp]
    initial_window = "100pkt"
    [[transfer]]
"#;

#[test]
fn utilisation_counts_the_time_a_packet_occupies_the_link() {
    // The link is busy from the start for 100 x 12 ms, wherever the observed 5 ms begin.
    for queue in ["drop-tail", "red", "codel", "fq-codel"] {
        for warmup in ["500ms", "503ms", "507ms"] {
            let set = [&*format!("path.queue={queue}"), &*format!("warmup={warmup}")];
            let used = simulate(BURST, &set).bottleneck.utilisation;
            // Exact to the bits of one nanosecond in 5 ms.
            assert!((used - 1.0).abs() < 1e-6, "{queue}, {warmup}: {used}");
        }
    }
}

#[test]
fn the_max_queue_counts_packets_already_waiting_at_the_start() {
    // At 500 ms 100 - floor(490 / 12) = 60 packets are left, one of them on the wire. No new packet arrives until the sender
    // has the ACK of the first one.
    for queue in ["drop-tail", "red", "fq-codel"] {
        let set = [&*format!("path.queue={queue}"), "transfer.0.size=150kB"];
        let bottleneck = simulate(BURST, &set).bottleneck;
        assert!(bottleneck.queue_mean_packets > 50.0, "{queue}: {bottleneck:?}");
        assert!(
            bottleneck.queue_max_packets as f64 >= bottleneck.queue_mean_packets,
            "{queue}: {bottleneck:?}"
        );
    }
}

#[test]
fn codel_drops_are_not_counted_as_forwarded() {
    // Datagrams at five times the rate for eight seconds, in which the link sends a hundred packets of 80 ms each. CoDel drops
    // several packets for each one that it sends.
    let text = r#"
        duration = "8s"
        [path]
        rate = "100kbit/s"
        rtt = "400ms"
        delay = "40ms"
        buffer = "100pkt"
        queue = "codel"
        reverse = "clean"
        [[cross]]
        kind = "poisson"
        count = 10
        rate = "50kbit/s"
        start = "0s"
    "#;
    for duration in ["8s", "8.02s", "8.04s", "8.06s", "8.08s"] {
        let outcome = simulate(text, &[&format!("duration={duration}")]);
        // (8.08 s - 160 ms to the link) / 80 ms = 99; the first datagrams arrive a little later.
        assert!((94..=99).contains(&outcome.packets_forwarded), "{duration}: {outcome:?}");
    }
}

#[test]
fn the_loss_rate_never_exceeds_one() {
    // Thirty packets are sent at 990 ms, after the handshake, and lost at the second hop while they leave the first. During
    // the observed time hardly any packets are sent.
    let text = r#"
        warmup = "1s"
        duration = "300ms"
        [path]
        rtt = "200ms"
        packet = "9000B"
        [[path.hop]]
        rate = "10Mbit/s"
        buffer = "300pkt"
        [[path.hop]]
        rate = "1Mbit/s"
        buffer = "3pkt"
        [tcp]
        initial_window = "30pkt"
        [[transfer]]
        start = "790ms"
    "#;
    assert_eq!(simulate(text, &[]).transfers[0].loss_rate, 1.0);
}
