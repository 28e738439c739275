//! Properties of the router advice on random links.

use sweetspot_advise::router::{
    BufferChoice, Favour, Mix, Parameters, RouterQuestion, Simulated, advise,
};
use sweetspot_theory::reno::l_model;
use sweetspot_theory::reno::s_model::ShortFlow;
use sweetspot_units::{Bytes, Duration, Probability, Rate};

use crate::simulation::simulated;
use crate::{poisson, question};

/// A link of 10^`rate` bit/s with an RTT of 10^`rtt` s and a capacity ratio of 10^`inputs`, which carries transfers of 10^`size`
/// bytes.
fn link((rate, rtt): (f64, f64), inputs: f64, size: Option<f64>) -> RouterQuestion {
    let ten = |exponent: f64| 10f64.powf(exponent);
    RouterQuestion {
        rate: Rate::from_f64(ten(rate)),
        rtt: Duration::from_secs_f64(ten(rtt)),
        input_rate: Rate::from_f64(ten(rate - inputs)),
        size_mean: size.map(|size| Bytes::from_f64(ten(size))),
        ..question("1Gbit/s")
    }
}

/// C x T in packets.
fn bdp(link: &RouterQuestion) -> f64 {
    link.rate.as_f64() * link.rtt.as_secs_f64() / (link.packet.as_f64() * 8.0)
}

