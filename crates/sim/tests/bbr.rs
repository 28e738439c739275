//! BBR version 1 with competitors and alone, compared with this project's measurements of a real kernel.

mod common;

use common::{DUMBBELL, ELEPHANTS, simulate};

#[test]
fn bbr_gets_its_share_among_elephants_without_timeouts() {
    let text = format!("{DUMBBELL}{ELEPHANTS}");
    let outcome = simulate(
        &text,
        &["transfer.0.congestion=bbr", "transfer.0.sizing=max", "transfer.0.start=5s"],
    );
    let transfer = &outcome.transfers[0];
    assert_eq!(transfer.timeouts, 0);
    // The elephants leave 15 Mbit/s; BBR, which does not yield to loss, takes more.
    assert!(transfer.goodput_bps > 15e6, "{}", transfer.goodput_bps);
    assert!(transfer.loss_rate < 0.03, "{}", transfer.loss_rate);
}

#[test]
fn bbr_in_a_shallow_buffer_matches_the_kernels_retransmissions() {
    // Linux 6.18, 100 Mbit/s, 100 ms, 125 kB, 20 s: 89.7 Mbit/s and 5,709 retransmitted segments (the
    // path of docs/results/lab.md).
    let text = r#"
        duration = "20s"
        [path]
        rate = "100Mbit/s"
        rtt = "100ms"
        buffer = "125kB"
        packet = "1500B"
        [tcp]
        flavour = "linux"
        [[transfer]]
        congestion = "bbr"
        sizing = "kernel"
    "#;
    let transfer = &simulate(text, &[]).transfers[0];
    assert!((transfer.goodput_bps / 89.7e6 - 1.0).abs() < 0.05, "{}", transfer.goodput_bps);
    let again = transfer.retransmitted_packets as f64;
    assert!((again / 5709.0 - 1.0).abs() < 0.15, "{again}");
    assert_eq!(transfer.timeouts, 0);
}
