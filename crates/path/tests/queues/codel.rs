use std::collections::VecDeque;

use proptest::prelude::*;
use sweetspot_path::{Codel, CodelConfig, Queue, Random};
use sweetspot_units::{Bytes, Time, Volume};

use crate::{Numbered, at, packet};

const PACKET: Bytes = Bytes::new(1000);

fn codel(config: CodelConfig) -> Codel<Numbered> {
    Codel::new(Volume::Packets(100_000), config)
}

/// The drop times of a standing queue: all packets arrive at 0, and then one leaves per millisecond.
fn drop_times(codel: &mut Codel<Numbered>, until: u64) -> Vec<u64> {
    for number in 0..5000 {
        codel.enqueue(at(0), packet(number), PACKET, PACKET).unwrap();
    }
    let mut times = Vec::new();
    for millis in 0..until {
        codel.dequeue(at(millis), &mut |_| times.push(millis));
    }
    times
}

#[test]
fn drops_follow_the_control_law() {
    // The sojourn time reaches the target at 5 ms and has been above it for an interval at 105 ms: the first drop. Then
    // at 105 + 100 / sqrt(1) = 205, + 100 / sqrt(2) = 275.7, + 100 / sqrt(3) = 333.4, + 50 = 383.4, + 44.7 = 428.2, each
    // rounded up to a whole millisecond.
    let times = drop_times(&mut codel(CodelConfig::default()), 430);
    assert_eq!(times, [105, 205, 276, 334, 384, 429]);
}

#[test]
fn a_queue_below_target_causes_no_drops() {
    let mut codel = codel(CodelConfig::default());
    for millis in 0..1000 {
        for number in 0..4 {
            codel.enqueue(at(millis), packet(number), PACKET, PACKET).unwrap();
        }
        for _ in 0..4 {
            codel.dequeue(at(millis + 4), &mut |p| panic!("dropped {p:?}")).unwrap();
        }
    }
}

#[test]
fn a_burst_shorter_than_the_interval_causes_no_drops() {
    let mut codel = codel(CodelConfig::default());
    for number in 0..90 {
        codel.enqueue(at(0), packet(number), PACKET, PACKET).unwrap();
    }
    for millis in 1..=90 {
        codel.dequeue(at(millis), &mut |p| panic!("dropped {p:?}")).unwrap();
    }
}

#[test]
fn the_last_packet_is_never_dropped_however_long_it_waited() {
    let mut codel = codel(CodelConfig::default());
    codel.enqueue(at(0), packet(0), PACKET, PACKET).unwrap();
    codel.enqueue(at(0), packet(1), PACKET, PACKET).unwrap();
    assert!(codel.dequeue(at(5000), &mut |p| panic!("dropped {p:?}")).is_some());
    assert!(codel.dequeue(at(9000), &mut |p| panic!("dropped {p:?}")).is_some());
}

#[test]
fn a_queue_that_returns_soon_resumes_the_previous_drop_rate() {
    // There are five drops (105 ... 384) since count was 1, then the queue empties. It stands again within 16 intervals,
    // so count starts at 5 - 1 = 4. After the first drop at 500 + 105, the next follows in 100 / sqrt(4) = 50 ms, the
    // one after in 100 / sqrt(5) = 44.7 ms, at 699.7.
    let mut codel = codel(CodelConfig::default());
    drop_times(&mut codel, 400);
    while codel.dequeue(at(400), &mut |_| {}).is_some() {}
    for number in 0..5000 {
        codel.enqueue(at(500), packet(number), PACKET, PACKET).unwrap();
    }
    let mut times = Vec::new();
    for millis in 500..=700 {
        codel.dequeue(at(millis), &mut |_| times.push(millis));
    }
    assert_eq!(times, [605, 655, 700]);
}

#[test]
fn marking_replaces_dropping_one_for_one() {
    let mut codel = codel(CodelConfig { ecn: true, ..CodelConfig::default() });
    for number in 0..5000 {
        let capable = Numbered { ecn_capable: true, ..packet(number) };
        codel.enqueue(at(0), capable, PACKET, PACKET).unwrap();
    }
    let mut marked = Vec::new();
    for millis in 0..430 {
        let head = codel.dequeue(at(millis), &mut |p| panic!("dropped {p:?}"));
        if head.unwrap().0.marked {
            marked.push(millis);
        }
    }
    assert_eq!(marked, [105, 205, 276, 334, 384, 429]);
}

