use std::net::SocketAddr;

use sweetspot_trace::flow::{Ending, Hold, Table, Vantage};
use sweetspot_trace::packet::{Flags, Options, Segment};
use sweetspot_units::{Duration, Time};

use crate::holds::is_mostly_own;
use crate::script::{MSS, Script, offer, receiver, segment, sender, syn};

fn ms(n: u64) -> Option<Duration> {
    Some(Duration::from_millis(n))
}

#[test]
fn the_min_rtt_and_the_vantage_at_the_sender_are_found() {
    let mut script = Script::open();
    script.send(100, 0);
    script.ack(190, 1);
    script.send(190, 1);
    script.ack(310, 2);
    let connection = script.end();
    let trips = connection.streams[0].round_trips();
    assert_eq!(trips.vantage(), Vantage::Sender);
    assert_eq!(trips.min(), ms(90));
    assert_eq!(connection.handshake.to_opened, ms(100));
}

#[test]
fn a_retransmitted_segment_gives_no_rtt_sample() {
    let mut script = Script::open();
    script.send(100, 0);
    script.send(700, 0);
    // 10 ms after the second transmission and 610 ms after the first: it is unknown which one was acknowledged (Karn's
    // algorithm).
    script.ack(710, 1);
    let connection = script.end();
    assert_eq!(connection.streams[0].round_trips().samples(), 1, "only the handshake's");
}

#[test]
fn three_duplicate_acks_make_one_fast_retransmission() {
    let mut script = Script::open();
    (0..8).for_each(|n| script.send(100, n));
    script.ack(200, 1);
    (0..3).for_each(|_| script.ack(201, 1));
    script.send(201, 1);
    script.ack(301, 8);
    let connection = script.end();
    let retransmissions = connection.streams[0].retransmissions();
    assert_eq!(
        (retransmissions.fast, retransmissions.segments(), retransmissions.events),
        (1, 1, 1)
    );
}

#[test]
fn a_silence_before_retransmitting_the_first_segment_is_a_timeout() {
    let mut script = Script::open();
    (0..4).for_each(|n| script.send(100, n));
    (0..4).for_each(|n| script.send(500, n));
    script.ack(600, 4);
    let connection = script.end();
    let retransmissions = connection.streams[0].retransmissions();
    // After one RTO, everything is retransmitted.
    assert_eq!(
        (retransmissions.timeout, retransmissions.timeouts, retransmissions.events),
        (4, 1, 1)
    );
}

#[test]
fn a_tail_retransmitted_before_the_rto_is_a_loss_probe() {
    let mut script = Script::open();
    (0..4).for_each(|n| script.send(100, n));
    script.send(250, 3);
    script.ack(200 + 100, 4);
    let connection = script.end();
    assert_eq!(connection.streams[0].retransmissions().probes, 1);
}

#[test]
fn retransmitting_acknowledged_data_is_needless() {
    let mut script = Script::open();
    script.send(100, 0);
    script.ack(200, 1);
    script.send(210, 0);
    let connection = script.end();
    assert_eq!(connection.streams[0].retransmissions().needless, 1);
}

#[test]
fn a_reordered_segment_is_not_counted_as_a_retransmission() {
    let mut script = Script::open();
    script.send(100, 0);
    script.send(100, 2);
    script.send(101, 1);
    script.ack(200, 3);
    let connection = script.end();
    let stream = &connection.streams[0];
    assert_eq!((stream.counts().out_of_order, stream.retransmissions().segments()), (1, 0));
    assert_eq!(stream.counts().bytes, u64::from(3 * MSS));
}

#[test]
fn a_zero_window_is_counted_once_until_it_reopens() {
    let mut script = Script::open();
    script.send(100, 0);
    script.window(200, 1, 0);
    script.window(300, 1, 0);
    script.window(400, 1, 5000);
    script.window(500, 1, 0);
    let connection = script.end();
    assert_eq!(connection.streams[0].counts().zero_windows, 2);
}

#[test]
fn segments_missed_by_the_capture_are_inferred_from_acks() {
    let mut script = Script::open();
    script.send(100, 0);
    script.ack(200, 3);
    let connection = script.end();
    let counts = connection.streams[0].counts();
    assert_eq!((counts.unseen, counts.acked), (u64::from(2 * MSS), u64::from(3 * MSS)));
}