proptest::proptest! {
    // Some laws hold only for part of the random links.
    #![proptest_config(proptest::test_runner::Config { max_global_rejects: 65_536, ..Default::default() })]

    #[test]
    fn law_stating_the_assumed_size_changes_nothing(
        (rate, rtt) in (7.0..11.0, -3.0..-0.3),
        (inputs, flows) in (-1.3..1.3, proptest::option::of(1..100_000u64)),
        load in proptest::option::of(0.1..1.0),
        mix in proptest::sample::select(vec![Mix::Short, Mix::Bulk]),
        favour in proptest::sample::select(vec![Favour::Throughput, Favour::Short, Favour::Latency]),
    ) {
        let link = link((rate, rtt), inputs, None);
        proptest::prop_assume!(bdp(&link) >= 5.0);
        let q = RouterQuestion { flows, load, mix, favour, ..link };
        let assumed = advise(&q).unwrap();
        let given = advise(&RouterQuestion { size_mean: Some(assumed.size_mean), ..q }).unwrap();
        proptest::prop_assert_eq!(&assumed.recommended, &given.recommended);
        proptest::prop_assert_eq!((assumed.basis, assumed.range), (given.basis, given.range));
        proptest::prop_assert_eq!(assumed.two_rules, given.two_rules);
        proptest::prop_assert_eq!(assumed.rules, given.rules);
    }
    #[test]
    fn law_short_transfers_never_get_a_larger_buffer_than_bulk_transfers(
        (rate, rtt) in (7.0..11.0, -3.0..-0.3),
        (inputs, flows) in (-1.3..1.3, proptest::option::of(1..100_000u64)),
        (size, load) in (3.0..9.0, proptest::option::of(0.1..1.0)),
        favour in proptest::sample::select(vec![Favour::Short, Favour::Latency]),
    ) {
        let link = link((rate, rtt), inputs, Some(size));
        proptest::prop_assume!(bdp(&link) >= 5.0);
        let of = |favour| advise(&RouterQuestion { flows, load, favour, ..link.clone() });
        // The advice is refused if all flows persist.
        if let Ok(advice) = of(favour) {
            let most = of(Favour::Throughput).unwrap().recommended.buffer;
            proptest::prop_assert!(advice.recommended.buffer <= most, "{most}: {advice:?}");
        }
    }
    #[test]
    fn law_no_flow_beats_tcp_at_its_own_loss_and_rtt(
        (rate, rtt) in (7.0..11.0, -3.0..-0.3),
        (inputs, flows) in (-1.3..1.3, proptest::option::of(1..100_000u64)),
        size in proptest::option::of(3.0..9.0),
        parameters in proptest::sample::select(vec![Parameters::default(), poisson()]),
        mix in proptest::sample::select(vec![Mix::Short, Mix::Bulk]),
    ) {
        let link = link((rate, rtt), inputs, size);
        proptest::prop_assume!(bdp(&link) >= 5.0);
        let q = RouterQuestion {
            flows,
            parameters,
            mix,
            ..link
        };
        let advice = advise(&q).unwrap();
        let mean = ShortFlow::new(advice.size_mean, q.packet).unwrap();
        for choice in advice.rules.iter().chain([&advice.recommended]) {
            let (Some(flow), Some(loss)) = (choice.flow, choice.loss) else { continue };
            let loss = Probability::new(loss).unwrap();
            let rtt = q.rtt + choice.mean_delay.unwrap();
            // The limit is eq. (2), and eq. (3) too if closed forms replace the regression. Rates are rounded to 1 bit/s, RTTs to
            // 1 ns.
            let short = mean.throughput(rtt, loss).map_or(f64::MAX, Rate::as_f64);
            let long = l_model::throughput(q.packet, rtt, loss).map_or(f64::MAX, Rate::as_f64);
            let max = if advice.is_closed_form() { short.min(long) } else { short };
            proptest::prop_assert!(flow.as_f64() <= max * 1.000_01 + 1.0, "{choice:?} {max}");
        }
    }
    #[test]
    fn law_flow_rates_add_up_to_at_most_the_link_utilisation(
        (rate, rtt) in (7.0..11.0, -3.0..-0.3),
        (inputs, flows) in (-1.3..1.3, proptest::option::of(1..100_000u64)),
        size in proptest::option::of(3.0..9.0),
    ) {
        let link = link((rate, rtt), inputs, size);
        proptest::prop_assume!(bdp(&link) >= 5.0);
        let q = RouterQuestion {
            flows,
            ..link
        };
        let advice = advise(&q).unwrap();
        let two = advice.two_rules.iter().flat_map(|two| [&two.persistent, &two.transfers]);
        for choice in advice.rules.iter().chain([&advice.recommended]).chain(two) {
            let (Some(flow), Some(used)) = (choice.flow, choice.used) else { continue };
            // Each rate is rounded to a bit per second.
            let together = (flow.as_f64() - 1.0) * advice.flows as f64;
            proptest::prop_assert!(together <= q.rate.as_f64() * used, "{choice:?}");
            let is_between = choice.short.is_none_or(|short| short <= flow)
                && choice.bulk.is_none_or(|bulk| flow <= bulk);
            proptest::prop_assert!(is_between, "{choice:?}");
        }
    }
    #[test]
    fn law_closed_forms_predict_no_loss_or_rates_on_an_unfilled_link(
        (rate, rtt) in (7.0..11.0, -3.0..-0.3),
        (inputs, flows) in (-1.3..1.3, 1..1000u64),
        size in 4.0..9.0,
    ) {
        let link = link((rate, rtt), inputs, Some(size));
        proptest::prop_assume!(bdp(&link) >= 5.0);
        let advice = advise(&RouterQuestion { flows: Some(flows), ..link }).unwrap();
        proptest::prop_assume!(advice.is_closed_form() && advice.offered <= 0.98);
        let r = &advice.recommended;
        proptest::prop_assert_eq!((r.loss, r.short, r.bulk, r.mean_delay), (None, None, None, None));
        proptest::prop_assert!((r.used.unwrap() - advice.offered).abs() < 1e-9);
    }
    #[test]
    fn law_more_flows_need_more_buffer_only_if_their_size_is_unknown(
        (rate, rtt) in (7.0..11.0, -3.0..-0.3),
        (inputs, flows) in (-1.3..1.3, 4..100_000u64),
        size in proptest::option::of(4.5..5.5),
        mix in proptest::sample::select(vec![Mix::Short, Mix::Bulk]),
        favour in proptest::sample::select(vec![Favour::Throughput, Favour::Short]),
    ) {
        let link = link((rate, rtt), inputs, size);
        proptest::prop_assume!(bdp(&link) >= 5.0);
        let of = |flows: u64| {
            let q = RouterQuestion {
                flows: Some(flows),
                mix: mix.clone(),
                favour,
                ..link.clone()
            };
            advise(&q).unwrap()
        };
        let (few, many) = (of(flows), of(flows + flows.div_ceil(4)));
        let grows = many.recommended.buffer.get() / few.recommended.buffer.get();
        let is_shorter = many.size_mean < few.size_mean;
        // Path and buffer hold fewer than about four packets per flow, so that no buffer helps.
        let is_overloaded = 2.0 * bdp(&link) < 5.0 * flows as f64;
        proptest::prop_assert!(is_shorter || is_overloaded || grows <= 1.05, "{grows} {few:?}");
        let said = few.text(true, 80).replace('\n', " ").contains("More flows would need a larger buffer");
        proptest::prop_assert_eq!(said, grows > 1.0 && is_shorter);
    }
    #[test]
    fn law_the_default_text_is_short_and_agrees_with_its_table(
        (rate, rtt) in (7.0..11.0, -3.0..-0.3),
        (inputs, flows) in (-1.3..1.3, proptest::option::of(1..100_000u64)),
        size in proptest::option::of(3.0..9.0),
        favour in proptest::sample::select(vec![Favour::Throughput, Favour::Short, Favour::Latency]),
        parameters in proptest::sample::select(vec![Parameters::default(), poisson()]),
    ) {
        let link = link((rate, rtt), inputs, size);
        proptest::prop_assume!(bdp(&link) >= 5.0);
        let advice = advise(&RouterQuestion { flows, favour, parameters, ..link });
        // The advice is refused if none of the flows is short.
        proptest::prop_assume!(favour == Favour::Throughput || advice.is_ok());
        let advice = advice.unwrap();
        let text = advice.text(false, 80);
        let mut parts = text.split("\n\n");
        let (answer, reason) = (parts.next().unwrap(), parts.next().unwrap().replace('\n', " "));
        let sentences = reason.split(". ").filter(|rest| rest.starts_with(char::is_uppercase)).count();
        proptest::prop_assert!(sentences <= 3, "{reason}");
        proptest::prop_assert!(answer.starts_with("buffer ") && text.matches("packets  ").count() == 1, "{text}");
        // No formula predicts a loss of zero.
        let lossless = |choice: &BufferChoice| choice.loss == Some(0.0);
        proptest::prop_assert!(!advice.rules.iter().chain([&advice.recommended]).any(lossless), "{text}");
        proptest::prop_assert!(!advice.text(true, 80).contains(" 0 %"), "{text}");
        let of = |bulk: Option<Rate>, short| if favour == Favour::Throughput { bulk } else { short };
        let own = of(advice.recommended.bulk, advice.recommended.short);
        let others = advice.rules.iter().filter_map(|rule| of(rule.bulk, rule.short)).max();
        if let (Some(own), Some(best)) = (own, others) {
            let claims = reason.contains("No other buffer in the table makes");
            // Rates are printed with three digits.
            proptest::prop_assert!(!claims || best.as_f64() <= 1.01 * own.as_f64(), "{text}");
            proptest::prop_assert!(!reason.contains(" would have ") || best > own, "{text}");
        }
    }
    #[test]
    fn simulation_never_lowers_the_bulk_rate_or_exceeds_the_rules_buffer(
        bulk in proptest::array::uniform3(1..100u64),
        errors in proptest::array::uniform3(0..10_000_000u64),
        seeds in 2..8u64,
        bulk_favoured: bool,
    ) {
        let favour = if bulk_favoured { Favour::Throughput } else { Favour::Short };
        let q = RouterQuestion { favour, parameters: poisson(), ..question("10Gbit/s") };
        let mut table = Simulated { seeds, ..simulated(bulk) };
        for (buffer, error) in table.buffers.iter_mut().zip(errors) {
            buffer.bulk.error = Rate::from_bits_per_second(error);
        }
        let advice = advise(&q).unwrap().decided_by(table);
        // C T is 5000 packets.
        proptest::prop_assert!(advice.recommended.buffer.get() <= 5000.0);
        if bulk_favoured {
            proptest::prop_assert!(advice.recommended.bulk.unwrap() >= Rate::from_mbit_per_second(bulk[2]));
        }
    }
    #[test]
    fn law_a_buffer_for_short_transfers_delays_by_at_most_one_rtt(
        (rate, rtt) in (7.0..11.0, -3.0..-0.3),
        (inputs, flows) in (-1.3..1.3, 1..1000u64),
        size in 4.0..11.0,
        latency: bool,
    ) {
        let link = link((rate, rtt), inputs, Some(size));
        proptest::prop_assume!(bdp(&link) >= 5.0);
        let favour = if latency { Favour::Latency } else { Favour::Short };
        let q = RouterQuestion { flows: Some(flows), favour, ..link };
        let lasting = advise(&RouterQuestion { favour: Favour::Throughput, ..q.clone() }).unwrap();
        match advise(&q) {
            // Flows of such a size persist.
            Err(refused) => {
                proptest::prop_assert_eq!(lasting.two_rules.map(|two| two.persistence), Some(1.0));
                proptest::prop_assert!(refused.to_string().starts_with("favour "), "{refused}");
            }
            // 20 packets hold the bursts of single flows (Table II).
            Ok(advice) => {
                let buffer = advice.recommended.buffer.get();
                proptest::prop_assert!(buffer <= bdp(&q).max(20.0) + 1e-6, "{}", buffer);
            }
        }
    }
    #[test]
    fn a_small_input_change_never_doubles_or_halves_the_buffer(
        (rate, rtt) in (7.0..11.0, -3.0..-0.3),
        (inputs, each) in (-1.3..1.3, -1.0..4.0),
        with_flows: bool,
        size in proptest::option::of(4.0..9.0),
        favour in proptest::sample::select(vec![Favour::Throughput, Favour::Short, Favour::Latency]),
    ) {
        // Log-uniform: 10 Mbit/s to 100 Gbit/s, 1 to 500 ms, C_out / C_in from 1/20 to 20, and C T of 0.1 to 10,000 packets per
        // flow. From there, 30 steps of 5 % increase the number of flows by a factor of 4.3.
        let ten = |exponent: f64| 10f64.powf(exponent);
        let bdp = ten(rate + rtt) / 12_000.0;
        proptest::prop_assume!(bdp >= 5.0);
        let buffer = |rate_by: f64, flows: f64, size_by: f64| {
            let q = RouterQuestion {
                rate: Rate::from_f64(ten(rate) * rate_by),
                rtt: Duration::from_secs_f64(ten(rtt)),
                input_rate: Rate::from_f64(ten(rate - inputs)),
                flows: with_flows.then_some(flows as u64),
                size_mean: size.map(|size| Bytes::from_f64(ten(size) * size_by)),
                favour,
                ..question("1Gbit/s")
            };
            advise(&q).map(|advice| advice.recommended.buffer.get())
        };
        let first = (bdp / ten(each)).max(1.0);
        let mut flows = first;
        let begin = buffer(1.0, first, 1.0);
        // All flows, or only the larger ones, may persist.
        proptest::prop_assume!(favour == Favour::Throughput || begin.is_ok());
        let mut last = [begin.unwrap(); 3];
        for step in 1..=30 {
            let count = flows.floor();
            // One flow more if 5 % is less than one.
            flows = (flows * 1.05).max(count + 1.0);
            let by = 1.05f64.powi(step);
            let now = [buffer(by, first, 1.0), buffer(1.0, flows, 1.0), buffer(1.0, first, by)];
            for (was, is) in last.iter_mut().zip(now) {
                let Ok(is) = is else {
                    proptest::prop_assert!(favour != Favour::Throughput);
                    continue;
                };
                proptest::prop_assert!((0.5..2.0).contains(&(is / *was)), "{was} {is}");
                *was = is;
            }
        }
    }
}

