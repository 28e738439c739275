//! Laws of a sender's limits.

use std::collections::VecDeque;

use sweetspot_trace::flow::{Connection, Hold};
use sweetspot_trace::packet::Segment;
use sweetspot_units::Duration;

use crate::script::{MSS, Script, segment};

/// Bursts of `burst` segments at `starts`. From 400 ms after each burst on, an acknowledgement arrives every 8 ms for two
/// segments. Returns whether the sender mostly pauses by the analysis.
fn pauses(burst: u32, starts: &[u64]) -> bool {
    let mut script = Script::open();
    let mut events: Vec<(u64, bool, u32)> = Vec::new();
    let mut next = 0;
    for &start in starts {
        events.extend((next..next + burst).map(|n| (start, true, n)));
        let acks =
            (1..=burst / 2).map(|ack| (start + 392 + u64::from(ack) * 8, false, next + ack * 2));
        events.extend(acks);
        next += burst;
    }
    events.sort_unstable();
    for (at, sends, n) in events {
        if sends { script.send(at, n) } else { script.ack(at, n) }
    }
    is_mostly_own(&script.end())
}

/// Whether the sender paused of its own accord for more than half of the time.
pub fn is_mostly_own(connection: &Connection) -> bool {
    share(connection, &[Hold::Pausing, Hold::Idle]) > 0.5
}

/// The fraction of the time in which the sender's limit was one of `holds`.
fn share(connection: &Connection, holds: &[Hold]) -> f64 {
    let accounts = connection.streams[0].accounts();
    accounts.held(holds).as_secs_f64() / accounts.total().as_secs_f64()
}

#[test]
fn a_sender_that_resumes_right_after_an_ack_is_not_pausing() {
    // By then, 13 acknowledgements have arrived, 400 to 496 ms after the burst, and 14 of 40 segments are still unacknowledged.
    let every = |ms: u64| (0..20).map(|n| 100 + n * ms).collect::<Vec<_>>();
    assert!(!pauses(40, &every(497)));
    assert!(pauses(40, &every(500)));
}

#[test]
fn a_sender_waiting_for_an_answer_is_not_window_limited() {
    let mut script = Script::open();
    for round in 0..20 {
        // Ten segments are all acknowledged after 100 ms. The answer comes 20 ms later, and another 1 ms later the next ten
        // segments are sent.
        let (start, first) = (100 + round * 121, round as u32 * 10);
        (first..first + 10).for_each(|n| script.send(start, n));
        (first + 1..=first + 10).for_each(|n| script.ack(start + 100, n));
        let answer =
            Segment { seq: 1 + round as u32 * 50, ack: 1 + (first + 10) * MSS, ..segment() };
        script.receive(start + 120, Segment { payload: 50, ..answer });
    }
    // The limit is the sender's own pauses, or the receiver's messages.
    let holds = [Hold::Pausing, Hold::Idle, Hold::Waiting, Hold::Granted];
    assert!(share(&script.end(), &holds) > 0.8);
}

/// Flights of ten segments, sent at once every 500 ms; after 30 ms the receiver acknowledges each segment. In every fourth
/// flight, segment `lost` is lost, and retransmitted 300 ms after the flight began.
fn flights_with_a_loss(lost: u32) -> Connection {
    let mut script = Script::open();
    for flight in 0..20_u32 {
        let (start, first) = (200 + u64::from(flight) * 500, flight * 10);
        (first..first + 10).for_each(|n| script.send(start, n));
        if flight % 4 != 0 {
            (first + 1..=first + 10).for_each(|n| script.ack(start + 30, n));
            continue;
        }
        (first + 1..=first + lost).for_each(|n| script.ack(start + 30, n));
        // With fewer than three duplicate ACKs, the RTO repairs the loss.
        (0..(9 - lost).min(2)).for_each(|_| script.ack(start + 30, first + lost));
        script.send(start + 300, first + lost);
        script.ack(start + 330, first + 10);
    }
    script.end()
}

#[test]
fn repair_time_is_charged_to_the_loss_anywhere_in_the_flight() {
    // In ten seconds, five flights wait 300 ms each for the RTO and 30 ms for the acknowledgement.
    for lost in [0, 1, 3, 5, 7, 8, 9] {
        let share = share(&flights_with_a_loss(lost), &[Hold::AfterLoss, Hold::Silent]);
        assert!((0.14..=0.2).contains(&share), "segment {lost}: {share}");
    }
}

#[test]
fn a_retracted_window_counts_as_shut() {
    let mut script = Script::open();
    // The window in the SYN may be larger than the program's first window.
    script.send(100, 0);
    script.ack(200, 1);
    for round in 0..3_u32 {
        let (start, first) = (300 + u64::from(round) * 3000, 1 + round * 4);
        (first..first + 4).for_each(|n| script.send(start, n));
        // The right edge moves left: two segments have arrived, but there is no buffer for the others.
        script.window(start + 100, first + 2, 0);
        script.window(start + 2100, first + 4, 60_000);
    }
    let connection = script.end();
    let stream = &connection.streams[0];
    assert_eq!((stream.counts().zero_windows, stream.counts().shrunk_windows), (3, 3));
    assert_eq!(stream.shut(), Duration::from_secs(6));
}

