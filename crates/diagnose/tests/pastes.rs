//! Pasted output as users send it: wrapped, indented, quoted, incomplete or damaged.

use proptest::prelude::*;
use sweetspot_diagnose::recorded::report;
use sweetspot_diagnose::{Class, Flow};

const HEADING: &str = "ESTAB 0 1338752 10.0.0.5:ssh 203.0.113.5:51000";

/// An upload limited by its peer's window of 131,072 bytes for 98 % of a minute, and for 99 % of the second after that.
fn account(second: bool) -> String {
    let (acked, busy, limited) =
        if second { (90_540_001, 61_000, 59_990) } else { (88_700_001, 60_000, 59_000) };
    format!(
        "cubic wscale:7,7 rto:272 rtt:70.5/0.3 ato:40 mss:1448 pmtu:1500 rcvmss:536 advmss:1448 cwnd:960 bytes_sent:90600000 \
         bytes_acked:{acked} segs_out:62000 data_segs_out:62000 send 157Mbps lastsnd:4 lastack:4 pacing_rate 314Mbps \
         delivered:61100 busy:{busy}ms rwnd_limited:{limited}ms(98.3%) unacked:90 notsent:1208432 minrtt:70.1 snd_wnd:131072"
    )
}

fn flows(paste: &str) -> Vec<Flow> {
    report(paste, 20).unwrap_or_else(|error| panic!("{error}: {paste}")).flows
}

/// Breaks a line after a tab, as a terminal with 80 columns does.
fn broken(line: &str, trimmed: bool) -> String {
    let columns: Vec<char> = format!("        {line}").chars().collect();
    let parts = columns.chunks(80).map(|part| part.iter().collect::<String>());
    parts.map(|part| if trimmed { part.trim_end().to_owned() } else { part } + "\n").collect()
}

#[test]
fn one_reading_gives_the_same_verdict_in_every_paste_format() {
    let (head, account) = (HEADING, account(false));
    let state = head.trim_start_matches("ESTAB ");
    for paste in [
        format!("    $ ss -ti\n    State Recv-Q Send-Q\n    {head}\n         {account}\n"),
        format!("> {head}\n>     {account}\n"),
        format!("```\r\n$ ss -tin dst 203.0.113.5\r\n{head} \r\n\t {account}\r\n```\r\n"),
        format!(
            "Recv-Q Send-Q Local Address:Port Peer Address:Port Process\n{state}\n\t {account}\n"
        ),
        format!(
            "tcp {head} users:((\"sshd\",pid=8,fd=4)) timer:(on,200ms,0) uid:0 ino:9 sk:2a cgroup:/a <-> {account}\n"
        ),
        format!("LISTEN 0 128 *:22 *:*\n\t cubic cwnd:10\n{head}\n\t {account}\n"),
        format!(
            "{head}\n\t skmem:(r0,rb131072,t0,tb2626560,f0,w1358592,o0,bl0,d0) ts sack {account} rcv_wnd:64256\n"
        ),
        format!(
            "Every 2.0s: ss -ti  host: Sat Nov 28 10:00:01 2026\n\n{head}\n{}",
            broken(&account, false)
        ),
        format!("{head}\n{}root@host:~# \n", broken(&account, true)),
    ] {
        let [flow] = &flows(&paste)[..] else { panic!("{paste}") };
        assert_eq!(flow.verdict.class, Class::ReceiverWindow, "{paste}");
        assert_eq!((flow.bytes, flow.source.port()), (88_700_000, 22), "{paste}");
        assert!((flow.verdict.share_of_time - 59.0 / 60.0).abs() < 1e-3, "{paste}");
    }
}

