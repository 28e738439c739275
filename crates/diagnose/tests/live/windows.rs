//! Buffers and windows that data pass in bursts.

use sweetspot_diagnose::Class;
use sweetspot_diagnose::live::{Live, Sample};
use sweetspot_units::{Bytes, Duration, Time};

use crate::{SECOND, after_a_second, bulk, receiver};

/// 90 kB per 60 ms is 12 Mbit/s. The window varies between 90 and 30 kB, because the reader empties the buffer in jumps. Samples
/// in step with the reader mostly find 61 kB.
#[test]
fn a_window_sampled_at_its_lowest_still_accounts_for_the_rate() {
    let mut live = Live::default();
    for n in 0..100u64 {
        let at = Duration::from_millis(100) * n;
        live.handle(Sample {
            at: Time::ZERO + at,
            acked: Bytes::new(150_000 * n),
            delivered: 150 * n,
            busy: at,
            window_limited: at,
            rtt: Duration::from_millis(60),
            // One sample in ten, including the first, finds the window open; the others find it partly filled.
            peer_window: Some(Bytes::new(if n % 10 == 0 { 90_000 } else { 61_000 })),
            ..bulk()
        });
    }
    let verdict = live.period().verdict();
    assert_eq!(verdict.class, Class::ReceiverWindow, "{}", verdict.words);
    // By Little's law, 12 Mbit/s x 60 ms = 90 kB were in flight on average.
    assert!(verdict.words.contains("90,000 bytes at 60 ms allow 12.0 Mbit/s"), "{}", verdict.words);
}

/// The kernel timed the window as the limit, but no sampled window allows this rate: 12 Mbit/s x 60 ms = 90 kB is more than 60
/// kB.
#[test]
fn a_limiting_window_only_sampled_smaller_is_reported_without_a_size() {
    let sample = Sample {
        acked: Bytes::new(1_500_000),
        window_limited: SECOND,
        rtt: Duration::from_millis(60),
        peer_window: Some(Bytes::new(60_000)),
        ..bulk()
    };
    let verdict = after_a_second(sample).period().verdict();
    assert_eq!(verdict.class, Class::ReceiverWindow, "{}", verdict.words);
    assert_eq!(verdict.allowed_bps, None);
    let expected = "100 % of the time limited by the receiver's window. Either its buffer is small, or its program reads slowly.";
    assert_eq!(verdict.words, expected);
    assert!(verdict.fix.contains("look at Recv-Q"), "{}", verdict.fix);
}

/// A window of 40 kB that held the sender for half of the time at 20 ms, while 30 segments of 1 kB were lost and repaired. In one
/// of 50 intervals of 100 ms it was closed.
#[test]
fn one_short_window_closure_among_losses_does_not_mean_a_slow_reader() {
    let mut live = Live::default();
    let (mut acked, mut held) = (0, Duration::ZERO);
    for n in 0..50_u64 {
        let (at, is_closed) = (SECOND * n / 10, n == 20);
        held += if is_closed { SECOND / 10 } else { SECOND / 20 };
        acked += if is_closed { 0 } else { 100_000 };
        live.handle(Sample {
            at: Time::ZERO + at,
            acked: Bytes::new(acked),
            delivered: acked / 1000,
            busy: at,
            window_limited: held,
            model_based: true,
            retransmitted: n * 30 / 50,
            rtt: Duration::from_millis(20),
            rtt_min: Duration::from_millis(20),
            peer_window: Some(Bytes::new(if is_closed { 0 } else { 40_000 })),
            ..bulk()
        });
    }
    assert_eq!(live.limits().dominant(), Class::ReceiverWindow, "{:?}", live.limits());
}

/// Each second finds the window closed. A reader that took data in between opened it, at either end; without data it hangs.
#[test]
fn a_window_that_let_data_pass_did_not_stay_closed() {
    let watched = |bytes: u64, receives: bool| {
        let mut live = Live::default();
        for n in 0..10_u64 {
            let (at, moved) = (SECOND * n, Bytes::new(1_000_000 + bytes * n));
            let sample = match receives {
                true => Sample {
                    received: moved,
                    window: Some(Bytes::ZERO),
                    unread: Bytes::new(1_000_000),
                    ..receiver()
                },
                false => Sample {
                    acked: moved,
                    busy: at,
                    window_limited: at,
                    peer_window: Some(Bytes::ZERO),
                    ..bulk()
                },
            };
            live.handle(Sample { at: Time::ZERO + at, ..sample });
        }
        live.period()
    };
    for receives in [true, false] {
        let verdict = watched(200_000, receives).verdict();
        assert_eq!(verdict.class, Class::ReceiverApplication, "{}", verdict.words);
        // Each of the nine intervals has an opening, so there were ten closures.
        let words = "it reads more slowly than data arrives, so its window closed 10 times";
        assert!(verdict.words.contains(words), "{}", verdict.words);
        assert!(!verdict.fix.contains("hangs"), "{}", verdict.fix);
        assert_eq!(watched(0, receives).evidence.hangs_for, Some(SECOND * 9));
    }
}
