//! Recorded kernel statistics, through the rules for live connections.

use proptest::prelude::*;
use sweetspot_diagnose::Class;
use sweetspot_diagnose::live::Sample;
use sweetspot_diagnose::recorded::{read, written};
use sweetspot_units::{Bytes, Duration, Rate, Time};

/// An NDT7 measurement after `n` tenths of a second of a download limited by the client's window: 100 kB at 100 ms is 8 Mbit/s,
/// 100 kB in each tenth.
fn measurement(n: u64, window: Option<u64>) -> String {
    let window = window.map_or(String::new(), |window| format!(r#","SndWnd":{window}"#));
    let micros = n * 100_000;
    let acked = n * 100_000 + 1;
    let [sent, again] = sent(n);
    // TCPI_OPT_TIMESTAMPS and others.
    let (options, ago) = (7, 12);
    format!(
        r#"{{"TCPInfo":{{"ElapsedTime":{micros},"BytesAcked":{acked},"BusyTime":{micros},
        "BytesSent":{sent},"BytesRetrans":{again},
        "RWndLimited":{micros},"SndMSS":1448,"RTT":100000,"MinRTT":100000,"SndCwnd":500,
        "SndSsThresh":2147483647,"Unacked":70,"NotsentBytes":100000,"WScale":136,
        "Options":{options},"LastDataRecv":{ago},"DeliveryRate":1000000,"MaxPacingRate":-1{window}}}}}"#
    )
}

/// Bytes sent until then, and retransmitted bytes among them: 90,000 are outstanding.
fn sent(n: u64) -> [u64; 2] {
    [n * 100_000 + 95_000, 5_000]
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
fn a_speed_test_is_window_limited_if_the_kernel_says_so() {
    for window in [None, Some(100_000)] {
        let recordings = read(&document(window)).unwrap().recordings;
        let flow = recordings[0].flow();
        // The scale would allow 16 MB, which shows nothing, with or without the window in the measurement.
        assert_eq!(flow.verdict.class, Class::ReceiverWindow, "{:?}", flow.verdict);
        assert_eq!(flow.source.to_string(), "192.0.2.1:443");
    }
}

/// A download limited mostly by its client's window, which the client's kernel autotunes. Data are read at once. The window
/// appears a little smaller whenever some data is not acknowledged yet.
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
        let max = (window + window * n / 10).min(window * grows);
        let told = max - max * unacknowledged / 100;
        let known = if seen == 1 { format!(r#","SndWnd":{told}"#) } else { String::new() };
        measurements.push(format!(
            r#"{{{model}"TCPInfo":{{"ElapsedTime":{at},"BytesAcked":{acked},"BusyTime":{busy},
            "RWndLimited":{limited},"SndMSS":1448,"RTT":{rtt},"MinRTT":{rtt},"SndCwnd":5000,
            "SndSsThresh":2147483647,"Unacked":{},"NotsentBytes":100000,"WScale":136,
            "MaxPacingRate":-1{known}}}}}"#,
            max / 1448
        ));
        at += step;
        busy += step;
        limited += step * share / 100;
        acked += max * step / rtt;
    }
    format!("[{}]", measurements.join(","))
}

proptest! {
    #[test]
    fn a_window_limited_download_is_never_attributed_to_the_reader(
        window in 20_000..2_000_000u64,
        grows in 1..8u64,
        rtt in 2_000..300_000u64,
        share in 60..=100u64,
        seen in 0..2u64,
        bbr: bool,
        readings in prop::collection::vec((30_000..500_000u64, 0..40u64), 20..60),
    ) {
        let text = held_download((window, grows, rtt), [share, seen], bbr, &readings);
        let flow = read(&text).unwrap().recordings[0].flow();
        prop_assert_ne!(flow.verdict.class, Class::ReceiverApplication, "{:?}", flow.verdict);
    }
}