#[test]
fn two_readings_with_times_describe_the_interval_between_them() {
    let (one, two) = (account(false), account(true));
    for [before, after] in [
        ["Sa 28. Nov 10:00:01 CET 2026", "Sa 28. Nov 10:00:02 CET 2026"],
        ["2026-11-28 10:00:01,5", "2026-11-28 10:00:02,5"],
    ] {
        for [one, two] in [
            [format!("\t {one}\n"), format!("\t {two}\n")],
            [broken(&one, true), broken(&two, true)],
        ] {
            let paste = format!("{before}\n{HEADING}\n{one}{after}\n{HEADING}\n{two}");
            let [flow] = &flows(&paste)[..] else { panic!("{paste}") };
            // 1.84 MB in a second, limited by the window for 99 % of it.
            assert_eq!((flow.bytes, flow.verdict.class), (1_840_000, Class::ReceiverWindow));
            assert!((flow.verdict.share_of_time - 0.99).abs() < 1e-3, "{paste}");
        }
    }
}

#[test]
fn an_unknown_service_name_becomes_port_0_with_a_remark() {
    let paste =
        format!("ESTAB 0 0 10.0.0.5:zabbix-trapper 203.0.113.5:51000\n\t {}\n", account(false));
    let report = report(&paste, 20).unwrap();
    assert_eq!(report.flows[0].source.port(), 0);
    assert!(report.remarks[0].contains("port 0 stands for a service"), "{:?}", report.remarks);
}

#[test]
fn the_error_for_a_paste_without_counters_names_the_command() {
    for (paste, words) in [
        ("State Recv-Q Send-Q\nESTAB 0 0 10.0.0.5:22 203.0.113.5:51000\n", "ss -ti"),
        ("tcp   0   300 10.0.0.5:22   203.0.113.5:51000   ESTABLISHED\n", "ss -ti"),
        (
            "FIN-WAIT-2 0 0 10.0.0.5:22 203.0.113.5:51000\n\t skmem:(r0,rb131072,t0,tb16384,f0,w0,o0,bl0,d0)\n",
            "closing",
        ),
        // Linux before 4.6: it has sent 28 segments, and got a request of 90 bytes.
        (
            "ESTAB 0 40544 10.0.0.5:443 203.0.113.5:51000\n\t cubic rto:240 rtt:40/2 mss:1448 cwnd:28 unacked:28 bytes_acked:1 \
             bytes_received:90\n",
            "two readings",
        ),
        // iproute2 3.10 prints no busy time; one such reading has no totals.
        (
            "ESTAB 0 36 10.1.1.1:ssh 10.1.1.2:54321\n\t cubic wscale:7,7 rto:201 rtt:0.5/0.25 mss:1448 cwnd:10 unacked:1\n",
            "two readings",
        ),
        (
            "ESTAB 0 0 10.1.1.2:54321 10.1.1.1:443\n\t cubic rto:204 rtt:40/20 mss:1448 cwnd:10 bytes_acked:79 \
             bytes_received:9000000 lastrcv:4 busy:40ms\n",
            "only received",
        ),
        (
            "SYN-SENT 0 1 10.0.0.5:40000 203.0.113.5:443 timer:(on,1sec,0)\n\t cubic rto:1000 mss:524 cwnd:10 unacked:1\n",
            "still opening",
        ),
        (
            "[ ID] Interval           Transfer     Bitrate         Retr  Cwnd\n[  5]   0.00-1.00   sec  2.86 MBytes\n",
            "--json",
        ),
        (
            r#"{"start":{"connected":[],"version":"iperf 3.16","system_info":"iperf3"},"intervals":[],"error":"unable to connect"}"#,
            "unable to connect",
        ),
    ] {
        let error = report(paste, 20).unwrap_err().to_string();
        assert!(error.contains(words), "{paste}: {error}");
    }
}

