//! The words of the answer agree with its numbers.

use sweetspot_advise::router::{Favour, Mix, Parameters, RouterQuestion, advise};
use sweetspot_units::{Bytes, Rate};

use crate::simulation::simulated;
use crate::{lasting, poisson, question};

/// By M/M/1/B, p = 1 / B: 1/5000 with C T. The 4.5 losses that round to five then take 22,500 packets, 33.75 MB.
#[test]
fn the_predicted_loss_decides_which_transfers_of_a_file_are_long() {
    let of = |size: u64| {
        let mix = Mix::Sizes(vec![Bytes::new(1000), Bytes::new(size)]);
        RouterQuestion { mix, parameters: poisson(), ..question("10Gbit/s") }.usual_favour()
    };
    assert_eq!([of(33_000_000), of(34_000_000)], [Favour::Short, Favour::Throughput]);
}

/// C T of 250 packets; a transfer of 50 MB is far larger.
#[test]
fn the_latency_option_is_offered_only_where_it_gains() {
    let answer = |favour| {
        let rate = Rate::from_mbit_per_second(50);
        let size_mean = Some(Bytes::new(50_000_000));
        advise(&RouterQuestion { rate, size_mean, favour, ..question("500Mbit/s") })
            .unwrap()
            .answer(80)
    };
    let [bulk, latency] = [Favour::Throughput, Favour::Latency].map(answer);
    let queue = "queue   60 ms when full";
    assert!(bulk.contains(&format!("{queue}\n")), "{bulk}");
    assert!(
        latency.contains(&format!("{queue}; --favour latency gains nothing on this link\n")),
        "{latency}"
    );
}

/// 3/7 of 5000 / sqrt(400) packets are 107.1; 107 packets of 1500 B take 1.284 ms at 1 Gbit/s.
#[test]
fn the_delay_of_a_full_buffer_is_that_of_whole_packets() {
    let text = advise(&lasting()).unwrap().text(false, 80);
    assert!(text.contains("107  160.5 kB   1.28 "), "{text}");
}

#[test]
fn a_flow_at_the_mean_rate_is_listed_if_bulk_transfers_are_faster() {
    let parameters = Parameters { loss_a: Some(0.1), loss_b: Some(0.5), ..Parameters::default() };
    let rate = Rate::from_mbit_per_second(50);
    let advice = advise(&RouterQuestion { rate, parameters, ..question("10Mbit/s") }).unwrap();
    let r = &advice.recommended;
    assert!(r.short == r.flow && r.bulk > r.flow, "{r:?}");
    let answer = advice.answer(200);
    assert!(
        answer.contains(" for a transfer of 42.33 kB; ")
            && answer.contains(" for a transfer of 1.016 MB\n"),
        "{answer}"
    );
}

/// 250 packets lie between the 100 and the 800 that were simulated; C T is 5000 packets, 60 ms.
#[test]
fn a_warning_about_loss_consults_the_larger_buffers() {
    let warned = |losses: [f64; 3]| {
        let mut table = simulated([2, 4, 4]);
        table.buffers.iter_mut().zip(losses).for_each(|(buffer, loss)| buffer.loss = loss);
        advise(&lasting()).unwrap().decided_by(table).warnings().join(" ")
    };
    let worse = warned([0.05, 0.06, 0.07]);
    assert!(worse.contains("No larger buffer in the table loses less."), "{worse}");
    let better = warned([0.06, 0.06, 0.02]);
    let words =
        "With 5000 packets it would be 2 %, but a full buffer would delay all traffic by 60 ms.";
    assert!(better.contains(words), "{better}");
}

/// By nearest rank, half of the sizes are at most 80 kB, and 90 % at most 1 MB.
#[test]
fn a_simulation_of_a_files_mean_names_the_files_own_sizes() {
    let mix = Mix::Sizes([5_000, 80_000, 1_000_000].map(Bytes::new).to_vec());
    let advice = advise(&RouterQuestion { mix, ..question("10Gbit/s") }).unwrap();
    let text = advice.decided_by(simulated([2, 4, 4])).text(true, 1000);
    let words = "The file has a median of 80 kB, a 90th percentile of 1 MB and a maximum of 1 MB; the simulation draws Pareto sizes with its mean, 361.7 kB,";
    assert!(text.contains(words) && text.contains("medians of Pareto sizes: "), "{text}");
}

#[test]
fn a_missing_median_of_bulk_transfers_is_mentioned() {
    let mut table = simulated([2, 4, 4]);
    table.buffers.iter_mut().for_each(|buffer| buffer.bulk.flows = 0);
    let answer = advise(&question("10Gbit/s")).unwrap().decided_by(table).answer(400);
    assert!(
        answer.contains("; too few transfers above 8 x the mean finished for a median\n"),
        "{answer}"
    );
}

/// The table has 180 flows: 5000 / sqrt(180) = 372.7 packets.
#[test]
fn with_spare_capacity_the_rules_take_the_number_of_flows_simulated() {
    let q = RouterQuestion { load: Some(0.7), ..question("10Gbit/s") };
    let text = advise(&q).unwrap().decided_by(simulated([2, 4, 4])).text(true, 80);
    assert!(text.contains("  n            180 flows, as simulated\n"), "{text}");
    assert!(text.contains("  BDP/sqrt(n)      373 "), "{text}");
    assert!(text.contains("5000 pkt / sqrt(180) = 372.7 pkt"), "{text}");
}

#[test]
fn a_fuller_link_is_called_no_slower_only_if_no_rate_is_lower() {
    let warned = |short: u64| {
        let mut table = simulated([4, 4, 4]);
        table.buffers[0].used = 0.7;
        table.buffers[2].short.rate = Rate::from_bits_per_second(short);
        let (favour, parameters) = (Favour::Short, poisson());
        let q = RouterQuestion { favour, parameters, ..question("10Gbit/s") };
        let mut advice = advise(&q).unwrap().decided_by(table);
        advice.recommended.used = Some(0.7);
        advice.warnings().join(" ")
    };
    // The recommended buffer gives 1 Mbit/s; 0.95 Mbit/s are within two standard errors of that.
    for (short, words) in [(1_000_000, "are no slower"), (950_000, "are not significantly slower")]
    {
        assert!(warned(short).contains(words), "{}", warned(short));
    }
}

/// The mean transfer has 241 packets, more than the regression's 200, and the M/M/1/B loses 1 / 250: no transfer has five losses.
#[test]
fn a_file_outside_the_regression_has_one_source_and_a_caution() {
    let sizes = Mix::from_sizes("5kB\n80kB\n1MB\n").unwrap();
    let rate = Rate::from_mbit_per_second(50);
    let q = RouterQuestion { rate, mix: sizes, ..question("500Mbit/s") };
    let text = advise(&q.clone().with_favour(None)).unwrap().text(false, 200);
    assert!(
        text.starts_with("buffer  33 packets (49.5 kB) for short transfers, between"),
        "{text}"
    );
    assert!(text.contains("source  closed forms and the nearest link of a regression"), "{text}");
    assert!(text.contains("Warning: estimate only, sized for short transfers."), "{text}");
    assert!(text.contains("a loss of 0.40 %, a rough closed form's for C x T"), "{text}");
    assert!(
        !text.contains("Closed forms give the buffer") && !text.contains("predicted for C x T")
    );
    let given = advise(&q.with_favour(Some(Favour::Latency))).unwrap().text(false, 200);
    assert!(!given.contains("estimate only"), "{given}");
}
