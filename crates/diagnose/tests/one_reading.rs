//! Pasted connections that are opening, idle, or shown by one reading only.

use sweetspot_diagnose::recorded::report;
use sweetspot_diagnose::{Class, Flow};

const HEADING: &str = "ESTAB 0 1338752 10.0.0.5:22 203.0.113.5:51000";
const ACCOUNT: &str = "cubic wscale:7,7 rto:272 rtt:70.5/0.3 mss:1448 cwnd:960 bytes_acked:88700001 data_segs_out:62000 \
                       busy:60000ms rwnd_limited:59000ms(98.3%) unacked:90 notsent:1208432 minrtt:70.1 snd_wnd:131072";

fn flows(paste: &str) -> Vec<Flow> {
    report(paste, 20).unwrap_or_else(|error| panic!("{error}: {paste}")).flows
}

/// ss before rcv_wnd shows the most that the program read in a round trip: 14,480 bytes, four times less than what waits.
#[test]
fn a_reader_over_one_rtt_behind_is_reported_without_a_window() {
    let read = |unread: u64| {
        let paste = format!(
            "ESTAB {unread} 0 192.0.2.7:44182 192.0.2.1:443\n\t cubic rto:204 rtt:40/20 mss:1448 cwnd:10 bytes_acked:79 \
             bytes_received:9000000 lastrcv:4 rcv_space:14480 rcv_ssthresh:64088\n"
        );
        report(&paste, 20)
    };
    let flow = read(58_824).unwrap().flows.remove(0);
    assert_eq!((flow.verdict.class, flow.rate()), (Class::Unknown, "9 MB in all".to_owned()));
    let words = flow.verdict.words;
    assert!(
        words.contains("probably the receiving application: 58,824 bytes lay unread"),
        "{words}"
    );
    let error = read(14_480).unwrap_err().to_string();
    assert!(error.contains("one reading cannot show its limit"), "{error}");
}

/// Three retransmissions are four SYNs. ss prints neither window of a connection that is not established.
#[test]
fn an_unanswered_syn_is_never_established_pasted_or_logged() {
    let opening = |port: u64, again: u64| {
        format!(
            "SYN-SENT 0 1 10.0.0.5:{port} 203.0.113.5:443 timer:(on,3sec,{again})\n\t cubic rto:8000 mss:524 cwnd:1 unacked:1 \
             retrans:1/{again} lost:1\n"
        )
    };
    let other = format!("{HEADING}\n\t {ACCOUNT}\n");
    let log = format!("1700000001.0\n{}1700000002.0\n{}", opening(40_000, 1), opening(40_000, 3));
    for paste in [opening(40_000, 3), log, opening(40_000, 3) + &other] {
        let flow = flows(&paste).into_iter().find(|flow| flow.source.port() == 40_000).unwrap();
        assert_eq!(flow.verdict.class, Class::NeverEstablished, "{paste}");
        assert!(flow.verdict.words.ends_with("4 SYNs sent, no answer."), "{flow:?}");
    }
    // The answer to a first SYN may still come, and an established connection had its answer.
    let first = opening(40_000, 0).replace(" retrans:1/0 lost:1", "");
    let report = report(&(first + &other), 20).unwrap();
    assert_eq!(report.flows.len(), 1);
    let named = "1 connection not judged: still opening from 10.0.0.5:40000 to 203.0.113.5:443 (1 SYN so far)";
    assert!(report.remarks[0].starts_with(named), "{report:?}");
    let later = other.replace(HEADING, "ESTAB 0 0 10.0.0.5:40000 203.0.113.5:443");
    let log = format!("1700000001.0\n{}1700000002.0\n{later}", opening(40_000, 1));
    assert_ne!(flows(&log)[0].verdict.class, Class::NeverEstablished, "{log}");
}

#[test]
fn readings_that_show_no_limit_are_counted_in_a_remark() {
    let received = "ESTAB 0 0 10.1.1.2:54321 10.1.1.1:443\n\t cubic rto:204 rtt:40/20 mss:1448 cwnd:10 bytes_acked:79 \
        bytes_received:9000000 lastrcv:4 busy:40ms\n";
    let paste = format!("{received}{HEADING}\n\t {ACCOUNT}\n");
    let report = report(&paste, 20).unwrap();
    assert_eq!(report.flows.len(), 1);
    assert!(report.remarks[0].starts_with("1 connection not judged: "), "{:?}", report.remarks);
}

/// SO_SNDBUF of 8192: the kernel timed the buffer for 3 of 10 s, and the latest rate sample found nothing more to send.
#[test]
fn time_without_a_full_send_buffer_is_not_attributed_to_the_program() {
    let flow = |buffer: &str| {
        let paste = format!(
            "ESTAB 0 8000 10.0.0.5:443 203.0.113.5:51000\n\t skmem:(r0,rb131072,t0,tb16384,f0,w8000,o0,bl0,d0) cubic wscale:7,7 \
             rto:240 rtt:40/2 mss:1448 cwnd:10 bytes_acked:2000001 data_segs_out:1400 app_limited busy:10000ms {buffer} unacked:5 \
             minrtt:40 snd_wnd:3000000\n"
        );
        flows(&paste).remove(0)
    };
    let stopped = flow("sndbuf_limited:3000ms(30.0%)");
    assert_eq!(stopped.verdict.class, Class::SenderWindow, "{stopped:?}");
    assert_eq!(stopped.verdict.share_of_time, 0.3);
    assert!((stopped.limits.share(Class::Unknown) - 0.7).abs() < 1e-9, "{stopped:?}");
    let words = &stopped.verdict.words;
    assert!(words.contains("application or the send buffer; one reading does not show"), "{words}");
    assert_eq!(flow("").verdict.class, Class::Application);
}

/// 2,385,408 bytes in 12.328 s with data in flight are 1.55 Mbit/s; 30 s have passed since.
#[test]
fn a_single_reading_of_an_idle_connection_keeps_the_kernel_totals() {
    let paste = "ESTAB 0 0 192.0.2.1:443 192.0.2.7:44182\n\t cubic rto:240 rtt:40/2 mss:1448 cwnd:13 bytes_acked:2385409 \
        busy:12328ms retrans:0/5 bytes_retrans:209408 lastsnd:30000 lastrcv:30000 lastack:30000 minrtt:39\n";
    let flow = flows(paste).remove(0);
    assert_eq!(flow.verdict.cause, Class::Idle);
    assert_eq!((flow.retransmitted_segments, flow.bytes), (5, 2_385_408));
    assert_eq!(flow.rate(), "1.5 Mbit/s while it was sending");
}
