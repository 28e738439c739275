//! The rules for live connections, each with the sample that must meet it.

use sweetspot_diagnose::live::{ENOUGH_INTERVALS, Live, Sample, Side};
use sweetspot_diagnose::{Class, Evidence, HostBuffer, LimitVerdict, Limits};
use sweetspot_units::{Bytes, Duration, Rate, Time};

const SECOND: Duration = Duration::from_secs(1);

/// A bulk sender in slow start: 10 Mbit/s at 40 ms, 50 kB under way, more in the buffer.
fn bulk() -> Sample {
    Sample {
        busy: SECOND,
        acked: Bytes::new(1_250_000),
        delivered: 1250,
        congestion_window: 50,
        slow_start_threshold: u32::MAX,
        under_way: 50,
        not_sent: Bytes::new(100_000),
        mss: Bytes::new(1000),
        rtt: Duration::from_millis(40),
        rtt_min: Duration::from_millis(40),
        queued: Bytes::new(230_000),
        send_buffer: Bytes::new(250_000),
        peer_window: Some(Bytes::new(1_000_000)),
        peer_scale: 4,
        segments: 1250,
        ..Sample::default()
    }
}

/// A receiver of the same.
fn receiver() -> Sample {
    Sample {
        received: Bytes::new(1_250_000),
        receiver_rtt: Duration::from_millis(40),
        timestamps: true,
        last_arrival: Some(Duration::ZERO),
        rtt_min: Duration::from_millis(40),
        window: Some(Bytes::new(1_000_000)),
        mss: Bytes::new(1000),
        ..Sample::default()
    }
}

/// Where the second between nothing and `sample` went.
fn after_a_second(sample: Sample) -> Live {
    after(SECOND, sample)
}

/// Where the time between nothing and `sample` went.
fn after(time: Duration, sample: Sample) -> Live {
    let mut live = Live::default();
    live.handle(Sample {
        at: Time::ZERO,
        acked: Bytes::ZERO,
        received: Bytes::ZERO,
        delivered: 0,
        busy: Duration::ZERO,
        window_limited: Duration::ZERO,
        buffer_limited: Duration::ZERO,
        retransmitted: 0,
        out_of_order: 0,
        ..sample
    });
    live.handle(Sample { at: Time::ZERO + time, ..sample });
    live
}

fn class(sample: Sample) -> Class {
    after_a_second(sample).limits().dominant()
}

#[test]
fn each_circumstance_of_a_sender_has_its_class() {
    let slow = Duration::from_millis(60);
    // A sender with nothing to send has little in its buffer.
    let little = Sample { queued: Bytes::new(20_000), under_way: 10, ..bulk() };
    let lost = Sample { retransmitted: 5, slow_start_threshold: 40, ..bulk() };
    let cases = [
        (Class::Opportunity, bulk()),
        (Class::Application, Sample { busy: SECOND / 10, ..bulk() }),
        (Class::Application, Sample { not_sent: Bytes::ZERO, ..little }),
        (Class::Application, Sample { starved: true, ..little }),
        // Less than a segment, which Nagle's algorithm holds back.
        (Class::Application, Sample { not_sent: Bytes::new(900), ..little }),
        // Two thirds of a buffer are written, which stops nobody.
        (
            Class::Application,
            Sample { not_sent: Bytes::ZERO, queued: Bytes::new(170_000), ..little },
        ),
        (
            Class::ReceiverWindow,
            Sample { window_limited: SECOND, peer_window: Some(Bytes::new(60_000)), ..bulk() },
        ),
        (Class::SenderWindow, Sample { buffer_limited: SECOND, ..bulk() }),
        // 30 of 50 segments are in flight, and the buffer is full except for the data just acknowledged.
        (Class::SenderWindow, Sample { under_way: 30, ..bulk() }),
        (Class::Pacing, Sample { pacing_limit: Some(Rate::from_mbit_per_second(11)), ..bulk() }),
        // As measured at 30 Mbit/s and 40 ms, in both senses: with SO_MAX_PACING_RATE, and with
        // bbr, twice to eight times as much waits as is under way; with a small SO_SNDBUF nothing.
        (
            Class::Pacing,
            Sample { under_way: 17, pacing_limit: Some(Rate::from_mbit_per_second(11)), ..bulk() },
        ),
        (Class::Opportunity, Sample { under_way: 24, model_based: true, ..bulk() }),
        (
            Class::SenderWindow,
            Sample { under_way: 17, model_based: true, not_sent: Bytes::ZERO, ..bulk() },
        ),
        // 60 ms are more than 40 x 1.1 + 1, and more than 40 x 1.25 + 1.
        (Class::Bandwidth, Sample { rtt: slow, ..bulk() }),
        (Class::Bandwidth, Sample { rtt: slow, ..lost }),
        (Class::Congestion, lost),
        (Class::Congestion, Sample { recovering: true, ..lost }),
        (Class::Transport, Sample { slow_start_threshold: 40, ..bulk() }),
    ];
    for (expected, sample) in cases {
        assert_eq!(class(sample), expected, "{sample:?}");
    }
}