#[test]
fn all_time_is_accounted_for() {
    let mut script = Script::open();
    for round in 0..20_u64 {
        (0..4).for_each(|n| script.send(100 + round * 100, round as u32 * 4 + n));
        script.ack(200 + round * 100, round as u32 * 4 + 4);
    }
    let connection = script.end();
    // The total runs from the SYN to the last packet: 100 ms and 20 rounds of 100 ms.
    assert_eq!(connection.streams[0].accounts().total(), Duration::from_millis(2100));
}

#[test]
fn the_longest_idle_connection_is_evicted() {
    let mut table = Table::with_capacity(2);
    let from = |port: u16, ms: u64| Segment {
        time: Time::ZERO + Duration::from_millis(ms),
        source: SocketAddr::new(sender().ip(), port),
        payload: 1000,
        ..segment()
    };
    assert!(table.take(&from(1, 1)).is_none());
    assert!(table.take(&from(2, 2)).is_none());
    assert!(table.take(&from(1, 3)).is_none());
    let evicted = table.take(&from(3, 4)).unwrap();
    assert_eq!((evicted.ends[0].port(), evicted.ending), (2, Ending::Evicted));
    assert_eq!(table.evicted(), 1);
    assert_eq!(table.drain().map(|c| c.ends[0].port()), Some(1));
    assert_eq!(table.drain().map(|c| c.ends[0].port()), Some(3));
    assert!(table.drain().is_none());
}

#[test]
fn a_syn_after_the_end_starts_a_new_connection() {
    let mut table = Table::default();
    let reset = Flags { rst: true, ..Flags::default() };
    assert!(table.take(&Segment { flags: syn(), ..segment() }).is_none());
    // A retransmitted SYN does not begin another connection, and a SYN that was captured twice is not even a retransmission.
    let later = Segment { time: Time::ZERO + Duration::from_secs(1), ..segment() };
    assert!(table.take(&Segment { flags: syn(), ..later }).is_none());
    assert!(table.take(&Segment { flags: syn(), ..later }).is_none());
    assert!(table.take(&Segment { flags: reset, ..later }).is_none());
    let first = table.take(&Segment { flags: syn(), ..later }).unwrap();
    assert_eq!((first.ending, first.packets, first.copies), (Ending::Reset, 3, 1));
    assert_eq!(first.handshake.syns, 2);
}

#[test]
fn data_in_a_syn_starts_after_its_sequence_number() {
    let mut script = Script::new();
    // RFC 7413 §4.2: the SYN carries 500 bytes, numbered from 1, and the SYN-ACK acknowledges them.
    script.run(0, Segment { flags: syn(), payload: 500, ..segment() });
    script.receive(100, Segment { flags: Flags { ack: true, ..syn() }, ack: 501, ..segment() });
    script.run(100, Segment { seq: 501, ack: 1, payload: MSS, ..segment() });
    script.receive(200, Segment { seq: 1, ack: 501 + MSS, ..segment() });
    let connection = script.end();
    let stream = &connection.streams[0];
    assert_eq!(
        (stream.counts().bytes, stream.retransmissions().segments()),
        (500 + u64::from(MSS), 0)
    );
    assert_eq!(stream.counts().acked, 500 + u64::from(MSS));
    assert_eq!(Some(stream.accounts().total()), ms(200), "no time is booked twice");
}

#[test]
fn a_syn_with_a_new_sequence_number_starts_a_new_connection() {
    let mut script = Script::open();
    script.send(100, 0);
    script.ack(200, 1);
    let again = Segment { flags: syn(), seq: 3_000_000_000, ..segment() };
    let first = script.table.take(&Segment { time: script.now, ..again }).unwrap();
    assert_eq!((first.packets, first.streams[0].counts().bytes), (5, u64::from(MSS)));
    // The same holds if the capture lacks the connection's beginning.
    let download = Segment { source: receiver(), destination: sender(), ..segment() };
    for before in [segment(), download] {
        let mut table = Table::default();
        assert!(table.take(&Segment { seq: 5, payload: 10, ..before }).is_none());
        assert!(table.take(&again).is_some());
    }
}

