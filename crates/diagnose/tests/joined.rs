//! Captures of one connection at both ends, with different clocks.

use std::net::SocketAddr;

use proptest::prelude::*;
use sweetspot_diagnose::joined::{Joined, Joining};
use sweetspot_trace::packet::{Flags, Options, Segment};
use sweetspot_units::{Duration, Time};

/// The true times at which a packet passes each end of the path, in microseconds; `None` if it was lost.
#[derive(Debug, Clone, Copy)]
struct Packet {
    forward: bool,
    number: u32,
    left: u64,
    arrived: Option<u64>,
}

/// A data packet every millisecond, delivered after `forward_delay` microseconds and acknowledged; one in `loses` is lost.
fn packets(forward_delay: u64, reverse_delay: u64, loses: Option<u32>) -> Vec<Packet> {
    (1..500)
        .flat_map(|number: u32| {
            let left = u64::from(number) * 1000;
            let lost = loses.is_some_and(|every| number.is_multiple_of(every));
            // A queue comes and goes.
            let arrived = left + forward_delay + u64::from(number % 7) * 500;
            let data = Packet { forward: true, number, left, arrived: (!lost).then_some(arrived) };
            let ack = Packet {
                forward: false,
                number,
                left: arrived,
                arrived: Some(arrived + reverse_delay),
            };
            [Some(data), (!lost).then_some(ack)]
        })
        .flatten()
        .collect()
}

fn segment(packet: &Packet, at: u64) -> Segment {
    let ends = [SocketAddr::from(([192, 0, 2, 1], 1)), SocketAddr::from(([192, 0, 2, 2], 2))];
    let [source, destination] = if packet.forward { ends } else { [ends[1], ends[0]] };
    Segment {
        time: Time::ZERO + Duration::from_micros(at),
        source,
        destination,
        seq: if packet.forward { packet.number * 1000 } else { 1 },
        ack: if packet.forward { 1 } else { packet.number * 1000 },
        flags: Flags { ack: true, ..Flags::default() },
        window: 1000,
        payload: if packet.forward { 1000 } else { 0 },
        header: 20,
        options: Options::default(),
        id: None,
        ttl: 64,
    }
}

/// Joins the sender's and the receiver's captures. The receiver's clock is ahead by `offset` seconds, and gains `drift` per
/// second.
fn join(packets: &[Packet], offset: u64, drift: f64, swapped: bool) -> Joined {
    let mut joining = Joining::default();
    let far = |at: u64| at + offset * 1_000_000 + (at as f64 * drift) as u64;
    let [mut near_side, mut far_side] = [Vec::new(), Vec::new()];
    for packet in packets {
        let (near, beyond) = match packet.forward {
            true => (Some(packet.left), packet.arrived),
            false => (packet.arrived, Some(packet.left)),
        };
        near_side.extend(near.map(|at| segment(packet, at)));
        far_side.extend(beyond.map(|at| segment(packet, far(at))));
    }
    let [first, second] = if swapped { [far_side, near_side] } else { [near_side, far_side] };
    let forward = |segment: &Segment| segment.payload > 0;
    first.iter().for_each(|segment| joining.first(segment, forward(segment)));
    second.iter().for_each(|segment| joining.second(segment, forward(segment)));
    joining.joined().unwrap()
}

proptest! {
    #[test]
    fn a_clock_offset_changes_neither_the_rtt_nor_the_queue(
        forward_delay in 1_000..50_000u64,
        reverse_delay in 1_000..50_000u64,
        offset in 0..100_000u64,
        swapped: bool,
    ) {
        let joined = join(&packets(forward_delay, reverse_delay, None), offset, 0.0, swapped);
        prop_assert_eq!(joined.first_is_nearer, !swapped);
        let rtt = (forward_delay + reverse_delay) as f64 / 1e6;
        prop_assert!((joined.rtt_s - rtt).abs() < 1e-5, "{} is not {rtt}", joined.rtt_s);
        // The clocks are compared on the assumption of equal delays in both directions.
        let expected = offset as f64 + (forward_delay as f64 - reverse_delay as f64) / 2e6;
        prop_assert!((joined.clock_offset_s - expected).abs() < 1e-5, "{joined:?}");
        // Queueing delays are 0 to 3 ms in steps of 0.5 ms, and 1.5 ms in the median; delays are kept to 3 %.
        let waited = joined.data.median_s - joined.data.min_s;
        prop_assert!((waited - 0.0015).abs() < 0.03 * joined.data.median_s + 1e-5, "{joined:?}");
        let steady = joined.acks.median_s - joined.acks.min_s;
        prop_assert!(steady.abs() < 0.03 * joined.acks.min_s + 1e-5, "{joined:?}");
        prop_assert_eq!((joined.data.lost, joined.acks.lost), (0, 0));
    }

    #[test]
    fn packets_only_in_the_first_capture_were_lost_between_them(every in 5..50u32, swapped: bool) {
        let packets = packets(10_000, 10_000, Some(every));
        let joined = join(&packets, 7, 0.0, swapped);
        let late = 499_000 - 2 * 20_000 - 3_000;
        // Packets sent shortly before the end may still be in flight.
        let lost = packets.iter().filter(|p| p.arrived.is_none() && p.left < late).count() as u64;
        let all = packets.iter().filter(|p| p.arrived.is_none()).count() as u64;
        prop_assert!((lost..=all).contains(&joined.data.lost), "{lost}..{all}: {joined:?}");
        prop_assert_eq!(joined.acks.lost, 0);
    }

    #[test]
    fn clock_drift_is_not_mistaken_for_a_queue(ppm in 1..200u32, swapped: bool) {
        let drift = f64::from(ppm) / 1e6;
        let joined = join(&packets(10_000, 10_000, None), 0, drift, swapped);
        let found = joined.clock_drift * 1e6;
        prop_assert!((found.abs() - f64::from(ppm)).abs() < 5.0, "{found} is not {ppm}");
        prop_assert!((joined.rtt_s - 0.02).abs() < 1e-4, "{joined:?}");
    }
}

#[test]
fn captures_of_different_connections_are_not_joined() {
    let mut joining = Joining::default();
    for packet in packets(10_000, 10_000, None) {
        joining.first(&segment(&packet, packet.left), packet.forward);
    }
    assert!(joining.joined().unwrap_err().to_string().contains("are the same in both"));
}
