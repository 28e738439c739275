use sweetspot_lab::{Lab, LabError, LabRun};
use sweetspot_scenario::Scenario;

/// A path of 20 Mbit/s and 20 ms: a BDP of 50 kB, and a buffer of the same size.
const PATH: &str = r#"
title = "test"
warmup = "1s"
duration = "2s"
[path]
rate = "20Mbit/s"
rtt = "20ms"
buffer = "50pkt"
"#;

fn run(more: &str) -> Result<LabRun, LabError> {
    Lab.run(&Scenario::parse(&format!("{PATH}{more}")).unwrap())
}

pub fn a_window_of_half_a_bdp_carries_half_the_rate_at_most() {
    let finished = run("[[transfer]]\nsizing = \"fixed:25kB\"\n").unwrap();
    let transfer = &finished.outcome.transfers[0];
    // SOBAS eq. (3): 25 kB per 20 ms are 10 Mbit/s. The advertised window is rounded up to the window scale, 128 B with buffers
    // of up to 8 MiB.
    assert!(transfer.goodput_bps <= 25_128.0 * 8.0 / 0.020, "{transfer:?}");
    assert!(transfer.goodput_bps > 5e6, "{transfer:?}");
    assert!(transfer.rtt_mean_s >= 0.020, "{transfer:?}");
    // The buffer holds twice that window. On a machine that stalls, the sender's timers may still retransmit packets that were
    // not lost (RFC 5682).
    assert_eq!(finished.outcome.bottleneck.loss_rate, 0.0, "{:?}", finished.outcome.bottleneck);
    assert!((24_000..=25_600).contains(&transfer.window_final_bytes), "{transfer:?}");
    let outcome = &finished.outcome;
    assert_eq!((outcome.engine.as_str(), outcome.scenario.as_str()), ("lab", "test"));
    assert!(outcome.bottleneck.utilisation < 0.6, "{:?}", outcome.bottleneck);
    assert!(finished.series.iter().any(|row| row.acked_bytes > 1_000_000));
    assert!(finished.certificate.text.contains("Emulation certificate"));
}

pub fn a_send_buffer_of_the_scenario_holds_the_sender_back() {
    let finished = run("[[transfer]]\nsizing = \"max\"\nsend_buffer = \"5kB\"\n").unwrap();
    let transfer = &finished.outcome.transfers[0];
    // The kernel doubles it and lets one write exceed it, here a TLS record of 16 kB. Some 26 kB per 20 ms are half of the 20
    // Mbit/s that a window of 100 kB or more would fill.
    assert!(transfer.goodput_bps < 15e6, "{transfer:?}");
    assert!(transfer.goodput_bps > 10_000.0 * 8.0 / 0.030, "{transfer:?}");
}