/// Flights of eight segments, one per second. The receiver accepts four segments of each flight and takes the window for the
/// others back. After 300 ms the window opens again, and after `repaired` ms the other four segments are retransmitted and
/// arrive.
fn flights_dropped_by_the_receiver(repaired: u64) -> Connection {
    let mut script = Script::open();
    // The window in the SYN may be larger than the program's first window.
    script.send(100, 0);
    script.ack(200, 1);
    for flight in 0..10_u32 {
        let (start, first) = (300 + u64::from(flight) * 1000, 1 + flight * 8);
        (first..first + 8).for_each(|n| script.send(start, n));
        (0..4).for_each(|_| script.window(start + 100, first + 4, 0));
        script.ack(start + 300, first + 4);
        (first + 4..first + 8).for_each(|n| script.send(start + repaired, n));
        script.ack(start + repaired + 100, first + 8);
    }
    script.end()
}

#[test]
fn segments_dropped_beyond_a_retracted_window_are_not_path_losses() {
    let connection = flights_dropped_by_the_receiver(600);
    let stream = &connection.streams[0];
    let retransmissions = stream.retransmissions();
    assert_eq!(
        (
            retransmissions.taken_back,
            retransmissions.segments(),
            retransmissions.events,
            retransmissions.timeouts
        ),
        (40, 40, 0, 0)
    );
    assert_eq!(stream.counts().shrunk_windows, 10);
    // From the closed window to the acknowledgement of the repair, 600 ms of each second pass.
    let receivers = share(&connection, &[Hold::WindowShut, Hold::TakenBack]);
    assert!(receivers >= 0.59, "{receivers}");
    assert_eq!(share(&connection, &[Hold::AfterLoss]), 0.0);
}

#[test]
fn a_lost_retransmission_within_the_window_was_lost_on_the_path() {
    // Seven of eight segments are dropped, because the receiver took the window back. The retransmission of the last one is lost.
    let mut script = Script::open();
    script.send(100, 0);
    script.ack(200, 1);
    (1..9).for_each(|n| script.send(300, n));
    script.ack(400, 1);
    script.window(401, 2, 0);
    script.window(600, 2, 3 * MSS as u16);
    script.send(700, 2);
    // The window has space for three segments; this one is still beyond it.
    script.send(701, 5);
    script.ack(800, 5);
    (5..9).for_each(|n| script.send(900, n));
    script.ack(1000, 8);
    script.send(1300, 8);
    script.ack(1400, 9);
    let connection = script.end();
    let retransmissions = connection.streams[0].retransmissions();
    // Segments 2 to 8 were beyond the edge at 2. The last retransmission is the second one of a segment that fitted.
    assert_eq!((retransmissions.taken_back, retransmissions.segments()), (6, 7));
    assert_eq!((retransmissions.timeout, retransmissions.events), (1, 1));
}

#[test]
fn an_old_ack_does_not_retract_the_window() {
    let mut script = Script::open();
    (0..4).for_each(|n| script.send(100, n));
    script.window(200, 2, 60_000);
    // The same acknowledgement number with a smaller window, captured late or duplicated.
    script.window(201, 2, 58_000);
    script.window(202, 1, 50_000);
    assert_eq!(script.end().streams[0].counts().shrunk_windows, 0);
}

#[test]
fn a_small_window_is_full_only_if_no_further_segment_fits() {
    for (window, full) in [(4 * MSS + 900, true), (5 * MSS + 100, false)] {
        let mut script = Script::opened(100, window as u16, 100);
        // Four segments per round trip, with either window.
        for round in 0..40_u32 {
            let (start, first) = (100 + u64::from(round) * 100, round * 4);
            (first..first + 4).for_each(|n| script.send(start, n));
            script.window(start + 100, first + 4, window as u16);
        }
        let share = share(&script.end(), &[Hold::WindowFull]);
        assert!(if full { share > 0.9 } else { share < 0.1 }, "{window}: {share}");
    }
}

#[test]
fn bursts_after_small_receiver_messages_have_a_window_above_tcp() {
    let mut script = Script::open();
    let mut seq = 1;
    for round in 0..40_u32 {
        let (start, first) = (100 + u64::from(round) * 100, round * 20);
        (first..first + 20).for_each(|n| script.send(start, n));
        // Pairs are acknowledged from 80 ms on, which releases no data. The message comes with the last acknowledgement.
        (1..=9).for_each(|pair| script.ack(start + 80 + u64::from(pair), first + pair * 2));
        let message = Segment { seq, ack: 1 + (first + 20) * MSS, payload: 30, ..segment() };
        script.receive(start + 99, message);
        seq += 30;
    }
    let connection = script.end();
    let share = share(&connection, &[Hold::Granted, Hold::Waiting]);
    assert!(share > 0.8, "{share}");
    assert_eq!(connection.streams[0].granted_flight().get(), u64::from(20 * MSS));
}