#[test]
fn one_reading_of_a_rarely_sending_program_promises_no_gain() {
    // 62.5 MB were sent in 0.25 s with data in flight; the total time is unknown. The 1500 segments could have held more.
    let paste = "ESTAB 0 0 127.0.0.1:40000 127.0.0.1:7560\n\t cubic wscale:7,7 rto:201 rtt:0.08/0.02 mss:65483 cwnd:10 \
         bytes_acked:62500001 data_segs_out:1500 app_limited busy:250ms delivered:1500 minrtt:0.02\n";
    let [flow] = &flows(paste)[..] else { panic!("{paste}") };
    assert_eq!(flow.verdict.class, Class::Application, "{flow:?}");
    assert_eq!(flow.rate(), "2000 Mbit/s while it was sending");
    assert_eq!(flow.expected_gain_bps, None);
    assert!(!flow.verdict.words.contains("Without that"), "{flow:?}");
    // Two readings with times show the rate over time: 100 Mbit/s.
    let twice = paste.replace("62500001", "75000001").replace("250ms", "300ms");
    let [flow] = &flows(&format!("1700000000\n{paste}1700000001\n{twice}"))[..] else { panic!() };
    assert_eq!(flow.rate(), "100 Mbit/s");
}

#[test]
fn unanswered_retransmissions_are_a_stall_and_not_congestion() {
    // Nine timeouts in a row, and nothing acknowledged for 120 s; Linux before 6.7 has no total_rto.
    let reading = |backoff: u64, silent: u64| {
        format!(
            "ESTAB 0 52000 10.0.0.5:40000 203.0.113.5:443 timer:(on,45sec,{backoff})\n\t cubic wscale:7,7 rto:102400 backoff:{backoff} \
             rtt:40/3 mss:1448 cwnd:1 ssthresh:7 bytes_acked:3000000 data_segs_out:2200 unacked:20 retrans:1/{} lost:20 \
             lastack:{silent} busy:{}ms notsent:30000 minrtt:38\n",
            3 + backoff,
            5000 + silent
        )
    };
    let twice = format!("1700000000\n{}1700000060\n{}", reading(6, 60_000), reading(9, 120_000));
    for paste in [reading(9, 120_000), twice] {
        assert_eq!(flows(&paste)[0].verdict.class, Class::Stalled, "{paste}");
    }
}

#[test]
fn a_long_lived_connection_is_never_in_slow_start() {
    // 400 MB in 68 s take 1700 round trips. A window that doubles from ten segments exceeds this after 15.
    let bbr = "ESTAB 0 900000 10.0.0.5:443 203.0.113.5:51000\n\t bbr wscale:7,7 rto:240 rtt:40/2 mss:1448 cwnd:200 \
        bytes_acked:400000001 data_segs_out:277000 bbr:(bw:47.2Mbps,mrtt:38.1) busy:68000ms unacked:170 notsent:600000 \
        minrtt:38.1 snd_wnd:3000000\n";
    for paste in [
        bbr.to_owned(),
        // The peer's window was the limit for 1.4 % of the time, which does not explain the rest.
        bbr.replace("busy:68000ms", "busy:68000ms rwnd_limited:950ms(1.4%)"),
        bbr.replace("bbr wscale", "cubic wscale").replace("bbr:(bw:47.2Mbps,mrtt:38.1) ", ""),
    ] {
        let flow = &flows(&paste)[0];
        assert_eq!(flow.verdict.class, Class::Unknown, "{}", flow.verdict.words);
        let words = &flow.verdict.words;
        assert!(
            words.contains(
                "% of the time with data in flight, the congestion window, a pacing rate or"
            ),
            "{words}"
        );
        assert!(words.contains("exclude the peer's window and the send buffer"), "{words}");
        assert!(words.contains("RTT was 40 ms (minimum 38 ms): no queue stood"), "{words}");
        let fix = &flow.verdict.fix;
        assert!(fix.contains("ss -tinm dst ADDRESS") && !fix.contains("Capture"), "{fix}");
    }
    // Three times the minimum is a queue. One reading has no median.
    let queued = &flows(&bbr.replace("rtt:40/2", "rtt:114.3/2"))[0];
    let words = &queued.verdict.words;
    assert!(words.contains("114 ms, 3.0 times its minimum: a queue stood"), "{words}");
    assert_eq!((queued.rtt_median_s, queued.rtt_smoothed_s), (None, Some(0.1143)));
    // 235 kB per 40 ms is 47 Mbit/s.
    let held = bbr
        .replace("busy:68000ms", "busy:68000ms rwnd_limited:40000ms(58.8%)")
        .replace("snd_wnd:3000000", "snd_wnd:235000");
    assert_eq!(flows(&held)[0].verdict.class, Class::ReceiverWindow);
}

