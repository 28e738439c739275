//! Advice checked by a simulation.

use sweetspot_advise::router::{
    Basis, Favour, Mix, RouterAdvice, RouterQuestion, Simulated, SimulatedBuffer, SimulatedErrors,
    SimulatedRate, Source, advise,
};
use sweetspot_theory::Packets;
use sweetspot_units::{Bytes, Duration, Rate};

use crate::{lasting, poisson, question};

/// A simulation of three buffers; `bulk` has the rates of bulk transfers in Mbit/s, each +- 0.1.
pub fn simulated(bulk: [u64; 3]) -> Simulated {
    let rate = |mbit: u64, flows| SimulatedRate {
        rate: Rate::from_mbit_per_second(mbit),
        error: Rate::from_bits_per_second(100_000),
        flows,
    };
    let buffer = |(buffer, bulk): (f64, u64)| SimulatedBuffer {
        buffer: Packets::new(buffer).unwrap(),
        flows: 180.0,
        loss: 0.01,
        mean_delay: Duration::from_millis(5),
        used: 0.9,
        short: rate(1, 500),
        bulk: rate(bulk, 50),
        errors: SimulatedErrors::default(),
    };
    Simulated {
        rate: Rate::from_mbit_per_second(1000),
        scale: 1.0,
        users: 200,
        inputs: 20,
        warmup: 10,
        seconds: 30,
        seeds: 2,
        buffers: [100.0, 800.0, 5000.0].into_iter().zip(bulk).map(buffer).collect(),
        advised: 1,
        rule: 2,
    }
}

#[test]
fn persistent_flows_fill_the_link_in_the_simulator() {
    // 5000 / sqrt(400) = 250 packets.
    let advice = advise(&lasting()).unwrap();
    assert!((advice.recommended.buffer.get() - 250.0).abs() < 1e-9 && advice.can_be_simulated());
    let decided = |used: [f64; 3]| {
        let mut table = simulated([2, 4, 4]);
        for (buffer, used) in table.buffers.iter_mut().zip(used) {
            buffer.used = used;
        }
        advice.clone().decided_by(table)
    };
    assert!((decided([0.99, 1.0, 1.0]).recommended.buffer.get() - 250.0).abs() < 1e-9);
    // 98 % is 18 / 19 of the way from 80 to 99 %: 100 x 8^(18/19) = 717.0. 250 packets are ln(2.5) / ln(8) of that way.
    let more = decided([0.8, 0.99, 1.0]);
    assert!((more.recommended.buffer.get() - 717.0).abs() < 0.1, "{}", more.recommended.buffer);
    assert!((more.recommended.used.unwrap() - 0.98).abs() < 1e-9);
    let text = more.text(false, 80).replace('\n', " ");
    assert!(text.contains("250 packets, would use 88.4 % of the link"), "{text}");
}

/// 5000 packets of 1500 B at 1 Gbit/s are 60 ms.
#[test]
fn a_larger_buffers_gain_and_cost_are_shown_for_persistent_flows_too() {
    let text = |bulk| {
        let decided = advise(&lasting()).unwrap().decided_by(simulated(bulk));
        assert_eq!(decided.basis, Basis::SquareRoot);
        decided.text(false, 80).replace('\n', " ")
    };
    // 250 packets lie ln(2.5) / ln(8) of the way from 2 to 4 Mbit/s; full, they delay by 3 ms.
    let words = "With 5000 packets, bulk transfers get 6 instead of 2.9 Mbit/s, but when full it delays all traffic by 60 ms instead of 3 ms.";
    assert!(text([2, 4, 6]).contains(words), "{}", text([2, 4, 6]));
    assert!(!text([4, 4, 4]).contains("instead of 3 ms"));
}