#[test]
fn measurements_may_come_one_per_line() {
    let lines: Vec<String> = (0..10).map(|n| measurement(n, None).replace('\n', " ")).collect();
    assert_eq!(read(&lines.join("\n")).unwrap().recordings[0].samples.len(), 10);
}

#[test]
fn the_error_for_an_invalid_recording_says_what_is_missing() {
    for (text, word) in [
        ("", "empty"),
        ("{}", "TCPInfo"),
        (r#"{"engine":"sim","mft_bps":1.0}"#, "sweetspot best; open it with sweetspot report"),
        (r#"{"sweetspot_sweep":1}"#, "sweetspot sweep; open it with sweetspot report"),
        ("{", "JSON"),
        ("hello", "ss -ti"),
        ("ESTAB 0 0 192.0.2.1:1 192.0.2.2:2\n\t cubic rtt:1/1\n", "two readings"),
        ("ESTAB 0 0 host.example:wat 192.0.2.2:2\n", "host.example:wat"),
    ] {
        let error = read(text).unwrap_err().to_string();
        assert!(error.contains(word), "{text}: {error}");
    }
}

/// An arbitrary sample, in the whole microseconds and bytes per second that a recording keeps.
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
                segments_in_flight: c,
                outstanding: memory.1.map(bytes),
                not_sent: bytes(d),
                recovering: words.0,
                model_based: words.1,
                mss: bytes(a),
                rtt: micros(d),
                rtt_min: micros(a),
                pacing_limit: pace.map(|bytes| Rate::from_bits_per_second(8 * bytes)),
                starved: words.2,
                delivery_rate: pace.map(|bytes| Rate::from_bits_per_second(8 * bytes)),
                queued: bytes(memory.0),
                in_device: bytes(b),
                send_buffer: memory.1.map_or(Bytes::MAX, bytes),
                peer_window: windows.0.map(bytes),
                peer_scale: words.3,
                scale: words.4,
                segments: b.into(),
                retransmitted: c.into(),
                timeouts: d.into(),
                backoff: (d & 0xff).into(),
                receiver_rtt: micros(c),
                timestamps: words.0,
                last_arrival: memory.1.map(|_| Duration::from_millis(u64::from(d))),
                tick: micros(c),
                window: windows.1.map(bytes),
                unread: bytes(memory.2),
                out_of_order: a.into(),
            }
        },
    )
}

proptest! {
    #[test]
    fn recorded_samples_round_trip(samples in prop::collection::vec(sample(), 2..5)) {
        let ends = ["192.0.2.1:443", "[2001:db8::1]:5000"].map(|end| end.parse().unwrap());
        let other = [ends[1], ends[0]];
        let lines = samples.iter().flat_map(|s| [written(ends, s), written(other, s)]);
        let recordings = read(&lines.collect::<Vec<_>>().join("\n")).unwrap().recordings;
        prop_assert_eq!(recordings.len(), 2);
        prop_assert_eq!(&recordings[0].samples, &samples);
        prop_assert_eq!(recordings[1].ends, other);
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in ".{0,400}") {
        let _ = read(&text);
    }

    #[test]
    fn no_ss_output_makes_the_reader_panic(words in "[a-z_]{2,12}:[0-9/.,]{0,24}( [a-z_]{2,12}:[0-9/.]{0,24}){0,20}") {
        let connection = "ESTAB 0 5 [2001:db8::1]:443 [2001:db8::2%eth0]:5000";
        let log = format!("1.5\n{connection}\n\t cubic {words}\n2.5\n{connection}\n\t cubic {words}\n");
        if let Ok(recorded) = read(&log) {
            recorded.recordings.iter().for_each(|recording| drop(recording.flow()));
        }
    }
}

