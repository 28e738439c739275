use proptest::prelude::*;
use sweetspot_tcp::congestion::Prr;

#[test]
fn half_a_window_is_sent_evenly_during_recovery() {
    // RFC 6937 section 4's example: a window of 20, the first packet lost, ssthresh 10. Each of the 19 ACKs delivers one
    // packet; over the recovery every second ACK releases one packet. This test starts with the third duplicate.
    let mut prr = Prr::new(10.0, 20);
    let mut sent = Vec::new();
    let mut pipe = 17;
    for _ in 0..10 {
        let allowed = prr.handle_ack(1, pipe, false);
        prr.handle_sent(allowed);
        pipe = pipe - 1 + allowed;
        sent.push(allowed);
    }
    assert_eq!(sent, [1, 0, 1, 0, 1, 0, 1, 0, 1, 0]);
}

#[test]
fn after_heavy_loss_the_flight_grows_no_faster_than_slow_start() {
    // One packet of 20 is still in flight, ssthresh 10. An ACK that advances without a new loss releases the arrivals and
    // one more; any other ACK releases only the arrivals.
    let mut prr = Prr::new(10.0, 20);
    assert_eq!(prr.handle_ack(1, 1, true), 2);
    prr.handle_sent(2);
    assert_eq!(prr.handle_ack(1, 2, true), 2);
    prr.handle_sent(2);
    assert_eq!(prr.handle_ack(1, 3, false), 1);
}

#[test]
fn the_first_ack_always_allows_the_retransmission() {
    assert_eq!(Prr::new(2.0, 100).handle_ack(0, 99, false), 1);
}

proptest! {
    #[test]
    fn once_below_ssthresh_the_flight_never_exceeds_it(
        ssthresh in 2u32..50,
        flight in 4u32..100,
        acks in prop::collection::vec((0u32..4, any::<bool>()), 1..100),
    ) {
        let mut prr = Prr::new(f64::from(ssthresh), flight);
        let mut pipe = flight;
        let mut first = true;
        for (delivered, clean) in acks {
            pipe -= delivered.min(pipe);
            let allowed = prr.handle_ack(delivered, pipe, clean);
            if !first && pipe <= ssthresh {
                prop_assert!(pipe + allowed <= ssthresh.max(pipe + 1));
            }
            first = false;
            prr.handle_sent(allowed);
            pipe += allowed;
        }
    }
}
