//! Limits known from the field, each with a connection captured at its sender.

use sweetspot_diagnose::{Class, Flow};
use sweetspot_trace::packet::{Flags, Options, Segment};

use crate::captured::{Captured, offer, sent, syn};

const MSS: u32 = 1460;
/// The RTT of the handshakes, in milliseconds.
const RTT: u64 = 50;

/// A connection captured at its sender; times in microseconds.
struct AtSender {
    captured: Captured,
    /// The receiver's next sequence number.
    answered: u32,
}

impl AtSender {
    fn open(rtt_us: u64) -> AtSender {
        let mut open = AtSender { captured: Captured::default(), answered: 1 };
        let options = offer(MSS);
        open.take(0, Segment { options, flags: syn(), ..sent() });
        let answer = Segment { options, flags: Flags { ack: true, ..syn() }, ..back(1, 0) };
        open.take(rtt_us, answer);
        open.take(rtt_us, Segment { seq: 1, ..sent() });
        open
    }

    fn take(&mut self, us: u64, segment: Segment) {
        self.captured.take(us, segment);
    }

    /// The sender's segment from byte `at` on.
    fn send(&mut self, us: u64, at: u32, payload: u32) {
        let ack = self.answered;
        self.take(us, Segment { seq: 1 + at, payload, ack, ..sent() });
    }

    /// The receiver acknowledges everything before byte `at`.
    fn ack(&mut self, us: u64, at: u32) {
        self.take(us, back(1 + at, self.answered));
    }

    /// The receiver's message of `payload` bytes, with an acknowledgement.
    fn message(&mut self, us: u64, at: u32, payload: u32) {
        self.take(us, Segment { payload, ..back(1 + at, self.answered) });
        self.answered += payload;
    }

    /// The verdict on the sender's data.
    fn flow(self) -> Flow {
        self.captured.flow()
    }
}

/// The receiver is seven hops away.
fn back(ack: u32, seq: u32) -> Segment {
    Segment { ttl: 57, ..crate::captured::back(ack, seq) }
}

/// Bursts of `burst` segments, one per RTT. Each begins after a message from the receiver.
fn granted(burst: u32) -> Flow {
    let mut flow = AtSender::open(RTT * 1000);
    for round in 0..60_u32 {
        let (start, first) = (100_000 + u64::from(round) * RTT * 1000, round * burst);
        (0..burst).for_each(|n| flow.send(start + u64::from(n) * 12, (first + n) * MSS, MSS));
        // The receiver acknowledges pairs; the last acknowledgement is its message.
        for pair in 1..burst / 2 {
            flow.ack(start + RTT * 1000 - 1000 + u64::from(pair) * 24, (first + 2 * pair) * MSS);
        }
        flow.message(start + RTT * 1000 - 100, (first + burst) * MSS, 36);
    }
    flow.flow()
}

#[test]
fn a_window_above_tcp_is_attributed_to_the_receiving_program() {
    let flow = granted(40);
    assert_eq!(
        (flow.verdict.class, flow.verdict.cause),
        (Class::Application, Class::WaitingForPeer)
    );
    // 40 segments per round trip.
    assert!(flow.verdict.words.contains("58,400 bytes were in flight"), "{}", flow.verdict.words);
    assert_eq!(flow.window_above_tcp_bytes, Some(58_400));
    assert!(flow.fix.contains("SETTINGS_INITIAL_WINDOW_SIZE"), "{}", flow.fix);
    let allowed = flow.verdict.allowed_bps.unwrap();
    assert!(allowed >= flow.goodput_bps * 0.95, "{allowed} of {}", flow.goodput_bps);
}

#[test]
fn a_window_above_tcp_granted_in_halves_is_reported() {
    // Ten segments, the last one short, follow each message, which acknowledges all but the last ten segments.
    const HALF: u32 = 9 * MSS + 700;
    let mut flow = AtSender::open(RTT * 1000);
    for half in 0..120_u32 {
        let (start, first) = (100_000 + u64::from(half) * RTT * 500, half * HALF);
        if half >= 2 {
            flow.message(start - 100, (half - 1) * HALF, 13);
        }
        (0..9).for_each(|n| flow.send(start + u64::from(n) * 12, first + n * MSS, MSS));
        flow.send(start + 9 * 12, first + 9 * MSS, 700);
    }
    let flow = flow.flow();
    assert_eq!(flow.verdict.cause, Class::WaitingForPeer);
    assert!(flow.verdict.words.contains("a window above TCP"), "{}", flow.verdict.words);
}

