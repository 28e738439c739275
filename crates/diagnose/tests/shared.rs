//! Parallel connections on one path.

use proptest::prelude::*;
use sweetspot_diagnose::{Class, Evidence, Flow, Limits, name_shared_paths};
use sweetspot_units::{Bytes, Duration, Rate, Time};

/// A flow from `port` of one host to another that fills its path, at `mbit` Mbit/s from second `begun` to second `ended`.
fn flow(host: u8, port: u16, mbit: u64, [begun, ended]: [u64; 2]) -> Flow {
    let lasted = Duration::from_secs(ended - begun);
    let mut evidence = Evidence::default();
    evidence.goodput = Rate::from_mbit_per_second(mbit);
    evidence.capacity = Some(evidence.goodput);
    evidence.lasted = lasted;
    let ends = [([192, 0, 2, 1], port).into(), ([192, 0, 2, host], 80).into()];
    let limits = Limits::only(Class::Bandwidth, lasted);
    let mut flow = Flow::new(ends[0], ends[1], limits, &evidence);
    let at = |seconds| Time::ZERO + Duration::from_secs(seconds);
    flow.span = Some((at(begun), at(ended)));
    flow
}

proptest! {
    #[test]
    fn the_capacity_of_a_shared_path_is_the_sum_of_its_flows(rates in prop::collection::vec(10..30u64, 2..9)) {
        let mut flows: Vec<Flow> =
            (1..).zip(&rates).map(|(port, mbit)| flow(2, port, *mbit, [0, 10])).collect();
        name_shared_paths(&mut flows);
        let sum = rates.iter().sum::<u64>();
        for flow in &flows {
            let shared = flow.shared_path.expect("the others carry a part");
            prop_assert_eq!(shared.others, rates.len() as u64 - 1);
            prop_assert!((shared.together_bps / 1e6 - sum as f64).abs() < 1e-6);
            let share = format!("capacity of {:.1} Mbit/s", flow.goodput_bps / 1e6);
            prop_assert!(!flow.verdict.words.contains(&share), "{}", flow.verdict.words);
        }
    }
}

#[test]
fn flows_to_other_hosts_or_at_other_times_share_no_path() {
    let mut flows = [flow(2, 1, 20, [0, 10]), flow(3, 2, 20, [0, 10]), flow(2, 3, 20, [10, 20])];
    name_shared_paths(&mut flows);
    assert!(flows.iter().all(|flow| flow.shared_path.is_none()));
    assert!(flows[0].verdict.words.contains("capacity of 20.0 Mbit/s"), "{:?}", flows[0].verdict);
    // A flow that lasted half of the time adds half of its rate: 20 + 20 / 2 Mbit/s.
    let mut flows = [flow(2, 1, 20, [0, 10]), flow(2, 2, 20, [5, 10])];
    name_shared_paths(&mut flows);
    let together = flows.map(|flow| flow.shared_path.map(|shared| shared.together_bps / 1e6));
    assert_eq!(together, [Some(30.0), Some(40.0)]);
}

/// A window of 40 kB per 80 ms is 4 Mbit/s. The other flow keeps 40 ms of queue.
#[test]
fn a_full_window_beside_a_flow_that_keeps_the_queue_is_the_limit() {
    let windowed = |port| {
        let mut evidence = *flow(2, port, 4, [0, 10]).evidence();
        evidence.fills_window = true;
        evidence.window = Some(Bytes::new(40_000));
        evidence.rtt_min = Some(Duration::from_millis(40));
        evidence.rtt = Some(Duration::from_millis(80));
        let Flow { source, destination, limits, span, .. } = flow(2, port, 4, [0, 10]);
        let mut flow = Flow::new(source, destination, limits, &evidence);
        flow.span = span;
        flow
    };
    let mut flows = [windowed(1), flow(2, 2, 40, [0, 10])];
    name_shared_paths(&mut flows);
    let [one, other] = &flows;
    let words = &one.verdict.words;
    assert_eq!((one.verdict.class, one.shared_path), (Class::ReceiverWindow, None), "{words}");
    assert!(words.contains("Other connections keep a queue"), "{words}");
    // A larger window would take a share from the other flow.
    assert_eq!(one.verdict.gain, None);
    assert_eq!(other.verdict.class, Class::Bandwidth);
    assert!(!other.evidence().others_fill_path);
    // Alone, or beside another full window, it keeps the queue itself.
    for mut flows in [vec![windowed(1)], vec![windowed(1), windowed(2)]] {
        name_shared_paths(&mut flows);
        assert!(flows.iter().all(|flow| flow.verdict.class == Class::Bandwidth));
    }
}