#[test]
fn the_explanation_never_calls_an_idling_link_busy() {
    let advice = advise(&question("10Gbit/s")).unwrap();
    assert_eq!((advice.basis, advice.is_closed_form()), (Basis::BandwidthDelay, true));
    let text = |used| {
        let mut table = simulated([2, 4, 6]);
        table.buffers.iter_mut().for_each(|buffer| {
            (buffer.used, buffer.bulk.flows) = (used, 0);
        });
        advice.clone().decided_by(table).text(true, 80).replace('\n', " ")
    };
    let busy = "C x T keeps the link busy";
    assert!(text(0.746).contains("these flows use 74.6 % of it") && !text(0.746).contains(busy));
    assert!(text(0.96).contains(busy));
}

#[test]
fn bulk_transfers_get_the_rules_buffer_unless_another_is_significantly_better() {
    // The formula asks for 823 packets; C T is 5000.
    let advice = advise(&RouterQuestion { parameters: poisson(), ..question("10Gbit/s") }).unwrap();
    let decided = |bulk| advice.clone().decided_by(simulated(bulk)).recommended;
    for bulk in [[2, 4, 4], [2, 4, 6]] {
        assert_eq!(decided(bulk).buffer.get(), 5000.0);
    }
    assert_eq!(decided([2, 4, 6]).bulk, Some(Rate::from_mbit_per_second(6)));
    // t = 2 / 0.14 = 14.1 with one degree of freedom: p = 0.045.
    assert!((decided([2, 6, 4]).buffer.get() - 823.4).abs() < 0.1);
    // A difference of 0.1 Mbit/s may be chance.
    let mut close = simulated([2, 4, 4]);
    close.buffers[1].bulk.rate = Rate::from_bits_per_second(4_300_000);
    assert_eq!(advice.clone().decided_by(close).recommended.buffer.get(), 5000.0);
}

#[test]
fn the_explanation_reports_too_few_transfers_for_a_comparison() {
    for favour in [Favour::Throughput, Favour::Short, Favour::Latency] {
        let q = RouterQuestion { favour, parameters: poisson(), ..question("10Gbit/s") };
        let advice = advise(&q).unwrap();
        let mut table = simulated([2, 4, 4]);
        for buffer in &mut table.buffers {
            buffer.short.flows = 0;
            buffer.bulk.flows = 0;
        }
        // In that case the formula decides.
        let decided = advice.clone().decided_by(table);
        assert_eq!(decided.recommended.buffer, advice.recommended.buffer);
        let text = decided.text(true, 80).replace('\n', " ");
        assert!(text.contains("oo few") && text.contains("for a comparison."), "{text}");
        assert!(!text.contains("significantly better"), "{text}");
    }
}

#[test]
fn under_overload_the_bulk_buffer_approaches_the_formulas() {
    // The formula asks for 823.4 packets; C T is 5000. At 2^-1/2 of the loss of an overload, 9.375 %, the buffer is sqrt(823.4 x
    // 5000) = 2029.
    let advice = advise(&RouterQuestion { parameters: poisson(), ..question("10Gbit/s") }).unwrap();
    let decided = |loss: f64| {
        let mut table = simulated([2, 4, 4]);
        table.buffers[2].loss = loss;
        advice.clone().decided_by(table)
    };
    for (loss, packets) in [(0.046, 5000.0), (0.066_291, 2029.0), (0.0938, 823.4), (0.3, 823.4)] {
        let buffer = decided(loss).recommended.buffer.get();
        assert!((buffer / packets - 1.0).abs() < 1e-3, "{loss}: {buffer}");
    }
    // The loss is 1 % with 800 packets and 6.6 % with 5000: 2029 is ln(2029 / 800) / ln(5000 / 800) = 0.508 of the way of a power
    // law.
    let crowd = decided(0.066_291);
    assert_eq!((crowd.basis, crowd.json()["basis"].as_str()), (Basis::Crowd, Some("crowd")));
    assert!((crowd.recommended.loss.unwrap() - 0.01 * 6.6291_f64.powf(0.508)).abs() < 1e-4);
}