#[test]
fn the_limit_includes_the_packet_in_service() {
    let mut codel = Codel::new(Volume::Packets(3), CodelConfig::default());
    assert!(codel.enqueue(at(0), packet(0), PACKET, PACKET).is_ok());
    assert!(codel.enqueue(at(0), packet(1), PACKET, PACKET).is_ok());
    assert_eq!(codel.enqueue(at(0), packet(2), PACKET, PACKET), Err(packet(2)));
}

/// The pseudocode of RFC 8289, section 5, for packets of one size. The queue holds numbers and arrival times in
/// nanoseconds.
#[derive(Default)]
struct PseudoCode {
    queue: VecDeque<(u64, u64)>,
    first_above_time: u64,
    drop_next: u64,
    count: u64,
    lastcount: u64,
    dropping: bool,
    dropped: Vec<u64>,
}

const TARGET: u64 = 5_000_000;
const INTERVAL: u64 = 100_000_000;

impl PseudoCode {
    fn control_law(t: u64, count: u64) -> u64 {
        t + (INTERVAL as f64 * (1.0 / (count as f64).sqrt())).round() as u64
    }

    fn drop(&mut self, p: Option<(u64, u64)>) {
        self.dropped.extend(p.map(|(number, _)| number));
    }

    fn dodequeue(&mut self, now: u64) -> (Option<(u64, u64)>, bool) {
        let r = self.queue.pop_front();
        let Some((_, tstamp)) = r else {
            self.first_above_time = 0;
            return (None, false);
        };
        let mut ok_to_drop = false;
        // bytes() <= MAXPACKET: only one packet is left.
        if now - tstamp < TARGET || self.queue.len() <= 1 {
            self.first_above_time = 0;
        } else if self.first_above_time == 0 {
            self.first_above_time = now + INTERVAL;
        } else if now >= self.first_above_time {
            ok_to_drop = true;
        }
        (r, ok_to_drop)
    }

    fn dequeue(&mut self, now: u64) -> Option<u64> {
        let (mut p, mut ok_to_drop) = self.dodequeue(now);
        if self.dropping {
            if !ok_to_drop {
                self.dropping = false;
            }
            while now >= self.drop_next && self.dropping {
                self.drop(p);
                self.count += 1;
                (p, ok_to_drop) = self.dodequeue(now);
                if ok_to_drop {
                    self.drop_next = PseudoCode::control_law(self.drop_next, self.count);
                } else {
                    self.dropping = false;
                }
            }
        } else if ok_to_drop {
            self.drop(p);
            (p, _) = self.dodequeue(now);
            self.dropping = true;
            let delta = self.count - self.lastcount;
            self.count = 1;
            if delta > 1 && now.saturating_sub(self.drop_next) < 16 * INTERVAL {
                self.count = delta;
            }
            self.drop_next = PseudoCode::control_law(now, self.count);
            self.lastcount = self.count;
        }
        p.map(|(number, _)| number)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// Packets of 1 ms arrive at up to three times the link's rate, in phases, for a minute. Each packet is dropped, or
    /// sent, when the pseudocode drops or sends it.
    #[test]
    fn every_packet_is_handled_as_in_the_rfcs_pseudocode(
        phases in prop::collection::vec((0.2..3.0_f64, 100_usize..8000), 1..10), seed: u64,
    ) {
        let (mut ours, mut rfc) = (codel(CodelConfig::default()), PseudoCode::default());
        let mut random = Random::new(seed);
        let gaps = phases.iter().flat_map(|(load, packets)| std::iter::repeat_n(1e6 / load, *packets));
        let (mut now, mut free, mut dropped) = (1.0_f64, 1_000_000_u64, Vec::new());
        for (number, gap) in (0..).zip(gaps) {
            now -= gap * (1.0 - random.unit()).ln();
            let arrival = now as u64;
            while free < arrival {
                let sent = rfc.dequeue(free);
                let mine = ours.dequeue(Time::from_nanos(free), &mut |p| dropped.push(p.number));
                prop_assert_eq!(mine.map(|(p, _)| p.number), sent);
                prop_assert_eq!(&dropped, &rfc.dropped);
                // An idle link serves the next packet on arrival.
                free = if sent.is_some() { free + 1_000_000 } else { arrival };
            }
            rfc.queue.push_back((number, arrival));
            ours.enqueue(Time::from_nanos(arrival), packet(number), PACKET, PACKET).unwrap();
        }
    }
}
