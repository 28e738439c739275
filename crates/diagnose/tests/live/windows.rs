//! Buffers and windows that data come through in bursts.

use sweetspot_diagnose::Class;
use sweetspot_diagnose::live::{Live, Sample};
use sweetspot_units::{Bytes, Duration, Time};

use crate::{SECOND, after_a_second, bulk};

/// 90 kB each 60 ms are 12 Mbit/s. The window swings between 90 and 30 kB as the reader empties the buffer in jumps; each sample, in
/// step with it, finds 30 kB.
#[test]
fn a_window_that_samples_find_at_its_lowest_still_accounts_for_its_rate() {
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
            // The first sample finds it open, and one in ten between the jumps.
            peer_window: Some(Bytes::new(if n % 10 == 0 { 90_000 } else { 61_000 })),
            ..bulk()
        });
    }
    let verdict = live.period().verdict();
    assert_eq!(verdict.class, Class::ReceiverWindow, "{}", verdict.words);
    // By Little's law 12 Mbit/s x 60 ms = 90 kB were in flight in the mean.
    assert!(verdict.words.contains("90,000 bytes at 60 ms allow 12.0 Mbit/s"), "{}", verdict.words);
}

/// No window that was seen allows this rate: 12 Mbit/s x 60 ms = 90 kB are more than 60 kB.
#[test]
fn a_window_that_never_allowed_the_rate_is_not_named() {
    let sample = Sample {
        acked: Bytes::new(1_500_000),
        window_limited: SECOND,
        rtt: Duration::from_millis(60),
        peer_window: Some(Bytes::new(60_000)),
        ..bulk()
    };
    let verdict = after_a_second(sample).period().verdict();
    assert_eq!(verdict.class, Class::Unknown, "{}", verdict.words);
    let expected = "The limit is not known: the receiver's window had most of the time, but does not account for the measured rate of \
                    12.0 Mbit/s.";
    assert_eq!(verdict.words, expected);
    assert!(verdict.fix.starts_with("Watch or log it for longer"), "{}", verdict.fix);
}

/// Writes of 64 kB fill a buffer as large: each burst queues for half of a round trip, and then nothing more comes. A path that carried
/// 20 Mbit/s with a queue is not full at 12, and full at 19.
#[test]
fn the_queue_of_a_burst_from_a_small_send_buffer_does_not_fill_the_path() {
    for (segments, class) in [(1500, Class::SenderWindow), (2400, Class::Bandwidth)] {
        let mut live = Live::default();
        let mut sample =
            Sample { acked: Bytes::ZERO, delivered: 0, busy: Duration::ZERO, ..bulk() };
        sample.rtt = Duration::from_millis(60);
        for count in [2500, segments, segments] {
            live.handle(sample);
            sample.at += SECOND;
            sample.busy += SECOND;
            sample.delivered += count;
            sample.acked = Bytes::new(sample.delivered * 1000);
            // Not the congestion window binds.
            sample.under_way = 30;
        }
        live.handle(sample);
        assert_eq!(live.recent().dominant(), class, "{segments}");
    }
}

#[test]
fn a_connection_without_data_is_idle_and_needs_no_fix() {
    let at_rest = Sample { busy: Duration::ZERO, acked: Bytes::ZERO, delivered: 0, ..bulk() };
    let verdict = after_a_second(at_rest).period().verdict();
    assert_eq!((verdict.class, verdict.cause), (Class::Application, Class::Idle));
    let expected = "100 % of the time idle: no data moved while it was watched, and neither program had anything to send.";
    assert_eq!(verdict.words, expected);
    assert!(verdict.fix.starts_with("Nothing to fix"), "{}", verdict.fix);
}
