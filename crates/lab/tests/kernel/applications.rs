use sweetspot_lab::{Lab, LabRun, LabSeriesRow};
use sweetspot_scenario::Scenario;

/// 50 Mbit/s and 20 ms: a BDP of 125 kB, 84 packets.
const PATH: &str = r#"
title = "test"
warmup = "2s"
duration = "4s"
[path]
rate = "50Mbit/s"
rtt = "20ms"
buffer = "200pkt"
packet = "1500B"
reverse = "clean"
[tcp]
flavour = "linux"
[[transfer]]
congestion = "cubic"
congestion_fixed = true
"#;

fn run(overrides: &[&str]) -> LabRun {
    let overrides: Vec<String> = overrides.iter().map(|o| (*o).to_owned()).collect();
    Lab.run(&Scenario::parse_with(PATH, &overrides).unwrap()).unwrap()
}

fn between(finished: &LabRun, from: f64, until: f64) -> impl Iterator<Item = &LabSeriesRow> {
    finished.series.iter().filter(move |row| (from..until).contains(&row.at_s))
}

fn acked(finished: &LabRun, from: f64, until: f64) -> f64 {
    let mut rows = between(finished, from, until);
    let first = rows.next().unwrap();
    let last = rows.last().unwrap();
    (last.acked_bytes - first.acked_bytes) as f64 * 8.0 / (last.at_s - first.at_s)
}

/// A reader held up by the machine catches up in a burst. Autotuning takes that for a fast reader and enlarges the buffer
/// beyond the window (tcp_rcv_space_adjust), so such a run is repeated.
const RUNS: usize = 5;

pub fn a_slow_reader_sets_the_rate_and_the_window_closes() {
    let overrides = ["transfer.0.sizing=fixed:125kB", "transfer.0.reader=rate=5Mbit/s"];
    // Once the receive buffer is full, acknowledged data follows the reads, within the buffer's fill level: 125 kB over 4 s are
    // 0.25 Mbit/s, 5 %.
    let at_its_rate =
        |finished: &LabRun| (4.75e6..5.25e6).contains(&finished.outcome.transfers[0].goodput_bps);
    let finished = (0..RUNS).map(|_| run(&overrides)).find(at_its_rate).expect("a run at 5 Mbit/s");
    // Flow control, not loss, holds the sender back.
    assert_eq!(finished.outcome.bottleneck.loss_rate, 0.0, "{:?}", finished.outcome.bottleneck);
    // The window may still hold the bytes read during one RTT, 12.5 kB, and the kernel's rounding.
    let min = between(&finished, 2.0, 6.0).map(|row| row.window_bytes).min().unwrap();
    assert!(min < 125_000 / 4, "{min}");
}

pub fn a_reader_that_stops_closes_the_window_and_opens_it_again() {
    let finished = run(&["transfer.0.sizing=kernel", "transfer.0.reader=pause=3s+1500ms"]);
    // RFC 9293 section 3.8.6: a full window is closed, and only probes are sent.
    let min = between(&finished, 4.0, 4.4).map(|row| row.window_bytes).min().unwrap();
    assert!(min < 3 * 1500, "{min}");
    let (stopped, before, after) =
        (acked(&finished, 4.0, 4.4), acked(&finished, 2.0, 3.0), acked(&finished, 5.0, 6.0));
    assert!(stopped < 0.02 * before, "{stopped} of {before}");
    // In real time; a window that stayed closed would let nothing through.
    assert!(after > 0.5 * before, "{after} of {before}");
}

pub fn a_paced_writer_sets_the_rate() {
    for pace in ["rate", "poisson"] {
        let writer = format!("transfer.0.writer={pace}=10Mbit/s");
        let finished = run(&["transfer.0.sizing=kernel", &writer]);
        let transfer = &finished.outcome.transfers[0];
        // 3450 portions in 4 s: a Poisson count has a standard deviation of 1.7 %; TLS and framing take 0.2 %.
        let rate = transfer.goodput_bps / 1e6;
        assert!((rate - 10.0).abs() < 0.6, "{pace}: {rate}");
        assert_eq!(finished.outcome.bottleneck.loss_rate, 0.0, "{:?}", finished.outcome.bottleneck);
    }
}

pub fn after_a_pause_slow_start_restarts_where_the_scenario_says_so() {
    // RFC 5681 section 4.1. Linux halves the window for each RTO of idle time, down to ten packets (tcp_cwnd_restart): with an
    // RTO of 300 ms (the RTT plus 200 ms), six times in 2 s.
    let windows = |restart: bool| {
        let restart = format!("transfer.0.slow_start_restart={restart}");
        let finished = run(&[
            "path.rtt=100ms",
            "transfer.0.sizing=fixed:625kB",
            "transfer.0.writer=pause=4s+2s",
            "duration=5s",
            &restart,
        ]);
        let cwnd = |from, until| between(&finished, from, until).map(|row| row.cwnd_bytes);
        (cwnd(3.5, 4.0).max().unwrap(), cwnd(6.0, 6.2).min().unwrap())
    };
    // Three RTTs of slow start take the window from ten packets to eighty; nearly forty have passed. The receiver's window ends
    // slow start at 431; a busy machine's jitter may end it earlier (HyStart, RFC 9406).
    let (before, after) = windows(true);
    assert!(before >= 80 * 1448, "{before}");
    // 431 / 2^6 is below ten; rows are 50 ms apart, less than an RTT.
    assert!(after <= 20 * 1448, "{after}");
    // Without the restart, only a loss on a busy machine reduces the window, once or twice by less than half.
    let (before, after) = windows(false);
    assert!(after * 4 >= before, "{after} of {before}");
}
