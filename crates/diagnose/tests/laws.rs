//! Invariants of verdicts on captures from a small model, with and without missing, duplicated, late or reordered packets.

mod model;

use std::net::SocketAddr;

use proptest::prelude::*;
use sweetspot_diagnose::page::Drawings;
use sweetspot_diagnose::path::{NoReplay, Simulation};
use sweetspot_diagnose::{Class, Flow, capture};
use sweetspot_scenario::Scenario;
use sweetspot_trace::flow::Table;
use sweetspot_trace::packet::{Options, Segment};
use sweetspot_units::{Bytes, Duration};

use self::model::{Model, Mutation, PLAIN, RECEIVER, SENDER, ack, model, mutate, mutation};

fn flows(packets: &[Segment]) -> Vec<Flow> {
    let mut table = Table::default();
    let mut flows = Vec::new();
    for packet in packets {
        flows.extend(table.take(packet).iter().flat_map(capture::flows));
    }
    while let Some(connection) = table.drain() {
        flows.extend(capture::flows(&connection));
    }
    flows
}

fn obeys(flow: &Flow, packets: &[Segment]) {
    let verdict = &flow.verdict;
    if let Some(allowed) = verdict.allowed_bps {
        let carried = allowed * verdict.share_of_time;
        let ratio = carried / flow.goodput_bps;
        assert!((0.39..2.51).contains(&ratio), "{ratio} of the goodput: {flow:?}");
        assert!(allowed >= 0.94 * flow.goodput_bps, "allows less than it carried: {flow:?}");
    }
    if let Some(facts) = &flow.facts {
        assert!(flow.retransmitted_segments <= facts.data_segments, "{flow:?}");
        // The same holds for the measured rate.
        if let Some(rtt) = flow.rtt_min_s.filter(|rtt| *rtt > 0.0) {
            let max = facts.bytes.max(facts.acked_bytes) as f64 * 8.0 / rtt;
            assert!(flow.goodput_bps <= max * 1.01 + 1.0, "{flow:?}");
        }
        let zero = packets.iter().any(|packet| packet.window == 0 && packet.flags.ack);
        assert!(zero || facts.zero_windows == 0, "{flow:?}");
        assert!(zero || !verdict.words.contains("to 0 bytes"), "{flow:?}");
        assert!(facts.rtt.median_s >= facts.rtt.min_s, "{flow:?}");
        assert!(facts.rtt.p99_s >= facts.rtt.median_s, "{flow:?}");
    }
    assert!(flow.rtt_median_s >= flow.rtt_min_s, "{flow:?}");
    // No transfer takes less than one round trip.
    let gain = flow.expected_gain_bps.filter(|gain| *gain > 0.0);
    if let Some((rtt, gain)) = flow.rtt_min_s.zip(gain) {
        let max = flow.bytes as f64 * 8.0 / rtt;
        assert!(flow.goodput_bps + gain <= max.max(flow.goodput_bps) * 1.01);
    }
    let shares: f64 = serde_json::to_value(flow.limits)
        .iter()
        .filter_map(|map| map.as_object())
        .flat_map(|map| map.values())
        .filter_map(serde_json::Value::as_f64)
        .sum();
    assert!((shares - 1.0).abs() < 1e-3, "{shares} {flow:?}");
}

/// In the band of a page, each class has as much time as in the shares, and no moment has two classes.
fn bands_are_as_long_as_shares(flows: &[Flow], packets: &[Segment]) {
    let mut drawings = Drawings::new(flows);
    packets.iter().for_each(|packet| drawings.take(packet));
    for (flow, drawing) in flows.iter().zip(drawings.end()) {
        let Some(drawing) = drawing else { continue };
        let finished = serde_json::to_value(drawing.finished()).unwrap();
        let spans: Vec<[u64; 3]> = serde_json::from_value(finished["spans"].clone()).unwrap();
        assert!(spans.windows(2).all(|pair| pair[0][1] <= pair[1][0]), "{spans:?} {flow:?}");
        // Both ends of a span are truncated to whole microseconds.
        let blur = spans.len() as i64 + 1;
        for (n, class) in Class::ALL.into_iter().enumerate() {
            let own = spans.iter().filter(|[.., class]| *class == n as u64);
            let drawn = own.map(|[from, to, _]| to - from).sum::<u64>() as i64;
            let told = flow.limits.time(class).as_micros() as i64;
            assert!(
                (drawn - told).abs() <= blur,
                "{class}: {drawn} is not {told}: {spans:?} {flow:?}"
            );
        }
    }
}