#[test]
fn a_window_that_shrinks_is_the_readers_and_one_far_below_its_scale_is_not() {
    // Scale 10 allows 65,535 x 1024 = 67 MB; a small buffer advertises only its own size.
    let small = Sample {
        window_limited: SECOND,
        peer_window: Some(Bytes::new(50_000)),
        peer_scale: 10,
        ..bulk()
    };
    assert_eq!(class(small), Class::ReceiverWindow);
    let mut live = Live::default();
    for (n, window) in (0..).zip([200_000, 120_000, 20_000, 20_000]) {
        let at = Time::ZERO + SECOND * n;
        let window_limited = SECOND * n;
        // The unread part of the window was acknowledged, too.
        let (busy, acked) = (SECOND * n, Bytes::new(400_000 * n + 200_000 - window));
        let peer_window = Some(Bytes::new(window));
        live.handle(Sample { at, window_limited, busy, acked, peer_window, ..small });
    }
    assert_eq!(live.recent().dominant(), Class::ReceiverApplication);
}

#[test]
fn a_window_that_shrinks_and_costs_no_rate_is_a_limit_and_not_the_reader() {
    // 1.25 MB/s at 40 ms; then the window falls from 1 MB to the BDP, 50 kB. A slow reader would leave 950 kB unread.
    let judged = |rate: u64| {
        let mut live = Live::default();
        for n in 0..12 {
            let (time, is_open) = (SECOND * n, n < 4);
            let acked = 1_250_000 * n.min(4) + rate * n.saturating_sub(4);
            live.handle(Sample {
                at: Time::ZERO + time,
                busy: time,
                window_limited: time.saturating_sub(SECOND * 3),
                acked: Bytes::new(acked),
                delivered: acked / 1000,
                peer_window: Some(Bytes::new(if is_open { 1_000_000 } else { rate / 25 })),
                ..bulk()
            });
        }
        live.recent().dominant()
    };
    assert_eq!(judged(1_250_000), Class::ReceiverWindow);
    assert_eq!(judged(300_000), Class::ReceiverApplication);
}

#[test]
fn within_a_host_an_acknowledgement_waits_for_the_reader_alone() {
    // One segment of 65 kB fits the window; it is acknowledged when it is read, 12 ms later.
    let full = Sample {
        window_limited: SECOND,
        acked: Bytes::new(5_400_000),
        mss: Bytes::new(65_483),
        rtt: Duration::from_millis(12),
        rtt_min: Duration::from_micros(40),
        peer_window: Some(Bytes::new(90_000)),
        ..bulk()
    };
    let between = |remote: [u8; 4], sample: Sample| {
        let mut live = Live::between([192, 0, 2, 1].into(), remote.into());
        let first = Sample { window_limited: Duration::ZERO, busy: Duration::ZERO, ..sample };
        live.handle(Sample { at: Time::ZERO, acked: Bytes::ZERO, ..first });
        live.handle(Sample { at: Time::ZERO + SECOND, ..sample });
        live.recent().dominant()
    };
    assert_eq!(between([192, 0, 2, 1], full), Class::ReceiverApplication);
    // A reader that waits for nothing has a small buffer only; and between hosts a queue takes time, too.
    let acked = Bytes::new(1_000_000_000);
    let read = Sample { rtt: Duration::from_micros(60), acked, ..full };
    assert_eq!(between([192, 0, 2, 1], read), Class::ReceiverWindow);
    let queued = Sample { rtt_min: Duration::from_millis(6), acked: Bytes::new(6_400_000), ..full };
    assert_eq!(between([192, 0, 2, 2], queued), Class::ReceiverWindow);
}