/// 120 retransmissions and a queue at the end of 10.4 s show nothing about the time before.
#[test]
fn one_reading_gives_a_limit_only_the_share_timed_by_the_kernel() {
    let paste = "ESTAB 0 300000 10.0.0.5:443 203.0.113.5:51000\n\t bbr wscale:0,7 rto:240 rtt:60/2 mss:1448 cwnd:20 ssthresh:12 \
        bytes_acked:4000001 data_segs_out:2900 busy:10400ms HELD retrans:0/120 unacked:12 notsent:280000 minrtt:40 snd_wnd:18000\n";
    for (held, class, share) in [
        ("rwnd_limited:3012ms(29.0%)", Class::ReceiverWindow, 3.012 / 10.4),
        ("sndbuf_limited:2579ms(24.8%)", Class::SenderWindow, 2.579 / 10.4),
    ] {
        let flow = &flows(&paste.replace("HELD", held))[0];
        assert_eq!(flow.verdict.class, Class::Unknown, "{}", flow.verdict.words);
        assert!((flow.limits.share(class) - share).abs() < 1e-9, "{held}: {:?}", flow.limits);
        assert!((flow.limits.share(Class::Unknown) - (1.0 - share)).abs() < 1e-9, "{held}");
    }
}

/// 4 ms after the first segments left, nothing can have been acknowledged at an RTT of 40 ms.
#[test]
fn a_reading_before_the_first_acknowledgement_shows_no_limit() {
    let early = "ESTAB 0 52000 10.0.0.5:40000 203.0.113.5:443\n\t cubic wscale:7,7 rto:240 rtt:40/20 mss:1448 cwnd:10 bytes_acked:1 \
        data_segs_out:10 lastsnd:4 lastrcv:4 lastack:4 busy:4ms unacked:10 notsent:37520 minrtt:40 snd_wnd:64256\n";
    let error = report(early, 20).unwrap_err().to_string();
    assert!(error.contains("after data was acknowledged"), "{error}");
    // Ten segments of 1448 bytes were.
    assert_eq!(flows(&early.replace("bytes_acked:1 ", "bytes_acked:14481 "))[0].bytes, 14_480);
}

/// A program that reads every 50 ms delays acknowledgements as a queue does: 60 ms are 1.5 times the minimum.
#[test]
fn a_long_rtt_while_the_window_often_held_is_no_sign_of_a_full_path() {
    let words = |held: u64| {
        let paste = format!(
            "ESTAB 0 300000 10.0.0.5:443 203.0.113.5:51000\n\t cubic wscale:7,7 rto:240 rtt:60/2 mss:1448 cwnd:83 bytes_acked:400001 \
             data_segs_out:300 busy:1000ms rwnd_limited:{held}ms unacked:14 notsent:280000 minrtt:40 snd_wnd:20480\n"
        );
        flows(&paste)[0].verdict.words.clone()
    };
    assert!(words(300).contains("1.5 times its minimum: a queue stood, or the"), "{}", words(300));
    assert!(words(50).contains("a queue stood, as at the path's capacity"), "{}", words(50));
}

/// `busy` counts only the time in which this end sends, so there is no time from which to compute the rate of received data.
#[test]
fn one_reading_of_a_receiving_end_has_no_rate() {
    let received = "ESTAB 0 0 10.0.0.5:5201 203.0.113.5:51000\n\t cubic wscale:7,7 rto:240 rtt:40/2 mss:1448 cwnd:10 \
        bytes_acked:4 bytes_received:180 busy:8ms lastrcv:25288 minrtt:38\n";
    let error = report(received, 20).unwrap_err().to_string();
    assert!(error.contains("only received"), "{error}");
    let sent = received.replace("bytes_received:180", "bytes_received:3");
    assert_eq!(flows(&sent).len(), 1, "it sent more than it received");
}

