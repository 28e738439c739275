//! Hops in series.

use proptest::prelude::*;
use sweetspot_path::{Chain, Direction, DirectionSpec};
use sweetspot_units::{Bytes, Duration, Probability, Rate, Time, Volume};

use crate::elements::{Numbered, at_us};

const MTU: Bytes = Bytes::new(1500);

fn hop(mbit: u64, delay_ms: u64, packets: u64) -> DirectionSpec {
    let (rate, delay) = (Rate::from_mbit_per_second(mbit), Duration::from_millis(delay_ms));
    DirectionSpec::new(rate, delay, Volume::Packets(packets))
}

/// The exit time and order of each packet, if the chain is polled at the times that `poll` gives between arrivals at hop
/// 0.
fn run(
    specs: &[DirectionSpec],
    arrivals: &[(u64, u64)],
    late_us: u64,
) -> (Vec<(Time, u64)>, Vec<u64>) {
    let mut chain: Chain<Numbered> = Chain::new(specs, MTU, 5);
    let (mut out, mut dropped, mut now) = (Vec::new(), Vec::new(), 0);
    for (n, (gap, size)) in (0_u64..).zip(arrivals) {
        now += gap;
        // As the emulator does: polled occasionally, never later than arrivals may still come.
        while let Some((due, packet)) = chain.poll_delivery(at_us(now.saturating_sub(late_us))) {
            out.push((due, packet.0));
        }
        chain.handle_arrival(at_us(now), (0, specs.len() - 1), Numbered(n, *size));
    }
    out.extend(std::iter::from_fn(|| chain.poll_delivery(Time::MAX)).map(|(t, p)| (t, p.0)));
    dropped.extend(std::iter::from_fn(|| chain.poll_dropped()).map(|d| d.packet.0));
    dropped.sort_unstable();
    let counters = chain.counters();
    assert!(counters.conserved() && counters.queued == 0);
    (out, dropped)
}

/// The reference: directions simulated one after another, each over the whole time.
fn one_after_the_other(specs: &[DirectionSpec], arrivals: &[(u64, u64)]) -> Vec<(Time, u64)> {
    let mut now = 0;
    let mut at: Vec<(Time, Numbered)> = (0_u64..)
        .zip(arrivals)
        .map(|(n, (gap, size))| {
            now += gap;
            (at_us(now), Numbered(n, *size))
        })
        .collect();
    for spec in specs {
        let mut direction = Direction::new(spec, MTU, 5);
        let mut out = Vec::new();
        for (time, packet) in at {
            let _ = direction.handle_arrival(time, packet);
        }
        out.extend(std::iter::from_fn(|| direction.poll_delivery(Time::MAX)));
        at = out;
    }
    at.into_iter().map(|(time, packet)| (time, packet.0)).collect()
}

proptest! {
    /// Neither drops nor exit times depend on when the chain is polled.
    #[test]
    fn a_chain_equals_its_hops_in_series_however_late_it_is_polled(
        rates in prop::collection::vec((1_u64..50, 0_u64..5, 3_u64..30), 1..4),
        arrivals in prop::collection::vec((0_u64..2000, 40_u64..1500), 1..200), late_us in 0_u64..20_000,
    ) {
        let specs: Vec<_> = rates.iter().map(|(rate, delay, room)| hop(*rate, *delay, *room)).collect();
        let (out, dropped) = run(&specs, &arrivals, 0);
        prop_assert_eq!(&out, &one_after_the_other(&specs, &arrivals));
        prop_assert_eq!(out.len() + dropped.len(), arrivals.len());
        prop_assert_eq!(run(&specs, &arrivals, late_us), (out, dropped));
    }

    #[test]
    fn a_chain_of_one_hop_equals_that_hop(
        loss in 0.0..0.5_f64, jitter in 0_u64..3, arrivals in prop::collection::vec((0_u64..2000, 40_u64..1500), 1..200),
    ) {
        let spec = DirectionSpec {
            loss: Probability::new(loss).unwrap(), jitter: Duration::from_millis(jitter), ..hop(10, 3, 9)
        };
        prop_assert_eq!(run(&[spec], &arrivals, 0).0, one_after_the_other(&[spec], &arrivals));
    }
}

#[test]
fn a_packet_crosses_only_the_hops_of_its_route() {
    // 1250 bytes take 1 ms at 10 Mbit/s; the hops add delays of 1, 2 and 4 ms.
    let specs = [hop(10, 1, 9), hop(10, 2, 9), hop(10, 4, 9)];
    for (route, ms) in [((0, 2), 10), ((0, 0), 2), ((1, 1), 3), ((1, 2), 8), ((2, 2), 5)] {
        let mut chain = Chain::new(&specs, MTU, 1);
        chain.handle_arrival(at_us(0), route, Numbered(0, 1250));
        let due = chain.poll_timeout().unwrap();
        assert!(due <= at_us(ms * 1000), "{route:?}");
        assert_eq!(chain.poll_delivery(at_us(ms * 1000 - 1)).map(|(due, _)| due), None);
        assert_eq!(
            chain.poll_delivery(Time::MAX).map(|(due, _)| due),
            Some(at_us(ms * 1000)),
            "{route:?}"
        );
    }
}

#[test]
fn packets_entering_at_a_later_hop_share_its_queue() {
    // The first packet reaches hop 1 at 2 ms; two that enter there at 2 ms wait for it.
    let mut chain = Chain::new(&[hop(10, 1, 9), hop(10, 0, 2)], MTU, 1);
    chain.handle_arrival(at_us(0), (0, 1), Numbered(0, 1250));
    for n in 1..3 {
        chain.handle_arrival(at_us(2000), (1, 1), Numbered(n, 1250));
    }
    let out: Vec<_> =
        std::iter::from_fn(|| chain.poll_delivery(Time::MAX)).map(|(t, p)| (t, p.0)).collect();
    assert_eq!(out, [(at_us(3000), 0), (at_us(4000), 1)]);
    // The buffer of two packets holds the one in service and one behind it.
    assert_eq!(chain.poll_dropped().map(|dropped| dropped.packet.0), Some(2));
    assert_eq!(chain.decided(1), Time::MAX);
}

/// The number of polls of a chain of `hops` equal hops with 30 packets, if it is polled whenever it requests that.
fn looks(hops: usize) -> usize {
    let specs = vec![hop(12, 3, 30); hops];
    let mut chain: Chain<Numbered> = Chain::new(&specs, MTU, 5);
    for n in 0..30 {
        assert!(chain.handle_arrival(Time::ZERO, (0, hops - 1), Numbered(n, 1500)));
    }
    let mut looks = 0;
    while let Some(due) = chain.poll_timeout() {
        looks += 1;
        while chain.poll_delivery(due).is_some() {}
    }
    assert_eq!(chain.counters().delivered, 30);
    looks
}

/// A chain asks to be polled for departures, not for internal events.
#[test]
fn each_further_hop_costs_one_poll_and_not_one_per_packet() {
    // Behind the first hop, packets are a service time apart, so the previous one has just been served. The bound on the
    // first packet's exit does not include service at later hops, which costs one poll per hop.
    assert_eq!([1, 2, 3].map(looks), [30, 31, 32]);
}