#[test]
fn a_window_that_dips_now_and_then_is_read_and_one_that_stays_below_what_it_was_is_not() {
    // Round trips of 40 ms: in 100 ms come two and a half windows.
    let judged = |windows: &[u64]| {
        let mut live = Live::default();
        let usual = windows[windows.len() - 1];
        let step = Duration::from_millis(100);
        for (n, window) in (0..).zip(windows) {
            live.handle(Sample {
                at: Time::ZERO + step * n,
                window_limited: step * n,
                busy: step * n,
                acked: Bytes::new(usual * 5 / 2 * n + windows[0].saturating_sub(*window)),
                peer_window: Some(Bytes::new(*window)),
                ..bulk()
            });
        }
        live.limits().dominant()
    };
    let mut dips = [30_000; 30];
    (dips[9], dips[21]) = (1_500, 0);
    assert_eq!(judged(&dips), Class::ReceiverWindow);
    // A steady reader leaves its window as small as its reads per RTT.
    let mut slow = [40_000; 30];
    slow[0] = 65_000;
    assert_eq!(judged(&slow), Class::ReceiverApplication);
}

#[test]
fn a_full_window_that_brings_less_than_itself_per_round_trip_is_not_read() {
    // 200 kB each 40 ms are 5 MB in a second; 1.25 MB came.
    let slow = Sample { window_limited: SECOND, peer_window: Some(Bytes::new(200_000)), ..bulk() };
    assert_eq!(class(slow), Class::ReceiverApplication);
    let read = Sample { peer_window: Some(Bytes::new(51_000)), ..slow };
    assert_eq!(class(read), Class::ReceiverWindow);
    // A kernel that does not tell the window cannot show it.
    assert_eq!(class(Sample { peer_window: None, ..slow }), Class::ReceiverWindow);
}

/// The program reads in bursts: every other sample finds a window of 560 kB, and the others a closed one, 280 kB in the mean. At 40 ms
/// these allow 7 MB/s, and the program reads 3 MB/s or less than half, or as much.
#[test]
fn a_window_that_opens_and_closes_is_full_of_unread_data_if_it_brings_less_than_itself() {
    let judged = |rate: u64| {
        let mut live = Live::default();
        for n in 0..40 {
            let time = Duration::from_millis(100) * n;
            live.handle(Sample {
                at: Time::ZERO + time,
                busy: time,
                window_limited: time,
                acked: Bytes::new(rate * n / 10),
                peer_window: Some(Bytes::new([560_000, 1000][n as usize % 2])),
                ..bulk()
            });
        }
        live.limits().share(Class::ReceiverApplication)
    };
    assert!(judged(3_000_000) > 0.9, "{}", judged(3_000_000));
    assert!(judged(7_000_000) < 0.1, "{}", judged(7_000_000));
}

#[test]
fn losses_before_it_was_watched_are_not_what_limits() {
    // The threshold that they left is there, but nothing was sent again since.
    let old = Sample { retransmitted: 5, slow_start_threshold: 40, ..bulk() };
    let mut live = Live::default();
    live.handle(Sample { at: Time::ZERO, acked: Bytes::ZERO, busy: Duration::ZERO, ..old });
    live.handle(Sample { at: Time::ZERO + SECOND, ..old });
    assert_eq!(live.limits().dominant(), Class::Transport);
    let full = Sample { rtt: Duration::from_millis(46), ..old };
    let mut live = Live::default();
    live.handle(Sample { at: Time::ZERO, acked: Bytes::ZERO, busy: Duration::ZERO, ..full });
    live.handle(Sample { at: Time::ZERO + SECOND, ..full });
    assert_eq!(live.limits().dominant(), Class::Bandwidth);
}

