//! Links with different forward and reverse directions, and links with a capacity from a trace.

mod common;

use common::{goodput, simulate};

const PATH: &str = r#"
    warmup = "5s"
    duration = "20s"
    [path]
    rate = "40Mbit/s"
    rtt = "40ms"
    buffer = "200pkt"
    packet = "1500B"
    reverse = "clean"
    [tcp]
    flavour = "linux"
    header = "52B"
    [[transfer]]
    congestion = "cubic"
    sizing = "kernel"
"#;

#[test]
fn an_identical_reverse_path_changes_nothing() {
    let same = ["path.backward.rate=40Mbit/s", "path.backward.delay=8ms", "path.backward.loss=0"];
    assert_eq!(simulate(PATH, &[]), simulate(PATH, &same));
}

/// A receiver acknowledges every second segment with a bare ACK of 52 bytes. A reverse path of R bit/s carries R / (52
/// x 8) ACKs per second and thus limits the forward path to R / (52 x 8) x 2 x 1448 bytes per second, at any forward
/// rate.
#[test]
fn a_slow_reverse_path_limits_goodput_by_its_ack_rate() {
    for kbit in [50.0, 100.0, 200.0] {
        let back = format!("path.backward.rate={kbit}kbit/s");
        let expected = kbit * 1e3 / (52.0 * 8.0) * 2.0 * 1448.0 * 8.0 / 1e6;
        // A window that never overflows either buffer, to exclude losses and bursts.
        let set = [
            back.as_str(),
            "path.backward.buffer=10000pkt",
            "transfer.sizing=fixed:300pkt",
            "warmup=20s",
        ];
        let found = goodput(PATH, &set);
        assert!(
            (found / expected - 1.0).abs() < 0.01,
            "{kbit} kbit/s: {found} of {expected} Mbit/s"
        );
    }
}

/// Without delayed ACKs there are twice as many ACKs.
#[test]
fn acking_every_segment_halves_goodput_over_a_slow_reverse_path() {
    let set = |delayed: &'static str| {
        [
            "path.backward.rate=100kbit/s",
            "path.backward.buffer=10000pkt",
            "transfer.sizing=fixed:300pkt",
            "warmup=20s",
            delayed,
        ]
    };
    let each = goodput(PATH, &set("tcp.delayed_ack=false"));
    let second = goodput(PATH, &set("tcp.delayed_ack=true"));
    assert!((second / each - 2.0).abs() < 0.02, "{second} {each}");
}

#[test]
fn hop_delays_do_not_change_the_configured_rtt() {
    // T_m stays as `rtt` gives it; a hop's larger delay is subtracted from the hosts' links.
    let window = ["transfer.sizing=fixed:20pkt", "path.backward.delay=20ms", "path.delay=2ms"];
    let found = simulate(PATH, &window).transfers[0].rtt_mean_s;
    let alike = simulate(PATH, &window[..1]).transfers[0].rtt_mean_s;
    assert!((found - alike).abs() < 1e-4, "{found} {alike}");
}

#[test]
fn losses_in_one_direction_do_not_affect_the_other() {
    let back = simulate(PATH, &["path.backward.loss=0.05"]);
    // Lost ACKs lose no data.
    assert!(back.bottleneck.loss_rate < 0.001, "{}", back.bottleneck.loss_rate);
    let there = simulate(PATH, &["path.loss=0.05", "path.backward.loss=0"]);
    assert!((there.bottleneck.loss_rate - 0.05).abs() < 0.01, "{}", there.bottleneck.loss_rate);
}

#[test]
fn a_change_in_one_direction_leaves_the_other_unchanged() {
    let change =
        |way: &str| format!("{PATH}\n[[path.change]]\nat = \"4s\"\nrate = \"1Mbit/s\"\n{way}");
    let both = goodput(&change(""), &[]);
    let there = goodput(&change("way = \"forward\""), &[]);
    let back = goodput(&change("way = \"backward\""), &[]);
    // 1 Mbit/s without headers; the ACKs of 40 Mbit/s take 1667 x 52 x 8 = 0.69 Mbit/s.
    assert!((there / 0.965 - 1.0).abs() < 0.02, "{there}");
    assert!((both / there - 1.0).abs() < 0.01, "{both} {there}");
    assert!((back / 38.6 - 1.0).abs() < 0.03, "{back}");
}

fn traced(content: &str, more: &str) -> String {
    format!("{PATH}\n[[path.trace]]\nway = \"forward\"\ncontent = \"{content}\"\n{more}")
}

/// 20 and 5 Mbit/s alternate every second: 12.5 on average. A datagram source of 100 Mbit/s keeps the queue full.
#[test]
fn a_full_link_carries_the_integral_of_its_trace() {
    let flood = "[[cross]]\nkind = \"poisson\"\ncount = 1\nrate = \"100Mbit/s\"";
    let content = r"0,20Mbit/s\n1,5Mbit/s\n";
    let outcome = simulate(&traced(content, flood), &["duration=20s"]);
    let carried = outcome.cross[0].goodput_bps / 1e6 + outcome.transfers[0].goodput_bps / 1e6;
    // Without headers.
    let max = 12.5 * 1448.0 / 1500.0;
    assert!(carried <= max * 1.001 && carried > max * 0.99, "{carried} of {max}");
    assert!((0.995..=1.0).contains(&outcome.bottleneck.utilisation), "{outcome:?}");
}

#[test]
fn tcp_goodput_never_exceeds_the_traces_rate() {
    // An opportunity per millisecond: 12.032 Mbit/s. Then the same with an outage of half of each second.
    let even: String = (1..=500).map(|ms| format!("{ms}\\n")).collect();
    for (content, max) in
        [(even.clone(), 12.032), (format!("{even}1000\\n"), 12.032 * 501.0 / 1000.0)]
    {
        let found = goodput(&traced(&content, ""), &[]);
        assert!(found <= max * 1448.0 / 1500.0 * 1.001, "{found} of {max}");
        assert!(found > max * 0.7, "{found} of {max}");
    }
}

#[test]
fn a_constant_trace_equals_a_path_of_that_rate() {
    let mut constant = simulate(PATH, &["path.rate=20Mbit/s", "path.backward.rate=40Mbit/s"]);
    let mut traced = simulate(
        &traced(r"0,20Mbit/s\n7,20Mbit/s\n", ""),
        &["path.rate=20Mbit/s", "path.backward.rate=40Mbit/s"],
    );
    // The number of events may differ; the results may not.
    (constant.events, traced.events) = (0, 0);
    assert_eq!(constant, traced);
}

/// Each direction carries half of the cross traffic: each source sends 1 Mbit/s each way, headers included.
#[test]
fn cross_traffic_is_reported_per_direction() {
    let source = "[[cross]]\nkind = \"poisson\"\ncount = 2\nrate = \"1Mbit/s\"";
    for (reverse, way_back) in [("mirror", 1.0), ("clean", 0.0)] {
        let outcome = simulate(
            &format!("{PATH}\n{source}"),
            &["duration=100s", &format!("path.reverse={reverse}")],
        );
        let cross = &outcome.cross[0];
        let (forward, back) = cross.forward_goodput_bps.zip(cross.reverse_goodput_bps).unwrap();
        assert_eq!(forward + back, cross.goodput_bps);
        let sent = 2e6 * 1448.0 / 1500.0;
        assert!((forward / sent - 1.0).abs() < 0.04, "{cross:?}");
        assert!((back / sent - way_back).abs() < 0.04, "{cross:?}");
    }
}
