//! Applications that are slower than TCP: flow control, and senders that have nothing to send.

mod common;

use common::simulate;
use sweetspot_scenario::{Engine, Recorder, Sample, Scenario};
use sweetspot_sim::Simulator;
use sweetspot_units::Duration;

const PATH: &str = r#"
    warmup = "2s"
    duration = "10s"
    [path]
    rate = "100Mbit/s"
    rtt = "40ms"
    buffer = "400pkt"
    packet = "1500B"
    reverse = "clean"
    [[transfer]]
    sizing = "fixed:600kB"
"#;

fn mbps(overrides: &[&str]) -> f64 {
    simulate(PATH, overrides).transfers[0].goodput_bps / 1e6
}

#[test]
fn a_slow_reader_sets_the_rate_without_losses() {
    for (sizing, flavour, min) in [
        ("fixed:600kB", "ns2", 19.0),
        ("kernel", "linux", 19.0),
        ("sobas", "linux", 19.0),
        // A window that follows the arrivals oscillates and sometimes starves a slow reader
        // (`theory::host::heffner::slow_reader_growth`).
        ("heffner:twice", "ns2", 10.0),
        ("drs", "ns2", 10.0),
    ] {
        let sizing = format!("transfer.0.sizing={sizing}");
        let flavour = format!("transfer.0.flavour={flavour}");
        let outcome = simulate(PATH, &[&sizing, &flavour, "transfer.0.reader=rate=20Mbit/s"]);
        let transfer = &outcome.transfers[0];
        // Ten seconds at 20 Mbit/s, plus or minus a window of 600 kB (2.4 %) at either end. Receivers that measure reads per
        // RTT may sometimes leave the application without data.
        let rate = transfer.goodput_bps / 1e6;
        assert!((min..20.5).contains(&rate), "{sizing}: {rate}");
        assert_eq!(transfer.retransmitted_packets, 0, "{sizing}");
    }
}

#[test]
fn a_paced_writer_sets_the_rate_for_any_gap_distribution() {
    for pace in ["rate", "poisson"] {
        let writer = format!("transfer.0.writer={pace}=20Mbit/s");
        // 17,000 packets of 1500 bytes: the standard deviation of a Poisson count is 0.8 %.
        assert!((mbps(&[&writer]) - 20.0).abs() < 0.6, "{pace}: {}", mbps(&[&writer]));
    }
}

#[test]
fn a_writer_that_ends_completes_its_transfer() {
    // 2 MB at 8 Mbit/s take 2 s and a round trip. So do 1 MB, a pause of 1 s after 0.5 s, and another 1 MB.
    for writer in ["rate=8Mbit/s", "rate=16Mbit/s,pause=500ms+1s"] {
        let writer = format!("transfer.0.writer={writer}");
        let outcome = simulate(PATH, &[&writer, "transfer.0.size=2MB"]);
        let took = outcome.transfers[0].completion_s.expect("it ends");
        assert!((2.0..2.15).contains(&took), "{writer}: {took}");
    }
}

#[derive(Default)]
struct Series(Vec<Sample>);

impl Recorder for Series {
    fn interval(&self) -> Option<Duration> {
        Some(Duration::from_millis(10))
    }
    fn record(&mut self, sample: &Sample) {
        self.0.push(*sample);
    }
}

fn series(overrides: &[&str]) -> Vec<Sample> {
    let overrides: Vec<String> = overrides.iter().map(|text| (*text).to_owned()).collect();
    let scenario = Scenario::parse_with(PATH, &overrides).expect("it is a scenario");
    let mut series = Series::default();
    Simulator.run(&scenario, &mut series).expect("it can be run");
    series.0
}