/// 180 flows use 90 % of 1 Gbit/s: each has 5 Mbit/s. The 95 % interval of two seeds is 12.7 standard errors, 1.27 Mbit/s.
#[test]
fn simulated_flow_rates_add_up_to_the_link_utilisation() {
    let advice = advise(&question("10Gbit/s")).unwrap();
    for scale in [1.0, 0.1] {
        let link = simulated([2, 4, 6]);
        let rate = Rate::from_mbit_per_second(if scale == 1.0 { 1000 } else { 100 });
        let decided = advice.clone().decided_by(Simulated { scale, rate, ..link });
        assert_eq!(decided.recommended.flow, Some(Rate::from_mbit_per_second(5)));
        let json = decided.json();
        assert_eq!(
            (json["active_flows"].as_u64(), json["flow_bps"].as_u64()),
            (Some(180), Some(5_000_000))
        );
        let answer = decided.answer(80).replace("\n        ", " ");
        let words = "rate    5 Mbit/s on average for each of about 180 flows; medians: 1 +- 1 Mbit/s for a transfer of";
        assert!(answer.contains(words), "{answer}");
        let part = answer.contains("simulation of 100 Mbit/s in place of 1 Gbit/s");
        assert_eq!(
            (part, answer.contains("simulation of the whole link")),
            (scale < 1.0, scale == 1.0)
        );
    }
}

#[test]
fn a_simulation_of_a_small_part_of_the_link_decides_nothing() {
    // By C T / sqrt(n), a hundredth of the link and the flows needs a tenth of the buffer, 10 times the link's share.
    let advice = advise(&RouterQuestion { parameters: poisson(), ..question("10Gbit/s") }).unwrap();
    let part = Simulated { scale: 0.01, ..simulated([2, 4, 6]) };
    let shown = advice.clone().decided_by(part);
    let kept =
        |advice: &RouterAdvice| (advice.recommended.buffer, advice.recommended.bytes, advice.basis);
    assert_eq!(kept(&shown), kept(&advice));
    assert_eq!(shown.json()["simulation"]["decides"], false);
    let text = shown.text(true, 80).replace("\n  ", " ").replace('\n', " ");
    assert!(text.contains("up to 10.0 times the share of buffer"), "{text}");
    assert!(text.contains("the simulation of only 1.00 % of the link"), "{text}");
    assert!(!text.lines().any(|line| line.ends_with("  take")), "{text}");
    // 1 / sqrt(0.5) is 1.4, less than one step between the buffers tried.
    assert!(Simulated { scale: 0.5, ..simulated([2, 4, 6]) }.decides());
}

#[test]
fn the_range_matches_the_table() {
    let q =
        RouterQuestion { favour: Favour::Latency, parameters: poisson(), ..question("10Gbit/s") };
    let advice = advise(&q).unwrap();
    let mut table = simulated([2, 4, 6]);
    // 800 packets are nearest to the advice. The rate with 100 packets is half as high, and with 5000 it is 95 %.
    for (buffer, kbit) in table.buffers.iter_mut().zip([500, 1000, 950]) {
        buffer.short.rate = Rate::from_bits_per_second(kbit * 1000);
    }
    let own = advice.recommended.buffer.get();
    table.buffers[1].buffer = advice.recommended.buffer;
    table.buffers[0].buffer = Packets::new(2.0).unwrap();
    // 90 % of the best is 900 kbit/s, geometrically 4/5 of the way. This is less than the formula asks for; the answer is the low
    // end of the range.
    let less = advice.clone().decided_by(table.clone());
    let smallest = 2.0 * (own / 2.0).powf(0.8);
    assert!((less.recommended.buffer.get() / smallest - 1.0).abs() < 1e-6, "{less:?}");
    assert_eq!(less.json()["range_90_percent"]["low_packets"], less.json()["buffer_packets"]);
    let found = less.text(true, 80).replace('\n', " ");
    assert!(found.contains("In the simulator it is the smallest buffer"), "{found}");
    assert!(found.starts_with(&format!("buffer  {smallest:.0} packets")), "{found}");
    assert!(!found.contains("best rate holds"), "{found}");
    // Short transfers are fastest with 5000 packets, and slower with a larger buffer.
    table.buffers[2].short.rate = Rate::from_bits_per_second(2_000_000);
    let above = SimulatedBuffer {
        buffer: Packets::new(20_000.0).unwrap(),
        short: table.buffers[0].short,
        ..table.buffers[2].clone()
    };
    table.buffers.push(above);
    let moved = advice.decided_by(table);
    let found = moved.text(true, 80).replace('\n', " ");
    assert!(moved.recommended.buffer.get() > own, "{moved:?}");
    assert!(found.contains("The best rate holds up to 5000 packets."), "{found}");
}