#[test]
fn each_circumstance_of_a_receiver_has_its_class() {
    let cases = [
        (Class::Unknown, receiver()),
        (Class::ReceiverApplication, Sample { unread: Bytes::new(2_000_000), ..receiver() }),
        // A sixteenth of the window is 62.5 kB; 25 kB arrive in 20 ms.
        (Class::ReceiverApplication, Sample { unread: Bytes::new(63_000), ..receiver() }),
        (Class::Unknown, Sample { unread: Bytes::new(62_000), ..receiver() }),
        // 1.25 MB/s x 40 ms = 50 kB.
        (Class::ReceiverWindow, Sample { window: Some(Bytes::new(51_000)), ..receiver() }),
        // One reading cannot tell a queue from a sender that pauses.
        (Class::Unknown, Sample { receiver_rtt: Duration::from_millis(60), ..receiver() }),
        (Class::Congestion, Sample { out_of_order: 3, ..receiver() }),
    ];
    for (expected, sample) in cases {
        let live = after_a_second(sample);
        assert_eq!(live.side(), Side::Receiver);
        assert_eq!(live.limits().dominant(), expected, "{sample:?}");
    }
}

#[test]
fn a_receiver_whose_rate_doubles_each_round_trip_sees_its_sender_start() {
    let mut live = Live::default();
    // 40 kB, 80 kB, 160 kB ... in each 100 ms, far less than the window.
    for n in 0..6u64 {
        let at = Time::ZERO + Duration::from_millis(100) * n;
        let received = Bytes::new(40_000 * ((1 << n) - 1));
        live.handle(Sample { at, received, window: Some(Bytes::new(6_000_000)), ..receiver() });
    }
    assert_eq!(live.side(), Side::Receiver);
    assert_eq!(live.limits().dominant(), Class::Opportunity);
    // At a steady rate nobody starts.
    for n in 1..20u64 {
        let at = Time::ZERO + Duration::from_millis(500 + 100 * n);
        let received = Bytes::new(40_000 * 31 + 640_000 * n);
        live.handle(Sample { at, received, window: Some(Bytes::new(6_000_000)), ..receiver() });
        assert_eq!(live.recent().dominant(), Class::Unknown, "{n}");
    }
}

#[test]
fn a_path_that_was_full_with_a_queue_is_full_at_the_same_rate_without_one() {
    let mut live = Live::default();
    let mut pass = |n: u64, bytes: u64, rtt: u64| {
        let at = Time::ZERO + Duration::from_millis(100) * n;
        let (received, receiver_rtt) = (Bytes::new(bytes), Duration::from_millis(rtt));
        live.handle(Sample { at, received, receiver_rtt, ..receiver() });
        live.recent().dominant()
    };
    // 125 kB in 100 ms; 40 ms are the least, and 60 a queue, which twelve readings without a pause prove.
    pass(0, 0, 40);
    (1..12).for_each(|n| assert_eq!(pass(n, 125_000 * n, 60), Class::Unknown, "{n}"));
    (12..20).for_each(|n| assert_eq!(pass(n, 125_000 * n, 60), Class::Bandwidth, "{n}"));
    (20..30).for_each(|n| assert_eq!(pass(n, 125_000 * n, 44), Class::Bandwidth, "{n}"));
    // At half of that it is something else that holds the sender.
    let after: Vec<_> = (1..30).map(|n| pass(29 + n, 3_625_000 + 62_500 * n, 44)).collect();
    assert_eq!(after.last(), Some(&Class::Unknown));
}

/// A queue of 6 ms on a path of 1 ms, and a pause of 6 ms between flights of 1 ms: a kernel with ticks of 1 ms tells them apart,
/// and one with ticks of 10 ms does not.
#[test]
fn a_short_queue_is_seen_if_the_kernel_s_ticks_are_short() {
    let judged = |tick: u64, gap: u64| {
        let mut live = Live::default();
        for n in 0..=ENOUGH_INTERVALS {
            live.handle(Sample {
                at: Time::ZERO + Duration::from_millis(77) * n,
                received: Bytes::new(1_000_000 * n),
                receiver_rtt: Duration::from_millis(7),
                rtt_min: Duration::from_millis(1),
                tick: Duration::from_millis(tick),
                // A sample finds any part of the pause.
                last_arrival: Some(Duration::from_millis(n % 7 * gap / 6)),
                window: Some(Bytes::new(6_000_000)),
                ..receiver()
            });
        }
        live.limits().share(Class::Bandwidth)
    };
    // The time before the queue was proven is the queue's, too.
    assert_eq!(judged(1, 0), 1.0);
    assert_eq!([judged(10, 0), judged(1, 6)], [0.0, 0.0]);
}