#[test]
fn a_truncated_window_scale_is_unknown() {
    let offer = |scale: u8, captured: usize| {
        let whole = [2, 4, 5, 180, 3, 3, scale, 1];
        let mut options = Options::read(&whole[..captured]);
        options.cut = captured < whole.len();
        options
    };
    let scale = |opener: Options, opened: Options| {
        let mut script = Script::new();
        // A header of 20 bytes, and eight bytes of options.
        let header = 28;
        script.run(0, Segment { flags: syn(), options: opener, header, ..segment() });
        script.answer(100, Segment { options: opened, header, ..segment() });
        script.end().handshake.scale(1)
    };
    assert_eq!(scale(offer(5, 8), offer(7, 8)), Some(7));
    assert_eq!(scale(offer(5, 8), offer(7, 6)), None);
    assert_eq!(scale(offer(5, 6), offer(7, 6)), None);
    // RFC 7323 §2.2: if one SYN lacks the option, the other's scale does not apply.
    assert_eq!(scale(Options::default(), offer(7, 6)), Some(0));
}

#[test]
fn a_byte_into_a_zero_window_is_a_probe_not_a_loss() {
    let mut script = Script::open();
    script.send(100, 0);
    script.window(200, 1, 0);
    for at in [500, 1100, 2300] {
        script.run(at, Segment { seq: 1 + MSS, ack: 1, payload: 1, ..segment() });
        script.window(at + 100, 1, 0);
    }
    script.window(3000, 1, 60_000);
    script.send(3000, 1);
    script.ack(3100, 2);
    let connection = script.end();
    let stream = &connection.streams[0];
    assert_eq!(
        (stream.counts().bytes, stream.retransmissions().segments()),
        (u64::from(2 * MSS), 0)
    );
}

#[test]
fn a_zero_window_in_the_first_ack_is_counted() {
    let mut script = Script::new();
    script.send(0, 0);
    script.window(1, 1, 0);
    // These are window probes of Linux: no payload, and the number before the next.
    for at in [3000, 9000] {
        script.run(at, Segment { seq: MSS, ack: 1, ..segment() });
        script.window(at + 1, 1, 0);
    }
    let connection = script.end();
    let stream = &connection.streams[0];
    assert_eq!((stream.counts().zero_windows, stream.counts().window_probes), (1, 2));
    assert_eq!(stream.shut(), Duration::from_millis(9000));
}

#[test]
fn acks_before_the_first_data_report_the_window() {
    let mut script = Script::new();
    script.window(0, 0, 3000);
    script.window(1, 3, 0);
    script.window(11, 3, 64_000);
    script.send(11, 3);
    let connection = script.end();
    // The end seen first counts as the client; here it is the receiver.
    let stream = &connection.streams[1];
    assert_eq!(stream.counts().zero_windows, 1);
    assert_eq!(stream.shut(), Duration::from_millis(10));
    assert_eq!(stream.counts().acked, u64::from(3 * MSS));
}

#[test]
fn a_reset_does_not_close_the_window() {
    let mut script = Script::open();
    script.send(100, 0);
    script.ack(200, 1);
    let reset = Flags { rst: true, ack: true, ..Flags::default() };
    script.receive(201, Segment { flags: reset, ack: 1 + MSS, window: 0, ..segment() });
    assert_eq!(script.end().streams[0].counts().zero_windows, 0);
}

#[test]
fn a_packet_captured_twice_counts_once() {
    let mut script = Script::open();
    for n in 0..10 {
        let data = Segment { seq: 1 + n * MSS, ack: 1, payload: MSS, ..segment() };
        let data = Segment { id: Some(100 + n as u16), ..data };
        (0..2).for_each(|_| script.run(100, data));
    }
    script.ack(200, 10);
    // A real retransmission has another identification.
    let again = Segment { seq: 1 + 9 * MSS, ack: 1, payload: MSS, id: Some(110), ..segment() };
    script.run(500, again);
    let connection = script.end();
    let stream = &connection.streams[0];
    assert_eq!((connection.copies, stream.counts().data_segments), (10, 11));
    assert_eq!(stream.retransmissions().segments(), 1);
}