/// Bursts of twenty segments every 100 ms; the last segment is short. `midway` of them begin after a message that comes when
/// half of the burst before is acknowledged. The others begin after a message that comes when all of it is.
fn granted_bursts(midway: u32) -> Connection {
    const SHORT: u32 = 500;
    const BURST: u32 = 19 * MSS + SHORT;
    let mut script = Script::open();
    let mut seq = 1;
    for round in 0..60_u32 {
        let (start, first) = (100 + u64::from(round) * 100, 1 + round * BURST);
        for n in 0..20 {
            let payload = if n < 19 { MSS } else { SHORT };
            script.run(start, Segment { seq: first + n * MSS, ack: seq, payload, ..segment() });
        }
        (1..=5).for_each(|pair| {
            let ack = first + pair * 2 * MSS;
            script.receive(start + 80 + u64::from(pair), Segment { seq, ack, ..segment() });
        });
        let arrived = if round < midway { 10 * MSS } else { BURST };
        script.receive(start + 99, Segment { seq, ack: first + arrived, payload: 13, ..segment() });
        seq += 13;
    }
    script.end()
}

#[test]
fn whole_grants_of_a_window_above_tcp_count_like_partial_ones() {
    // If the receiving program reads everything at once, one message grants the whole window; if it reads in parts, further
    // messages follow.
    let connection = granted_bursts(20);
    let [granted, waiting] = [Hold::Granted, Hold::Waiting].map(|hold| share(&connection, &[hold]));
    assert!(granted > 0.8 && waiting < 0.1, "{granted} {waiting}");
    // Mere requests and answers have no such window, and a single early answer is chance.
    for midway in [0, 1] {
        let connection = granted_bursts(midway);
        assert!(share(&connection, &[Hold::Waiting]) > 0.8);
        assert!(!connection.streams[0].is_granted_by_rule());
    }
}

#[test]
fn small_segments_waiting_for_delayed_acks_are_due_to_nagle() {
    let mut script = Script::opened(1, 60_000, 1);
    let mut answered = 1;
    for exchange in 0..20_u32 {
        let (start, seq) = (10 + u64::from(exchange) * 50, 1 + exchange * 120);
        let small = Segment { ack: answered, payload: 60, ..segment() };
        script.run(start, Segment { seq, ..small });
        script.receive(start + 41, Segment { seq: answered, ack: seq + 60, ..segment() });
        script.run(start + 41, Segment { seq: seq + 60, ..small });
        let answer = Segment { seq: answered, ack: seq + 120, payload: 40, ..segment() };
        script.receive(start + 42, answer);
        answered += 40;
    }
    let connection = script.end();
    let counts = connection.streams[0].counts();
    assert_eq!((counts.nagle_waits, counts.nagle_time), (20, Duration::from_millis(20 * 41)));
}

#[test]
fn packets_missed_by_the_capture_do_not_prove_a_pause() {
    let mut script = Script::open();
    for round in 0..20_u32 {
        let (start, first) = (100 + u64::from(round) * 100, round * 4);
        // The capture has the first segment of each round and the last acknowledgement.
        script.send(start, first);
        script.ack(start + 20, first + 1);
        script.ack(start + 90, first + 4);
    }
    let share = share(&script.end(), &[Hold::Idle, Hold::Pausing]);
    assert!(share < 0.3, "{share}");
}

/// The flight swings between 18 and 40 segments with the space in the sender's buffer, over two seconds, at an RTT of 100 ms.
fn swinging_flight() -> Connection {
    let target = |ms: u64| match ms / 100 % 20 {
        phase @ 8.. => 18 + 2 * (phase as usize - 8),
        _ => 40,
    };
    let mut script = Script::open();
    let mut sent: VecDeque<u64> = (0..40).map(|n| 100 + 2 * n).collect();
    sent.iter().zip(0..).for_each(|(at, n)| script.send(*at, n));
    let mut acked = 0;
    while let Some(at) = sent.pop_front().map(|at| at + 100).filter(|at| *at < 20_000) {
        acked += 1;
        script.ack(at, acked);
        // Two for one at most, as a window opens.
        for _ in 0..target(at).saturating_sub(sent.len()).min(2) {
            script.send(at, acked + sent.len() as u32);
            sent.push_back(at);
        }
    }
    script.end()
}

/// A congestion window shrinks only at losses. The first rise is the only one above all flights before, of 20 s.
#[test]
fn a_flight_that_recovers_is_not_a_growing_cwnd() {
    let connection = swinging_flight();
    assert!(share(&connection, &[Hold::Growing]) < 0.1, "{}", share(&connection, &[Hold::Growing]));
    // 12 phases from 18 to 40 have a mean of 29, and 8 have 40: 33.4 segments per RTT of 100 ms, and not the peak of a round.
    let (bytes, round) = connection.streams[0].free_rounds().mean().unwrap();
    let flight = (bytes / round * Duration::from_millis(100)).get() as f64 / f64::from(MSS);
    assert!((flight - 33.4).abs() < 2.0, "{flight}");
}
