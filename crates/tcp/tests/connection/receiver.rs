use proptest::prelude::*;
use sweetspot_tcp::{Arrival, Receiver, ReceiverConfig};

use crate::pair::{Pair, RECEIVER, SENDER, delaying, ms};

#[test]
fn every_second_packet_is_acknowledged_after_quickack_mode() {
    let acks = |receiver, packets| {
        let mut pair = Pair::new(SENDER, receiver, Some(packets));
        pair.run_until(ms(3000));
        assert!(pair.sender.is_done());
        pair.acks.len()
    };
    // The SYN and 40 packets acknowledged at once; then the SYN and every second packet.
    assert_eq!(acks(RECEIVER, 40), 41);
    assert_eq!(acks(delaying(0), 40), 21);
    // Linux: 16 at once, including the SYN, then every second one of the remaining 25. The last ACK waits for
    // the timer.
    assert_eq!(acks(delaying(16), 40), 16 + 13);
}

#[test]
fn a_delayed_ack_waits_at_most_its_delay_for_a_second_packet() {
    let mut pair = Pair::new(SENDER, delaying(0), Some(1));
    pair.run_until(ms(1000));
    // SYN (21 ms), SYN-ACK (41), data (62), and a delay of 100 ms.
    assert_eq!(pair.acks.last().unwrap().0, ms(162));
}

#[test]
fn the_receiver_sends_ece_until_it_sees_cwr() {
    let mut pair = Pair::new(SENDER, RECEIVER, Some(60)).marking(&[15]);
    pair.run_until(ms(3000));
    let echoing: Vec<u64> =
        pair.acks.iter().filter(|(_, ack)| ack.congestion_echo).map(|(_, ack)| ack.next).collect();
    let reduced = pair.sent.iter().find(|sent| sent.window_reduced).expect("the sender tells");
    // From the ACK of 15 to the ACK of the packet before the one with CWR (RFC 3168 section 6.1.3).
    assert_eq!(echoing.first(), Some(&16));
    assert_eq!(echoing.last(), Some(&reduced.number));
    assert_eq!(pair.sent.iter().filter(|sent| sent.window_reduced).count(), 1);
}

proptest! {
    #[test]
    fn the_right_window_edge_never_moves_back(
        steps in prop::collection::vec((1u64..50, prop::option::of(1u64..100)), 1..200),
        first in prop::option::of(1u64..20),
    ) {
        let mut receiver = Receiver::new(&ReceiverConfig { first_window: first, ..RECEIVER });
        let mut edge = 0;
        for (step, (number, window)) in steps.into_iter().enumerate() {
            if let Some(window) = window {
                receiver.set_window(window);
            }
            let now = ms(step as u64);
            // Numbers around the expected one: some in order, some beyond a hole, some duplicates.
            let number = (receiver.next() + number).saturating_sub(40);
            let arrival = Arrival { number, sent: now, congested: false, window_reduced: false };
            if let Some(ack) = receiver.handle_data(now, &arrival).ack {
                let right = ack.next + u64::from(ack.window);
                prop_assert!(right >= edge, "{right} < {edge}");
                edge = right;
            }
        }
    }
}

#[test]
fn a_smaller_window_takes_effect_as_data_arrives() {
    let mut receiver = Receiver::new(&ReceiverConfig { window: 100, ..RECEIVER });
    let arrive = |receiver: &mut Receiver, number| {
        let arrival = Arrival { number, sent: ms(0), congested: false, window_reduced: false };
        receiver.handle_data(ms(0), &arrival).ack.unwrap().window
    };
    assert_eq!(arrive(&mut receiver, 0), 100);
    receiver.set_window(40);
    // The advertised edge was 101: 60 packets must arrive before the offered window is 40.
    let windows: Vec<u32> = (1..=80).map(|number| arrive(&mut receiver, number)).collect();
    assert_eq!(windows[0], 99);
    assert_eq!(windows[59], 40);
    assert_eq!(windows[79], 40);
}

#[test]
fn out_of_order_packets_are_counted() {
    let mut receiver = Receiver::new(&RECEIVER);
    // 3 and 4 arrive before 2; 6 before 5, twice. 1 is old, and a packet that fills a hole is not ahead of a
    // missing one.
    let counted = [(0, 0), (1, 0), (3, 1), (4, 2), (2, 2), (6, 3), (6, 4), (1, 4), (5, 4), (7, 4)];
    for (number, expected) in counted {
        let arrival = Arrival { number, sent: ms(0), congested: false, window_reduced: false };
        receiver.handle_data(ms(0), &arrival);
        assert_eq!(receiver.out_of_order(), expected, "after {number}");
    }
    assert_eq!(receiver.next(), 8);
}