/// Short transfers have 0.8, 1 and 0.8 Mbit/s. Geometrically, 90 % of the best is halfway to either neighbour of the recommended
/// buffer, not at the last buffer tried before the rate falls below.
#[test]
fn the_90_percent_range_is_interpolated_at_both_ends() {
    let q = RouterQuestion { favour: Favour::Short, parameters: poisson(), ..question("10Gbit/s") };
    let advice = advise(&q).unwrap();
    let own = advice.recommended.buffer.get();
    let mut table = simulated([2, 4, 6]);
    for (buffer, kbit) in table.buffers.iter_mut().zip([800, 1000, 800]) {
        buffer.short.rate = Rate::from_bits_per_second(kbit * 1000);
    }
    table.buffers[1].buffer = advice.recommended.buffer;
    table.buffers[0].buffer = Packets::new(2.0).unwrap();
    let decided = advice.decided_by(table);
    let json = decided.json();
    let end = |name: &str| json["range_90_percent"][name].as_f64().unwrap();
    assert!((end("low_packets") / (2.0 * own).sqrt() - 1.0).abs() < 1e-6, "{json}");
    assert!((end("high_packets") / (5000.0 * own).sqrt() - 1.0).abs() < 1e-6, "{json}");
}

#[test]
fn a_link_with_fewer_than_four_packets_per_flow_is_overloaded() {
    let advice = advise(&RouterQuestion { parameters: poisson(), ..question("10Gbit/s") }).unwrap();
    let said = |loss: f64| {
        let mut table = simulated([2, 4, 6]);
        table.buffers[2].loss = loss;
        advice.clone().decided_by(table).text(false, 80).contains("the link is overloaded")
    };
    // sqrt(1.5 / p) = 4 at p = 9.375 %.
    assert!(said(0.0938) && !said(0.0937));
}

/// The rows of the table below the line that begins with `head`, by name.
fn rows(text: &str, head: &str) -> Vec<Vec<String>> {
    let lines = text.lines().skip_while(|line| !line.starts_with(head));
    let table = lines.skip_while(|line| !line.starts_with("  rule ")).skip(1);
    let is_row = |line: &&str| line.starts_with("  ") && !line.starts_with("   ");
    let table = table
        .take_while(is_row)
        .take_while(|line| !line.contains("full, mean ") && !line.starts_with("  -:"));
    table.map(|line| line.split_whitespace().map(str::to_owned).collect()).collect()
}

/// The buffers use 60 to 95 % of the link; with each of them, short transfers have 1 +- 0.1 Mbit/s.
#[test]
fn idling_the_link_without_gain_to_short_transfers_draws_a_warning() {
    let q = RouterQuestion { favour: Favour::Short, parameters: poisson(), ..question("10Gbit/s") };
    let warned = |used: [f64; 3], load| {
        let mut table = Simulated { advised: 0, ..simulated([2, 4, 6]) };
        for (buffer, used) in table.buffers.iter_mut().zip(used) {
            buffer.used = used;
        }
        let advice = advise(&RouterQuestion { load, ..q.clone() }).unwrap().decided_by(table);
        advice.warnings().iter().any(|warning| warning.contains("% of the link idle"))
    };
    assert!(warned([0.6, 0.8, 0.95], None));
    assert!(!warned([0.95, 0.96, 0.97], None));
    // A link that is idle at times by design.
    assert!(!warned([0.6, 0.8, 0.95], Some(0.7)));
}

