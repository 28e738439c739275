//! Results of iperf3.

use proptest::prelude::*;
use sweetspot_diagnose::recorded::report;
use sweetspot_diagnose::{Class, Flow};

fn flows(result: &str) -> Vec<Flow> {
    report(result, 20).unwrap_or_else(|error| panic!("{error}: {result}")).flows
}

/// A result of iperf3 with two streams of 24 Mbit/s at 40 ms, 120 kB in flight; the second loses packets.
fn iperf3(window: u64, stream: bool) -> String {
    let interval = |socket: u64, n: u64, retransmitted: u64| {
        format!(
            r#"{{"socket":{socket},"start":{n},"end":{},"bytes":3000000,"retransmits":{retransmitted},"snd_cwnd":300000,"snd_wnd":{window},"rtt":40000}}"#,
            n + 1
        )
    };
    let connected = [5, 7].map(|n| {
        format!(r#"{{"socket":{n},"local_host":"192.0.2.1","local_port":4000{n},"remote_host":"198.51.100.2","remote_port":5201}}"#)
    });
    let start = format!(
        r#"{{"connected":[{}],"version":"iperf 3.17","system_info":"iperf3","tcp_mss_default":1448}}"#,
        connected.join(",")
    );
    let intervals: Vec<String> = (0..10)
        .map(|n| format!(r#"{{"streams":[{},{}]}}"#, interval(5, n, 0), interval(7, n, 2)))
        .collect();
    if !stream {
        return format!(r#"{{"start":{start},"intervals":[{}],"end":{{}}}}"#, intervals.join(","));
    }
    let event = |name: &str, data: &str| format!("{{\"event\":\"{name}\",\"data\":{data}}}\n");
    let intervals: String = intervals.iter().map(|data| event("interval", data)).collect();
    event("start", &start) + &intervals + &event("end", "{}")
}

#[test]
fn each_iperf3_stream_gets_its_own_verdict_in_both_json_formats() {
    for (window, expected) in [(3_000_000, Class::Unknown), (130_000, Class::ReceiverWindow)] {
        for paste in [
            iperf3(window, false),
            iperf3(window, true),
            format!("warning: this system is slow\n{}", iperf3(window, false)),
        ] {
            let flows = flows(&paste);
            assert_eq!(flows.len(), 2, "{paste}");
            let of = |port: u16| flows.iter().find(|flow| flow.source.port() == port).unwrap();
            // 120 kB are in flight with a congestion window of 300 kB, which is not the limit unless packets are lost.
            assert_eq!(of(40_005).verdict.class, expected, "{}", of(40_005).verdict.words);
            assert!((of(40_005).goodput_bps - 24e6).abs() < 1e3);
            if window > 300_000 {
                assert_eq!(of(40_007).verdict.class, Class::Congestion);
            }
            assert_eq!(of(40_007).retransmitted_segments, 20);
        }
    }
}

proptest! {
    #[test]
    fn no_number_in_an_iperf3_result_overflows_a_sum(number in prop_oneof![0..10_000_u64, any::<u64>()], which in 0..6_usize) {
        let name = ["end", "bytes", "retransmits", "snd_cwnd", "snd_wnd", "rtt"][which];
        let expected = format!("\"{name}\":{number},\"old\":");
        let paste = iperf3(3_000_000, false).replace(&format!("\"{name}\":"), &expected);
        for flow in report(&paste, 20).into_iter().flat_map(|report| report.flows) {
            prop_assert!(flow.goodput_bps.is_finite() && flow.verdict.share_of_time <= 1.0);
        }
    }

    #[test]
    fn no_json_makes_the_reader_panic(value in "[\\[{]\"(start|event|TCPInfo|RawIDM|data|iperf3|connected)\":[0-9\\[\\]{}\",:a-z]{0,60}[\\]}]{0,3}") {
        let _ = report(&value, 20);
        let _ = report(&format!("[\"start\",\"iperf3\"]{value}"), 20);
    }
}
