//! What kernels said earlier, through the rules for live connections.

use proptest::prelude::*;
use sweetspot_diagnose::Class;
use sweetspot_diagnose::live::Sample;
use sweetspot_diagnose::recorded::{read, written};
use sweetspot_units::{Bytes, Duration, Rate, Time};

/// A measurement of NDT7 after `n` tenths of a second, of a download that the client's window
/// holds: 100 kB at 100 ms are 8 Mbit/s, 100 kB in each tenth.
fn measurement(n: u64, window: Option<u64>) -> String {
    let window = window.map_or(String::new(), |window| format!(r#","SndWnd":{window}"#));
    let micros = n * 100_000;
    let acked = n * 100_000 + 1;
    format!(
        r#"{{"TCPInfo":{{"ElapsedTime":{micros},"BytesAcked":{acked},"BusyTime":{micros},
        "RWndLimited":{micros},"SndMSS":1448,"RTT":100000,"MinRTT":100000,"SndCwnd":500,
        "SndSsThresh":2147483647,"Unacked":70,"NotsentBytes":100000,"WScale":136,
        "MaxPacingRate":-1{window}}}}}"#
    )
}

fn document(window: Option<u64>) -> String {
    let measurements: Vec<String> = (0..50).map(|n| measurement(n, window)).collect();
    format!(
        r#"{{"ServerIP":"192.0.2.1","ServerPort":443,"ClientIP":"192.0.2.2","ClientPort":5000,
        "Download":{{"ServerMeasurements":[{}]}}}}"#,
        measurements.join(",")
    )
}

#[test]
fn a_speed_test_that_the_kernel_calls_window_limited_is() {
    for window in [None, Some(100_000)] {
        let recordings = read(&document(window)).unwrap();
        let flow = recordings[0].flow();
        // That the scale would allow 16 MB says nothing, with the window in the account or without.
        assert_eq!(flow.verdict.class, Class::ReceiverWindow, "{:?}", flow.verdict);
        assert_eq!(flow.source.to_string(), "192.0.2.1:443");
    }
}

/// A download whose client's window holds it for most of the time: it grows as the client's kernel tunes it, is read at
/// once, and is seen a little smaller whenever some of it was not acknowledged yet.
fn held_download(
    (window, grows, rtt): (u64, u64, u64),
    [share, seen]: [u64; 2],
    bbr: bool,
    readings: &[(u64, u64)],
) -> String {
    let (mut at, mut acked, mut limited, mut busy) = (0, 1, 0, 0);
    let model = if bbr { r#""BBRInfo":{"BW":1},"# } else { "" };
    let mut measurements = Vec::new();
    for (n, (step, unacknowledged)) in (0..).zip(readings) {
        let most = (window + window * n / 10).min(window * grows);
        let told = most - most * unacknowledged / 100;
        let known = if seen == 1 { format!(r#","SndWnd":{told}"#) } else { String::new() };
        measurements.push(format!(
            r#"{{{model}"TCPInfo":{{"ElapsedTime":{at},"BytesAcked":{acked},"BusyTime":{busy},
            "RWndLimited":{limited},"SndMSS":1448,"RTT":{rtt},"MinRTT":{rtt},"SndCwnd":5000,
            "SndSsThresh":2147483647,"Unacked":{},"NotsentBytes":100000,"WScale":136,
            "MaxPacingRate":-1{known}}}}}"#,
            most / 1448
        ));
        at += step;
        busy += step;
        limited += step * share / 100;
        acked += most * step / rtt;
    }
    format!("[{}]", measurements.join(","))
}

proptest! {
    #[test]
    fn a_download_that_the_kernel_calls_window_limited_is_never_its_readers(
        window in 20_000..2_000_000u64,
        grows in 1..8u64,
        rtt in 2_000..300_000u64,
        share in 60..=100u64,
        seen in 0..2u64,
        bbr: bool,
        readings in prop::collection::vec((30_000..500_000u64, 0..40u64), 20..60),
    ) {
        let text = held_download((window, grows, rtt), [share, seen], bbr, &readings);
        let flow = read(&text).unwrap()[0].flow();
        prop_assert_ne!(flow.verdict.class, Class::ReceiverApplication, "{:?}", flow.verdict);
    }
}