/// 64 kB each 65 ms over 30 Mbit/s: they arrive within 17 ms, and then nothing does for 48 ms, which is what the kernel takes for a
/// round trip. The path's is 20 ms.
#[test]
fn a_sender_that_pauses_makes_no_queue_at_the_receiver() {
    let paused = |timestamps: bool, last_arrival: fn(u64) -> Option<u64>| {
        let mut live = Live::default();
        for n in 0..60u64 {
            let (bursts, phase) = (100 * n / 65, 100 * n % 65);
            live.handle(Sample {
                at: Time::ZERO + Duration::from_millis(100 * n),
                received: Bytes::new(64_000 * bursts + 64_000 * phase.min(17) / 17),
                receiver_rtt: Duration::from_millis(48),
                rtt_min: Duration::from_millis(20),
                timestamps,
                last_arrival: last_arrival(phase.saturating_sub(17)).map(Duration::from_millis),
                ..receiver()
            });
        }
        live
    };
    let live = paused(true, Some);
    assert_eq!(live.limits().time(Class::Bandwidth), Duration::ZERO);
    assert_eq!(live.sweet_spot(), None);
    let verdict = LimitVerdict::new(live.limits(), &live.evidence());
    assert_eq!(verdict.class, Class::Unknown);
    assert!(verdict.words.contains("the sender or the path does"), "{}", verdict.words);
    // Without timestamps it is the time of a window; without the time of the latest arrival, no pause shows.
    for live in [paused(false, |_| Some(0)), paused(true, |_| None)] {
        assert_eq!(live.limits().time(Class::Bandwidth), Duration::ZERO);
    }
    assert!(paused(true, |_| Some(0)).limits().share(Class::Bandwidth) > 0.7);
}

/// The program sleeps, and reads all at once: every other reading finds nothing unread, and of the window of 1 MB 300 kB are left.
#[test]
fn a_reader_that_sleeps_is_the_limit_in_the_moments_without_unread_data_too() {
    let judged = |smallest: u64| {
        let mut live = Live::default();
        for n in 0..40u64 {
            let unread = n % 2 == 1;
            live.handle(Sample {
                at: Time::ZERO + Duration::from_millis(100) * n,
                received: Bytes::new(100_000 * n),
                unread: Bytes::new(if unread { 290_000 } else { 0 }),
                window: Some(Bytes::new(if n > 0 { smallest } else { 1_000_000 })),
                ..receiver()
            });
        }
        live.limits().share(Class::ReceiverApplication)
    };
    // But for the first four readings of 40.
    assert!(judged(300_000) > 0.85, "{}", judged(300_000));
    // A window with room for more than it ever held does not hold the sender.
    assert_eq!(judged(900_000), 0.0);
}

#[test]
fn a_reader_that_is_often_late_is_named_beside_an_unknown_limit() {
    let mut live = Live::default();
    // 100 kB are more than a sixteenth of the window, from one reading to the next a quarter of the time.
    for n in 0..40u64 {
        live.handle(Sample {
            at: Time::ZERO + Duration::from_millis(100) * n,
            received: Bytes::new(100_000 * n),
            unread: Bytes::new(if n % 4 < 2 { 100_000 } else { 0 }),
            ..receiver()
        });
    }
    let verdict = LimitVerdict::new(live.limits(), &live.evidence());
    assert_eq!(verdict.class, Class::Unknown);
    assert!(verdict.words.contains("the receiving program was often behind"), "{}", verdict.words);
}

/// 78 kB go in each round trip of 78 ms: of ten looks a tenth of a second apart seven find one more window than the time
/// holds, or one less.
#[test]
fn a_window_is_full_whichever_part_of_a_round_trip_a_look_ends_in() {
    let mut live = Live::default();
    for n in 0..40u64 {
        let at = Duration::from_millis(100) * n;
        let windows = at.as_nanos() / Duration::from_millis(78).as_nanos();
        live.handle(Sample {
            at: Time::ZERO + at,
            received: Bytes::new(78_000 * windows),
            receiver_rtt: Duration::from_millis(78),
            rtt_min: Duration::from_millis(78),
            window: Some(Bytes::new(78_000)),
            ..receiver()
        });
    }
    assert!(live.limits().share(Class::ReceiverWindow) > 0.8, "{:?}", live.limits());
}