#[test]
fn a_paused_reader_closes_the_window_and_reopens_it() {
    for sizing in ["fixed:600kB", "heffner:twice", "drs"] {
        let sizing = format!("transfer.0.sizing={sizing}");
        // Buffer for the burst that a window of twice the BDP sends when it opens.
        let room = "path.buffer=2000pkt";
        let samples = series(&[&sizing, room, "transfer.0.reader=pause=5s+1s"]);
        let at = |from: f64, until: f64| {
            samples.iter().filter(move |s| s.at_s >= from && s.at_s < until)
        };
        let acked = |from: f64, until: f64| {
            let all: Vec<u64> = at(from, until).map(|sample| sample.acked_bytes).collect();
            all[all.len() - 1] - all[0]
        };
        // The data that the window allows arrive after some round trips; then only window probes are sent.
        assert!(acked(5.5, 6.0) <= 3 * 1500, "{sizing}: {}", acked(5.5, 6.0));
        assert!(at(5.5, 6.0).all(|sample| sample.window_bytes <= 3 * 1500), "{sizing}");
        // Afterwards the rate is the same as before: at most 98 Mbit/s of payload.
        let (before, after) = (acked(4.0, 5.0), acked(7.0, 8.0));
        assert!(after as f64 > 0.95 * before as f64, "{sizing}: {after} of {before}");
    }
}

#[test]
fn a_zero_window_is_probed_after_a_lost_window_update() {
    // Three of ten packets are lost, including window updates; the transfer still continues.
    let outcome = simulate(
        PATH,
        &[
            "path.loss=0.3",
            "transfer.0.reader=pause=1s+500ms,pause=2s+500ms,pause=3s+500ms",
            "transfer.0.sizing=fixed:6kB",
            "transfer.0.flavour=linux",
            "warmup=5s",
            "duration=60s",
        ],
    );
    assert!(outcome.transfers[0].goodput_bps > 10e3, "{}", outcome.transfers[0].goodput_bps);
}

#[test]
fn slow_start_restarts_after_idle_only_if_enabled() {
    // RFC 5681 section 4.1: after an idle time above the retransmission timeout, the window is reset to its initial value.
    let window = |restart: bool| {
        let restart = format!("transfer.0.slow_start_restart={restart}");
        let samples = series(&[&restart, "transfer.0.writer=pause=5s+2s"]);
        let first = samples.iter().find(|s| s.at_s > 7.02).expect("there are samples");
        first.cwnd_packets
    };
    assert!(window(true) <= 4.0, "{}", window(true));
    assert!(window(false) > 100.0, "{}", window(false));
}

#[test]
fn a_memory_counting_send_buffer_holds_less_and_refills_by_thirds() {
    // 178.4 kB hold 100 segments of 1448 and 336 bytes. The application sleeps until 34 of them are acknowledged, then writes
    // 34. Two such bursts and 32 segments of a third are in flight, and the next burst needs two ACKs of the second. So there
    // are two bursts per RTT of 40 ms: 68 x 1448 bytes, 19.7 Mbit/s. If only payload counted, the buffer would hold 123
    // segments, 35.6 Mbit/s.
    let rate = |overhead: &str| {
        mbps(&["tcp.header=52B", "tcp.send_buffer=178400B", overhead, "transfer.0.sizing=max"])
    };
    let (counted, plain) = (rate("tcp.segment_overhead=336B"), rate("tcp.segment_overhead=0B"));
    assert!((19.2..19.8).contains(&counted), "{counted}");
    assert!((35.0..36.0).contains(&plain), "{plain}");
}

#[test]
fn senders_share_a_pool_max_min_fairly() {
    // Four senders with windows of 600 kB and a pool of 1 MB: 250 kB each per RTT of 40 ms are 50 Mbit/s, twice each sender's
    // share of the link. With a pool of 100 kB each sender gets 25 kB per RTT, 5 Mbit/s.
    for (pool, min, max) in [("1MB", 23.0, 25.1), ("100kB", 4.5, 5.1)] {
        let pool = format!("send_pool={pool}");
        let overrides = [&*pool, "transfer.0.count=4", "path.buffer=2000pkt"];
        let outcome = simulate(PATH, &overrides);
        for transfer in &outcome.transfers {
            let rate = transfer.goodput_bps / 1e6;
            assert!((min..max).contains(&rate), "{pool}: {rate}");
        }
    }
}

