use sweetspot_path::{Queue, Red, RedConfig};
use sweetspot_units::{Bytes, Duration, Volume};

use crate::{Numbered, at, packet};

const PACKET: Bytes = Bytes::new(1000);

fn config() -> RedConfig {
    let limit = Volume::Packets(60);
    RedConfig { lower: 5.0, upper: 15.0, ..RedConfig::new(limit, PACKET, Duration::from_millis(1)) }
}

/// Pushes packet `number` while another is in service.
fn push(red: &mut Red<Numbered>, number: u64) -> Result<(), Numbered> {
    red.enqueue(at(0), packet(number), PACKET, PACKET)
}

#[test]
fn the_average_is_a_weighted_moving_average_of_the_queue() {
    // w_q = 0.5, queue lengths on arrival 0, 1, 2, 3: averages 0, 0.5, 1.25, 2.125.
    let mut red = Red::new(RedConfig { weight: 0.5, ..config() }, 1);
    let mut averages = Vec::new();
    for number in 0..4 {
        push(&mut red, number).unwrap();
        averages.push(red.average());
    }
    assert_eq!(averages, [0.0, 0.5, 1.25, 2.125]);
}

#[test]
fn the_average_decays_while_idle_as_if_packets_found_an_empty_queue() {
    // Average 2.125 as above, then drained. After 3 ms idle at 1 ms per packet, (1 - 0.5)^3 of it
    // is left; then the arrival's own sample of zero halves it: 2.125 / 16.
    let mut red = Red::new(RedConfig { weight: 0.5, ..config() }, 1);
    for number in 0..4 {
        push(&mut red, number).unwrap();
    }
    while red.dequeue(at(10), &mut |_| {}).is_some() {}
    red.enqueue(at(13), packet(4), PACKET, Bytes::ZERO).unwrap();
    assert!((red.average() - 2.125 / 16.0).abs() < 1e-12, "{}", red.average());
}

/// Share of 20,000 arrivals dropped at a queue held at `length`.
fn drop_share(config: RedConfig, length: u64) -> f64 {
    let mut red = Red::new(RedConfig { weight: 1.0, ..config }, 7);
    let mut number = 0;
    while red.packets() < length {
        let _ = push(&mut red, number);
        number += 1;
    }
    let mut dropped = 0;
    for _ in 0..20_000 {
        if push(&mut red, number).is_err() {
            dropped += 1;
        } else {
            red.dequeue(at(0), &mut |_| {});
        }
    }
    f64::from(dropped) / 20_000.0
}

#[test]
fn below_the_lower_threshold_nothing_is_dropped() {
    assert_eq!(drop_share(config(), 4), 0.0);
}

#[test]
fn the_drop_probability_rises_linearly_between_the_thresholds() {
    // At 10 of 5..15: p_b = 0.1 * 0.5 = 0.05. With count, the gap between drops is uniform on
    // 1..1/p_b = 20 packets, with a mean of 10.5: a share of 0.095.
    let share = drop_share(config(), 10);
    assert!((share - 1.0 / 10.5).abs() < 0.01, "{share}");
}

#[test]
fn gaps_between_early_drops_never_exceed_the_inverse_probability() {
    // p_b = 0.05 at 10: at the latest, the 20th packet after a drop is dropped.
    let mut red = Red::new(RedConfig { weight: 1.0, ..config() }, 3);
    let mut number = 0;
    while red.packets() < 10 {
        let _ = push(&mut red, number);
        number += 1;
    }
    let mut since = 0;
    for _ in 0..5000 {
        since += 1;
        if push(&mut red, number).is_err() {
            since = 0;
        } else {
            red.dequeue(at(0), &mut |_| {});
        }
        assert!(since <= 20);
    }
}

#[test]
fn gentle_red_rises_from_max_p_to_one_and_original_red_jumps() {
    // At 22, between 15 and 30, gentle RED has p_b = 0.1 + 0.9 * 7 / 15 = 0.52. A packet is dropped
    // at once with 0.52, otherwise the next one is certainly dropped (0.52 / 0.48 > 1). The mean
    // gap is 0.52 + 0.48 * 2 = 1.48.
    let share = drop_share(config(), 22);
    assert!((share - 1.0 / 1.48).abs() < 0.01, "{share}");
    // Without gentle, no packet is accepted above the upper threshold, so the queue cannot be held
    // there.
    let mut red = Red::new(RedConfig { weight: 1.0, gentle: false, ..config() }, 7);
    for number in 0..10_000 {
        let _ = push(&mut red, number);
    }
    assert_eq!(red.packets(), 15);
}

#[test]
fn in_byte_mode_the_drop_probability_scales_with_packet_size() {
    // The queue is held at 10 kB, with thresholds of 5 and 15 kB: p_b = 0.05 for 1000 bytes, 0.002
    // for 40.
    let config = RedConfig {
        limit: Volume::Bytes(Bytes::new(60_000)),
        lower: 5000.0,
        upper: 15_000.0,
        weight: 1.0,
        ..config()
    };
    let mut red = Red::new(config, 5);
    let mut number = 0;
    while red.bytes() < Bytes::new(10_000) {
        let _ = push(&mut red, number);
        number += 1;
    }
    let mut dropped = 0;
    for _ in 0..20_000 {
        let small = Numbered { size: 40, ..packet(0) };
        if red.enqueue(at(0), small, Bytes::new(40), PACKET).is_err() {
            dropped += 1;
        } else if red.bytes() > Bytes::new(10_000) {
            red.dequeue(at(0), &mut |_| {});
        }
    }
    // Gaps are uniform on 1 .. 1/0.002 = 500, with a mean of 250.
    let share = f64::from(dropped) / 20_000.0;
    assert!((share - 0.004).abs() < 0.001, "{share}");
}

#[test]
fn an_ecn_capable_packet_is_marked_instead_of_dropped_early() {
    // Held at 12 of 5..15, the expected share is about 0.13 (p_b = 0.07, mean gap 7.6).
    let mut red = Red::new(RedConfig { weight: 1.0, ecn: true, ..config() }, 7);
    let mut marked = 0;
    for number in 0..10_000 {
        let capable = Numbered { ecn_capable: true, ..packet(number) };
        red.enqueue(at(0), capable, PACKET, PACKET).expect("marked, not dropped");
        if red.packets() > 12 {
            let (head, _) = red.dequeue(at(0), &mut |_| {}).unwrap();
            marked += u32::from(head.marked);
        }
    }
    assert!((1200..1450).contains(&marked), "{marked}");
}

#[test]
fn the_same_seed_drops_the_same_packets() {
    let run = |seed| {
        let mut red = Red::new(RedConfig { weight: 0.2, ..config() }, seed);
        (0..3000u64)
            .filter(|number| {
                if number % 3 == 0 {
                    red.dequeue(at(0), &mut |_| {});
                }
                push(&mut red, *number).is_err()
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(run(9), run(9));
    assert_ne!(run(9), run(10));
}
