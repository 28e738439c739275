//! Paths that change during a run.

mod common;

use common::{goodput, simulate};

const PATH: &str = r#"
    warmup = "4s"
    duration = "8s"
    [path]
    rate = "40Mbit/s"
    rtt = "40ms"
    buffer = "133pkt"
    packet = "1500B"
    reverse = "clean"
    [tcp]
    flavour = "linux"
    [[transfer]]
    congestion = "cubic"
    sizing = "kernel"
"#;

fn with(change: &str) -> String {
    format!("{PATH}\n[[path.change]]\n{change}")
}

#[test]
fn goodput_follows_the_rate() {
    // 4 s at 40 Mbit/s and 4 s at 10 are a mean of 25; without headers, 25 x 1448 / 1500.
    let found = goodput(&with("at = \"8s\"\nrate = \"10Mbit/s\""), &[]);
    assert!((found / 24.13 - 1.0).abs() < 0.04, "{found}");
    let outcome = simulate(&with("at = \"8s\"\nrate = \"10Mbit/s\""), &[]);
    assert!((0.96..=1.0).contains(&outcome.bottleneck.utilisation), "{outcome:?}");
}

#[test]
fn the_rtt_follows_route_changes() {
    let window = ["transfer.sizing=fixed:20pkt"];
    let before = simulate(PATH, &window).transfers[0].rtt_mean_s;
    let after = simulate(&with("at = \"3s\"\ndelay = \"28ms\""), &window).transfers[0].rtt_mean_s;
    // The hop's 8 ms became 28 ms, each way.
    assert!((after - before - 0.040).abs() < 0.001, "{before} {after}");
    let shorter = simulate(&with("at = \"3s\"\ndelay = \"1ms\""), &window).transfers[0].rtt_mean_s;
    assert!((before - shorter - 0.014).abs() < 0.001, "{before} {shorter}");
}

#[test]
fn a_change_to_the_current_values_changes_nothing() {
    let mut before = simulate(PATH, &[]);
    let mut after = simulate(&with("at = \"5s\"\nrate = \"40Mbit/s\"\ndelay = \"8ms\""), &[]);
    // The number of events may differ with the discipline; the results may not.
    (before.events, after.events) = (0, 0);
    assert_eq!(before, after);
}

#[test]
fn a_changing_path_is_deterministic() {
    let text = with("at = \"6s\"\nrate = \"5Mbit/s\"\ndelay = \"2ms\"");
    for queue in ["drop-tail", "red", "codel", "fq-codel"] {
        let set = [format!("path.queue={queue}"), "path.jitter=2ms".to_owned()];
        let set: Vec<&str> = set.iter().map(String::as_str).collect();
        assert_eq!(simulate(&text, &set), simulate(&text, &set), "{queue}");
    }
}

#[test]
fn a_finite_transfer_reports_its_completion_time() {
    let outcome = simulate(PATH, &["transfer.size=10MB", "warmup=0s", "duration=10s"]);
    let took = outcome.transfers[0].completion_s.expect("it ends in time");
    // 80 Mbit at 38.6 Mbit/s of payload, and a slow start.
    assert!((2.1..2.6).contains(&took), "{took}");
    assert_eq!(simulate(PATH, &["transfer.size=10GB"]).transfers[0].completion_s, None);
}

#[test]
fn law_goodput_of_a_finite_transfer_is_independent_of_the_run_length() {
    let of = |start: &str, warmup: &str, duration: &str| {
        let set = [
            "transfer.size=10MB".to_owned(),
            format!("transfer.start={start}"),
            format!("warmup={warmup}"),
            format!("duration={duration}"),
        ];
        let set: Vec<&str> = set.iter().map(String::as_str).collect();
        simulate(PATH, &set).transfers.remove(0)
    };
    let short = of("0s", "0s", "10s");
    for transfer in [short.clone(), of("0s", "0s", "40s"), of("3s", "2s", "40s")] {
        // Its bytes divided by its own time; the last packet counts as a whole one.
        let rate = 10e6 * 8.0 / transfer.completion_s.expect("it ends in time");
        assert!((transfer.goodput_bps / rate - 1.0).abs() < 2e-4, "{transfer:?}");
    }
    assert_eq!(short.goodput_bps, of("0s", "0s", "40s").goodput_bps);
    // The transfer ended before the measured time.
    assert_eq!(of("0s", "20s", "10s").goodput_bps, 0.0);
    // The transfer does not end in time: it is measured over the 2 s after slow start.
    let unfinished = of("8s", "0s", "10s");
    assert_eq!(unfinished.completion_s, None);
    assert!(unfinished.goodput_bps > 20e6, "{unfinished:?}");
}

#[test]
fn a_held_window_grows_when_competing_transfers_leave() {
    // A fair queue gives each of three transfers a third regardless of its window, so a third is held: 28 kB.
    let text = r#"
        warmup = "8s"
        duration = "6s"
        [path]
        rate = "40Mbit/s"
        rtt = "11ms"
        buffer = "107pkt"
        packet = "1500B"
        reverse = "clean"
        queue = "fq-codel"
        [tcp]
        flavour = "linux"
        [[cross]]
        kind = "mice"
        count = 2
        packets = 5700
        sleep = "1000s"
        congestion = "cubic"
        start = ["0s", "1s"]
        [[transfer]]
        start = "2s"
        congestion = "cubic"
        sizing = "sobas:live"
    "#;
    // Without headers: 1448 / 1500.
    let found = goodput(text, &[]);
    assert!(found >= 0.95 * 38.6, "{found}");
}