#[test]
fn an_rwnd_limited_sender_takes_only_what_it_needs_of_the_pool() {
    // A receiver of 24 kB needs 48 kB of 300 kB. The other gets the rest, 252 kB per RTT of 40 ms: 50 Mbit/s. The first
    // sender's congestion window grows without limit in ns-2. If it counted, both would get half, 30 Mbit/s for the second.
    let second = "transfer=[{sizing=\"fixed:24kB\"},{sizing=\"fixed:600kB\"}]";
    let outcome =
        simulate(PATH, &[second, "send_pool=300kB", "path.buffer=2000pkt", "tcp.flavour=ns2"]);
    let rates: Vec<f64> = outcome.transfers.iter().map(|t| t.goodput_bps / 1e6).collect();
    assert!((rates[0] - 4.8).abs() < 0.2, "{rates:?}");
    assert!(rates[1] > 45.0, "{rates:?}");
}

#[test]
fn a_following_transfer_starts_after_its_predecessor_with_its_memory() {
    let path = r#"
        duration = "30s"
        [path]
        rate = "100Mbit/s"
        rtt = "40ms"
        buffer = "125kB"
        packet = "1500B"
        reverse = "clean"
        [tcp]
        flavour = "linux"
        [[transfer]]
        size = "100MB"
        sizing = "sobas:live"
        congestion = "cubic"
        [[transfer]]
        follows = true
        start = "2s"
        size = "100MB"
        sizing = "sobas:live"
        congestion = "cubic"
    "#;
    let outcome = simulate(path, &[]);
    let [first, second] = &outcome.transfers[..] else { panic!("{outcome:?}") };
    let ended = first.completion_s.expect("100 MB take 8 s");
    // The first data arrive after a pause of two seconds and a round trip.
    let begun = second.events.first().expect("it is remembered").at_s;
    assert!((ended + 2.0..ended + 2.1).contains(&begun), "{ended} {begun}");
    let remembers = |event: &sweetspot_scenario::ControllerEvent| {
        event.reason.as_ref().is_some_and(|reason| reason.contains("remembered"))
    };
    assert!(second.events.iter().any(remembers) && !first.events.iter().any(remembers));
    // Slow start overflows a buffer of a quarter of a BDP; a remembered window does not.
    assert!(first.retransmitted_packets > 0);
    assert_eq!(second.retransmitted_packets, 0);
}

/// Reno halves its window after slow start has overflowed an eighth of a BDP, 44 of 347 segments, and needs 130 RTTs to fill
/// the path again. By then it has left far more capacity unused than a window that opens in steps of the buffer's size.
#[test]
fn a_path_never_held_is_remembered_if_its_overflow_was_costly() {
    let path = r#"
        duration = "30s"
        [path]
        rate = "100Mbit/s"
        rtt = "40ms"
        buffer = "42pkt"
        packet = "1500B"
        reverse = "clean"
        [tcp]
        flavour = "linux"
        [[transfer]]
        size = "60MB"
        sizing = "sobas:live"
        congestion = "reno"
        [[transfer]]
        follows = true
        start = "2s"
        size = "60MB"
        sizing = "sobas:live"
        congestion = "reno"
    "#;
    let outcome = simulate(path, &[]);
    let [first, second] = &outcome.transfers[..] else { panic!("{outcome:?}") };
    let mentions = |transfer: &sweetspot_scenario::TransferOutcome, word: &str| {
        transfer.events.iter().any(|event| event.kind.to_string().contains(word))
    };
    assert!(!mentions(first, "holding") && mentions(second, "holding"), "{outcome:?}");
    assert!(first.retransmitted_packets > 0);
    assert_eq!(second.retransmitted_packets, 0);
    // Without tuning, the second transfer overflows like the first.
    let kernel = simulate(path, &["transfer.0.sizing=kernel", "transfer.1.sizing=kernel"]);
    let took = |outcome: &sweetspot_scenario::Outcome| outcome.transfers[1].completion_s;
    assert!(took(&outcome).expect("60 MB take 5 s") < took(&kernel).expect("60 MB take 8 s"));
}
