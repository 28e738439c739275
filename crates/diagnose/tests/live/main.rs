//! The rules for live connections, each with a sample that matches it.

mod bbr;
mod device;
mod reader;
mod receiver;
mod sliding;
mod windows;

use sweetspot_diagnose::live::{Live, Sample};
use sweetspot_diagnose::{Class, Evidence, HostBuffer, LimitVerdict, Limits};
use sweetspot_units::{Bytes, Duration, Rate, Time};

const SECOND: Duration = Duration::from_secs(1);

/// A bulk sender in slow start: 10 Mbit/s at 40 ms, 50 kB in flight, more in the buffer.
fn bulk() -> Sample {
    Sample {
        busy: SECOND,
        acked: Bytes::new(1_250_000),
        delivered: 1250,
        congestion_window: 50,
        slow_start_threshold: u32::MAX,
        segments_in_flight: 50,
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

/// The receiver of the data that [`bulk`] sends.
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

/// A connection sampled twice: without data, and one second later with `sample`.
fn after_a_second(sample: Sample) -> Live {
    after(SECOND, sample)
}

/// A connection sampled twice: without data, and `time` later with `sample`.
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
fn each_sender_state_maps_to_its_class() {
    let slow = Duration::from_millis(60);
    // A sender with nothing to send has little in its buffer.
    let little = Sample { queued: Bytes::new(20_000), segments_in_flight: 10, ..bulk() };
    let stops = Sample { rtt: slow, buffer_limited: SECOND, ..bulk() };
    let lost = Sample { retransmitted: 5, slow_start_threshold: 40, ..bulk() };
    let cases = [
        (Class::Opportunity, bulk()),
        (Class::Application, Sample { busy: SECOND / 10, ..bulk() }),
        (Class::Application, Sample { not_sent: Bytes::ZERO, ..little }),
        (Class::Application, Sample { starved: true, ..little }),
        // Less than a segment waits, which Nagle's algorithm holds back.
        (Class::Application, Sample { not_sent: Bytes::new(900), ..little }),
        // Two thirds of 250 kB are 166.7 kB. With less in the buffer, poll(2) reports the socket as writable; with more it does
        // not.
        (
            Class::Application,
            Sample { not_sent: Bytes::ZERO, queued: Bytes::new(166_000), ..little },
        ),
        (
            Class::SenderWindow,
            Sample { not_sent: Bytes::ZERO, queued: Bytes::new(167_000), ..little },
        ),
        (
            Class::ReceiverWindow,
            Sample { window_limited: SECOND, peer_window: Some(Bytes::new(60_000)), ..bulk() },
        ),
        (Class::SenderWindow, Sample { buffer_limited: SECOND, ..bulk() }),
        // 30 of 50 segments are in flight, and the buffer is full except for the data just acknowledged.
        (
            Class::SenderWindow,
            Sample { segments_in_flight: 30, not_sent: Bytes::new(20_000), ..bulk() },
        ),
        (Class::Pacing, Sample { pacing_limit: Some(Rate::from_mbit_per_second(11)), ..bulk() }),
        // As measured at 30 Mbit/s and 40 ms: with SO_MAX_PACING_RATE, and with bbr, two to eight times the data in flight waits.
        // With a small SO_SNDBUF nothing waits.
        (
            Class::Pacing,
            Sample {
                segments_in_flight: 17,
                pacing_limit: Some(Rate::from_mbit_per_second(11)),
                ..bulk()
            },
        ),
        (Class::Opportunity, Sample { segments_in_flight: 24, model_based: true, ..bulk() }),
        (
            Class::SenderWindow,
            Sample { segments_in_flight: 17, model_based: true, not_sent: Bytes::ZERO, ..bulk() },
        ),
        // 60 ms is more than 40 x 1.1 + 1, and more than 40 x 1.25 + 1.
        (Class::Bandwidth, Sample { rtt: slow, ..bulk() }),
        (Class::Bandwidth, Sample { rtt: slow, ..lost }),
        // A small buffer sends in bursts. At 10 Mbit/s, 85 % of 11 Mbit/s are reached, and of 13 Mbit/s they are not.
        (Class::Bandwidth, Sample { delivery_rate: Some(Rate::from_mbit_per_second(11)), ..stops }),
        (
            Class::SenderWindow,
            Sample { delivery_rate: Some(Rate::from_mbit_per_second(13)), ..stops },
        ),
        (Class::Congestion, lost),
        (Class::Congestion, Sample { recovering: true, ..lost }),
        (Class::Transport, Sample { slow_start_threshold: 40, ..bulk() }),
    ];
    for (expected, sample) in cases {
        assert_eq!(class(sample), expected, "{sample:?}");
    }
}

/// The kernel wakes a writer blocked by its buffer when a third of it is free. Writes of 64 kB every 30 ms at an RTT of 45 ms
/// keep 45 % to 85 % of a buffer of 150 kB in use, as measured.
#[test]
fn a_writer_with_a_third_of_its_buffer_free_is_not_blocked() {
    let class = |used: [u64; 4]| {
        let mut live = Live::default();
        for n in 0..=40_u64 {
            live.handle(Sample {
                at: Time::ZERO + Duration::from_millis(100) * n,
                busy: Duration::from_millis(100) * n,
                acked: Bytes::new(218_750 * n),
                delivered: 219 * n,
                segments_in_flight: 40,
                congestion_window: 180,
                not_sent: Bytes::ZERO,
                queued: Bytes::new(1500 * used[n as usize % 4]),
                send_buffer: Bytes::new(150_000),
                starved: true,
                ..bulk()
            });
        }
        live.limits().dominant()
    };
    assert_eq!(class([85, 45, 85, 85]), Class::Application);
    assert_eq!(class([85, 67, 85, 85]), Class::SenderWindow);
}

/// The kernel counts timeouts in a row, also those before the first sample. Window probes count, too, but leave nothing in flight.
#[test]
fn timeouts_without_an_answer_mean_a_stall_from_the_first_sample_on() {
    let lost = Sample { retransmitted: 2, recovering: true, ..bulk() };
    assert_eq!(class(Sample { backoff: 1, ..lost }), Class::Congestion);
    assert_eq!(class(Sample { backoff: 2, ..lost }), Class::Stalled);
    assert_ne!(class(Sample { backoff: 2, segments_in_flight: 0, ..lost }), Class::Stalled);
}

#[test]
fn a_loss_before_the_first_sample_limits_until_cwnd_recovers() {
    // A threshold of 40 segments is 0.7 times the window at the loss, 57 segments.
    let old = Sample { retransmitted: 5, slow_start_threshold: 40, ..bulk() };
    let class = |old: Sample| {
        let mut live = Live::default();
        live.handle(Sample { at: Time::ZERO, acked: Bytes::ZERO, busy: Duration::ZERO, ..old });
        live.handle(Sample { at: Time::ZERO + SECOND, ..old });
        live.limits().dominant()
    };
    let of = |congestion_window| Sample {
        congestion_window,
        segments_in_flight: congestion_window,
        ..old
    };
    assert_eq!(class(of(56)), Class::Congestion);
    assert_eq!(class(of(58)), Class::Transport);
    // Without a retransmission, slow start ended before any loss (HyStart).
    assert_eq!(class(Sample { retransmitted: 0, ..of(56) }), Class::Transport);
    let full = Sample { rtt: Duration::from_millis(46), ..old };
    let mut live = Live::default();
    live.handle(Sample { at: Time::ZERO, acked: Bytes::ZERO, busy: Duration::ZERO, ..full });
    live.handle(Sample { at: Time::ZERO + SECOND, ..full });
    assert_eq!(live.limits().dominant(), Class::Bandwidth);
}

#[test]
fn a_path_once_full_with_a_queue_stays_full_at_that_rate() {
    let mut live = Live::default();
    let mut pass = |n: u64, bytes: u64, rtt: u64| {
        let at = Time::ZERO + Duration::from_millis(100) * n;
        let (received, receiver_rtt) = (Bytes::new(bytes), Duration::from_millis(rtt));
        live.handle(Sample { at, received, receiver_rtt, ..receiver() });
        live.recent().dominant()
    };
    // 125 kB in 100 ms. The min RTT is 40 ms; 60 ms is a queue, which twelve readings without a pause prove.
    pass(0, 0, 40);
    (1..12).for_each(|n| assert_eq!(pass(n, 125_000 * n, 60), Class::Unknown, "{n}"));
    (12..20).for_each(|n| assert_eq!(pass(n, 125_000 * n, 60), Class::Bandwidth, "{n}"));
    (20..30).for_each(|n| assert_eq!(pass(n, 125_000 * n, 44), Class::Bandwidth, "{n}"));
    // At half of that rate, something else holds the sender.
    let after: Vec<_> = (1..30).map(|n| pass(29 + n, 3_625_000 + 62_500 * n, 44)).collect();
    assert_eq!(after.last(), Some(&Class::Unknown));
}

/// 78 kB are sent in each round trip of 78 ms. Of ten samples 0.1 s apart, seven find one window more or less than the time can
/// hold.
#[test]
fn a_full_window_is_found_wherever_in_the_rtt_samples_fall() {
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

/// 1250 segments of 1000 bytes per second, times 40 ms. Without a queue, losses or a program may have set this rate.
#[test]
fn the_sweet_spot_is_the_capacity_times_the_min_rtt() {
    let queued = Sample { rtt: Duration::from_millis(60), ..bulk() };
    assert_eq!(after_a_second(queued).evidence().sweet_spot(), Some(Bytes::new(50_000)));
    assert_eq!(after_a_second(bulk()).evidence().sweet_spot(), None);
}

#[test]
fn the_verdict_gives_the_window_the_rtt_and_the_rate_they_allow() {
    let live = after_a_second(Sample {
        // 800 kB in a second must be less than the window allows.
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
fn the_rtt_is_the_median_of_samples_with_data_in_flight() {
    let mut live = Live::default();
    let rtts = [40, 41, 90, 41, 40];
    for (n, ms) in (0..).zip(rtts) {
        let (at, rtt) = (Time::ZERO + SECOND * n, Duration::from_millis(ms));
        live.handle(Sample { at, acked: Bytes::new(1000 * n), rtt, ..bulk() });
    }
    // The median of 41, 90, 41 and 40 ms, to 3 %. The first sample has no interval before it.
    let median = live.evidence().rtt.unwrap().as_secs_f64();
    assert!((median - 0.041).abs() < 0.041 * 0.03, "{median}");
    // Idle, with an RTT that is no longer measured.
    let late = Sample { acked: Bytes::new(4000), rtt: Duration::from_millis(500), ..bulk() };
    (5..50).for_each(|n| live.handle(Sample { at: Time::ZERO + SECOND * n, ..late }));
    assert_eq!(live.evidence().rtt.unwrap().as_secs_f64(), median);
}

/// 81 kB at 45 ms allow 14.4 Mbit/s; the observed capacity is 12 Mbit/s at a min RTT of 40 ms. Their product, 60 kB, is less
/// than the limiting window. A buffer is twice its window, and this host's maximum is too small for either.
#[test]
fn the_fix_for_a_limiting_window_is_never_a_smaller_one() {
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
    // At the RTT in the sentence: 20 Mbit/s x 45 ms = 112.5 kB.
    evidence.capacity = Some(Rate::from_mbit_per_second(20));
    let fix = LimitVerdict::new(&limits, &evidence).fix;
    assert!(fix.contains("at least 225 kB"), "{fix}");
}

/// In four of five samples, 200 bytes wait behind a segment of 200 bytes; in the fifth, nothing waits.
#[test]
fn the_verdict_names_small_writes_held_by_nagle() {
    let verdict = |held: fn(u64) -> bool| {
        let mut live = Live::default();
        for n in 0..11 {
            let not_sent = Bytes::new(if held(n) { 200 } else { 0 });
            live.handle(Sample {
                at: Time::ZERO + SECOND * n,
                acked: Bytes::new(2600 * n),
                delivered: 13 * n,
                busy: SECOND * n,
                segments_in_flight: 1,
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

/// A full send buffer of 40 kB allows bursts of up to 300 segments (measured on Linux 6.18 with writes of 64 kB). 4 MB/s at 40 ms
/// are 160 segments: a flight of 60 leaves the path partly idle, and one of 300 does not.
#[test]
fn a_queue_that_drains_under_a_full_send_buffer_comes_from_bursts() {
    let judged = |low: u32| {
        let mut live = Live::default();
        for n in 0..100 {
            let segments_in_flight = if n % 3 == 0 { low } else { 300 };
            let (time, acked) = (SECOND / 10 * n, 400_000 * n);
            live.handle(Sample {
                at: Time::ZERO + time,
                busy: time,
                acked: Bytes::new(acked),
                delivered: acked / 1000,
                congestion_window: 310,
                slow_start_threshold: 200,
                segments_in_flight,
                not_sent: Bytes::ZERO,
                starved: true,
                rtt: Duration::from_millis(80),
                queued: Bytes::new(1500) * u64::from(segments_in_flight),
                send_buffer: Bytes::new(40_000),
                ..bulk()
            });
        }
        (live.limits().dominant(), live.evidence().capacity)
    };
    assert_eq!(judged(60), (Class::SenderWindow, None));
    assert_eq!(judged(300), (Class::Bandwidth, Some(Rate::from_mbit_per_second(32))));
}

/// A program that writes 10 kB every 100 ms, on a path filled by other flows: the RTT is 60 ms, and the window is full. One of
/// three samples finds `waiting` bytes not yet sent.
fn paced_on_a_full_path(waiting: u64) -> Limits {
    let mut live = Live::default();
    for n in 0..60_u64 {
        let not_sent = Bytes::new(if n % 3 == 2 { waiting } else { 0 });
        live.handle(Sample {
            at: Time::ZERO + SECOND * n / 10,
            busy: SECOND * n / 10,
            acked: Bytes::new(10_000 * n),
            delivered: 10 * n,
            congestion_window: 10,
            slow_start_threshold: 8,
            segments_in_flight: 10,
            not_sent,
            queued: not_sent + Bytes::new(10_000),
            rtt: Duration::from_millis(60),
            ..bulk()
        });
    }
    *live.limits()
}

#[test]
fn a_program_whose_data_leaves_at_once_limits_even_a_full_path() {
    // All of the 5 kB was written since the last sample. Of 59 intervals, only the second does not show that, because one of the
    // first two samples found data waiting.
    let share = paced_on_a_full_path(5000).share(Class::Application);
    assert!(share > 57.5 / 59.0, "{share}");
    // 130 kB fill more than half of the buffer of 250 kB, and may block the writer: a third of the intervals is attributed to the
    // path.
    let stopped = paced_on_a_full_path(130_000).share(Class::Bandwidth);
    assert!(stopped > 0.3, "{stopped}");
}
