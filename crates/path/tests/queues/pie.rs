use sweetspot_path::{Link, Pie, PieConfig, Queue};
use sweetspot_units::{Bytes, Duration, Rate, Time, Volume};

use crate::{Numbered, at, packet};

const PACKET: Bytes = Bytes::new(1000);

fn pie(config: PieConfig) -> Pie<Numbered> {
    Pie::new(Volume::Packets(100_000), config, 7)
}

/// The fate of packets that arrive every `gap`, starting at `from`, at a link of a packet per millisecond.
struct Overload {
    dropped: f64,
    arrived: f64,
    delays: Vec<f64>,
}

fn overload(gap: Duration, from: Time, until: Time) -> Overload {
    let mut link = Link::new(Rate::from_mbit_per_second(8), pie(PieConfig::new(PACKET)));
    let mut seen = Overload { dropped: 0.0, arrived: 0.0, delays: Vec::new() };
    let (mut now, mut number) = (Time::ZERO, 0);
    while now < until {
        while link.poll_departure(now, &mut |_| {}).is_some() {}
        let refused = link.handle_arrival(now, packet(number)).is_err();
        if now >= from {
            seen.arrived += 1.0;
            seen.dropped += f64::from(u8::from(refused));
            seen.delays.push(link.waiting_packets() as f64 / 1e3);
        }
        number += 1;
        now += gap;
    }
    seen
}

#[test]
fn unresponsive_traffic_is_held_at_the_target_delay() {
    // 2000 packets/s for 1000: half must be dropped. The integral part of the controller leaves no steady-state error,
    // so the mean delay is the target of 15 ms.
    let seen = overload(Duration::from_micros(500), at(40_000), at(80_000));
    let share = seen.dropped / seen.arrived;
    assert!((share - 0.5).abs() < 0.01, "{share}");
    let mean = seen.delays.iter().sum::<f64>() / seen.delays.len() as f64;
    assert!((mean - 0.015).abs() < 0.003, "{mean}");
}

#[test]
fn a_queue_below_half_the_target_causes_no_drops() {
    let mut pie = pie(PieConfig::new(PACKET));
    for millis in (0..5000).step_by(7) {
        for number in 0..7 {
            pie.enqueue(at(millis), packet(number), PACKET, PACKET).unwrap();
        }
        // The last packet waits for 7 ms < 15 / 2.
        for wait in 1..=7 {
            pie.dequeue(at(millis + wait), &mut |p| panic!("dropped {p:?}")).unwrap();
        }
    }
    assert_eq!(pie.probability(), 0.0);
}

#[test]
fn a_burst_within_the_burst_allowance_passes() {
    // 149 ms of packets arrive at once at an empty queue, and more follow: nothing is dropped until 150 ms have passed.
    let mut pie = pie(PieConfig::new(PACKET));
    for number in 0..140 {
        pie.enqueue(at(0), packet(number), PACKET, PACKET).unwrap();
    }
    for millis in 1..140 {
        pie.enqueue(at(millis), packet(millis), PACKET, PACKET).unwrap();
        pie.dequeue(at(millis), &mut |p| panic!("dropped {p:?}")).unwrap();
    }
}

#[test]
fn the_drop_probability_follows_the_control_law() {
    // A packet that waited for 115 ms is served at 115 ms, and another follows. The update at 120 ms adds (alpha (115 -
    // 15) ms + beta 115 ms) / 2048 while the probability is below 1e-6.
    let mut pie = pie(PieConfig::new(PACKET));
    for number in 0..3 {
        pie.enqueue(at(0), packet(number), PACKET, PACKET).unwrap();
    }
    pie.dequeue(at(115), &mut |_| {}).unwrap();
    pie.enqueue(at(121), packet(3), PACKET, PACKET).unwrap();
    let first = (0.125 * 0.100 + 1.25 * 0.115) / 2048.0;
    assert!((pie.probability() - first).abs() < 1e-12, "{}", pie.probability());
    // At 135 ms the delay is unchanged and the probability between 1e-5 and 1e-4, so the step is a 128th.
    pie.enqueue(at(136), packet(4), PACKET, PACKET).unwrap();
    let second = first + 0.125 * 0.100 / 128.0;
    assert!((pie.probability() - second).abs() < 1e-12, "{}", pie.probability());
}

#[test]
fn an_ecn_capable_packet_is_marked_while_the_probability_is_low() {
    let config = PieConfig { marks_up_to: 0.1, ..PieConfig::new(PACKET) };
    let mut link = Link::new(Rate::from_mbit_per_second(8), pie(config));
    let (mut marked, mut dropped) = (0, 0);
    for number in 0..40_000 {
        let now = Time::ZERO + Duration::from_micros(950) * number;
        while let Some((_, packet)) = link.poll_departure(now, &mut |_| {}) {
            marked += u64::from(packet.marked);
        }
        let capable = Numbered { ecn_capable: true, ..packet(number) };
        let refused = link.handle_arrival(now, capable).is_err();
        dropped += u64::from(refused);
        assert!(!refused || link.queue().probability() > 0.1);
    }
    assert!(marked > 0 && dropped > 0, "{marked} marked, {dropped} dropped");
}