/// Fields of ss that are sums or times.
const FIELDS: [&str; 20] = [
    "rto",
    "rtt",
    "mss",
    "cwnd",
    "ssthresh",
    "bytes_acked",
    "bytes_received",
    "data_segs_out",
    "busy",
    "rwnd_limited",
    "sndbuf_limited",
    "unacked",
    "lost",
    "notsent",
    "minrtt",
    "rcv_rtt",
    "snd_wnd",
    "rcv_wnd",
    "backoff",
    "lastack",
];

proptest! {
    #[test]
    fn no_number_in_a_paste_overflows_a_sum(
        numbers in prop::collection::vec(prop_oneof![0..10_000_u64, any::<u64>()], 40),
        spread in 1..90_000_u64,
    ) {
        let reading = |numbers: &[u64]| -> String {
            FIELDS.iter().zip(numbers).map(|(name, number)| format!(" {name}:{number}")).collect()
        };
        let (one, two) = (reading(&numbers[..20]), reading(&numbers[20..]));
        let head = "ESTAB 7 9 192.0.2.1:443 192.0.2.2:5000 timer:(persist,1min,3)";
        let paste = format!("1700000000\n{head}\n\t cubic{one}\n{}\n{head}\n\t cubic{two}\n", 1_700_000_000 + spread);
        for flow in report(&paste, 20).into_iter().flat_map(|report| report.flows) {
            prop_assert!(flow.goodput_bps.is_finite() && flow.verdict.share_of_time <= 1.0);
        }
        let _ = report(&format!("{head}\n\t cubic{two}\n"), 20);
    }
}

/// Both ends of a connection on one host, as ss lists them: no data moved for longer than the RTO.
#[test]
fn an_idle_connection_has_one_verdict_pasted_once_or_logged() {
    let reading = |ago: u64| {
        format!(
            "ESTAB 0 0 127.0.0.1:44182 127.0.0.1:5999\n\t cubic rto:204 rtt:0.04/0.01 mss:1448 cwnd:13 bytes_acked:100001 \
             lastsnd:{ago} lastrcv:{ago} lastack:{ago} minrtt:0.03\n\
             ESTAB 0 0 127.0.0.1:5999 127.0.0.1:44182\n\t cubic rto:204 rtt:0.04/0.01 mss:1448 cwnd:13 bytes_received:100000 \
             lastsnd:{ago} lastrcv:{ago} lastack:{ago} minrtt:0.03\n"
        )
    };
    let log = format!("1.0\n{}2.0\n{}", reading(4000), reading(5000));
    for paste in [reading(4500), log] {
        let [flow] = &flows(&paste)[..] else { panic!("{paste}") };
        assert_eq!(flow.verdict.cause, Class::Idle, "{flow:?}");
    }
    // If data moved more recently, one reading without the busy time shows no limit.
    assert!(report(&reading(100), 20).is_err());
}

/// With data in flight for 2 s in all, an idle time of 9 s outweighs that, and one of a second does not.
#[test]
fn a_connection_idle_for_longer_than_it_sent_is_idle() {
    let cause = |ago: u64| {
        let paste = format!(
            "ESTAB 0 0 192.0.2.1:443 192.0.2.7:44182\n\t cubic rto:240 rtt:40/2 mss:1448 cwnd:13 bytes_acked:100001 \
             lastsnd:{ago} lastrcv:{ago} lastack:{ago} busy:2000ms app_limited minrtt:39\n"
        );
        flows(&paste)[0].verdict.cause
    };
    assert_eq!([cause(9000), cause(1000)], [Class::Idle, Class::Application]);
}