/// 1250 segments of 1000 bytes in a second, times 40 ms. Without a queue, losses or a program may have set that rate.
#[test]
fn the_sweet_spot_is_the_capacity_times_the_shortest_round_trip() {
    let queued = Sample { rtt: Duration::from_millis(60), ..bulk() };
    assert_eq!(after_a_second(queued).sweet_spot(), Some(Bytes::new(50_000)));
    assert_eq!(after_a_second(bulk()).sweet_spot(), None);
}

#[test]
fn a_verdict_names_the_window_the_round_trip_and_the_rate_they_allow() {
    let live = after_a_second(Sample {
        // 800 kB in a second are less than the window allows, as they must be.
        acked: Bytes::new(800_000),
        window_limited: SECOND,
        peer_window: Some(Bytes::new(65_535)),
        peer_scale: 0,
        rtt: Duration::from_millis(80),
        ..bulk()
    });
    let verdict = LimitVerdict::new(live.limits(), &live.evidence());
    // 65,535 x 8 / 0.08 = 6.55 Mbit/s.
    let expected = "100 % of the time limited by the receiver's window: 65,535 bytes at 80 ms \
                    allow 6.6 Mbit/s. The window scale was 0: the program set a small SO_RCVBUF";
    assert!(verdict.words.starts_with(expected), "{}", verdict.words);
}

#[test]
fn the_round_trip_is_the_median_of_what_was_seen_while_data_went() {
    let mut live = Live::default();
    let rtts = [40, 41, 90, 41, 40];
    for (n, ms) in (0..).zip(rtts) {
        let (at, rtt) = (Time::ZERO + SECOND * n, Duration::from_millis(ms));
        live.handle(Sample { at, acked: Bytes::new(1000 * n), rtt, ..bulk() });
    }
    // Of 41, 90, 41 and 40, to 3 %; the first has no interval before it.
    let median = live.evidence().rtt.unwrap().as_secs_f64();
    assert!((median - 0.041).abs() < 0.041 * 0.03, "{median}");
    // Idle, with a round trip that nothing measures any more.
    let late = Sample { acked: Bytes::new(4000), rtt: Duration::from_millis(500), ..bulk() };
    (5..50).for_each(|n| live.handle(Sample { at: Time::ZERO + SECOND * n, ..late }));
    assert_eq!(live.evidence().rtt.unwrap().as_secs_f64(), median);
}

#[test]
fn a_receiver_tells_of_what_was_missing_and_not_of_what_was_sent_again() {
    let mut live = Live::default();
    live.handle(Sample { at: Time::ZERO, received: Bytes::ZERO, ..receiver() });
    // It sends requests of its own meanwhile.
    let lossy = Sample { out_of_order: 3, segments: 12, ..receiver() };
    live.handle(Sample { at: Time::ZERO + SECOND, ..lossy });
    let words = LimitVerdict::new(live.limits(), &live.evidence()).words;
    let expected = "100 % of the time limited by the congestion window after losses: segments were \
                    missing once.";
    assert_eq!(words, expected);
}

/// 81 kB at 45 ms allow 14.4 Mbit/s; the observed capacity is 12 Mbit/s at a min RTT of 40 ms. Their product, 60 kB, is less
/// than the limiting window. A buffer is twice its window, and this host's maximum is too small for either.
#[test]
fn a_window_in_the_way_is_never_answered_by_a_smaller_one() {
    let mut limits = Limits::default();
    limits.add(Class::ReceiverWindow, SECOND);
    let mut evidence = Evidence::default();
    evidence.goodput = Rate::from_mbit_per_second(12);
    evidence.capacity = Some(Rate::from_mbit_per_second(12));
    evidence.rtt_min = Some(Duration::from_millis(40));
    evidence.rtt = Some(Duration::from_millis(45));
    evidence.window = Some(Bytes::new(81_000));
    evidence.window_round = Some(Duration::from_millis(45));
    evidence.receive_buffer = Some(HostBuffer { is_set: None, max: Bytes::new(150_000) });
    let verdict = LimitVerdict::new(&limits, &evidence);
    assert_eq!(verdict.class, Class::ReceiverWindow);
    assert!(verdict.fix.contains("from 150 kB to more than 162 kB"), "{}", verdict.fix);
    // At the round trip that the sentence names: 20 Mbit/s x 45 ms = 112.5 kB.
    evidence.capacity = Some(Rate::from_mbit_per_second(20));
    let fix = LimitVerdict::new(&limits, &evidence).fix;
    assert!(fix.contains("at least 225 kB"), "{fix}");
}