pub fn every_kind_of_cross_traffic_crosses() {
    let finished = run(r#"
reverse = "clean"
[[cross]]
kind = "pareto"
count = 5
rate = "400kbit/s"
[[cross]]
kind = "poisson"
count = 5
rate = "400kbit/s"
[[cross]]
kind = "elephants"
count = 3
window = "5pkt"
rtt = ["20ms", "60ms"]
start = "0s"
[[cross]]
kind = "mice"
count = 5
packets = [5, 8]
sleep = ["100ms", "200ms"]
start = "0s"
[[cross]]
kind = "closed-loop"
users = 3
size_mean = "10kB"
think_mean = "100ms"
[[cross]]
kind = "arrivals"
rate = "1Mbit/s"
size_mean = "10kB"
"#)
    .unwrap();
    let [pareto, poisson, elephants, mice, closed_loop, arrivals] = &finished.outcome.cross[..]
    else {
        panic!("{:?}", finished.outcome.cross);
    };
    for udp in [pareto, poisson] {
        // 2 Mbit/s on average; 972 of 1000 bytes are payload; gaps are random.
        assert!((0.5e6..4e6).contains(&udp.goodput_bps), "{udp:?}");
    }
    // Windows of 4740 B per 20, 40 and 60 ms: 1.90 + 0.95 + 0.63 Mbit/s at most.
    assert!((1.5e6..3.5e6).contains(&elephants.goodput_bps), "{elephants:?}");
    assert_eq!((elephants.completed, elephants.completion_mean_s), (None, None));
    for users in [mice, closed_loop, arrivals] {
        // One round trip for the handshake and one for the data, at least.
        assert!(users.completed > Some(0) && users.completion_mean_s > Some(0.040), "{users:?}");
        assert!(users.goodput_bps > 1e5, "{users:?}");
    }
    assert!(finished.outcome.transfers.is_empty());
}

/// 2 Mbit/s on an idle path of 10 Mbit/s, 200 ms each way: a fifth of one second's datagrams arrive after its end. No packet is
/// lost.
pub fn a_datagram_that_is_under_way_at_the_end_is_not_lost() {
    let text = r#"
duration = "1s"
[path]
rate = "10Mbit/s"
rtt = "400ms"
buffer = "500pkt"
[[cross]]
kind = "poisson"
count = 4
rate = "500kbit/s"
"#;
    let finished = Lab.run(&Scenario::parse(text).unwrap()).unwrap();
    let udp = &finished.outcome.cross[0];
    assert_eq!(udp.loss_rate, 0.0, "{udp:?}");
    // Late datagrams were not delivered in that second.
    let forward = udp.forward_goodput_bps.unwrap();
    assert!(forward > 0.5e6 && forward < 2.4e6, "{udp:?}");
}

pub fn what_the_machine_lacks_is_refused() {
    let error = run("[[transfer]]\ncount = 65\n").unwrap_err();
    let LabError::Refused(reason) = &error else { panic!("{error}") };
    assert!(reason.contains("more than the 64"), "{reason}");
}

pub fn a_path_that_changes_carries_what_it_has_left() {
    let change = "[[path.change]]\nat = \"1500ms\"\nrate = \"4Mbit/s\"\n";
    let finished = run(&format!("{change}[[transfer]]\ncongestion = \"cubic\"\n")).unwrap();
    // Measured from 1 s on for 2 s: half a second at 20 Mbit/s, the queue at that time, and 1.5 s at 4 Mbit/s.
    let carried = 0.5 * 20.0 + 1.5 * 4.0;
    let goodput = finished.outcome.transfers[0].goodput_bps * 2.0 / 1e6;
    assert!(goodput < 1.05 * carried, "{goodput} of {carried}");
    let late: Vec<_> = finished.series.iter().filter(|row| row.at_s > 2.0).collect();
    let ([first, ..], [.., last]) = (&late[..], &late[..]) else { panic!("{late:?}") };
    let rate = (last.carried_bytes - first.carried_bytes) as f64 * 8.0 / (last.at_s - first.at_s);
    assert!(rate < 1.1 * 4e6 && rate > 0.5 * 4e6, "{rate}");
}

pub fn nothing_stays_behind() {
    let place = tempfile::tempdir().unwrap();
    let text = format!("{PATH}[[transfer]]\nsize = \"100kB\"\n");
    let finished = Lab.run_in(&Scenario::parse(&text).unwrap(), place.path()).unwrap();
    // All of it had been delivered before the measurement began.
    assert_eq!(finished.outcome.transfers[0].goodput_bps, 0.0);
    assert!(finished.series.is_empty() || finished.series.iter().all(|row| row.at_s < 1.0));
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
}

pub fn several_hops_each_way_and_a_trace_are_run() {
    let text = r#"
title = "chain"
warmup = "1s"
duration = "3s"
[path]
rtt = "20ms"
packet = "1500B"
[[path.hop]]
rate = "50Mbit/s"
buffer = "100pkt"
[[path.hop]]
buffer = "50pkt"
backward = { rate = "2Mbit/s", delay = "6ms" }
[[path.trace]]
hop = 1
way = "forward"
content = "0,10Mbit/s\n0.5,4Mbit/s\n"
[[cross]]
kind = "poisson"
count = 1
rate = "500kbit/s"
hop = 0
[[transfer]]
congestion = "cubic"
"#;
    let finished = Lab.run(&Scenario::parse(text).unwrap()).unwrap();
    let transfer = &finished.outcome.transfers[0];
    // Three periods of 10 and 4 Mbit/s, minus headers; the earlier queue adds 50 packets at most.
    let max = 7e6 * 1448.0 / 1500.0 + 50.0 * 1448.0 * 8.0 / 3.0;
    assert!(transfer.goodput_bps <= max && transfer.goodput_bps > 3e6, "{transfer:?}");
    // 2 + 2 ms forward, 2 + 6 ms back, the rest of the 20 ms on the hosts' links.
    assert!(transfer.rtt_mean_s >= 0.020, "{transfer:?}");
    // Traffic across the first hop alone does not affect the second.
    assert!(finished.outcome.cross[0].goodput_bps > 1e5, "{:?}", finished.outcome.cross);
    assert!(finished.outcome.bottleneck.utilisation > 0.5, "{:?}", finished.outcome.bottleneck);
}
