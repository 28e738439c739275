//! The verdict on the device's own buffer.

use sweetspot_advise::router::{Favour, Parameters, RouterQuestion, Simulated, advise};
use sweetspot_units::{Bytes, Rate};

use crate::simulation::simulated;
use crate::{lasting, poisson, question};

#[test]
fn for_persistent_flows_the_square_root_rule_rates_the_device() {
    let words = |packets: u64| {
        let available = Some(Bytes::new(1500 * packets));
        advise(&RouterQuestion { available, ..lasting() }).unwrap().answer(80).replace('\n', " ")
    };
    assert!(words(249).contains("too small") && words(251).contains(": enough"));
    assert!(words(5001).contains("more than either rule asks for"));
    // Each of 100,000 flows has 0.1 packets in flight when a buffer of C T is full.
    let crowd = RouterQuestion { flows: Some(100_000), ..lasting() };
    let crowd = advise(&crowd).unwrap();
    assert!(crowd.answer(80).contains("the link is overloaded"));
    assert_eq!(crowd.recommended.buffer.get(), 30.0);
    let label = "for the bursts of single flows, more than C T / sqrt(n)";
    assert!(crowd.answer(200).contains(label), "{}", crowd.answer(200));
    // Reno's models do not hold for flows with fewer than four packets in flight.
    assert_eq!(crowd.recommended.loss, None);
    // Without the number of flows, it is unknown whether they persist.
    let unknown = advise(&RouterQuestion { flows: None, ..lasting() }).unwrap();
    assert!(unknown.text(false, 80).replace('\n', " ").contains("their number would decide"));
}

#[test]
fn for_unknown_flow_sizes_a_square_root_buffer_is_not_too_small() {
    // C T is 100,000 packets, or 5 per flow; 150 MB / sqrt(20,000) = 1.06 MB.
    let words = |available: u64| {
        let q = RouterQuestion {
            rate: "40Gbit/s".parse().unwrap(),
            rtt: "30ms".parse().unwrap(),
            flows: Some(20_000),
            available: Some(Bytes::new(available)),
            ..question("100Gbit/s")
        };
        advise(&q).unwrap().answer(200)
    };
    assert!(
        words(1_000_000)
            .contains("667 packets (1 MB): too small by both rules (707 and 100000 packets)")
    );
    let between = words(16_000_000);
    assert!(
        between
            .contains("10667 packets (16 MB): between C T / sqrt(n) and the buffer for transfers that come and go: enough if all flows persist"),
        "{between}"
    );
    assert!(words(160_000_000).contains("more than either rule asks for"));
}

#[test]
fn the_answer_rates_the_device_buffer() {
    let words = |bytes: u64| {
        let available = Some(Bytes::new(bytes));
        let q = RouterQuestion { available, parameters: poisson(), ..question("10Gbit/s") };
        advise(&q).unwrap().answer(200)
    };
    assert!(words(30_000).contains("too small"));
    // The recommended buffer is 823 packets, 1.2 MB.
    assert!(words(1_200_000).contains(": enough"));
    let large = words(100_000_000);
    assert!(large.contains("more than recommended: bulk transfers get"), "{large}");
    // At 1 Gbit/s, 100 MB take 800 ms.
    assert!(
        large.contains("delays all traffic by 800 ms") && large.contains("configure less"),
        "{large}"
    );
}

#[test]
fn advice_for_a_smaller_buffer_states_the_cost_to_bulk_transfers() {
    // The loss 1 / B is 1/3000 with 3000 packets, and twelve times as high with the formula's buffer for short transfers.
    let words = |parameters| {
        let available = Some(Bytes::new(4_500_000));
        let q =
            RouterQuestion { available, parameters, favour: Favour::Short, ..question("10Gbit/s") };
        advise(&q).unwrap().answer(80).replace("\n        ", " ")
    };
    let known = words(poisson());
    assert!(known.contains("configure less, although bulk transfers fall from"), "{known}");
    let unknown = words(Parameters::default());
    assert!(unknown.contains("the cost to bulk transfers is not predicted"), "{unknown}");
}