#[test]
fn law_a_simulation_supplies_every_number_of_the_answer() {
    let q = RouterQuestion {
        available: Some(Bytes::new(1_500_000)),
        parameters: poisson(),
        ..question("10Gbit/s")
    };
    for (favour, scale) in
        [(Favour::Throughput, 1.0), (Favour::Short, 1.0), (Favour::Throughput, 0.1)]
    {
        let advice = advise(&RouterQuestion { favour, ..q.clone() }).unwrap();
        let decided = advice.clone().decided_by(Simulated { scale, ..simulated([2, 4, 6]) });
        // With all buffers the loss is 1 %, the delay 5 ms and the use 90 %; bulk transfers have 2 to 6 Mbit/s.
        let json = decided.json();
        assert_eq!(
            (json["source"].as_str(), json["loss"].as_f64()),
            (Some("simulation"), Some(0.01))
        );
        let rules = json["rules"].as_object().unwrap().iter();
        let device = ("device".to_owned(), json["available"].clone());
        let choices = rules.map(|(name, rule)| (name.clone(), rule.clone())).chain([device]);
        for (name, choice) in choices {
            assert_eq!(choice["source"], "simulation", "{choice}");
            // A buffer of 10,000 packets was not tried.
            let is_tried = (100.0 - 0.5 / scale..=5000.0 + 0.5 / scale)
                .contains(&choice["packets"].as_f64().unwrap());
            // A tenth of the link and of the flows would need 3.2 times the link's share of the buffer.
            let is_tried = is_tried
                && (scale == 1.0 || !["BDP/sqrt(n)", "Cubic", "BBR"].contains(&name.as_str()));
            assert_eq!(choice["loss"].as_f64(), is_tried.then_some(0.01), "{choice}");
            assert_eq!(choice["short_bps"].as_f64(), is_tried.then_some(1e6), "{choice}");
        }
        let text = decided.text(false, 80);
        assert!(
            text.contains("loss    1 %\n") && text.contains("use     90.0 % of the link\n"),
            "{text}"
        );
        let shown = rows(&text, "Buffers, by simulation");
        let first = shown.iter().find(|row| row[0] == "recommended").unwrap();
        // Buffers of 100, 800 and 5000 packets were tried, in steps of 1 / scale.
        let own = decided.recommended.buffer.get();
        let is_tried = [100.0, 800.0, 5000.0].iter().any(|b| (own - b).abs() <= 0.5 / scale);
        assert_eq!(first[1], format!("{}{own:.0}", if is_tried { "" } else { "~" }));
        assert_eq!(json["interpolated"].as_bool(), Some(!is_tried));
        assert!(text.contains(&format!("buffer  {own:.0} packets")), "{text}");
        assert!(
            shown
                .iter()
                .all(|row| row.iter().any(|cell| cell == "1")
                    || row.iter().any(|cell| cell == "-"))
        );
        assert_eq!(decided.recommended.source, Source::Simulation);
        // The formulas' numbers have their own table, and no loss is shown as 0 %.
        let all = decided.text(true, 80);
        assert!(
            all.contains("The same by formula alone:") && !text.contains("by formula alone"),
            "{all}"
        );
    }
}