/// A program that stopped reading, pasted once and logged. ss leaves out a window of zero.
#[test]
fn a_receiver_that_hangs_is_the_limit() {
    let reading = |ago: u64| {
        format!(
            "ESTAB 11800000 0 192.0.2.7:44182 192.0.2.1:443\n\t cubic rto:204 rtt:40/20 mss:1448 cwnd:10 bytes_acked:79 \
             bytes_received:20000000 lastsnd:{ago} lastrcv:{ago} lastack:{ago} rcv_rtt:41 minrtt:40\n"
        )
    };
    let log = format!("1700000001.0\n{}1700000002.0\n{}", reading(4000), reading(5000));
    for paste in [reading(4500), log] {
        let [flow] = &flows(&paste)[..] else { panic!("{paste}") };
        assert_eq!(flow.verdict.class, Class::ReceiverApplication, "{flow:?}");
        assert_eq!((flow.source.port(), flow.destination.port()), (443, 44182));
        let words = &flow.verdict.words;
        assert!(words.contains("11.8 MB wait unread"), "{words}");
    }
}

/// The window is closed if the receive queue has used up its buffer. It is also closed if ss omits it, because it is zero, but
/// shows another connection's window.
#[test]
fn a_closed_window_is_reported_however_ss_shows_it() {
    let hung = |memory: &str| {
        format!(
            "ESTAB 90000 0 192.0.2.7:44182 192.0.2.1:443\n\t {memory}cubic rto:204 rtt:10/5 mss:1448 cwnd:10 bytes_acked:79 \
             bytes_received:90000 lastsnd:4000 lastrcv:4000 lastack:4000 rcv_rtt:10 minrtt:10\n"
        )
    };
    let other = "ESTAB 0 0 192.0.2.7:44184 192.0.2.1:443\n\t cubic rto:204 rtt:10/5 mss:1448 cwnd:10 bytes_acked:79 \
                 bytes_received:90000 lastsnd:4000 lastrcv:4000 lastack:4000 rcv_rtt:10 minrtt:10 rcv_wnd:64256\n";
    let is_closed = |paste: &str| {
        let flows = flows(paste);
        let flow = flows.iter().find(|flow| flow.destination.port() == 44182).unwrap();
        assert_eq!(flow.verdict.class, Class::ReceiverApplication, "{flow:?}");
        flow.verdict.words.contains("90,000 bytes wait unread, and its window is closed")
    };
    assert!(is_closed(&hung("skmem:(r144128,rb142848,t0,tb69120,f3328,w0,o0,bl0,d5) ")));
    assert!(is_closed(&(hung("") + other)));
    let half = "skmem:(r70000,rb142848,t0,tb69120,f3328,w0,o0,bl0,d0) ";
    assert!(!is_closed(&hung(half)) && !is_closed(&hung("")));
}

/// Without `-o` ss prints no timer, and without another connection's window it is unknown whether ss prints windows. But only the
/// persist timer backs off while nothing is in flight.
#[test]
fn window_probing_is_recognised_without_the_persist_timer() {
    let reading = |second: u64| {
        format!(
            "170000000{second}.0\nESTAB 0 273672 192.0.2.1:443 192.0.2.7:44182\n\t cubic rto:220 backoff:4 rtt:20/17 mss:1448 cwnd:73 \
             bytes_acked:89985 lastsnd:6000 lastrcv:6000 lastack:3000 busy:{}ms rwnd_limited:{}ms notsent:273672 minrtt:10\n",
            6000 + 1000 * second,
            5900 + 1000 * second
        )
    };
    let [flow] = &flows(&(reading(1) + &reading(2)))[..] else { panic!() };
    assert_eq!(flow.verdict.class, Class::ReceiverApplication, "{flow:?}");
}