/// A reading `n` seconds after the first. The upload fills its peer's window of 65,535 bytes: 1.5 MB each second.
fn held_reading(n: u64, prefix: &str) -> String {
    let (acked, busy) = (1 + n * 1_500_000, n * 1000);
    format!(
        "ESTAB 0 565160 192.0.2.1:40001 192.0.2.2:443\n\
         \t {prefix}cubic wscale:8,7 rto:242 rtt:41.5/1.2 mss:1448 cwnd:100 bytes_sent:{acked} bytes_acked:{acked} \
         data_segs_out:{} busy:{busy}ms rwnd_limited:{}ms(99.0%) unacked:45 notsent:500000 minrtt:40.9 snd_wnd:65535\n",
        n * 1040,
        busy * 99 / 100
    )
}

fn class_of(log: &str) -> Class {
    let recorded = read(log).unwrap();
    assert_eq!(recorded.recordings.len(), 1, "{log}");
    recorded.recordings[0].flow().verdict.class
}

#[test]
fn ss_fields_are_read_by_name_in_any_position() {
    for prefix in [
        "",
        "ts sack ",
        "skmem:(r0,rb131072,t0,tb2626560,f0,w0,o0,bl0,d0) ts sack ecn ecnseen ",
        "usec_ts ",
    ] {
        let log = format!(
            "1700000000\n{}1700000001\n{}",
            held_reading(1, prefix),
            held_reading(2, prefix)
        );
        assert_eq!(class_of(&log), Class::ReceiverWindow, "{prefix}");
    }
}

#[test]
fn every_ss_output_format_gives_the_same_readings() {
    let logs = [
        // ss -O.
        [1, 2]
            .map(|n| {
                format!("170000000{n}\n{}", held_reading(n, "").replace("\n\t", ""))
                    .replace("443\n", "443 ")
            })
            .concat(),
        [1, 2]
            .map(|n| {
                format!(
                    "Every 1.0s: ss -tin  host: Fri Nov 27 15:43:5{n} 2026\n\n{}",
                    held_reading(n, "")
                )
            })
            .concat(),
        [1, 2]
            .map(|n| {
                held_reading(n, "")
                    .lines()
                    .map(|line| format!("170000000{n}.5 {line}\n"))
                    .collect::<String>()
            })
            .concat(),
        [1, 2]
            .map(|n| format!("170000000{n}\n{}", held_reading(n, "")).replace("2:443", "2:https"))
            .concat(),
    ];
    for log in logs {
        assert_eq!(class_of(&log), Class::ReceiverWindow, "{log}");
        assert_eq!(read(&log).unwrap().recordings[0].ends[1].port(), 443);
    }
}

#[test]
fn one_readings_totals_give_a_verdict_on_the_connections_lifetime() {
    for log in [held_reading(9, ""), format!("1700000000.0\n{}", held_reading(9, ""))] {
        let flow = read(&log).unwrap().recordings[0].flow();
        assert_eq!(flow.verdict.class, Class::ReceiverWindow);
        // The window was the limit for 99 % of 9 s by the kernel's own counters.
        assert!(
            (flow.verdict.share_of_time - 0.99).abs() < 0.005,
            "{}",
            flow.verdict.share_of_time
        );
        assert!((flow.goodput_bps - 12e6).abs() < 0.1e6, "{}", flow.goodput_bps);
    }
}

#[test]
fn without_a_busy_counter_unacknowledged_data_counts_as_busy() {
    // CentOS 7 prints neither busy nor notsent nor data_segs_out. The congestion window is full, and a segment is lost in each
    // second.
    let reading = |n: u64| {
        format!(
            "170000000{n}\nESTAB 0 40544 192.0.2.1:22 192.0.2.2:60022\n\t cubic wscale:8,7 rto:242 rtt:41.5/1.2 mss:1448 \
             cwnd:28 ssthresh:20 bytes_acked:{} segs_out:100 unacked:28 retrans:0/{}\n",
            1 + n * 960_000,
            30 + n
        )
    };
    let log: String = (0..5).map(reading).collect();
    assert_eq!(class_of(&log), Class::Congestion);
}