#[test]
fn who_cannot_tell_at_the_receiving_end_is_sent_to_the_sending_one() {
    let live = after_a_second(receiver());
    let verdict = LimitVerdict::new(&Limits::only(Class::Unknown, SECOND), &live.evidence());
    assert!(verdict.words.contains("receiving end"), "{}", verdict.words);
    assert!(verdict.fix.contains("at the sending end"), "{}", verdict.fix);
}

#[test]
fn retransmissions_of_data_that_the_peer_dropped_are_its_programs() {
    // 50 kB are under way when the peer takes its window back; each second 10 segments are retransmitted.
    let started =
        Sample { outstanding: Some(Bytes::new(50_000)), slow_start_threshold: 30, ..bulk() };
    for (window, dropped) in [(20_000, true), (0, true), (49_990, false), (200_000, false)] {
        let mut live = Live::default();
        live.handle(Sample { at: Time::ZERO, ..started });
        let before = Sample { at: Time::ZERO + SECOND, busy: SECOND * 2, ..started };
        live.handle(Sample { peer_window: Some(Bytes::new(window)), ..before });
        let repairing = Sample {
            at: Time::ZERO + SECOND * 2,
            busy: SECOND * 3,
            retransmitted: 10,
            recovering: true,
            ..started
        };
        live.handle(repairing);
        let class = if dropped { Class::ReceiverApplication } else { Class::Congestion };
        assert_eq!(live.recent().dominant(), class, "{window}");
        // Once all of it is acknowledged, the path lost what is retransmitted.
        let arrived = Sample {
            at: Time::ZERO + SECOND * 3,
            busy: SECOND * 4,
            acked: started.acked + Bytes::new(60_000),
            ..repairing
        };
        live.handle(arrived);
        live.handle(Sample {
            at: Time::ZERO + SECOND * 4,
            busy: SECOND * 5,
            acked: arrived.acked + Bytes::new(1_000_000),
            retransmitted: 20,
            ..arrived
        });
        assert_eq!(live.recent().dominant(), Class::Congestion, "{window}");
        assert_eq!(live.evidence().loss_events, 2 - u64::from(dropped));
    }
}

#[test]
fn bbr_that_starts_anew_behind_data_that_the_peer_dropped_waits_for_its_program() {
    let start = Sample { outstanding: Some(Bytes::new(50_000)), model_based: true, ..bulk() };
    for (window, class) in [(20_000, Class::ReceiverApplication), (200_000, Class::Opportunity)] {
        let mut live = Live::default();
        live.handle(Sample { at: Time::ZERO, ..start });
        let peer_window = Some(Bytes::new(window));
        live.handle(Sample { at: Time::ZERO + SECOND, busy: SECOND * 2, peer_window, ..start });
        // The second after brings retransmissions and twice the data of any before.
        live.handle(Sample {
            at: Time::ZERO + SECOND * 2,
            busy: SECOND * 3,
            retransmitted: 10,
            acked: start.acked + Bytes::new(40_000),
            delivered: start.delivered + 40,
            ..start
        });
        assert_eq!(live.recent().dominant(), class, "{window}");
    }
}

#[test]
fn bbr_is_starting_only_if_its_rate_was_seen_to_grow() {
    // Of a connection that had moved data before, the first interval has no earlier rate.
    for (moved, class) in [(0, Class::Opportunity), (1_000_000, Class::Bandwidth)] {
        let mut live = Live::default();
        for n in 0..2 {
            live.handle(Sample {
                at: Time::ZERO + SECOND * n,
                acked: Bytes::new(moved + 1_250_000 * n),
                delivered: 1000 + 1250 * n,
                busy: SECOND * n,
                model_based: true,
                ..bulk()
            });
        }
        assert_eq!(live.recent().dominant(), class, "{moved}");
    }
}

