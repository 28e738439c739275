//! Limits as the receiving end sees them.

use sweetspot_diagnose::live::{ENOUGH_INTERVALS, Live, Period, Sample, Side};
use sweetspot_diagnose::{Class, Flow, LimitVerdict, Limits};
use sweetspot_units::{Bytes, Duration, Time};

use crate::{SECOND, after_a_second, receiver};

#[test]
fn each_receiver_state_maps_to_its_class() {
    let cases = [
        (Class::Unknown, receiver()),
        (Class::ReceiverApplication, Sample { unread: Bytes::new(2_000_000), ..receiver() }),
        // A sixteenth of the window is 62.5 kB, and 25 kB arrive in 20 ms.
        (Class::ReceiverApplication, Sample { unread: Bytes::new(63_000), ..receiver() }),
        (Class::Unknown, Sample { unread: Bytes::new(62_000), ..receiver() }),
        // 1.25 MB/s x 40 ms = 50 kB.
        (Class::ReceiverWindow, Sample { window: Some(Bytes::new(51_000)), ..receiver() }),
        // One reading cannot distinguish a queue from a sender that pauses.
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
fn a_rate_that_doubles_each_rtt_shows_the_senders_slow_start() {
    let mut live = Live::default();
    // 40 kB, 80 kB, 160 kB ... in each 100 ms, far less than the window.
    for n in 0..6u64 {
        let at = Time::ZERO + Duration::from_millis(100) * n;
        let received = Bytes::new(40_000 * ((1 << n) - 1));
        live.handle(Sample { at, received, window: Some(Bytes::new(6_000_000)), ..receiver() });
    }
    assert_eq!(live.side(), Side::Receiver);
    assert_eq!(live.limits().dominant(), Class::Opportunity);
    // At a steady rate no sender is in slow start.
    for n in 1..20u64 {
        let at = Time::ZERO + Duration::from_millis(500 + 100 * n);
        let received = Bytes::new(40_000 * 31 + 640_000 * n);
        live.handle(Sample { at, received, window: Some(Bytes::new(6_000_000)), ..receiver() });
        assert_eq!(live.recent().dominant(), Class::Unknown, "{n}");
    }
}

/// A queue of 6 ms on a path of 1 ms, and a pause of 6 ms between flights of 1 ms. A kernel with ticks of 1 ms distinguishes
/// them, and one with ticks of 10 ms does not.
#[test]
fn a_short_queue_is_detected_if_kernel_ticks_are_short() {
    let judged = |tick: u64, gap: u64| {
        let mut live = Live::default();
        for n in 0..=ENOUGH_INTERVALS {
            live.handle(Sample {
                at: Time::ZERO + Duration::from_millis(77) * n,
                received: Bytes::new(1_000_000 * n),
                receiver_rtt: Duration::from_millis(7),
                rtt_min: Duration::from_millis(1),
                tick: Duration::from_millis(tick),
                // A sample may fall into any part of the pause.
                last_arrival: Some(Duration::from_millis(n % 7 * gap / 6)),
                window: Some(Bytes::new(6_000_000)),
                ..receiver()
            });
        }
        live.limits().share(Class::Bandwidth)
    };
    // The time before the queue was proven is attributed to the queue, too.
    assert_eq!(judged(1, 0), 1.0);
    assert_eq!([judged(10, 0), judged(1, 6)], [0.0, 0.0]);
}

/// 64 kB every 65 ms over 30 Mbit/s: they arrive within 17 ms, and then nothing arrives for 48 ms, which the kernel takes for the
/// RTT. The path's RTT is 20 ms.
#[test]
fn sender_pauses_are_not_mistaken_for_a_queue_at_the_receiver() {
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
    assert_eq!(live.evidence().sweet_spot(), None);
    // The kernel's estimate is the pause. Only without pauses it is the path's RTT.
    let trip = |live: &Live| live.path_rtt().map(Duration::as_micros);
    assert_eq!([trip(&live), trip(&paused(true, |_| Some(0)))], [Some(20_000), Some(48_000)]);
    let verdict = LimitVerdict::new(live.limits(), &live.evidence());
    assert_eq!(verdict.class, Class::Unknown);
    assert!(
        verdict.words.starts_with("The sender or the path limits the rate"),
        "{}",
        verdict.words
    );
    assert!(verdict.words.contains("with pauses, in which the sender waits"), "{}", verdict.words);
    // Without timestamps, the estimate is the time of a window. Without the time of the latest arrival, no pause shows.
    for live in [paused(false, |_| Some(0)), paused(true, |_| None)] {
        assert_eq!(live.limits().time(Class::Bandwidth), Duration::ZERO);
    }
    assert!(paused(true, |_| Some(0)).limits().share(Class::Bandwidth) > 0.7);
}

/// 2 kB every 300 ms, which the kernel takes for the RTT. The path's RTT is 40 ms.
#[test]
fn the_time_between_writes_is_not_mistaken_for_the_rtt() {
    let mut live = Live::default();
    for n in 0..60u64 {
        live.handle(Sample {
            at: Time::ZERO + Duration::from_millis(100 * n),
            received: Bytes::new(2000 * (n / 3)),
            receiver_rtt: Duration::from_millis(300),
            last_arrival: Some(Duration::from_millis(n % 3 * 100)),
            ..receiver()
        });
    }
    let Period { limits, evidence, .. } = live.period();
    assert_eq!(limits.dominant(), Class::Application);
    assert_eq!((evidence.rtt, evidence.rtt_min), (None, Some(Duration::from_millis(40))));
}

/// The program reads 64 kB each 50 ms, at 10.5 Mbit/s. Of these, 16 kB arrive too late for its read and wait for the next one. That
/// is less than arrives in 20 ms, but most samples find that it arrived more than 20 ms ago. With these 16 kB, the 52 kB of a round
/// trip of 40 ms fill the window.
#[test]
fn data_that_stay_unread_between_arrivals_show_a_slow_reader() {
    let judged = |window: u64, unread: u64| {
        let mut live = Live::default();
        for n in 0..40u64 {
            live.handle(Sample {
                at: Time::ZERO + Duration::from_millis(100) * n,
                received: Bytes::new(131_072 * n),
                unread: Bytes::new(unread),
                window: Some(Bytes::new(window)),
                last_arrival: Some(Duration::from_millis(if n % 4 == 0 { 8 } else { 28 })),
                ..receiver()
            });
        }
        live.limits().share(Class::ReceiverApplication)
    };
    assert!(judged(72_000, 16_000) > 0.7, "{}", judged(72_000, 16_000));
    // A sixteenth of the window is 4.5 kB.
    assert_eq!(judged(72_000, 4_000), 0.0);
    // They do not fill a larger window.
    assert_eq!(judged(200_000, 16_000), 0.0);
}

/// The program sleeps, and then reads everything at once: every other sample finds nothing unread, and 300 kB of the window of 1
/// MB are left.
#[test]
fn a_sleeping_reader_is_the_limit_even_at_moments_without_unread_data() {
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
    // All but the first four of 40 readings.
    assert!(judged(300_000) > 0.85, "{}", judged(300_000));
    // A window larger than the data ever in it does not hold the sender.
    assert_eq!(judged(900_000), 0.0);
}

#[test]
fn a_verdict_without_a_known_limit_names_an_often_late_reader() {
    let mut live = Live::default();
    // 100 kB is more than a sixteenth of the window. In a quarter of the intervals, both samples find this much.
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
    assert!(verdict.words.contains("it often reads late"), "{}", verdict.words);
}

#[test]
fn a_receiver_reports_missing_segments_and_no_retransmissions() {
    let mut live = Live::default();
    live.handle(Sample { at: Time::ZERO, received: Bytes::ZERO, ..receiver() });
    // The receiver sends requests of its own meanwhile.
    let lossy = Sample { out_of_order: 3, segments: 12, ..receiver() };
    live.handle(Sample { at: Time::ZERO + SECOND, ..lossy });
    let words = LimitVerdict::new(live.limits(), &live.evidence()).words;
    let expected = "100 % of the time limited by the congestion window after losses: segments \
                    went missing on the path once.";
    assert_eq!(words, expected);
}

#[test]
fn an_unknown_limit_at_the_receiver_points_to_the_sender() {
    let live = after_a_second(receiver());
    let verdict = LimitVerdict::new(&Limits::only(Class::Unknown, SECOND), &live.evidence());
    assert!(verdict.words.contains("not this receiver"), "{}", verdict.words);
    assert!(verdict.fix.contains("at the sender"), "{}", verdict.fix);
}

#[test]
fn a_receiver_is_judged_by_its_own_window_and_not_by_its_peers() {
    let mut live = Live::default();
    // No data is sent to the peer, which advertises less than this end ever does.
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

/// 1.25 MB/s is 50 kB per RTT of 40 ms; the window allows 1 MB. Segments arrive every 0.8 ms, and the kernel's tick is `tick_ms`.
fn without_limit(tick_ms: u64, rate: u64, gap: fn(u64) -> u64) -> LimitVerdict {
    let mut live = Live::default();
    for n in 0..100u64 {
        live.handle(Sample {
            at: Time::ZERO + Duration::from_millis(100) * n,
            received: Bytes::new(rate / 10 * n),
            tick: Duration::from_millis(tick_ms),
            last_arrival: Some(Duration::from_millis(gap(n))),
            ..receiver()
        });
    }
    live.period().verdict()
}

#[test]
fn a_receiver_that_is_not_the_limit_reports_how_data_arrives() {
    let steady = without_limit(4, 1_250_000, |_| 0);
    assert_eq!(steady.class, Class::Unknown);
    let expected = "The sender or the path limits the rate, not this receiver: its program reads in time, and only 50,000 bytes of its window \
                    of 1 MB arrive per RTT. Data arrives without pauses";
    assert!(steady.words.starts_with(expected), "{}", steady.words);
    // The rate may be the link's.
    assert!(steady.fix.starts_with("If this is the rate of the link"), "{}", steady.fix);
    // Half of the samples find a pause of 20 ms.
    let pausing = without_limit(4, 1_250_000, |n| n % 2 * 20);
    assert_eq!(pausing.class, Class::Unknown);
    assert!(pausing.words.contains("Data arrives with pauses"), "{}", pausing.words);
    assert!(pausing.fix.starts_with("Run sweetspot diagnose at the sender"), "{}", pausing.fix);
}

/// 25 kB each 100 ms at an RTT of 40 ms, found at four places of the pause. What was in flight has come within 40 ms, and four segments
/// take 16 ms at this rate: half of the samples find a longer pause, and 50 ms are none.
#[test]
fn a_pause_longer_than_one_rtt_is_blamed_on_the_sending_program() {
    let bursts = without_limit(4, 250_000, |n| n % 4 * 30);
    let words = "bursts with pauses of up to 90 ms, longer than a round trip: the sender's program";
    assert!(bursts.words.contains(words), "{}", bursts.words);
    let windows = without_limit(4, 250_000, |n| n % 2 * 50);
    assert!(windows.words.contains("Data arrives with pauses, in which"), "{}", windows.words);
}

/// A sender with little to send that pauses every fifth time: neither can be told.
#[test]
fn occasional_pauses_identify_neither_link_nor_sender() {
    let some = without_limit(4, 1_250_000, |n| if n % 5 == 0 { 20 } else { 0 });
    assert!(!some.words.contains("pauses"), "{}", some.words);
}

/// Four segments of 1000 bytes take 0.8 s at 5 kB/s, so a pause of 20 ms, half a round trip, would not show.
#[test]
fn a_trickle_is_not_mistaken_for_a_full_link() {
    let trickle = without_limit(4, 5_000, |_| 0);
    assert_eq!(trickle.class, Class::Unknown);
    assert!(!trickle.words.contains("pauses"), "{}", trickle.words);
}

#[test]
fn a_receiver_does_not_count_retransmissions() {
    let ends = ["192.0.2.1:443", "192.0.2.2:5000"].map(|end| end.parse().unwrap());
    for (sample, counts) in [(receiver(), false), (crate::bulk(), true)] {
        let Period { limits, evidence, .. } = after_a_second(sample).period();
        let flow = Flow::new(ends[0], ends[1], limits, &evidence);
        assert_eq!(flow.counts_retransmissions, counts);
    }
}

/// `holes` per second for twenty seconds, at `mbit` Mbit/s and 40 ms.
fn with_holes(mbit: u64, holes: u64) -> LimitVerdict {
    let mut live = Live::default();
    for n in 0..=200u64 {
        live.handle(Sample {
            at: Time::ZERO + Duration::from_millis(100) * n,
            received: Bytes::new(mbit * 12_500 * n),
            window: Some(Bytes::new(1 << 40)),
            out_of_order: n * holes / 10,
            ..receiver()
        });
    }
    live.period().verdict()
}

/// One hole per second at 4 Mbit/s is one in 500 segments, p = 0.002: Reno's rate is sqrt(1.5 / p) = 27 segments per 40 ms (5.5
/// Mbit/s). At 200 Mbit/s, p = 0.00004, it is 194 segments (39 Mbit/s), a fifth; CUBIC's window is 1.05 x (0.04 / p)^0.75 = 188
/// segments. Ten holes per second at 100 Mbit/s, p = 0.0008, allow Reno 43 segments (8.7 Mbit/s).
#[test]
fn losses_are_the_limit_only_if_they_explain_the_rate() {
    let frequent = with_holes(4, 1);
    assert_eq!(frequent.class, Class::Congestion, "{}", frequent.words);
    for (mbit, holes) in [(200, 1), (100, 10)] {
        let outrun = with_holes(mbit, holes);
        assert_eq!(outrun.class, Class::Unknown, "{}", outrun.words);
        let count = format!("went missing on the path about {} times", 20 * holes);
        assert!(outrun.words.contains(&count), "{}", outrun.words);
        assert!(outrun.words.contains("the sender ignores losses"), "{}", outrun.words);
    }
}

/// The receiving program stopped before the first sample, so no data moves.
#[test]
fn unread_data_makes_the_receiver_the_limit_even_if_nothing_moves() {
    let hung = Sample {
        received: Bytes::new(20_000_000),
        unread: Bytes::new(11_800_000),
        window: Some(Bytes::ZERO),
        ..receiver()
    };
    let mut live = Live::default();
    for second in 0..3 {
        live.handle(Sample { at: Time::ZERO + SECOND * second, ..hung });
    }
    assert_eq!((live.side(), live.direction()), (Side::Receiver, Side::Receiver));
    let verdict = live.period().verdict();
    assert_eq!(verdict.class, Class::ReceiverApplication);
    assert!(verdict.words.contains("11.8 MB wait unread, and its window is closed"), "{verdict:?}");
}

/// After a download, a request gets no answer: the waiting data is this end's own, as a sender.
#[test]
fn an_ended_download_counts_as_a_receiver_until_a_request_waits() {
    let still = |sample: Sample| {
        let mut live = Live::default();
        for second in 0..3 {
            live.handle(Sample { at: Time::ZERO + SECOND * second, ..sample });
        }
        live.direction()
    };
    assert_eq!(still(receiver()), Side::Receiver);
    assert_eq!(still(Sample { segments_in_flight: 1, ..receiver() }), Side::Sender);
}

/// A queue of 10 ms over 72 ms exceeds 72 x 0.1 + 1 ms, and two of the kernel's ticks of 4 ms. Twelve readings prove it.
#[test]
fn a_queue_of_a_tenth_of_the_rtt_shows_the_capacity() {
    let judged = |rtt: u64, timestamps: bool| {
        let mut live = Live::default();
        for n in 0..=ENOUGH_INTERVALS {
            live.handle(Sample {
                at: Time::ZERO + Duration::from_millis(100) * n,
                received: Bytes::new(350_000 * n),
                receiver_rtt: Duration::from_millis(rtt),
                rtt_min: Duration::from_millis(72),
                tick: Duration::from_millis(4),
                window: Some(Bytes::new(5_000_000)),
                timestamps,
                ..receiver()
            });
        }
        live
    };
    assert_eq!(judged(82, true).limits().share(Class::Bandwidth), 1.0);
    assert_eq!(judged(80, true).limits().share(Class::Unknown), 1.0);
    // 10 % and 1 ms above the minimum is 80.2 ms.
    let bound = |rtt, timestamps| judged(rtt, timestamps).may_time_pauses();
    assert_eq!([bound(82, true), bound(80, true), bound(82, false)], [true, false, false]);
    // Without timestamps, the estimate is the time in which a window arrived, which is not an RTT.
    let untimed = judged(82, false);
    assert_eq!(untimed.limits().share(Class::Unknown), 1.0);
    assert_eq!(untimed.evidence().rtt, None);
    assert_eq!(untimed.path_rtt(), Some(Duration::from_millis(72)));
}

/// 34,752 bytes per 70 ms is 496 kB/s. Cross traffic's queue is 40 ms of that, and an empty path of 30 ms would hold 15 kB. The
/// kernel would open an autotuned window to twice as much.
#[test]
fn a_small_window_is_full_behind_a_cross_traffic_queue() {
    let class = |window: u64, timestamps: bool| {
        let mut live = Live::default();
        for n in 0..=40_u64 {
            live.handle(Sample {
                at: Time::ZERO + Duration::from_millis(100) * n,
                received: Bytes::new(49_646 * n),
                receiver_rtt: Duration::from_millis(70),
                rtt_min: Duration::from_millis(30),
                last_arrival: Some(Duration::from_millis(n * 8 % 32)),
                window: Some(Bytes::new(window)),
                mss: Bytes::new(1448),
                timestamps,
                ..receiver()
            });
        }
        live.limits().dominant()
    };
    assert_eq!(class(34_752, true), Class::ReceiverWindow);
    assert_eq!(class(69_504, true), Class::Unknown);
    // Without timestamps, the estimate is the time in which a window arrives, whatever the RTT.
    assert_eq!(class(34_752, false), Class::Unknown);
}

/// 40 kB arrive in a burst in each round trip of 260 ms; an empty path has 40 ms. Samples come every 50 ms, so most find no new
/// data.
#[test]
fn a_sender_that_waits_for_a_full_window_is_not_the_application() {
    let judged = |window: u64| {
        let mut live = Live::default();
        for n in 0..80u64 {
            let (bursts, phase) = (50 * n / 260, 50 * n % 260);
            live.handle(Sample {
                at: Time::ZERO + Duration::from_millis(50 * n),
                received: Bytes::new(40_000 * bursts),
                receiver_rtt: Duration::from_millis(260),
                last_arrival: Some(Duration::from_millis(phase)),
                window: Some(Bytes::new(window)),
                ..receiver()
            });
        }
        live
    };
    let live = judged(40_000);
    assert!(live.limits().share(Class::ReceiverWindow) > 0.8, "{:?}", live.limits());
    assert_eq!(live.path_rtt(), Some(Duration::from_millis(260)));
    // The kernel opens an autotuned window to twice the arrivals, so the program pauses, and its pauses may be the RTT.
    let live = judged(80_000);
    assert_eq!(live.limits().dominant(), Class::Application);
    assert_eq!(live.path_rtt(), Some(Duration::from_millis(40)));
}