#[test]
fn law_the_explanation_and_the_answer_give_the_same_loss() {
    // The regression predicts a loss of 5.5 % for 20 flows with 175 packets. The flows use 89.5 % of the link, too much for such
    // a loss.
    let slow = RouterQuestion {
        rate: "50Mbit/s".parse().unwrap(),
        flows: Some(20),
        ..question("500Mbit/s")
    };
    let advice = advise(&slow).unwrap();
    let loss = 100.0 * advice.recommended.loss.unwrap();
    let formula = advice.formulas.iter().find(|formula| formula.what == "loss").unwrap();
    assert!(formula.numbers.ends_with(&format!(" lose only {loss:.2} %")), "{formula:?} {loss}");
}

/// 180 flows share 0.9 Gbit/s: 5 Mbit/s each. 6.25 MB take 10 s, as long as the warm-up; all users begin at once.
#[test]
fn a_warm_up_shorter_than_a_transfer_is_named() {
    let warns = |size: u64| {
        let q = RouterQuestion { size_mean: Some(Bytes::new(size)), ..question("10Gbit/s") };
        let decided = advise(&q).unwrap().decided_by(simulated([2, 4, 4]));
        decided.warnings().into_iter().find(|warning| warning.contains("the warm-up is only 10 s"))
    };
    assert!(warns(6_300_000).unwrap().contains("a transfer of 6.3 MB takes about 10 s"));
    assert_eq!(warns(6_200_000), None);
}

/// 98 % of 20 Mbit/s for each of 5 flows: no flow can be faster on average.
#[test]
fn a_rate_that_is_the_flows_share_is_not_called_too_low() {
    let q = RouterQuestion {
        rate: "20Mbit/s".parse().unwrap(),
        rtt: Duration::from_millis(40),
        flows: Some(5),
        size_mean: Some(Bytes::new(10_000_000)),
        ..question("1Gbit/s")
    };
    let advice = advise(&q).unwrap();
    assert_eq!(advice.recommended.bulk, Some(Rate::from_bits_per_second(3_920_000)));
    assert!(!advice.answer(200).contains("too low"), "{}", advice.answer(200));
}

/// 5000 packets / sqrt(1111) = 150.0; 7.5 MB are 5000 packets.
#[test]
fn the_rule_for_flows_that_persist_comes_with_its_number_of_flows() {
    let text = advise(&question("10Gbit/s")).unwrap().text(true, 200);
    assert!(text.contains("= 5000 pkt / sqrt(1111) = 150.0 pkt\n"), "{text}");
}