#[test]
fn a_simulation_without_the_recommended_buffer_changes_no_numbers() {
    // The formula asks for 20 packets; the smallest buffer tried is 100.
    let q =
        RouterQuestion { favour: Favour::Latency, parameters: poisson(), ..question("10Gbit/s") };
    let advice = advise(&q).unwrap();
    let mut table = Simulated { scale: 0.1, ..simulated([2, 4, 6]) };
    table.buffers.remove(0);
    (table.advised, table.rule) = (0, 1);
    assert!(advice.recommended.buffer.get() < 795.0);
    assert_eq!(advice.clone().decided_by(table).recommended, advice.recommended);
}

#[test]
fn a_faster_larger_buffer_is_mentioned_once() {
    // Two seeds have one degree of freedom: 12.7 standard errors of 0.1 Mbit/s.
    let advice = advise(&RouterQuestion { parameters: poisson(), ..question("10Gbit/s") }).unwrap();
    let mut table = simulated([2, 4, 4]);
    table.buffers.push(SimulatedBuffer {
        buffer: Packets::new(20_000.0).unwrap(),
        ..table.buffers[2].clone()
    });
    table.buffers[3].bulk.rate = Rate::from_mbit_per_second(8);
    let text = advice.decided_by(table).text(false, 80).replace('\n', " ");
    assert_eq!(text.matches("up to C x T").count(), 1, "{text}");
    assert!(
        text.contains(
            "20000 packets, the largest buffer tried, would give 8 +- 1 Mbit/s, but delay all traffic by 240 ms"
        ),
        "{text}"
    );
}

#[test]
fn fewer_than_30_transfers_give_no_median_rate() {
    let advice = advise(&RouterQuestion { parameters: poisson(), ..question("10Gbit/s") }).unwrap();
    let decided = |flows| {
        let mut table = simulated([2, 4, 4]);
        table.buffers.iter_mut().for_each(|buffer| buffer.bulk.flows = flows);
        advice.clone().decided_by(table).recommended
    };
    assert_eq!((decided(29).bulk, decided(30).bulk), (None, Some(Rate::from_mbit_per_second(4))));
}

#[test]
fn advice_takes_its_numbers_from_the_simulation_that_checked_it() {
    let q =
        RouterQuestion { favour: Favour::Latency, parameters: poisson(), ..question("10Gbit/s") };
    let calm = advise(&q).unwrap();
    let mut table = Simulated { advised: 0, ..simulated([2, 4, 6]) };
    table.buffers[0].buffer = calm.recommended.buffer;
    let checked = calm.clone().decided_by(table);
    // For latency, less than the best rate is enough. The buffer stays, because short transfers are as fast with it.
    assert_eq!(checked.recommended.buffer, calm.recommended.buffer);
    assert_eq!(checked.recommended.loss, Some(0.01));
    assert_eq!(checked.json()["simulation"]["points"].as_array().unwrap().len(), 3);
}

/// The best rate is 2 Mbit/s, and the formula's buffer gives 1.4. 90 % is 1.8: geometrically two thirds of the way to 800
/// packets.
#[test]
fn a_buffer_for_latency_keeps_90_percent_of_the_best_simulated_rate() {
    let q =
        RouterQuestion { favour: Favour::Latency, parameters: poisson(), ..question("10Gbit/s") };
    let calm = advise(&q).unwrap();
    let own = calm.recommended.buffer.get();
    let mut table = Simulated { advised: 0, ..simulated([2, 4, 6]) };
    table.buffers[0].buffer = calm.recommended.buffer;
    for (buffer, kbit) in table.buffers.iter_mut().zip([1400, 2000, 1900]) {
        buffer.short.rate = Rate::from_bits_per_second(kbit * 1000);
    }
    let checked = calm.decided_by(table);
    let wanted = own * (800.0 / own).powf(2.0 / 3.0);
    assert!((checked.recommended.buffer.get() / wanted - 1.0).abs() < 1e-6, "{checked:?}");
    let short = checked.recommended.short.unwrap().as_f64();
    assert!((short / 1.8e6 - 1.0).abs() < 1e-6, "{short}");
    let text = checked.text(false, 80).replace('\n', " ");
    let smallest = "In the simulator it is the smallest buffer with which transfers of";
    assert!(text.contains(smallest), "{text}");
    // 800 packets of 12 us each.
    let best =
        "With 800 packets they reach that best rate, at a loss of 1 % and up to 9.6 ms of queue.";
    assert!(text.contains(best), "{text}");
}

