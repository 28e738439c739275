//! Invariants of every discipline behind a link.

use proptest::prelude::*;
use sweetspot_path::{
    Blue, BlueConfig, Codel, CodelConfig, Discipline, DropTail, FqCodel, FqCodelConfig, Link, Pie,
    PieConfig, Queue, Red, RedConfig,
};
use sweetspot_units::{Bytes, Duration, Rate, Time, Volume};

use crate::{Numbered, packet};

const LIMIT: u64 = 20;

fn all() -> Vec<Discipline<Numbered>> {
    let limit = Volume::Packets(LIMIT);
    let packet_time = Duration::from_millis(1);
    let red = RedConfig { weight: 0.1, ..RedConfig::new(limit, Bytes::new(1000), packet_time) };
    vec![
        Discipline::DropTail(DropTail::new(limit)),
        Discipline::Red(Box::new(Red::new(red, 1))),
        Discipline::Codel(Box::new(Codel::new(limit, CodelConfig::default()))),
        Discipline::FqCodel(Box::new(FqCodel::new(FqCodelConfig::new(LIMIT), 1))),
        Discipline::Pie(Box::new(Pie::new(limit, PieConfig::new(Bytes::new(1000)), 1))),
        Discipline::Blue(Box::new(Blue::new(limit, BlueConfig::default(), 1))),
    ]
}

proptest! {
    #[test]
    fn every_discipline_conserves_packets_and_respects_its_limit(
        arrivals in prop::collection::vec((0u64..3_000, 40u64..1500, 0u64..4), 1..400),
    ) {
        for queue in all() {
            let mut link = Link::new(Rate::from_mbit_per_second(8), queue);
            let (mut now, mut refused, mut victims, mut out) = (0, 0u64, 0u64, 0u64);
            for (number, (gap, size, flow)) in arrivals.iter().enumerate() {
                now += gap;
                let at = Time::ZERO + Duration::from_micros(now);
                while link.poll_departure(at, &mut |_| victims += 1).is_some() {
                    out += 1;
                }
                let p = Numbered { flow: *flow, size: *size, ..packet(number as u64) };
                refused += u64::from(link.handle_arrival(at, p).is_err());
                let counters = link.counters();
                prop_assert!(counters.conserved());
                prop_assert_eq!(counters.dropped, refused + victims);
                prop_assert_eq!(counters.delivered, out);
                prop_assert_eq!(counters.queued, link.backlog_packets());
                prop_assert!(link.backlog_packets() <= LIMIT);
            }
            while link.poll_departure(Time::MAX, &mut |_| victims += 1).is_some() {
                out += 1;
            }
            prop_assert_eq!(out + refused + victims, arrivals.len() as u64);
            prop_assert_eq!(link.backlog(), Bytes::ZERO);
        }
    }

    #[test]
    fn byte_and_packet_counts_match_arrivals_and_departures(
        steps in prop::collection::vec((any::<bool>(), 40u64..1500, 0u64..4), 1..400),
    ) {
        for mut queue in all() {
            let (mut bytes, mut packets) = (0, 0u64);
            for (i, (push, size, flow)) in steps.iter().enumerate() {
                let now = Time::ZERO + Duration::from_millis(i as u64);
                if *push {
                    let p = Numbered { flow: *flow, size: *size, ..packet(i as u64) };
                    bytes += size;
                    packets += 1;
                    if let Err(rejected) = queue.enqueue(now, p, Bytes::new(*size), Bytes::ZERO) {
                        bytes -= rejected.size;
                        packets -= 1;
                    }
                } else {
                    let mut rejected = Vec::new();
                    let head = queue.dequeue(now, &mut |p| rejected.push(p));
                    for p in rejected.into_iter().chain(head.map(|(p, _)| p)) {
                        bytes -= p.size;
                        packets -= 1;
                    }
                }
                prop_assert_eq!(queue.packets(), packets);
                prop_assert_eq!(queue.bytes(), Bytes::new(bytes));
            }
        }
    }
}
