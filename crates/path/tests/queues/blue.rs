use sweetspot_path::{Blue, BlueConfig, Link, Queue};
use sweetspot_units::{Bytes, Duration, Rate, Time, Volume};

use crate::{Numbered, at, packet};

const PACKET: Bytes = Bytes::new(1000);
const LIMIT: u64 = 10;

fn blue(config: BlueConfig) -> Blue<Numbered> {
    Blue::new(Volume::Packets(LIMIT), config, 7)
}

/// A packet arrives at a full queue at this time.
fn overflow(blue: &mut Blue<Numbered>, millis: u64) {
    let mut number = 0;
    while blue.packets() + 1 < LIMIT {
        let _ = blue.enqueue(at(millis), packet(number), PACKET, PACKET);
        number += 1;
    }
    assert!(blue.enqueue(at(millis), packet(number), PACKET, PACKET).is_err());
}

#[test]
fn overflows_raise_the_probability_once_per_freeze_time() {
    // Overflows at 150, 200 and 300 ms: the second is within 100 ms of the first.
    let mut blue = blue(BlueConfig::default());
    overflow(&mut blue, 150);
    overflow(&mut blue, 200);
    assert_eq!(blue.probability(), 0.02);
    overflow(&mut blue, 300);
    assert_eq!(blue.probability(), 0.04);
}

#[test]
fn an_idle_link_lowers_the_probability_once_per_freeze_time() {
    let mut blue = blue(BlueConfig::default());
    overflow(&mut blue, 150);
    while blue.dequeue(at(160), &mut |_| {}).is_some() {}
    // Idle from 160 to 480 ms: decrements are due at 250, 350 and 450 ms.
    blue.enqueue(at(480), packet(99), PACKET, Bytes::ZERO).unwrap();
    assert!((blue.probability() - (0.02 - 3.0 * 0.002)).abs() < 1e-12, "{}", blue.probability());
}

#[test]
fn a_slight_overload_settles_at_the_drop_probability_that_removes_it() {
    // 8 Mbit/s are a packet per ms; one arrives every 0.95 ms, so 5 % are too many.
    let mut link = Link::new(Rate::from_mbit_per_second(8), blue(BlueConfig::default()));
    let mut refused = 0;
    for number in 0..100_000 {
        let now = Time::ZERO + Duration::from_micros(950) * number;
        while link.poll_departure(now, &mut |_| {}).is_some() {}
        refused += u64::from(link.handle_arrival(now, packet(number)).is_err() && number > 50_000);
    }
    let share = refused as f64 / 50_000.0;
    assert!((0.045..0.07).contains(&share), "{share}");
    let probability = link.queue().probability();
    assert!((0.02..0.12).contains(&probability), "{probability}");
}

#[test]
fn an_ecn_capable_packet_is_marked_and_never_dropped_early() {
    let mut blue = blue(BlueConfig { ecn: true, increment: 1.0, ..BlueConfig::default() });
    overflow(&mut blue, 150);
    while blue.dequeue(at(160), &mut |_| {}).is_some() {}
    let capable = Numbered { ecn_capable: true, ..packet(1) };
    blue.enqueue(at(161), capable, PACKET, PACKET).unwrap();
    assert!(blue.enqueue(at(161), packet(2), PACKET, PACKET).is_err());
    assert!(blue.dequeue(at(162), &mut |_| {}).unwrap().0.marked);
}
