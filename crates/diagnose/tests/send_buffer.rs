//! Pasted readings of a sender with a small send buffer, with and without its size.

use sweetspot_diagnose::Class;
use sweetspot_diagnose::recorded::report;
use sweetspot_diagnose::report::DiagnosisReport;

/// The reading number `n`, each a tenth of a second after the one before: 100 kB are acknowledged in each, with `queued`
/// bytes in flight and none waiting behind them. `busy` is the share of the time with data in flight.
fn reading(n: u64, queued: u64, busy: f64, memory: &str) -> String {
    let acked = 1_000_001 + 100_000 * n;
    let busy = 1000 + (100.0 * busy * n as f64) as u64;
    let unacked = queued / 1448;
    format!(
        "ESTAB 0 {queued} 10.0.0.5:443 203.0.113.5:51000\n\t {memory} cubic wscale:7,7 rto:240 rtt:40/2 mss:1448 cwnd:100 \
         bytes_acked:{acked} data_segs_out:{} app_limited busy:{busy}ms unacked:{unacked} minrtt:40 snd_wnd:3000000\n",
        acked / 1448
    )
}

fn log(reading: impl Fn(u64) -> String) -> DiagnosisReport {
    let readings = (0..20).map(|n| format!("170000000{}.{}\n{}", n / 10, n % 10, reading(n)));
    report(&readings.collect::<String>(), 20).unwrap()
}

/// A writer that a full send buffer stops and one with nothing to write look the same while data are in flight. A pause without
/// any, half of the time here, is the program's.
#[test]
fn a_send_queue_that_never_empties_does_not_show_the_program() {
    let class = |queued, busy| log(|n| reading(n, queued, busy, "")).flows.remove(0).verdict;
    let full = class(40_544, 1.0);
    assert_eq!(full.class, Class::Unknown, "{full:?}");
    assert!(full.words.contains("application or the send buffer"), "{full:?}");
    assert!(full.fix.contains("ss -tinm"), "{full:?}");
    assert_eq!(class(40_544, 0.5).class, Class::Application);
}

/// 124,120 of 65,536 bytes are used. The kernel's totals have no sndbuf_limited, because large writes leave data waiting.
#[test]
fn one_reading_with_a_full_send_buffer_does_not_exclude_it() {
    let words = |used: u64| {
        let memory = format!("skmem:(r0,rb131072,t0,tb65536,f0,w{used},o0,bl0,d0)");
        let paste = reading(0, 95_568, 1.0, &memory);
        report(&paste.replace("cwnd:100 ", "cwnd:66 "), 20).unwrap().flows.remove(0).verdict.words
    };
    let full = words(124_120);
    assert!(full.contains("the send buffer was full, so it may be the limit"), "{full}");
    assert!(full.contains("as with a send buffer or a congestion window"), "{full}");
    let missing = reading(0, 95_568, 1.0, "").replace("app_limited ", "notsent:1 ");
    let missing = report(&missing, 20).unwrap().flows.remove(0).verdict.words;
    assert!(missing.contains("application or the send buffer"), "{missing}");
}

/// Ten readings in each second, from its middle on in the first: 1 MB a second is 8 Mbit/s, with or without fractions.
#[test]
fn readings_with_the_same_second_count_as_evenly_spaced() {
    let log = |fraction: bool| {
        let readings = (5..25).map(|n: u64| {
            let tenths = if fraction { format!(".{}", n % 10) } else { String::new() };
            format!("170000000{}{tenths}\n{}", n / 10, reading(n, 40_544, 0.5, ""))
        });
        report(&readings.collect::<String>(), 20).unwrap()
    };
    let [exact, whole] = [true, false].map(log);
    assert_eq!(whole.flows[0].rate(), "8.0 Mbit/s");
    assert_eq!(whole.flows[0].rate(), exact.flows[0].rate());
    assert_eq!(whole.flows[0].limits, exact.flows[0].limits);
    assert!(exact.remarks.is_empty());
    assert!(whole.remarks[0].ends_with("date +%s.%N gives finer times"), "{:?}", whole.remarks);
    // Ten readings after one time say nothing of their distances.
    let together = (0..10).map(|n| reading(n, 40_544, 0.5, "")).collect::<String>();
    let together = report(&format!("1700000000\n{together}"), 20).unwrap();
    assert!(together.remarks.is_empty(), "{:?}", together.remarks);
}
