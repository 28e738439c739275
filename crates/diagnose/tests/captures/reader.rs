//! Windows that are small because of a small buffer, or because of unread data, captured at the sender.

use sweetspot_diagnose::{Class, Flow};
use sweetspot_trace::packet::{Flags, Segment};

use crate::captured::{Captured, offer, sent, syn};

const MSS: u32 = 1000;
const RTT: u64 = 50_000;
/// Segments that fit into the window.
const FLIGHT: u32 = 128;
const ROUNDS: u32 = 60;

/// The receiver is seven hops away.
fn back(ack: u32, seq: u32) -> Segment {
    Segment { ttl: 57, ..crate::captured::back(ack, seq) }
}

/// A sender that fills a window of 128,000 bytes in each of 60 round trips. The receiving program reads at once, but leaves the
/// data in `late` rounds unread for 400 ms.
fn filled(has_handshake: bool, late: impl Fn(u32) -> bool) -> Flow {
    filled_by(has_handshake, |_| FLIGHT, late)
}

/// As [`filled`], with windows of `flight` segments in each round.
fn filled_by(has_handshake: bool, flight: impl Fn(u32) -> u32, late: impl Fn(u32) -> bool) -> Flow {
    capture(has_handshake, flight, late).flow()
}

fn capture(
    has_handshake: bool,
    flight: impl Fn(u32) -> u32,
    late: impl Fn(u32) -> bool,
) -> Captured {
    let mut captured = Captured::default();
    let options = offer(MSS);
    if has_handshake {
        captured.take(0, Segment { options, flags: syn(), ..sent() });
        let answer = Segment { options, flags: Flags { ack: true, ..syn() }, ..back(1, 0) };
        captured.take(RTT, answer);
        captured.take(RTT, Segment { seq: 1, ..sent() });
    }
    // The window field at a scale of 7.
    let window = |segments: u32| ((segments * MSS) >> 7) as u16;
    let (mut at, mut first) = (RTT, 0);
    for round in 0..ROUNDS {
        let [flight, next] = [flight(round), flight(round + 1)];
        for n in 0..flight {
            let seq = 1 + (first + n) * MSS;
            captured.take(at + u64::from(n), Segment { seq, payload: MSS, ..sent() });
        }
        at += RTT;
        let is_late = late(round);
        for n in 1..=flight {
            let open = if is_late { flight - n } else { next };
            let ack = Segment { window: window(open), ..back(1 + (first + n) * MSS, 1) };
            captured.take(at + u64::from(n), ack);
        }
        at += u64::from(flight) + 1;
        if is_late {
            at += 400_000;
            let opened = back(1 + (first + flight) * MSS, 1);
            captured.take(at, Segment { window: window(next), ..opened });
            at += 1;
        }
        first += flight;
    }
    captured
}

#[test]
fn a_window_that_never_shrank_needs_only_a_larger_buffer() {
    let Flow { verdict, fix, .. } = filled(true, |_| false);
    assert_eq!(verdict.class, Class::ReceiverWindow, "{}", verdict.words);
    assert!(fix.contains("SO_RCVBUF") && !fix.contains("Recv-Q"), "{fix}");
}

/// Six late rounds of 450 ms are 47 % of the time; the other 54 rounds take 50 ms each.
#[test]
fn the_fix_for_a_partly_late_reader_comes_before_the_buffer() {
    let Flow { verdict, fix, .. } = filled(true, |round| round % 10 == 9);
    assert_eq!(verdict.class, Class::ReceiverWindow, "{}", verdict.words);
    let [reads, buffer] = ["read faster", "SO_RCVBUF"].map(|words| fix.find(words));
    assert!(reads.is_some() && reads < buffer, "{fix}");
}

/// A capture shows late reads for half of the time; the kernel counts unread data in the rest, too.
#[test]
fn full_windows_are_the_readers_if_the_receivers_kernel_reports_it() {
    for (is_late, class) in [(true, Class::ReceiverApplication), (false, Class::ReceiverWindow)] {
        let mut captured = capture(true, |_| FLIGHT, |round| round % 10 == 9);
        captured.know_reader(is_late);
        let verdict = captured.flow().verdict;
        assert_eq!(verdict.class, class, "{}", verdict.words);
    }
}