/// A simulation of this link may contradict the regression; the measured loss of `poisson` is better than a simulation.
#[test]
fn a_device_that_suffices_by_formula_alone_is_an_estimate() {
    let words = |parameters| {
        let rate = Rate::from_mbit_per_second(50);
        let q = RouterQuestion { rate, parameters, ..question("500Mbit/s") };
        let buffer = advise(&q).unwrap().recommended.buffer.get();
        let available = Some(Bytes::new((buffer * 1500.0) as u64 + 1500));
        advise(&RouterQuestion { available, ..q }).unwrap().answer(200)
    };
    let estimate = "enough by this estimate; simulate it to be sure";
    assert!(!words(poisson()).contains(estimate), "{}", words(poisson()));
    assert!(words(poisson()).contains(": enough"), "{}", words(poisson()));
    let formula = words(Parameters::default());
    assert!(formula.contains(estimate), "{formula}");
}

/// 200 packets of 1500 B. Loss and rates depend on the number of flows, which is not given.
#[test]
fn a_smaller_device_buffer_is_reported_in_packets_with_its_known_effect() {
    let q = RouterQuestion { available: Some(Bytes::new(300_000)), ..question("10Gbit/s") };
    let advice = advise(&q).unwrap();
    let line = "device  200 packets (300 kB): less than recommended: no formula predicts the rates";
    assert!(advice.answer(200).contains(line), "{}", advice.answer(200));
    let answer = advice.decided_by(without_bulk()).answer(200);
    let line = "device  200 packets (300 kB): less than recommended: loses 1 % instead of 1 %";
    assert!(answer.contains(line), "{answer}");
}

/// All buffers have a loss of 1 %, and too few bulk transfers finish for a median.
fn without_bulk() -> Simulated {
    let mut table = simulated([1, 1, 1]);
    table.buffers.iter_mut().for_each(|buffer| buffer.bulk.flows = 1);
    Simulated { scale: 0.1, ..table }
}

#[test]
fn insignificant_costs_to_bulk_transfers_are_not_reported() {
    let available = Some(Bytes::new(800 * 1500));
    let q = RouterQuestion { available, favour: Favour::Short, ..question("10Gbit/s") };
    let words = |kbit: u64| {
        let mut table = simulated([4, 4, 4]);
        table.buffers[1].bulk.rate = Rate::from_bits_per_second(kbit * 1000);
        advise(&q).unwrap().decided_by(table).answer(200)
    };
    // Each rate has a standard error of 0.1 Mbit/s.
    assert!(words(4100).contains("; configure less\n"), "{}", words(4100));
    let large = words(8000).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(large.contains("bulk transfers fall from 8 to 5.7"), "{large}");
}

/// A narrow terminal folds lines directly below a table as if they were its rows.
#[test]
fn an_empty_line_separates_the_table_from_its_legend() {
    let text = advise(&question("10Gbit/s")).unwrap().text(false, 60);
    let (table, _) = text.split_once("\n  full ").unwrap();
    assert!(table.ends_with('\n'), "{text}");
}

/// 250 / sqrt(20) = 55.9 packets; the device's own buffer is printed as given.
#[test]
fn rules_round_bytes_to_whole_packets() {
    let q = RouterQuestion {
        rate: "50Mbit/s".parse().unwrap(),
        flows: Some(20),
        available: Some(Bytes::new(100_000)),
        ..question("500Mbit/s")
    };
    let text = advise(&q).unwrap().text(false, 80);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for cells in ["BDP/sqrt(n) 56 84 kB", "available 67 100 kB"] {
        assert!(text.contains(cells), "{cells}: {text}");
    }
}

/// A full queue at most a tenth longer than the recommended one is no reason to configure less.
#[test]
fn a_slightly_larger_buffer_is_enough() {
    let advice = |available| {
        let available = Some(Bytes::new(available));
        let q = RouterQuestion { available, parameters: poisson(), ..question("10Gbit/s") };
        advise(&q).unwrap()
    };
    let own = advice(1500).recommended.buffer.get();
    let words = |share: f64| advice((own * share * 1500.0) as u64).answer(200);
    let enough = format!(": enough; {own:.0} would do");
    assert!(words(1.1).contains(&enough), "{}", words(1.1));
    assert!(words(1.2).contains("more than recommended"), "{}", words(1.2));
}