proptest! {
    #[test]
    fn band_lengths_match_the_time_shares(
        model in model(),
        mutations in prop::collection::vec(mutation(), 0..20),
    ) {
        let mut packets = model.simulate();
        mutations.iter().for_each(|mutation| mutate(&mut packets, mutation));
        bands_are_as_long_as_shares(&flows(&packets), &packets);
    }

    #[test]
    fn verdicts_obey_the_laws_on_any_sender_behaviour(model in model()) {
        let packets = model.simulate();
        flows(&packets).iter().for_each(|flow| obeys(flow, &packets));
    }

    #[test]
    fn verdicts_obey_the_laws_on_damaged_captures(
        model in model(),
        mutations in prop::collection::vec(mutation(), 1..20),
    ) {
        let mut packets = model.simulate();
        mutations.iter().for_each(|mutation| mutate(&mut packets, mutation));
        flows(&packets).iter().for_each(|flow| obeys(flow, &packets));
    }

    /// A window of whole segments that is always full is the limit, whatever the capture point.
    #[test]
    fn a_window_that_is_always_full_is_the_limit(
        segments in 2..40u32,
        delay in 5_000..100_000u64,
        place in 0..=16u64,
        timestamps: bool,
    ) {
        let model = Model {
            mss: 1448,
            window: segments * 1448 / 16 * 16,
            delay,
            spacing: 10,
            place,
            rounds: 60,
            first: segments,
            timestamps,
            ..PLAIN
        };
        let flows = flows(&model.simulate());
        prop_assert_eq!(flows[0].verdict.class, Class::ReceiverWindow, "{:?}", flows[0]);
    }

    /// Bursts spread by a bottleneck show its rate and the RTT at any capture point except the receiver. The scenario has the
    /// same values.
    #[test]
    fn the_path_estimate_matches_the_simulated_path(
        mss in 500..1448u32,
        delay in 5_000..100_000u64,
        spacing in 50..2_000u64,
        place in 0..=10u64,
        segments in 20..60u32,
        timestamps: bool,
    ) {
        let model = Model {
            mss,
            window: segments * mss,
            delay,
            spacing,
            place,
            rounds: 20,
            first: segments,
            timestamps,
            ..PLAIN
        };
        let flows = flows(&model.simulate());
        let path = flows[0].path.as_ref().unwrap();
        let header = if timestamps { 52 } else { 40 };
        prop_assert_eq!(path.segment_bytes, u64::from(mss));
        let rate = f64::from(mss + header) * 8e6 / spacing as f64;
        let Some(found) = path.capacity_bps.value() else {
            // RTTs are known to 2 %: a queue of less than eight segments (`QUEUE`) beyond that may be none.
            let longest = 2 * delay + u64::from(segments) * spacing;
            let resolved = u64::from(segments).saturating_sub(9) * spacing;
            prop_assert!(resolved * 50 < longest, "{path:?}");
            return Ok(());
        };
        let found = found.as_f64();
        prop_assert!((found / rate - 1.0).abs() < 0.06, "{found} is not {rate}: {path:?}");
        let rtt = path.rtt_s.value().unwrap().as_secs_f64() / (delay as f64 * 2e-6);
        prop_assert!((rtt - 1.0).abs() < 0.05, "{rtt}: {path:?}");
        prop_assert_eq!(path.loss.value().unwrap().get(), 0.0);
        prop_assert!(path.buffer_bytes.value().is_none(), "nothing was lost: {path:?}");
        let text = path.scenario("a path").unwrap();
        let scenario = Scenario::parse(&text).unwrap();
        let hop = &scenario.path.hops[0];
        prop_assert_eq!(Some(hop.rate), path.capacity_bps.value());
        // The product of RTT and rate, or the queue of a burst if that is longer. Rates and delays are kept to 6 %.
        let longest = (2 * delay).max(u64::from(segments - 1) * spacing);
        let held = rate / 8e6 * longest as f64;
        let buffer = hop.buffer.in_bytes(Bytes::new(1)).as_f64();
        prop_assert!(buffer > 0.85 * held, "{buffer} is less than {held}: {path:?}");
        prop_assert!(text.contains("assumed to be "));
    }
}