#[test]
fn a_window_omitted_by_ss_with_a_persist_timer_is_closed() {
    let reading = |n: u64| {
        format!(
            "ESTAB 0 222024 192.0.2.1:57224 192.0.2.2:4004 timer:(persist,1min23sec,9)\n\t ts sack reno wscale:10,4 rto:201 \
             backoff:9 rtt:0.9/0.9 mss:1448 cwnd:10 bytes_acked:31729223 bytes_received:228063971 data_segs_out:{} \
             lastack:125263 app_limited busy:275880ms rwnd_limited:21ms(0.0%) notsent:222024 minrtt:0.013\n",
            11_969 + n
        )
    };
    let twice = format!("1700000000\n{}1700000010\n{}", reading(0), reading(1));
    for log in [twice, reading(0)] {
        assert_eq!(class_of(&log), Class::ReceiverApplication, "{log}");
    }
}

#[test]
fn counters_that_decrease_on_the_same_ports_start_a_new_connection() {
    let log: String =
        [5, 6, 1, 2].map(|n| format!("{}\n{}", 1_700_000_000 + n, held_reading(n, ""))).concat();
    let recordings = read(&log).unwrap().recordings;
    assert_eq!(recordings.iter().map(|r| r.samples.len()).collect::<Vec<_>>(), [2, 2]);
}

#[test]
fn a_third_connection_on_the_same_ports_is_kept_separate() {
    // The first connection ends at 2, the second at 9. 5 is below 9, so it belongs to a third one, although it is above 2.
    let log: String = [1, 2, 1, 9, 5, 6]
        .iter()
        .enumerate()
        .map(|(i, n)| format!("{}\n{}", 1_700_000_000 + i, held_reading(*n, "")))
        .collect();
    let recordings = read(&log).unwrap().recordings;
    assert_eq!(recordings.iter().map(|r| r.samples.len()).collect::<Vec<_>>(), [2, 2, 2]);
}

#[test]
fn an_ssthresh_beyond_32_bits_saturates() {
    // 2^32 is no threshold of 0.
    let words = held_reading(1, &format!("ssthresh:{} ", 1_u64 << 32));
    let log = format!("1700000000\n{words}1700000001\n{}", held_reading(2, ""));
    let recordings = read(&log).unwrap().recordings;
    assert_eq!(recordings[0].samples[0].slow_start_threshold, u32::MAX);
}

#[test]
fn unreadable_connection_lines_are_kept_for_the_report() {
    let strange = "ESTAB 0 0 gateway.example:ssh laptop.example:50000";
    let log = format!("{strange}\n{}", held_reading(9, ""));
    let recorded = read(&log).unwrap();
    assert_eq!(
        (recorded.recordings.len(), &recorded.not_understood[..]),
        (1, &[strange.to_owned()][..])
    );
}

#[test]
fn an_unrepeatable_min_rtt_promises_no_gain() {
    // The min RTT was 0.2 ms. 65,535 bytes at the usual 41.5 ms are 12.6 Mbit/s, and no more is known.
    let log = [1, 2]
        .map(|n| {
            format!("170000000{n}\n{}", held_reading(n, "").replace("minrtt:40.9", "minrtt:0.2"))
        })
        .concat();
    let flow = read(&log).unwrap().recordings[0].flow();
    assert!(flow.goodput_bps + flow.expected_gain_bps.unwrap_or(0.0) < 13e6, "{flow:?}");
}

#[test]
fn ndt7_logs_are_read_as_clients_write_them() {
    for wrapper in [r#"{"Key":"measurement","Value":"#, r#"{"Source":"server","Data":"#] {
        let lines =
            (0..50).map(|n| format!("{wrapper}{}}}", measurement(n, None).replace('\n', " ")));
        let log = lines.collect::<Vec<_>>().join("\n");
        assert_eq!(class_of(&log), Class::ReceiverWindow);
    }
}

