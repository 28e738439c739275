//! Senders under BBR.

use sweetspot_diagnose::Class;
use sweetspot_diagnose::live::{Live, Sample};
use sweetspot_units::{Bytes, Duration, Rate, Time};

use crate::{SECOND, after, after_a_second, bulk, class};

#[test]
fn bbr_restarting_after_peer_drops_waits_for_the_receiving_program() {
    let start = Sample { outstanding: Some(Bytes::new(50_000)), model_based: true, ..bulk() };
    for (window, class) in [(20_000, Class::ReceiverApplication), (200_000, Class::Opportunity)] {
        let mut live = Live::default();
        live.handle(Sample { at: Time::ZERO, ..start });
        let peer_window = Some(Bytes::new(window));
        live.handle(Sample { at: Time::ZERO + SECOND, busy: SECOND * 2, peer_window, ..start });
        // The next second brings retransmissions, and twice as much data as any before.
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
fn bbr_is_in_startup_only_if_its_rate_was_seen_to_grow() {
    // If a connection moved data before the first sample, the first interval has no earlier rate.
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

/// Every ten seconds BBR keeps a cwnd of 4 for 200 ms, and marks its rates as application-limited until this data is delivered.
/// The program has 100 segments waiting.
#[test]
fn bbr_in_probe_rtt_is_not_application_limited() {
    let usual = Sample { model_based: true, ..bulk() };
    let probing = Sample { congestion_window: 4, segments_in_flight: 4, starved: true, ..usual };
    let after = Sample { congestion_window: 50, segments_in_flight: 20, starved: true, ..usual };
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
    // A program without waiting data is the limit all the same.
    let little = Sample { not_sent: Bytes::ZERO, queued: Bytes::new(4000), ..probing };
    assert_eq!(class(little), Class::Application);
}

/// A program's bursts, which BBR paces at 350 kB/s, the rate that it measured with this program's data. At each sample a part of a
/// burst waits, and its acknowledgements come late.
#[test]
fn an_application_limited_bbr_rate_is_not_the_capacity() {
    let capacity = |starved| {
        let mut live = Live::default();
        for n in 0..50 {
            live.handle(Sample {
                at: Time::ZERO + SECOND / 10 * n,
                acked: Bytes::new(35_000 * n),
                delivered: 35 * n,
                busy: SECOND / 10 * n,
                rtt: Duration::from_millis(60),
                model_based: true,
                starved,
                ..bulk()
            });
        }
        (live.evidence().capacity, live.evidence().sweet_spot())
    };
    assert_eq!(capacity(true), (None, None));
    // With a program that has more to send, the capacity shows: 350 kB/s is 2.8 Mbit/s, times 40 ms 14 kB.
    let (rate, spot) = (Rate::from_bits_per_second(2_800_000), Bytes::new(14_000));
    assert_eq!(capacity(false), (Some(rate), Some(spot)));
}

/// 2.9 MB are 201 initial windows of ten segments, which take slow start 8 round trips of 54 ms; twice that is 0.9 s. Here it took
/// 2.5 s, and 54 ms is more than 40 x 1.1 + 1.
#[test]
fn one_reading_of_bbr_with_a_queue_is_not_startup() {
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
    // Within 0.5 s, slow start is possible.
    let early = Sample { busy: Duration::from_millis(500), ..reading };
    assert_eq!(after(early.busy, early).limits().dominant(), Class::Opportunity);
}

/// 20 Mbit/s for a second, then intervals between half of that and just above it: no interval exceeds the best by a quarter.
#[test]
fn bbr_at_a_varying_rate_is_not_in_startup() {
    let mut live = Live::default();
    let mut sample = Sample { acked: Bytes::ZERO, delivered: 0, busy: Duration::ZERO, ..bulk() };
    let mut hand_over = |segments: u64| {
        sample.model_based = true;
        live.handle(sample);
        sample.at += SECOND;
        sample.busy += SECOND;
        sample.delivered += segments;
        sample.acked = Bytes::new(sample.delivered * 1000);
        live.recent().dominant()
    };
    hand_over(2500);
    hand_over(2500);
    let classes: Vec<Class> = [1250, 2600, 1000, 2500, 2500].map(&mut hand_over)[1..].to_vec();
    assert!(classes.iter().all(|class| *class == Class::Bandwidth), "{classes:?}");
}

#[test]
fn bbr_without_a_queue_is_limited_by_the_capacity_it_measures() {
    let mut live = Live::default();
    for n in 0..10 {
        live.handle(Sample {
            at: Time::ZERO + SECOND * n,
            acked: Bytes::new(1_000_000 + 1_250_000 * n),
            delivered: 1000 + 1250 * n,
            busy: SECOND * n,
            model_based: true,
            ..bulk()
        });
    }
    let verdict = live.period().verdict();
    assert_eq!(verdict.class, Class::Bandwidth);
    assert!(verdict.words.contains("as measured by bbr"), "{}", verdict.words);
    // A smaller window would empty no queue.
    assert_eq!(verdict.fix, "Only a faster path would raise the rate.");
    // Its probes of the bandwidth last one RTT in eight, and queue a quarter of 40 ms.
    let mut live = Live::default();
    for n in 0..17_u64 {
        let rtt = Duration::from_millis(if n % 8 == 7 { 50 } else { 40 });
        let acked = Bytes::new(1_000_000 + 1_250_000 * n);
        let (at, busy) = (Time::ZERO + SECOND * n, SECOND * n);
        live.handle(Sample { at, acked, busy, model_based: true, rtt, ..bulk() });
    }
    let verdict = live.period().verdict();
    assert!(verdict.words.contains("there is no standing queue"), "{}", verdict.words);
    // A sender with a standing queue gets other words.
    let queued = Sample { model_based: true, rtt: Duration::from_millis(46), ..bulk() };
    let verdict = after_a_second(queued).period().verdict();
    assert!(verdict.words.contains("behind a standing queue"), "{}", verdict.words);
}

/// 1250 segments of 1000 bytes reach the peer in each second. A hole delays their acknowledgement for one second.
#[test]
fn acks_delayed_by_a_hole_do_not_raise_the_capacity() {
    let mut live = Live::default();
    for n in 0..8 {
        let acked = 1_250_000 * if n == 5 { n - 1 } else { n };
        live.handle(Sample {
            at: Time::ZERO + SECOND * n,
            busy: SECOND * n,
            acked: Bytes::new(acked),
            delivered: 1250 * n,
            model_based: true,
            rtt: SECOND / 10,
            ..bulk()
        });
        let capacity = live.evidence().capacity;
        assert!(capacity.is_none_or(|rate| rate == Rate::from_mbit_per_second(10)), "{capacity:?}");
    }
    assert!(live.evidence().capacity.is_some());
}

/// The kernel timed a full send buffer for 40 % of the time. In the rest, BBR paces data at the rate that the buffer allowed.
#[test]
fn a_send_buffer_that_shapes_bbrs_model_limits_the_remaining_time_too() {
    let held = |buffer_limited| Sample { model_based: true, buffer_limited, ..bulk() };
    let limits = |sample| *after_a_second(sample).limits();
    assert_eq!(limits(held(SECOND * 2 / 5)).share(Class::SenderWindow), 1.0);
    assert_eq!(limits(held(SECOND / 20)).share(Class::SenderWindow), 0.05);
}

/// As measured with a reader of 350 kB/s: the peer's window held the sender for 40 ms of most tenths of a second, and for none of the
/// next ones. Acknowledgements come late, and data waits. BBR keeps its highest bandwidth of ten round trips: of 60 ms, 0.6 s.
#[test]
fn bbrs_model_reflects_the_peers_window_for_ten_rtts() {
    let tenth = SECOND / 10;
    let after_last_full_window = |free: u64| {
        let mut live = Live::default();
        for n in 0..=10 + free {
            live.handle(Sample {
                at: Time::ZERO + tenth * n,
                acked: Bytes::new(35_000 * n),
                delivered: 35 * n,
                busy: tenth * n,
                window_limited: Duration::from_millis(40) * n.min(10),
                rtt: Duration::from_millis(60),
                segments_in_flight: 20,
                peer_window: Some(Bytes::new(20_000)),
                model_based: true,
                ..bulk()
            });
        }
        live
    };
    let held = after_last_full_window(6);
    assert_eq!(held.limits().time(Class::Bandwidth), Duration::ZERO);
    assert_eq!(held.evidence().sweet_spot(), None);
    // From then on it is a model of the path, with a capacity of 350 kB/s: 14 kB in 40 ms.
    let free = after_last_full_window(20);
    assert_eq!(free.limits().time(Class::Bandwidth), tenth * 14);
    assert_eq!(free.evidence().sweet_spot(), Some(Bytes::new(14_000)));
}