/// The receiver once took 128 segments; later, unread data leaves room for 40, whether a round is late or not.
#[test]
fn windows_that_unread_data_keeps_small_are_the_readers() {
    let flow =
        filled_by(true, |round| if round < 5 { FLIGHT } else { 40 }, |round| round % 10 == 9);
    assert_eq!(flow.verdict.class, Class::ReceiverApplication, "{}", flow.verdict.words);
    assert_eq!(flow.limits.share(Class::ReceiverWindow), 0.0, "{:?}", flow.limits);
}

/// Each round trip of 50 ms is followed by 400 ms with a closed window.
#[test]
fn a_window_closed_by_unread_data_gets_no_buffer_advice() {
    let Flow { verdict, fix, .. } = filled(true, |_| true);
    assert_eq!(verdict.class, Class::ReceiverApplication, "{}", verdict.words);
    assert!(!fix.contains("SO_RCVBUF") && !fix.contains("rmem"), "{fix}");
}

/// A program that stops reading after the first flight: the window is closed from 100.2 ms on, and the last of four probes is
/// answered at 20.05 s.
#[test]
fn a_program_that_hangs_is_not_called_slow() {
    let mut captured = Captured::default();
    captured.take(0, Segment { seq: 1, payload: MSS, ..sent() });
    captured.take(1, Segment { seq: 1 + MSS, payload: MSS, ..sent() });
    captured.take(RTT, back(1 + MSS, 1));
    captured.take(2 * RTT + 200, Segment { window: 0, ..back(1 + 2 * MSS, 1) });
    for probe in 1..=4 {
        let at = probe * 5_000_000;
        captured.take(at, Segment { seq: 2 * MSS, ..sent() });
        captured.take(at + RTT, Segment { window: 0, ..back(1 + 2 * MSS, 1) });
    }
    let Flow { verdict, fix, .. } = captured.flow();
    assert_eq!(verdict.class, Class::ReceiverApplication, "{}", verdict.words);
    let end = "When the capture ended, its window had been closed for 19.95 s.";
    assert!(verdict.words.contains(end), "{}", verdict.words);
    assert!(fix.contains("hangs") && !fix.contains("faster"), "{fix}");
}

/// If the capture lacks the beginning, the window may have been larger before.
#[test]
fn without_the_handshake_the_fix_names_both_causes_of_a_small_window() {
    let Flow { verdict, fix, .. } = filled(false, |_| false);
    assert_eq!(verdict.class, Class::ReceiverWindow, "{}", verdict.words);
    assert!(
        fix.contains("Recv-Q") && fix.contains("SO_RCVBUF") && fix.contains("read faster"),
        "{fix}"
    );
}

/// One segment of 1000 bytes at 100 ms, the last packet: 8000 bits in 100 ms is 80 kbit/s.
#[test]
fn the_rate_of_a_single_segment_covers_the_connections_lifetime() {
    let mut captured = Captured::default();
    let options = offer(MSS);
    captured.take(0, Segment { options, flags: syn(), ..sent() });
    let answer = Segment { options, flags: Flags { ack: true, ..syn() }, ..back(1, 0) };
    captured.take(RTT, answer);
    captured.take(2 * RTT, Segment { seq: 1, payload: MSS, ..sent() });
    assert_eq!(captured.flow().goodput_bps, 80e3);
}

/// 80 segments or more are in flight over a link of 1 MB/s, so that each RTT is at least 80 ms. The capture does not show how
/// much of that is queueing delay. The flight grows by a segment per round trip.
#[test]
fn a_path_never_seen_empty_gives_no_min_rtt_or_window_advice() {
    let mut captured = Captured::default();
    let (mut next, mut at) = (0, 0);
    let mut send = |captured: &mut Captured, at: u64, segments: u32| {
        for _ in 0..segments {
            captured.take(at, Segment { seq: 1 + next * MSS, payload: MSS, ..sent() });
            next += 1;
        }
    };
    send(&mut captured, at, 80);
    for acked in 1..2000 {
        at += 1000;
        captured.take(at, back(1 + acked * MSS, 1));
        send(&mut captured, at, 1 + u32::from(acked % 80 == 0));
    }
    let Flow { verdict, fix, .. } = captured.flow();
    let doubts = ["never saw the path empty", "or more of it in the queue"];
    assert!(doubts.iter().any(|doubt| verdict.words.contains(doubt)), "{}", verdict.words);
    assert!(!verdict.words.contains("would do") && !fix.contains("window of"), "{verdict:?}");
}