#[test]
fn a_distant_senders_limit_is_unknown_without_an_rtt() {
    // Flights of ten segments every 80 ms, captured at the receiver from the middle on.
    let model = Model {
        mss: 1448,
        window: 65_000,
        delay: 40_000,
        spacing: 200,
        place: 16,
        rounds: 60,
        first: 10,
        timestamps: false,
        handshake: false,
        ..PLAIN
    };
    let mut packets = model.simulate();
    let near_by = flows(&packets).swap_remove(0);
    let far = packets.iter_mut().filter(|p| p.source == SocketAddr::from(SENDER));
    far.for_each(|packet| packet.ttl = 57);
    let forwarded = flows(&packets).swap_remove(0);
    assert_eq!(forwarded.rtt_min_s, None, "{forwarded:?}");
    assert_eq!(forwarded.verdict.class, Class::Unknown, "{forwarded:?}");
    assert!(forwarded.verdict.words.contains("far from the sender"), "{forwarded:?}");
    assert_eq!(forwarded.expected_gain_bps, None);
    // If the sender is on the capture's network, the RTT is known.
    assert_eq!(near_by.verdict.class, Class::Application, "{near_by:?}");
    // At the sender it is known, too.
    let mut packets = Model { place: 0, ..model }.simulate();
    let far = packets.iter_mut().filter(|p| p.source != SocketAddr::from(SENDER));
    far.for_each(|packet| packet.ttl = 57);
    let flow = flows(&packets).swap_remove(0);
    assert_eq!(flow.facts.as_ref().map(|facts| facts.vantage), Some("sender"));
    assert!(flow.remarks.iter().all(|remark| !remark.contains("uncertain")), "{flow:?}");
}

/// A connection captured at the client from the middle on, without timestamps. A server far away answers requests of two
/// segments with four segments after `away` microseconds.
fn asked_and_answered(away: u64, early: bool) -> Vec<Segment> {
    let model = Model {
        mss: 1000,
        window: 60_000,
        delay: 0,
        spacing: 1,
        place: 0,
        rounds: 0,
        first: 0,
        timestamps: false,
        handshake: false,
        ..PLAIN
    };
    let mut packets = Vec::new();
    let plain = Options::default();
    let crossing = if early { 10 } else { 0 };
    let round = 4000 + crossing;
    for n in 0..10u32 {
        let (now, sent) = (u64::from(n) * (2 * away + 3_000), 1 + n * 2000);
        packets.push(model.sent(now, sent, 1000, ack(), plain));
        packets.push(model.sent(now + 1_000, sent + 1000, 1000, ack(), plain));
        if early {
            // An answer to the first segment crosses the second segment on the way.
            let acked = Segment {
                ttl: 50,
                payload: 10,
                ..model.received(now + 1_500, 1 + n * round, sent + 1000, ack(), 60_000, plain)
            };
            packets.push(acked);
        }
        let first = 1 + n * round + crossing;
        for k in 0..4u32 {
            let at = now + 1_000 + away + u64::from(k) * 100;
            let answer = model.received(at, first + k * 1000, sent + 2000, ack(), 60_000, plain);
            packets.push(Segment { ttl: 50, payload: 1000, ..answer });
            let received = first + (k + 1) * 1000;
            packets.push(Segment {
                ack: received,
                ..model.sent(at + 10, sent + 2000, 0, ack(), plain)
            });
        }
    }
    packets
}

#[test]
fn the_fastest_answer_to_a_whole_request_gives_the_rtt() {
    for (away, early) in [(40_000, false), (200_000, false), (200_000, true)] {
        let flows = flows(&asked_and_answered(away, early));
        let server = flows.iter().find(|flow| flow.source == SocketAddr::from(RECEIVER)).unwrap();
        if early {
            // Data that crosses the request shows no RTT.
            assert_eq!(server.rtt_min_s, None, "{server:?}");
            continue;
        }
        // The RTT from the capture to the server.
        let rtt = server.rtt_min_s.unwrap();
        let expected = away as f64 / 1e6;
        assert!(
            (rtt - expected).abs() < 0.01 * expected + 1e-4,
            "{rtt} is not {expected}: {server:?}"
        );
        assert_eq!(server.verdict.class, Class::Application, "{server:?}");
        assert!(server.remarks.iter().any(|remark| remark.contains("a request's answer")));
    }
}