#[test]
fn bidirectional_bulk_data_is_not_mistaken_for_a_window_above_tcp() {
    // Full segments from the receiver carry its acknowledgements, and release data.
    let mut flow = AtSender::open(RTT * 1000);
    for round in 0..60_u32 {
        let (start, first) = (100_000 + u64::from(round) * RTT * 1000, round * 40);
        (0..40).for_each(|n| flow.send(start + u64::from(n) * 12, (first + n) * MSS, MSS));
        for pair in 1..=20 {
            flow.message(
                start + RTT * 1000 - 600 + u64::from(pair) * 24,
                (first + 2 * pair) * MSS,
                MSS,
            );
        }
    }
    assert_ne!(flow.flow().verdict.cause, Class::WaitingForPeer);
}

/// Exchanges of two small segments and an answer. The second segment waits for the acknowledgement of the first, which comes
/// `delay_us` later.
fn exchanges(delay_us: u64) -> Flow {
    slow_exchanges(delay_us, 1000, 900)
}

/// As [`exchanges`], with a receiving program that answers after `answer_us`, and a sending one that asks again after
/// `thought_us`.
fn slow_exchanges(delay_us: u64, answer_us: u64, thought_us: u64) -> Flow {
    let mut flow = AtSender::open(1000);
    let lasts = delay_us + 100 + answer_us + thought_us;
    for exchange in 0..100_u32 {
        let (start, at) = (10_000 + u64::from(exchange) * lasts, exchange * 120);
        flow.send(start, at, 60);
        flow.ack(start + delay_us, at + 60);
        flow.send(start + delay_us + 50, at + 60, 60);
        flow.message(start + delay_us + 100 + answer_us, at + 120, 40);
    }
    flow.flow()
}

#[test]
fn the_verdict_names_nagle_with_delayed_acks_and_their_fix() {
    for delay_us in [41_000, 200_000, 500_000] {
        let flow = exchanges(delay_us);
        assert_eq!(flow.verdict.class, Class::Application);
        assert!(flow.verdict.words.contains("Nagle's algorithm"), "{}", flow.verdict.words);
        assert!(flow.fix.contains("TCP_NODELAY"), "{}", flow.fix);
    }
    // Of 100 ms, Nagle's algorithm takes 41 ms, and the program's other waits 24 ms.
    let flow = slow_exchanges(41_000, 34_900, 24_000);
    assert!(flow.verdict.words.contains(", 41 % by Nagle's algorithm"), "{flow:?}");
    // If the acknowledgement comes within the RTT, it was not delayed.
    assert!(!exchanges(1000).verdict.words.contains("Nagle"));
}

#[test]
fn nagle_draws_a_remark_if_another_cause_took_more_time() {
    for (answer_us, thought_us) in [(100_000, 900), (1000, 100_000)] {
        let flow = slow_exchanges(41_000, answer_us, thought_us);
        assert!(!flow.verdict.words.contains("Nagle"), "{}", flow.verdict.words);
        let share = (4_100_000.0 / (41_100 + answer_us + thought_us) as f64).round();
        let remark = flow.remarks.iter().find(|remark| remark.contains("Nagle's algorithm"));
        let begins =
            remark.is_some_and(|r| r.starts_with(&format!("{share} % of the time 100 small")));
        assert!(begins, "{share} {:?}", flow.remarks);
    }
    assert!(!exchanges(41_000).remarks.iter().any(|remark| remark.contains("Nagle")));
}