/// Writes of 60 kB into a buffer of 120 kB: nothing waited at the last rate sample, but a few segments have waited since then.
#[test]
fn only_a_fresh_rate_sample_outweighs_data_written_since() {
    let reading = |second: u64, since_ack: u64| {
        format!(
            "170000000{second}.0\nESTAB 0 240000 192.0.2.1:443 192.0.2.7:44182\n\t \
             skmem:(r0,rb131072,t0,tb120000,f3928,w300000,o0,bl0,d0) cubic rto:260 rtt:41/1 mss:1448 cwnd:150 ssthresh:140 \
             bytes_acked:{} lastsnd:4 lastack:{since_ack} delivered:{} app_limited busy:{}ms unacked:150 notsent:8688 minrtt:40\n",
            3_620_000 * second,
            2500 * second,
            1000 * second
        )
    };
    let class = |since_ack| {
        let log: String = (1..8).map(|second| reading(second, since_ack)).collect();
        flows(&log)[0].verdict.class
    };
    assert_eq!([class(28), class(261)], [Class::SenderWindow, Class::Transport]);
}

/// 1 MiB lies unread in front of a window of 64,000 bytes: a reader that keeps up leaves less than the window takes.
#[test]
fn one_reading_of_a_receiver_reports_unread_data() {
    let read = |unread: u64| {
        let paste = format!(
            "ESTAB {unread} 0 192.0.2.7:44182 192.0.2.1:443\n\t cubic rto:204 rtt:40/20 mss:1448 cwnd:10 bytes_acked:79 \
             bytes_received:9000000 lastrcv:4 rcv_wnd:64000\n"
        );
        report(&paste, 20)
    };
    let flow = read(1 << 20).unwrap().flows.remove(0);
    assert!(flow.verdict.words.contains("1.049 MB lay unread"), "{flow:?}");
    assert!(flow.fix.starts_with("Log readings"), "{flow:?}");
    assert!(read(4000).unwrap_err().to_string().contains("one reading cannot show its limit"));
}

#[test]
fn discarded_readings_without_times_draw_a_remark() {
    let paste = format!("{HEADING}\n\t {}\n{HEADING}\n\t {}\n", account(false), account(true));
    let report = report(&paste, 20).unwrap();
    assert_eq!(report.flows[0].bytes, 90_540_000);
    let remark = "2 readings without times: only the last is used; put date +%s.%N before each";
    assert_eq!(report.remarks, [remark]);
}

/// The paste lacks the time of the first reading, and the end of the last one. 1.84 MB pass in the second between the others.
#[test]
fn a_paste_cut_off_at_both_ends_counts_its_whole_readings() {
    let (one, two) = (account(false), account(true));
    let cut = two.find("bytes_acked").unwrap();
    for end in [cut, two.find("delivered").unwrap()] {
        let paste = format!(
            "{HEADING}\n\t {one}\n1700000001.0\n{HEADING}\n\t {one}\n1700000002.0\n{HEADING}\n\t {two}\n1700000003.0\n\
             {HEADING}\n\t {}",
            &two[..end]
        );
        let report = report(&paste, 20).unwrap();
        let [flow] = &report.flows[..] else { panic!("{paste}") };
        assert_eq!((flow.bytes, flow.verdict.class), (1_840_000, Class::ReceiverWindow));
        assert_eq!(report.remarks, ["the last reading was cut off, and left out"]);
    }
}

/// The first reading came 125 s after the last acknowledgement, and the second one 12 s later.
#[test]
fn window_closure_time_includes_time_before_the_first_reading() {
    let reading = |second: u64| {
        format!(
            "17000000{second}.0\nESTAB 0 222024 192.0.2.1:443 192.0.2.7:44182 timer:(persist,1min,9)\n\t cubic wscale:10,4 rto:201 \
             backoff:9 rtt:0.9/0.9 mss:1448 cwnd:10 bytes_acked:31729223 lastack:{}000 busy:{}000ms notsent:222024 minrtt:0.1\n",
            115 + second,
            265 + second
        )
    };
    let [flow] = &flows(&(reading(10) + &reading(22)))[..] else { panic!() };
    assert!(flow.verdict.words.contains("has been closed for 137 s"), "{flow:?}");
}
