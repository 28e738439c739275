//! TCP-LP uses free bandwidth, at any RTT and with any receiver, and almost none beside Reno.

mod common;

use common::simulate;

/// 20 Mbit/s with a buffer of one BDP.
const ALONE: &str = r#"
title = "TCP-LP"
warmup = "20s"
duration = "40s"
[path]
rate = "20Mbit/s"
rtt = "30ms"
buffer = "1bdp"
packet = "1500B"
[tcp]
flavour = "linux"
[[transfer]]
congestion = "lp"
congestion_fixed = true
sizing = "max"
"#;

/// Receivers: Linux's delayed ACK of 40 ms, 100 ms as in BSD, and an ACK for every segment.
const RECEIVERS: [&[&str]; 3] =
    [&["tcp.ack_delay=40ms"], &["tcp.ack_delay=100ms"], &["tcp.delayed_ack=false"]];

#[test]
fn a_lone_lp_flow_uses_three_quarters_of_the_link() {
    for rtt in ["path.rtt=10ms", "path.rtt=30ms", "path.rtt=60ms", "path.rtt=120ms"] {
        for receiver in RECEIVERS {
            let set = [&[rtt], receiver].concat();
            let rate = simulate(ALONE, &set).transfers[0].goodput_bps / 1e6;
            assert!(rate >= 15.0, "{set:?}: {rate} Mbit/s");
        }
    }
}

#[test]
fn beside_a_reno_flow_an_lp_flow_takes_less_than_a_tenth() {
    let beside = format!(
        "{ALONE}\n[[transfer]]\ncongestion = \"reno\"\ncongestion_fixed = true\nsizing = \"max\"\n"
    );
    for rtt in ["path.rtt=10ms", "path.rtt=30ms", "path.rtt=60ms"] {
        for receiver in RECEIVERS {
            let set = [&[rtt], receiver].concat();
            let transfers = simulate(&beside, &set).transfers;
            let share = transfers[0].goodput_bps / 20e6;
            assert!(share < 0.1, "{set:?}: {share}");
        }
    }
}