#[test]
fn a_path_mtu_black_hole_is_distinguished_from_a_dead_peer() {
    for (size, names_size) in [(MSS, true), (400, false)] {
        let mut flow = AtSender::open(RTT * 1000);
        // A request of 400 bytes arrives; the following segments of `size` bytes do not.
        flow.send(100_000, 0, 400);
        flow.ack(150_000, 400);
        (0..4).for_each(|n| flow.send(200_000 + n, 400 + n as u32 * size, size));
        for (n, ms) in [450, 900, 1_800, 3_600, 7_200].into_iter().enumerate() {
            flow.send(200_000 + ms * 1000 + n as u64, 400, size);
        }
        let flow = flow.flow();
        assert_eq!(flow.verdict.class, Class::Stalled, "{flow:?}");
        let words = format!("{} {}", flow.verdict.words, flow.fix);
        assert_eq!(
            words.contains("400 bytes were acknowledged, and all larger ones"),
            names_size,
            "{words}"
        );
        assert_eq!(words.contains("lower the MSS to 400"), names_size, "{words}");
    }
}

#[test]
fn untranslated_sack_blocks_draw_a_remark_and_the_loss_still_counts() {
    let mut flow = AtSender::open(RTT * 1000);
    for round in 0..40_u32 {
        let (start, first) = (100_000 + u64::from(round) * 400_000, round * 10);
        (0..10).for_each(|n| flow.send(start + u64::from(n), (first + n) * MSS, MSS));
        flow.ack(start + RTT * 1000, (first + 5) * MSS);
        // The sixth segment is lost. The receiver's SACK blocks have numbers from another sequence space.
        let left = 3_000_000_000_u32.wrapping_add((first + 6) * MSS);
        let mut sack = vec![1, 1, 5, 10];
        sack.extend(left.to_be_bytes());
        sack.extend(left.wrapping_add(MSS).to_be_bytes());
        let options = Options::read(&sack);
        let acked = back(1 + (first + 5) * MSS, 1);
        (1..=2).for_each(|n| flow.take(start + RTT * 1000 + n, Segment { options, ..acked }));
        flow.send(start + 300_000, (first + 5) * MSS, MSS);
        flow.ack(start + 350_000, (first + 10) * MSS);
    }
    let flow = flow.flow();
    assert_eq!(flow.verdict.class, Class::Congestion, "{flow:?}");
    assert!(flow.remarks.iter().any(|remark| remark.contains("SACK blocks far from all data")));
}

#[test]
fn no_reported_time_is_below_the_min_rtt() {
    for flow in [granted(20), granted(40)] {
        let min = flow.rtt_min_s.unwrap() * 1e3;
        let words: Vec<&str> = flow.verdict.words.split(' ').collect();
        let times = words.windows(2).filter(|pair| pair[1].starts_with("ms"));
        for time in times.filter_map(|pair| pair[0].parse::<f64>().ok()) {
            assert!(time >= min.floor(), "{time} < {min}: {}", flow.verdict.words);
        }
    }
}

#[test]
fn tail_loss_in_each_flight_is_congestion_and_not_the_program() {
    // The last of ten segments is lost, and retransmitted 300 ms later: 300 of 350 ms.
    let mut flow = AtSender::open(RTT * 1000);
    for round in 0..20_u32 {
        let (start, first) = (100_000 + u64::from(round) * 400_000, round * 10);
        (0..10).for_each(|n| flow.send(start + u64::from(n) * 12, (first + n) * MSS, MSS));
        flow.ack(start + RTT * 1000, (first + 9) * MSS);
        flow.send(start + 340_000, (first + 9) * MSS, MSS);
        flow.ack(start + 390_000, (first + 10) * MSS);
    }
    let flow = flow.flow();
    assert_eq!(flow.verdict.class, Class::Congestion, "{flow:?}");
    assert!(flow.verdict.share_of_time > 0.8, "{}", flow.verdict.words);
}

#[test]
fn a_window_that_stays_closed_to_probes_is_blamed_on_the_reader() {
    let mut flow = AtSender::open(RTT * 1000);
    for round in 0..6_u32 {
        let (start, first) = (100_000 + u64::from(round) * 2_000_000, round * 20);
        (0..20).for_each(|n| flow.send(start + u64::from(n) * 12, (first + n) * MSS, MSS));
        let acked = back(1 + (first + 20) * MSS, 1);
        flow.take(start + RTT * 1000, Segment { window: 0, ..acked });
        // Probes of a closed window carry the byte before the next, and are answered with the same window.
        for probe in [300_000, 900_000] {
            flow.send(start + probe, (first + 20) * MSS - 1, 0);
            flow.take(start + probe + RTT * 1000, Segment { window: 0, ..acked });
        }
        flow.take(start + 1_900_000, acked);
    }
    assert_eq!(flow.flow().verdict.class, Class::ReceiverApplication);
}