/// A window that closes, on a path with an RTT of 2 ms, and a capture clock with ticks of 10 ms.
#[test]
fn rtts_below_the_clock_resolution_promise_no_gain() {
    let model = Model {
        mss: 1448,
        window: 28_960,
        delay: 1_000,
        rounds: 300,
        first: 20,
        closes: Some(3),
        timestamps: false,
        ..PLAIN
    };
    let mut packets = model.simulate();
    mutate(&mut packets, &Mutation::Coarse(10_000));
    let flow = flows(&packets).swap_remove(0);
    assert_eq!(flow.rtt_min_s, Some(0.0), "{flow:?}");
    let capacity = flow.facts.as_ref().and_then(|facts| facts.delivery_bps);
    let max = capacity.map_or(0.0, |capacity| capacity - flow.goodput_bps);
    assert!(flow.expected_gain_bps.is_none_or(|gain| gain <= max.max(0.0)), "{flow:?}");
}

/// Without the handshake the scale is unknown, but a sender never exceeds the window.
#[test]
fn a_window_of_unknown_scale_that_is_always_full_is_the_limit() {
    for segments in [12, 20, 33] {
        let model = Model {
            mss: 1448,
            window: segments * 1448 / 16 * 16,
            delay: 40_000,
            spacing: 10,
            place: 0,
            rounds: 60,
            first: segments,
            timestamps: false,
            handshake: false,
            ..PLAIN
        };
        let mut packets = model.simulate();
        let far = packets.iter_mut().filter(|p| p.source != SocketAddr::from(SENDER));
        far.for_each(|packet| packet.ttl = 57);
        let flow = flows(&packets).swap_remove(0);
        assert_eq!(flow.verdict.class, Class::ReceiverWindow, "{segments}: {flow:?}");
        assert!(
            flow.remarks.iter().any(|remark| remark.contains("inferred from the most in flight"))
        );
        // A flight of two thirds of the window has another limit.
        let held = Model { window: segments * 1448 * 3 / 2 / 16 * 16, ..model };
        let mut packets = held.simulate();
        packets
            .iter_mut()
            .filter(|p| p.source != SocketAddr::from(SENDER))
            .for_each(|p| p.ttl = 57);
        let flow = flows(&packets).swap_remove(0);
        assert_ne!(flow.verdict.class, Class::ReceiverWindow, "{segments}: {flow:?}");
    }
}

/// A transfer limited by its receiver's window, 20 segments every 80 ms.
fn held_by_the_window() -> Flow {
    let model = Model {
        mss: 1448,
        window: 20 * 1448 / 16 * 16,
        delay: 40_000,
        spacing: 200,
        place: 0,
        rounds: 60,
        first: 19,
        timestamps: false,
        ..PLAIN
    };
    flows(&model.simulate()).swap_remove(0)
}

#[test]
fn a_simulation_that_contradicts_the_capture_is_not_shown() {
    let flow = held_by_the_window();
    assert_eq!(flow.verdict.class, Class::ReceiverWindow, "{flow:?}");
    let replay = flow.replay.unwrap().unwrap();
    // 60 rounds, each of 80 ms and up to 20 gaps of 0.2 ms.
    assert!((4.7..5.1).contains(&replay.took.as_secs_f64()), "{:?}", replay.took);
    let simulate = |factor: f64| {
        Simulation::of(&replay, |_, settings| {
            let held = settings.iter().any(|setting| setting.contains("sizing=fixed:"));
            let took = if held { replay.took.scaled(factor) } else { Duration::from_secs(1) };
            Ok::<_, NoReplay>((took, vec![(Duration::ZERO, Bytes::ZERO), (took, replay.size)]))
        })
    };
    for factor in [0.7, 1.0, 1.4] {
        let Simulation::Done(finished) = simulate(factor) else { panic!("{factor}: not shown") };
        assert_eq!(finished.without_limit_s, 1.0);
        assert!(finished.words().contains("Assumed"), "{}", finished.words());
    }
    for factor in [0.5, 2.0] {
        assert!(matches!(simulate(factor), Simulation::Unknown { .. }), "{factor}: shown");
    }
}