#[test]
fn measurements_may_stand_on_a_line_each() {
    let lines: Vec<String> = (0..10).map(|n| measurement(n, None).replace('\n', " ")).collect();
    assert_eq!(read(&lines.join("\n")).unwrap()[0].samples.len(), 10);
}

#[test]
fn what_is_no_recording_says_what_it_is_not() {
    for (text, word) in [
        ("", "empty"),
        ("{}", "TCPInfo"),
        ("{", "JSON"),
        ("hello", "neither"),
        ("ESTAB 0 0 192.0.2.1:1 192.0.2.2:2\n\t cubic rtt:1/1\n", "date"),
    ] {
        let error = read(text).unwrap_err();
        assert!(error.contains(word), "{text}: {error}");
    }
}

/// A sample as a kernel may give it, on the whole microseconds and bytes per second that a recording
/// keeps.
fn sample() -> impl Strategy<Value = Sample> {
    let counts = (any::<u32>(), any::<u32>(), any::<u32>(), any::<u32>());
    let windows = (proptest::option::of(any::<u32>()), proptest::option::of(any::<u32>()));
    let words = (any::<bool>(), any::<bool>(), any::<bool>(), 0..16u8, 0..16u8);
    let memory = (any::<u32>(), proptest::option::of(any::<u32>()), any::<u32>());
    let pace = proptest::option::of(1..u64::from(u32::MAX));
    (counts, windows, words, memory, pace).prop_map(
        |((a, b, c, d), windows, words, memory, pace)| {
            let bytes = |n: u32| Bytes::new(n.into());
            let micros = |n: u32| Duration::from_micros(n.into());
            Sample {
                at: Time::ZERO + micros(a),
                acked: bytes(b),
                received: bytes(c),
                delivered: d.into(),
                busy: micros(b),
                window_limited: micros(c),
                buffer_limited: micros(d),
                congestion_window: a,
                slow_start_threshold: b,
                under_way: c,
                not_sent: bytes(d),
                recovering: words.0,
                model_based: words.1,
                mss: bytes(a),
                rtt: micros(d),
                rtt_min: micros(a),
                pacing_limit: pace.map(|bytes| Rate::from_bits_per_second(8 * bytes)),
                starved: words.2,
                queued: bytes(memory.0),
                send_buffer: memory.1.map_or(Bytes::MAX, bytes),
                peer_window: windows.0.map(bytes),
                peer_scale: words.3,
                scale: words.4,
                segments: b.into(),
                resent: c.into(),
                timeouts: d.into(),
                receiver_rtt: micros(c),
                window: windows.1.map(bytes),
                unread: bytes(memory.2),
                out_of_order: a.into(),
            }
        },
    )
}

proptest! {
    #[test]
    fn what_is_recorded_is_read_again(samples in prop::collection::vec(sample(), 2..5)) {
        let ends = ["192.0.2.1:443", "[2001:db8::1]:5000"].map(|end| end.parse().unwrap());
        let other = [ends[1], ends[0]];
        let lines = samples.iter().flat_map(|s| [written(ends, s), written(other, s)]);
        let recordings = read(&lines.collect::<Vec<_>>().join("\n")).unwrap();
        prop_assert_eq!(recordings.len(), 2);
        prop_assert_eq!(&recordings[0].samples, &samples);
        prop_assert_eq!(recordings[1].ends, other);
    }

    #[test]
    fn any_text_is_read_without_a_panic(text in ".{0,400}") {
        let _ = read(&text);
    }

    #[test]
    fn any_account_of_ss_is_read_without_a_panic(words in "[a-z_]{2,12}:[0-9/.,]{0,24}( [a-z_]{2,12}:[0-9/.]{0,24}){0,20}") {
        let connection = "ESTAB 0 5 [2001:db8::1]:443 [2001:db8::2%eth0]:5000";
        let log = format!("1.5\n{connection}\n\t cubic {words}\n2.5\n{connection}\n\t cubic {words}\n");
        let recordings = read(&log).unwrap();
        prop_assert_eq!(recordings[0].samples.len(), 2);
        let _ = recordings[0].flow();
    }
}