#[test]
fn a_constant_ip_id_is_not_mistaken_for_duplicate_captures() {
    let mut script = Script::open();
    for n in 0..4 {
        let data = Segment { seq: 1 + n * MSS, ack: 1, payload: MSS, ..segment() };
        script.run(100, Segment { id: Some(7), ..data });
    }
    let first = Segment { seq: 1, ack: 1, payload: MSS, id: Some(7), ..segment() };
    script.run(500, first);
    let connection = script.end();
    assert_eq!((connection.copies, connection.streams[0].retransmissions().segments()), (0, 1));
}

#[test]
fn data_captured_after_its_ack_is_not_a_retransmission() {
    let mut script = Script::open();
    script.send(100, 0);
    script.ack(200, 2);
    script.send(201, 1);
    let connection = script.end();
    let stream = &connection.streams[0];
    assert_eq!((stream.retransmissions().segments(), stream.counts().unseen), (0, 0));
    assert_eq!(stream.counts().bytes, u64::from(2 * MSS));
}

#[test]
fn data_beyond_the_known_window_reveals_a_slow_handshake() {
    // The third packet of the handshake is 100 ms late. Afterwards, the window of two segments is sent every 4 ms.
    let mut script = Script::opened(1, 2000, 101);
    for round in 0..20_u32 {
        let at = 101 + u64::from(round) * 4;
        script.send(at, 2 * round);
        script.send(at, 2 * round + 1);
        script.window(at + 3, 2 * round + 2, 2000);
    }
    let connection = script.end();
    let stream = &connection.streams[0];
    assert!(stream.counts().handshake_was_slow);
    // The RTT is a millisecond to the receiver and back in the handshake, and a millisecond until the sender answers.
    assert_eq!(stream.round_trips().min(), ms(2));
    assert_eq!(stream.largest_flight().get(), u64::from(2 * MSS));
}

/// The SYN-ACK comes twice, because the third packet of the handshake was lost or late.
#[test]
fn a_repeated_syn_ack_still_opens_the_connection() {
    let mut script = Script::new();
    let answer = Segment { options: offer(2), window: 2000, ..segment() };
    script.synchronise(offer(2), 100, answer);
    script.answer(1100, answer);
    script.run(1500, Segment { seq: 1, ack: 1, ..segment() });
    script.send(1500, 0);
    script.window(1600, 1, 1000);
    let connection = script.end();
    let stream = &connection.streams[0];
    // It is unknown which SYN-ACK was acknowledged (Karn's algorithm), but the scale and the MSS are known.
    assert_eq!((connection.handshake.to_opener, stream.mss()), (None, u64::from(MSS)));
    assert_eq!(stream.counts().largest_window, 4000);
    let opening = stream.accounts().iter().find(|(account, _)| account.hold == Hold::Opening);
    assert_eq!(opening.map(|(_, time)| time), ms(1500));
}

/// Captured at the receiver. In the handshake, the sender answers after 200 ms, later after 100 ms. Twenty segments after ten
/// can only follow the acknowledgements of those ten.
#[test]
fn a_flight_above_the_initial_window_proves_that_acks_arrived() {
    let mut script = Script::opened(0, 60_000, 200);
    let (mut at, mut next) = (200, 0);
    for flight in [10, 20, 28] {
        (next..next + flight).for_each(|n| script.send(at, n));
        script.ack(at, next + flight);
        (at, next) = (at + 100, next + flight);
    }
    let connection = script.end();
    let stream = &connection.streams[0];
    assert_eq!(stream.round_trips().min(), ms(100));
    assert!(stream.counts().handshake_was_slow);
    assert!(!is_mostly_own(&connection));
}

/// Captured at the receiver, with an RTT of 100 ms to the sender and a window of four segments. Two of them arrive 20 ms after
/// the other two. In two flights the capture misses the last acknowledgement, so the next data seem to arrive 20 ms after the
/// acknowledgement that allows them.
#[test]
fn an_ack_missed_by_the_capture_does_not_shorten_the_min_rtt() {
    let mut script = Script::opened(0, 4000, 100);
    for flight in 0..12_u32 {
        let (at, first) = (100 + u64::from(flight) * 100, flight * 4);
        for half in [0, 1] {
            let (at, first) = (at + u64::from(half) * 20, first + half * 2);
            script.send(at, first);
            script.send(at, first + 1);
            if half == 0 || (flight != 4 && flight != 8) {
                script.window(at, first + 2, 4000);
            }
        }
    }
    let connection = script.end();
    assert_eq!(connection.streams[0].round_trips().min(), ms(100));
}