#[test]
fn segments_dropped_by_a_withdrawn_window_are_blamed_on_the_reader() {
    // The receiver accepts five of ten segments, and then closes its window. The timer repairs the rest: 350 of 400 ms.
    let mut flow = AtSender::open(RTT * 1000);
    // The SYN's window may be larger than the program's first one.
    flow.ack(RTT * 1000 + 1000, 0);
    for round in 0..20_u32 {
        let (start, first) = (100_000 + u64::from(round) * 400_000, round * 10);
        (0..10).for_each(|n| flow.send(start + u64::from(n) * 12, (first + n) * MSS, MSS));
        let acked = back(1 + (first + 5) * MSS, 1);
        flow.take(start + RTT * 1000, Segment { window: 0, ..acked });
        flow.take(start + 2 * RTT * 1000, acked);
        (5..10).for_each(|n| flow.send(start + 340_000, (first + n) * MSS, MSS));
        flow.ack(start + 390_000, (first + 10) * MSS);
    }
    let flow = flow.flow();
    assert_eq!(flow.verdict.class, Class::ReceiverApplication, "{flow:?}");
    assert!(
        flow.remarks
            .iter()
            .any(|r| r.ends_with("100 segments that it no longer took were retransmitted"))
    );
}

#[test]
fn a_connection_kept_open_by_keep_alives_is_idle() {
    let mut flow = AtSender::open(RTT * 1000);
    flow.send(100_000, 0, 400);
    flow.message(150_000, 400, 900);
    for n in 1..20_u64 {
        // A keep-alive has the sequence number before the next byte, and one byte of data or none.
        flow.send(n * 60_000_000, 399, n as u32 % 2);
        flow.ack(n * 60_000_000 + RTT * 1000, 400);
    }
    let flow = flow.flow();
    assert_eq!((flow.verdict.class, flow.verdict.cause), (Class::Application, Class::Idle));
    assert_eq!(flow.retransmitted_segments, 0);
}

#[test]
fn the_remark_on_one_duplicate_packet_is_singular() {
    let twice = |copies: u64| {
        let mut flow = AtSender::open(RTT * 1000);
        for n in 0..=copies {
            let segment = Segment { seq: 1, payload: MSS, ack: 1, id: Some(7), ..sent() };
            flow.take(60_000 + n, segment);
        }
        flow.ack(110_000, MSS);
        flow.flow().remarks.join("|")
    };
    let [one, two] = [1, 2].map(twice);
    assert!(one.contains("1 packet was captured twice; it is counted once"), "{one}");
    assert!(two.contains("2 packets were captured twice; each is counted once"), "{two}");
}

/// BBR behind its host's shaper, captured before segmentation in the network card: 2, 2, 2, 2, 18 and 18 segments, with 200 µs
/// per segment, acknowledged after 40 µs.
#[test]
fn a_sender_that_paces_bursts_of_varying_size_is_not_called_idle() {
    let class = |gap: fn(u32) -> u64| {
        let mut flow = AtSender::open(40);
        let (mut at, mut seq) = (1000, 1);
        for segments in [2, 2, 2, 2, 18, 18].into_iter().cycle().take(400) {
            let payload = MSS * segments;
            flow.take(at, Segment { seq, payload, ..sent() });
            seq += payload;
            flow.take(at + 40, back(seq, 1));
            at += gap(segments);
        }
        flow.captured.flow().verdict
    };
    let paced = class(|segments| 200 * u64::from(segments));
    assert_eq!(paced.class, Class::Bandwidth, "{paced:?}");
    assert!(paced.words.contains("or the sender itself does"), "{}", paced.words);
    // Sent by a clock, whatever their size.
    assert_eq!(class(|_| 2400).class, Class::Application);
}
