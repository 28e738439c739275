//! Pasted output from the receiver's end, from versions of ss that print less than the kernel knows.

use sweetspot_diagnose::recorded::report;
use sweetspot_diagnose::{Class, Flow};

fn flows(paste: &str) -> Vec<Flow> {
    report(paste, 20).unwrap_or_else(|error| panic!("{error}: {paste}")).flows
}

/// A download at 20 Mbit/s, 50 kB per 20 ms. In each reading, either a segment that just arrived is unread, or 100 kB are. ss
/// before iproute2 6.4 does not print this end's window.
#[test]
fn with_an_unknown_window_a_just_arrived_segment_is_not_unread_data() {
    let log = |unread: u64| -> String {
        let reading = |n: u64| {
            format!(
                "{}.{}\nESTAB {unread} 0 192.0.2.7:44182 192.0.2.1:443\n\t ts sack cubic rto:240 rtt:40/20 mss:1448 cwnd:10 \
                 bytes_acked:79 bytes_received:{} lastsnd:{n}00 rcv_rtt:41 minrtt:40\n",
                1_700_000_000 + n / 10,
                n % 10,
                250_000 * (n + 1)
            )
        };
        (0..30).map(reading).collect()
    };
    let of = |unread| flows(&log(unread))[0].limits.share(Class::ReceiverApplication);
    assert_eq!([of(1448), of(100_000)], [0.0, 1.0]);
}

/// A download behind a queue of 30 ms. ss reports timestamps only with -o; otherwise an MSS of 1500 - 52 bytes shows them.
#[test]
fn the_mss_shows_whether_a_receiver_uses_timestamps() {
    let log = |mss: u64| -> String {
        let reading = |n: u64| {
            format!(
                "{}.{}\nESTAB 0 0 192.0.2.7:44182 192.0.2.1:443\n\t cubic rto:240 rtt:40/20 mss:{mss} pmtu:1500 cwnd:10 \
                 bytes_acked:79 bytes_received:{} lastsnd:{n}00 rcv_rtt:{} minrtt:40 rcv_wnd:3000000\n",
                1_700_000_000 + n / 10,
                n % 10,
                250_000 * (n + 1),
                if n == 0 { 40 } else { 70 }
            )
        };
        (0..30).map(reading).collect()
    };
    let of = |mss| flows(&log(mss))[0].verdict.class;
    assert_eq!([of(1448), of(1460)], [Class::Bandwidth, Class::Unknown]);
}

/// ss before rcv_wnd shows the window of a slow reader only while it is closed: each fifth reading here.
#[test]
fn a_window_that_is_mostly_unknown_did_not_stay_closed() {
    let log = |each: u64| -> String {
        let reading = |n: u64| {
            let used = if n.is_multiple_of(each) { 131_072 } else { 65_536 };
            format!(
                "{}.{}\nESTAB 60000 0 192.0.2.7:44182 192.0.2.1:443\n\t skmem:(r{used},rb131072,t0,tb69120,f0,w0,o0,bl0,d0) cubic \
                 rto:240 rtt:40/20 mss:1448 cwnd:10 bytes_acked:79 bytes_received:{} lastsnd:{n}00 rcv_rtt:60 minrtt:40\n",
                1_700_000_000 + n / 10,
                n % 10,
                if each == 1 { 100_000 } else { 100_000 + 20_000 * n }
            )
        };
        (0..36).map(reading).collect()
    };
    let words = |each| flows(&log(each)).remove(0).verdict.words;
    assert!(
        words(1).contains("60,000 bytes wait unread, and its window is closed"),
        "{}",
        words(1)
    );
    let slow = words(5);
    assert!(slow.contains("reads more slowly") && !slow.contains("has been closed"), "{slow}");
}
