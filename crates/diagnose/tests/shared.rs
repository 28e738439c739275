//! Parallel connections on one path.

use proptest::prelude::*;
use sweetspot_diagnose::{Class, Evidence, Flow, Limits, name_shared_paths};
use sweetspot_units::{Duration, Rate, Time};

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
