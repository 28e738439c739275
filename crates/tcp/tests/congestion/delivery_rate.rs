use sweetspot_tcp::congestion::DeliveryRate;
use sweetspot_units::Duration;

use crate::harness::at;

#[test]
fn the_rate_counts_the_data_delivered_between_sending_and_ack() {
    // Ten packets sent at 0, acknowledged one per 10 ms from 100 ms on. When the last arrives
    // at 190 ms, ten were delivered since it was sent at 0: 10 / 190 ms.
    let mut rate = DeliveryRate::default();
    let stamps: Vec<_> = (0..10).map(|i| rate.handle_sent(at(0), i)).collect();
    let mut last = None;
    for (i, stamp) in stamps.iter().enumerate() {
        let now = at(100 + 10 * i as u64);
        rate.handle_delivered(now, stamp);
        last = rate.poll_sample(now, Duration::ZERO);
    }
    let sample = last.expect("the last ACK delivered a packet");
    assert_eq!((sample.delivered, sample.interval), (10, Duration::from_millis(190)));
}

#[test]
fn ack_compression_does_not_inflate_the_rate() {
    // Two packets sent 100 ms apart with ACKs that arrive together at 250 ms. The send interval of the second, 100 ms since the
    // first, bounds the rate, regardless of the ACKs.
    let mut rate = DeliveryRate::default();
    let first = rate.handle_sent(at(0), 0);
    rate.handle_delivered(at(150), &first);
    rate.poll_sample(at(150), Duration::ZERO);
    let second = rate.handle_sent(at(160), 1);
    let third = rate.handle_sent(at(260), 2);
    rate.handle_delivered(at(300), &second);
    rate.poll_sample(at(300), Duration::ZERO);
    rate.handle_delivered(at(300), &third);
    let sample = rate.poll_sample(at(300), Duration::ZERO).expect("a packet was delivered");
    // Sent 260, the first of its flight at 0 (in flight were others): 260 ms of sending; two
    // delivered since the ACK at 150 ms. The longer one counts.
    assert_eq!((sample.delivered, sample.interval), (2, Duration::from_millis(260)));
}

#[test]
fn a_sample_shorter_than_the_min_rtt_is_discarded() {
    let mut rate = DeliveryRate::default();
    let stamp = rate.handle_sent(at(0), 0);
    rate.handle_delivered(at(10), &stamp);
    assert_eq!(rate.poll_sample(at(10), Duration::from_millis(50)), None);
}

#[test]
fn an_ack_that_delivers_nothing_gives_no_sample() {
    assert_eq!(DeliveryRate::default().poll_sample(at(10), Duration::ZERO), None);
}

#[test]
fn samples_are_app_limited_only_while_the_sender_is_starved() {
    let mut rate = DeliveryRate::default();
    rate.handle_starved(0);
    let starved = rate.handle_sent(at(0), 0);
    rate.handle_delivered(at(50), &starved);
    assert!(rate.poll_sample(at(50), Duration::ZERO).unwrap().app_limited);
    // Two packets were delivered, one more than were in flight when the application became the limit: the phase is over.
    let busy = rate.handle_sent(at(50), 1);
    rate.handle_delivered(at(100), &busy);
    rate.poll_sample(at(100), Duration::ZERO);
    let after = rate.handle_sent(at(100), 1);
    rate.handle_delivered(at(150), &after);
    assert!(!rate.poll_sample(at(150), Duration::ZERO).unwrap().app_limited);
}