/// Data and their acknowledgement every 100 ms; then the capture's clock is set back by five seconds.
#[test]
fn a_clock_set_back_continues_from_its_last_time() {
    let mut script = Script::open();
    for n in 0..40_u32 {
        let at = 10_000 + u64::from(n) * 100 - if n >= 10 { 5_000 } else { 0 };
        script.send(at, n);
        script.ack(at + 50, n + 1);
    }
    let connection = script.end();
    // Eight packets reveal it; the times after them continue from the last of these.
    assert_eq!(connection.backward, 8);
    // The largest step back is from the acknowledgement at 10.95 s to the data at 6 s.
    assert_eq!(Some(connection.furthest_back), ms(10_950 - 6_000));
    assert_eq!(Some(connection.lasted()), ms(10_000 + 39 * 100 + 50 - 400));
}

/// Captured at the receiver. Each flight arrives 130 ms after the acknowledgement of the flight before, although the handshake
/// took 100 ms. Flights grow by half, or stay equal.
#[test]
fn growing_flights_at_a_longer_rtt_are_slow_start() {
    for (flights, own) in [([4, 6, 9, 14], false), ([4, 4, 4, 4], true)] {
        let mut script = Script::opened(0, 60_000, 100);
        let (mut at, mut next) = (100, 0);
        for flight in flights {
            (next..next + flight).for_each(|n| script.send(at, n));
            script.ack(at, next + flight);
            (at, next) = (at + 130, next + flight);
        }
        assert_eq!(is_mostly_own(&script.end()), own, "{flights:?}");
    }
}

/// Captured after a switch of 10 Mbit/s. A full frame arrives 2.4 ms after the acknowledgement that released it, and the next
/// frame 1.2 ms later; the small packets of the handshake take less time. A program's writes arrive at any time.
#[test]
fn the_serialisation_delay_of_full_segments_is_not_a_sender_pause() {
    for (late, own) in [(3, false), (20, true)] {
        let mut script = Script::open();
        let mut events = vec![];
        for burst in 0..40_u64 {
            let (at, first) = (200 + burst * 40, burst as u32 * 2);
            events.extend([(at, true, first), (at + 1, true, first + 1)]);
            // The next acknowledgement arrives this long after the acknowledgement for data sent 400 ms ago.
            events.push((at + 440 - late, false, first + 2));
        }
        events.sort_unstable();
        for (at, sends, n) in events {
            if sends { script.send(at, n) } else { script.ack(at, n) }
        }
        assert_eq!(is_mostly_own(&script.end()), own, "{late} ms");
    }
}

#[test]
fn unanswered_retransmissions_report_the_length_of_the_silence() {
    let mut script = Script::open();
    script.send(100, 0);
    script.ack(200, 1);
    for at in [300, 800, 1800, 3800] {
        script.send(at, 1);
    }
    let connection = script.end();
    let silence = connection.streams[0].silence().unwrap();
    assert_eq!((silence.repeats, silence.ended), (3, false));
    assert_eq!(Some(silence.lasted), ms(3500));
}

#[test]
fn time_spent_waiting_for_an_answer_is_charged_to_the_peer() {
    let mut script = Script::open();
    for round in 0..10 {
        let at = 100 + round * 1000;
        script.run(at, Segment { seq: 1 + round as u32 * 100, ack: 1, payload: 100, ..segment() });
        let acknowledged = 1 + (round as u32 + 1) * 100;
        script.receive(
            at + 100,
            Segment { seq: 1 + round as u32 * 50, ack: acknowledged, ..segment() },
        );
        // The server takes 900 ms to answer, and gets the next request at once.
        let answer =
            Segment { seq: 1 + round as u32 * 50, ack: acknowledged, payload: 50, ..segment() };
        script.receive(at + 1000, answer);
    }
    let connection = script.end();
    let accounts = connection.streams[0].accounts();
    let (waiting, all) = (accounts.held(&[Hold::Waiting]), accounts.total());
    assert!(waiting > all.scaled(0.9), "{waiting} of {all}");
}