#[test]
fn an_iperf3_result_shows_losses_at_the_sender() {
    // Ten seconds at 10 Mbit/s, with losses in each and no queue.
    let interval = |n: u64| {
        format!(
            r#"{{"streams":[{{"socket":5,"start":{n},"end":{},"bytes":1250000,"retransmits":3,"snd_cwnd":65160,"rtt":40000}}]}}"#,
            n + 1
        )
    };
    let intervals: Vec<String> = (0..10).map(interval).collect();
    let log = format!(
        r#"{{"start":{{"connected":[{{"socket":5,"local_host":"192.0.2.1","local_port":40000,"remote_host":"192.0.2.2","remote_port":5201}}],"version":"iperf3 3.12","tcp_mss_default":1448}},"intervals":[{}]}}"#,
        intervals.join(",")
    );
    let flow = read(&log).unwrap().recordings[0].flow();
    assert_eq!(flow.verdict.class, Class::Congestion, "{flow:?}");
    assert!((flow.goodput_bps - 10e6).abs() < 1e3 && flow.retransmitted_segments == 30, "{flow:?}");
}

/// A line of M-Lab's archive `n` tenths of a second after midnight: [`measurement`] as the kernel's structures, of `length` bytes.
fn archived(n: u64, length: usize) -> String {
    // struct tcp_info (include/uapi/linux/tcp.h).
    let mut info = vec![0_u8; 256];
    let mut put = |at: usize, bytes: &[u8]| info[at..at + bytes.len()].copy_from_slice(bytes);
    let (micros, acked) = (n * 100_000, n * 100_000 + 1);
    put(5, &[7, 0x88]);
    let words = [(16, 1448), (24, 70), (52, 12), (68, 100_000), (76, 0x7fff_ffff), (80, 500)];
    words.iter().for_each(|(at, word): &(usize, u32)| put(*at, &word.to_le_bytes()));
    let [sent, again] = sent(n);
    [
        (112, u64::MAX),
        (120, acked),
        (160, 1_000_000),
        (168, micros),
        (176, micros),
        (200, sent),
        (208, again),
    ]
    .iter()
    .for_each(|(at, word)| put(*at, &word.to_le_bytes()));
    [(144, 100_000_u32), (148, 100_000), (228, 100_000)]
        .iter()
        .for_each(|(at, word)| put(*at, &word.to_le_bytes()));
    // struct inet_diag_msg: IPv6, established, then ports and addresses in network byte order.
    let mut message = vec![10, 1, 0, 0, 1, 187, 0x13, 0x88];
    let mapped = [&[0; 10][..], &[0xff, 0xff, 192, 0, 2]].concat();
    [1, 2].iter().for_each(|host| message.extend([&mapped[..], &[*host]].concat()));
    message.resize(72, 0);
    let base64 = |bytes: &[u8]| data_encoding::BASE64.encode(bytes);
    format!(
        r#"{{"Timestamp":"2026-11-27T00:00:{:02}.{}Z","RawIDM":"{}","Attributes":[null,null,"{}"]}}"#,
        n / 10,
        n % 10,
        base64(&message),
        base64(&info[..length])
    )
}

#[test]
fn a_tcp_info_archive_reads_as_the_measurement_it_holds() {
    let metadata =
        r#"{"Metadata":{"UUID":"host_1_01","Sequence":0,"StartTime":"2026-11-27T00:00:00Z"}}"#;
    // Linux 6.7, with the peer's window; 4.19, without.
    for (length, window) in [(248, Some(100_000)), (224, None)] {
        let lines: Vec<String> = (0..50).map(|n| archived(n, length)).collect();
        let recorded = read(&format!("{metadata}\n{}", lines.join("\n"))).unwrap();
        let [recording] = &recorded.recordings[..] else { panic!("{recorded:?}") };
        assert_eq!(recording.ends.map(|end| end.to_string()), ["192.0.2.1:443", "192.0.2.2:5000"]);
        let expected: Vec<String> =
            (0..50).map(|n| measurement(n, window).replace('\n', " ")).collect();
        let expected = read(&expected.join("\n")).unwrap().recordings.remove(0);
        let midnight = recording.samples[0].at;
        for (sample, expected) in recording.samples.iter().zip(&expected.samples) {
            assert_eq!(sample.outstanding, Some(Bytes::new(90_000)));
            assert_eq!(sample.at.since(midnight), expected.at.since(Time::ZERO));
            assert_eq!(Sample { at: expected.at, ..*sample }, *expected);
        }
        assert_eq!(recording.flow().verdict.class, Class::ReceiverWindow);
    }
}