/// 400 flows of 200 kB are between the two rules.
#[test]
fn simulated_short_transfers_get_no_larger_buffer_than_bulk_transfers() {
    for size in [200_000, 5_000_000, 50_000_000] {
        let of = |favour| {
            let size_mean = Some(Bytes::new(size));
            let q = RouterQuestion { favour, size_mean, flows: Some(400), ..question("10Gbit/s") };
            let mut table = simulated([2, 4, 6]);
            // Short transfers are fastest with C T, while too few bulk transfers finish for a comparison.
            for (buffer, mbit) in table.buffers.iter_mut().zip([1, 2, 4]) {
                buffer.short.rate = Rate::from_mbit_per_second(mbit);
                buffer.bulk.flows = 0;
            }
            advise(&q).map(|advice| advice.decided_by(table))
        };
        let most = of(Favour::Throughput).unwrap().recommended.buffer;
        for favour in [Favour::Short, Favour::Latency] {
            // Without short transfers, because all flows persist.
            let Ok(advice) = of(favour) else { continue };
            assert!(advice.recommended.buffer <= most, "{size} {favour:?} {most}: {advice:?}");
            let text = advice.text(true, 80);
            assert!(
                !text.contains("best rate holds") || text.contains("the smallest buffer"),
                "{text}"
            );
        }
    }
}

#[test]
fn the_answer_contains_each_warning() {
    let few = RouterQuestion { flows: Some(2), mix: Mix::Short, ..question("10Gbit/s") };
    let part = Simulated { scale: 0.01, ..simulated([2, 4, 6]) };
    let advice = advise(&few).unwrap().decided_by(part).unsimulated("a reason".to_owned());
    let said = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(advice.warnings().len(), 3);
    for warning in advice.warnings() {
        assert!(said(&advice.answer(80)).contains(&said(&warning)), "{warning}");
    }
    assert_eq!(advice.json()["warnings"], serde_json::json!(advice.warnings()));
}

#[test]
fn no_line_is_longer_than_80_columns() {
    for input in ["10Gbit/s", "100Mbit/s"] {
        for favour in [Favour::Throughput, Favour::Short, Favour::Latency] {
            let available = Some(Bytes::new(123_456_789));
            let q = RouterQuestion { favour, available, flows: Some(500), ..question(input) };
            for advice in
                [advise(&q).unwrap(), advise(&q).unwrap().decided_by(simulated([1, 2, 3]))]
            {
                let text = advice.text(true, 80);
                assert!(text.lines().all(|l| l.chars().count() <= 80), "{text}");
                let narrow = advice.answer(60);
                assert!(narrow.lines().all(|l| l.chars().count() <= 60), "{narrow}");
                let names = ["buffer", "queue", "loss", "use", "rate", "device"];
                let is_named = |name: &&str| text.lines().any(|line| line.starts_with(*name));
                assert!(names.iter().all(is_named), "{text}");
            }
        }
    }
}

/// The rule's buffer is 5000 packets, the largest tried.
#[test]
fn advice_for_a_full_bdp_offers_the_latency_option() {
    let hint = "; for less: --favour latency\n";
    let advice = advise(&RouterQuestion { parameters: poisson(), ..question("10Gbit/s") }).unwrap();
    let full = advice.clone().decided_by(simulated([2, 4, 4]));
    assert!(full.answer(200).contains(hint), "{}", full.answer(200));
    let smaller = advice.decided_by(simulated([2, 6, 4]));
    assert!(!smaller.answer(200).contains(hint), "{}", smaller.answer(200));
}