/// Every ten seconds BBR keeps a cwnd of 4 for 200 ms and marks its rates as a program's, until they are delivered. The program has 100
/// segments waiting.
#[test]
fn bbr_that_probes_the_rtt_is_not_limited_by_its_program() {
    let usual = Sample { model_based: true, ..bulk() };
    let probing = Sample { congestion_window: 4, under_way: 4, starved: true, ..usual };
    let after = Sample { congestion_window: 50, under_way: 20, starved: true, ..usual };
    for (name, second) in [("in the probe", probing), ("behind it", after)] {
        let mut live = Live::default();
        let first = if name == "behind it" { probing } else { usual };
        live.handle(Sample {
            at: Time::ZERO,
            acked: Bytes::ZERO,
            delivered: 0,
            busy: Duration::ZERO,
            ..first
        });
        live.handle(Sample { at: Time::ZERO + SECOND, ..second });
        assert_eq!(live.recent().time(Class::Application), Duration::ZERO, "{name}");
    }
    // A program with nothing that waits is the limit all the same.
    let little = Sample { not_sent: Bytes::ZERO, queued: Bytes::new(4000), ..probing };
    assert_eq!(class(little), Class::Application);
}

/// 2.9 MB are 201 initial windows of ten segments: 8 round trips of 54 ms, and twice that is 0.9 s. It took 2.5 s, and 54 ms are more than
/// 40 x 1.1 + 1.
#[test]
fn one_reading_of_bbr_with_a_queue_is_no_slow_start() {
    let reading = Sample {
        model_based: true,
        acked: Bytes::new(2_922_473),
        delivered: 2020,
        busy: Duration::from_millis(2512),
        mss: Bytes::new(1448),
        rtt: Duration::from_millis(54),
        rtt_min: Duration::from_millis(40),
        ..bulk()
    };
    assert_eq!(after(reading.busy, reading).limits().dominant(), Class::Bandwidth);
    // In 0.5 s it may be.
    let early = Sample { busy: Duration::from_millis(500), ..reading };
    assert_eq!(after(early.busy, early).limits().dominant(), Class::Opportunity);
}

/// 200 bytes wait behind a segment of 200 in four of five samples; in the fifth nothing does.
#[test]
fn small_writes_that_nagles_algorithm_holds_are_named() {
    let verdict = |held: fn(u64) -> bool| {
        let mut live = Live::default();
        for n in 0..11 {
            let not_sent = Bytes::new(if held(n) { 200 } else { 0 });
            live.handle(Sample {
                at: Time::ZERO + SECOND * n,
                acked: Bytes::new(2600 * n),
                delivered: 13 * n,
                busy: SECOND * n,
                under_way: 1,
                not_sent,
                queued: Bytes::new(2000),
                ..bulk()
            });
        }
        LimitVerdict::new(live.limits(), &live.evidence())
    };
    let nagle = verdict(|n| n % 5 != 0);
    assert_eq!(nagle.class, Class::Application);
    assert!(nagle.words.contains("Nagle's algorithm"), "{}", nagle.words);
    assert!(nagle.fix.contains("TCP_NODELAY"), "{}", nagle.fix);
    assert!(!verdict(|n| n % 5 == 0).words.contains("Nagle"));
}

#[test]
fn a_window_that_stays_closed_is_full_of_data_that_the_program_does_not_read() {
    let closed = Sample { window_limited: SECOND, peer_window: Some(Bytes::ZERO), ..bulk() };
    assert_eq!(after_a_second(closed).recent().dominant(), Class::ReceiverApplication);
}

#[test]
fn a_receiver_is_judged_by_its_own_window_and_not_by_its_peers() {
    let mut live = Live::default();
    // The peer, to which nothing is sent, advertises less than this end ever does.
    let idle = Some(Bytes::new(10_000));
    for (n, window) in [(0, 100_000), (1, 1_000_000), (2, 50_000), (3, 0)] {
        live.handle(Sample {
            at: Time::ZERO + SECOND * n,
            received: Bytes::new(1_250_000 * n),
            window: Some(Bytes::new(window)),
            peer_window: idle,
            ..receiver()
        });
        // A window that only grows has not shrunk.
        assert_eq!(live.evidence().min_window.is_some(), n > 1);
    }
    let evidence = live.evidence();
    assert_eq!(evidence.largest_window, Some(Bytes::new(1_000_000)));
    assert_eq!((evidence.min_window, evidence.zero_windows), (Some(Bytes::ZERO), 1));
}