#[test]
fn tcp_info_snapshots_take_their_time_from_the_timestamp() {
    let snapshot = |n: u64| {
        let stamp = format!(r#"{{"Timestamp":"2026-11-27T00:00:0{n}Z","#);
        let line = measurement(10 * n, Some(100_000)).replacen('{', &stamp, 1);
        line.replace(&format!(r#""ElapsedTime":{},"#, n * 1_000_000), "")
    };
    let rows: Vec<String> = (0..5).map(snapshot).collect();
    let flow = read(&rows.join("\n")).unwrap().recordings[0].flow();
    // 100 kB in each tenth of a second.
    assert!((flow.goodput_bps - 8e6).abs() < 1e3, "{flow:?}");
    assert_eq!(flow.verdict.class, Class::ReceiverWindow);
}

/// The client of a download sends a last message: the last bytes go in the other direction, but the verdict remains that on the
/// download.
#[test]
fn a_clients_last_message_does_not_reverse_a_downloads_direction() {
    let bye = |n: u64, received: u64| {
        let line = measurement(50, None).replace('\n', " ");
        line.replace("\"ElapsedTime\":5000000", &format!("\"ElapsedTime\":{}", 5_000_000 + n))
            .replace("\"SndMSS\"", &format!("\"BytesReceived\":{received},\"SndMSS\""))
    };
    let lines = (0..=50).map(|n| measurement(n, None).replace('\n', " "));
    let lines: Vec<String> = lines.chain([bye(10_000, 40), bye(20_000, 90)]).collect();
    let flow = read(&lines.join("\n")).unwrap().recordings[0].flow();
    // 100 kB in each of 50 tenths of a second.
    assert_eq!((flow.bytes, flow.verdict.class), (5_000_000, Class::ReceiverWindow));
    assert!(flow.verdict.words.contains("receiver's window"), "{}", flow.verdict.words);
}

#[test]
fn an_archive_written_only_on_changes_shows_pauses() {
    // In each minute, one reading shows a request of 200 bytes, and 3 kB that are acknowledged within 180 ms.
    let reading = |second: u64, acked: u64, received: u64, busy: u64| {
        format!(
            r#"{{"TCPInfo":{{"ElapsedTime":{},"BytesAcked":{acked},"BytesReceived":{received},"BusyTime":{busy},"SndMSS":1448,
            "RTT":125000,"MinRTT":125000,"SndCwnd":10,"SndSsThresh":2147483647}}}}"#,
            second * 1000
        )
        .replace('\n', " ")
    };
    let lines = (0..10).flat_map(|n| {
        let (at, busy) = (n * 60_000, n * 180_000);
        let before = reading(at, 1 + n * 3000, 1 + n * 200, busy);
        let asked = reading(at + 59_800, 1 + n * 3000, 201 + n * 200, busy);
        [before, asked, reading(at + 59_990, 3001 + n * 3000, 201 + n * 200, busy + 180_000)]
    });
    let flow = read(&lines.collect::<Vec<_>>().join("\n")).unwrap().recordings[0].flow();
    assert_eq!((flow.bytes, flow.verdict.class), (30_000, Class::Application), "{flow:?}");
    // All but 180 ms of each minute is idle.
    assert!(flow.verdict.share_of_time > 0.99, "{flow:?}");
}
