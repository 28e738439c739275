//! Invariants of the router advice.

use sweetspot_advise::router::{
    Basis, Favour, Mix, Parameters, RouterQuestion, Simulated, SimulatedBuffer, SimulatedRate,
    advise,
};
use sweetspot_theory::Packets;
use sweetspot_theory::router::capacity_ratio::Form;
use sweetspot_units::{Bytes, Duration, Rate};

fn question(input: &str) -> RouterQuestion {
    RouterQuestion {
        rate: "1Gbit/s".parse().unwrap(),
        rtt: "60ms".parse().unwrap(),
        input_rate: input.parse().unwrap(),
        inputs: None,
        flows: None,
        load: None,
        size_mean: None,
        mix: Mix::Bulk,
        favour: Favour::Throughput,
        available: None,
        packet: Bytes::new(1500),
        parameters: Parameters::default(),
        measurement: None,
    }
}

/// The M/M/1/B in heavy load: a = b = 1, f = 1/2.
fn poisson() -> Parameters {
    Parameters {
        loss_form: Some(Form::PowerLaw),
        loss_a: Some(1.0),
        loss_b: Some(1.0),
        delay_f: Some(0.5),
        tail_index: None,
    }
}

#[test]
fn short_transfers_under_a_known_loss_by_hand() {
    // Eq. (6): sqrt(2 M C T_o / D) with M = 30, D = 5 and 5000 packets: sqrt(60,000) = 244.95, which
    // are 367 kB, 2.94 ms when full and half of that on average; p = 1 / 244.95.
    let q = RouterQuestion {
        favour: Favour::Short,
        flows: Some(100),
        parameters: poisson(),
        ..question("10Gbit/s")
    };
    let json = advise(&q).unwrap().json();
    assert_eq!((json["gamma"].as_f64(), json["form"].as_str()), (Some(0.1), Some("PL")));
    let number = |value: &serde_json::Value| value.as_f64().unwrap();
    assert!((number(&json["buffer_packets"]) - 244.949).abs() < 0.001);
    assert!((number(&json["buffer_delay_s"]) - 0.002_939).abs() < 1e-6);
    assert!((number(&json["delay_s"]) - 0.001_470).abs() < 1e-6);
    assert!((number(&json["loss"]) - 1.0 / 244.949).abs() < 1e-6);
    // Eq. (7): twice C T_o; C T / sqrt(100).
    assert_eq!(json["rules"]["L-model"]["bytes"], 15_000_000);
    assert_eq!(json["rules"]["BDP/sqrt(n)"]["bytes"], 750_000);
    assert_eq!(json["maximised"], "short");
}

#[test]
fn bulk_transfers_get_no_more_than_a_bandwidth_delay_product() {
    // 80 kB x 8 x 2^(2/3) are 677.3 packets, 678 segments: D = 10. With f = 1/2
    // sqrt(2 x 678 x 5000 / 10) = 823.4; with f = 1/100 sqrt(100 x 678 x 5000 / 10) = 5822 > 5000.
    let best = |f: f64| {
        let parameters = Parameters { delay_f: Some(f), ..poisson() };
        let advice = advise(&RouterQuestion { parameters, ..question("10Gbit/s") }).unwrap();
        (advice.recommended.buffer.get(), advice.basis)
    };
    let (buffer, basis) = best(0.5);
    assert!((buffer - 823.4).abs() < 0.1 && basis == Basis::Optimum, "{buffer}");
    assert_eq!(best(0.01), (5000.0, Basis::BandwidthDelay));
}

#[test]
fn short_flows_and_latency_ask_for_less() {
    let buffer = |favour| {
        let q = RouterQuestion { favour, mix: Mix::Short, ..question("10Gbit/s") };
        advise(&q).unwrap().recommended.buffer
    };
    let [long, short, latency] = [Favour::Throughput, Favour::Short, Favour::Latency].map(buffer);
    assert!(latency < short && short < long);
}

#[test]
fn what_an_operator_measures_decides() {
    let small = RouterQuestion { rate: "50Mbit/s".parse().unwrap(), ..question("500Mbit/s") };
    let advice = |q: RouterQuestion| advise(&q).unwrap();
    let usual = advice(small.clone());
    assert!(usual.outside.is_empty(), "{:?}", usual.outside);
    // More flows at the same rate mean more loss, and a lighter load less.
    let crowded = advice(RouterQuestion { flows: Some(400), ..small.clone() });
    let light = advice(RouterQuestion { load: Some(0.7), ..small.clone() });
    let (max, loss, min) =
        (crowded.recommended.loss, usual.recommended.loss, light.recommended.loss);
    assert!(max > loss && loss > min, "{max:?} {loss:?} {min:?}");
    assert!(light.recommended.used < usual.recommended.used);
    // Each word of --tail-index and --size-mean counts.
    let parameters = Parameters { tail_index: Some(1.9), ..Parameters::default() };
    let tail = advice(RouterQuestion { parameters, ..small.clone() });
    let size = advice(RouterQuestion { size_mean: Some(Bytes::new(200_000)), ..small });
    assert_ne!(tail.recommended.buffer, usual.recommended.buffer);
    assert_ne!(size.recommended.buffer, usual.recommended.buffer);
}

#[test]
fn few_flows_on_a_fast_link_get_its_product_over_their_root() {
    let fast = |flows| RouterQuestion {
        rate: "100Gbit/s".parse().unwrap(),
        flows: Some(flows),
        ..question("400Gbit/s")
    };
    // 750 MB / sqrt(1000) = 23.72 MB; with four times the flows half of it.
    let (thousand, more) = (advise(&fast(1000)).unwrap(), advise(&fast(4000)).unwrap());
    assert_eq!(thousand.basis, Basis::SquareRoot);
    assert!((thousand.recommended.bytes.as_f64() / 23.717e6 - 1.0).abs() < 1e-4);
    let ratio = thousand.recommended.bytes.as_f64() / more.recommended.bytes.as_f64();
    assert!((ratio - 2.0).abs() < 1e-4);
    // Nothing that was simulated is like them.
    let r = &thousand.recommended;
    assert_eq!((r.loss, r.used, r.mean_delay, r.bulk), (None, None, None, None));
    let text = thousand.text(false, 80).replace("\n  ", " ");
    assert!(text.contains(" a C x T of 500000 packets (16 to 1050)"), "{text}");
    assert!(text.contains("No formula predicts loss or delay"), "{text}");
    // The answer alone names extrapolation, too.
    let slow = RouterQuestion { rate: "50Mbit/s".parse().unwrap(), ..question("500Mbit/s") };
    for (q, is_far) in [(question("10Gbit/s"), true), (slow, false)] {
        let text = advise(&q).unwrap().answer(80).replace('\n', " ");
        assert_eq!(text.contains("By extrapolation, expect"), is_far, "{text}");
    }
}

#[test]
fn flows_of_unknown_size_get_a_buffer_between_two_rules() {
    // C T are 5000 packets. 20 for each of 250 flows: ln(20 / 13) / ln(8) = 0.2072 of the way from the best buffer for transfers to
    // 5000 / sqrt(250) = 316.2 packets. Flows fill the link with M packets each if M / log2(M) = 2 x 20: M = 335.6, or 503.4 kB.
    let of =
        |flows| advise(&RouterQuestion { flows: Some(flows), ..question("10Gbit/s") }).unwrap();
    let advice = of(250);
    let two = advice.two_rules.clone().unwrap();
    let (low, high) = (two.persistent.buffer.get(), two.transfers.buffer.get());
    assert!((low - 316.2).abs() < 0.1 && low < high, "{low} {high}");
    let way = (high / advice.recommended.buffer.get()).ln() / (high / low).ln();
    assert!((way - 0.2072).abs() < 1e-4, "{way}");
    assert!((advice.size_mean.as_f64() / 503.4e3 - 1.0).abs() < 1e-3, "{}", advice.size_mean);
    assert_eq!(advice.basis, Basis::BetweenRules);
    let text = advice.answer(80);
    assert!(text.starts_with("Take ") && text.lines().count() <= 10, "{text}");
    let words = text.replace('\n', " ");
    assert!(words.contains("C T / sqrt(n), 316 packets"), "{words}");
    // Which is the rate of a bulk transfer by formula with 316 packets, over that with the best buffer.
    let bulk = |choice: &sweetspot_advise::router::BufferChoice| choice.bulk.unwrap().as_f64();
    let cost = bulk(&two.persistent) / bulk(&two.transfers) * 100.0;
    assert!(words.contains(&format!("316 packets give them {cost:.0} % of that rate")), "{words}");
    // 12 packets each: transfers fill the link. 105: the flows persist. A size settles it.
    let bases = [of(417).basis, of(47).basis].map(|basis| basis == Basis::BetweenRules);
    assert_eq!((bases, of(47).basis), ([false, false], Basis::SquareRoot));
    let size_mean = Some(Bytes::new(500_000));
    let q = RouterQuestion { flows: Some(250), size_mean, ..question("10Gbit/s") };
    assert_eq!(advise(&q).unwrap().two_rules, None);
}

/// C T of 5000 packets and 400 flows. Their mean transfer has 100 times the largest simulated one, 200 packets.
fn lasting() -> RouterQuestion {
    let size_mean = Some(Bytes::new(30_000_000));
    RouterQuestion { flows: Some(400), size_mean, ..question("10Gbit/s") }
}

#[test]
fn the_longer_transfers_last_the_nearer_their_buffer_is_to_the_square_roots() {
    // C T are 250 packets, 12.5 for each of 20 flows: 2 x 12.5 log2(M) packets are less than the 200 from which on sizes count.
    let of = |size: u64| {
        let q = RouterQuestion {
            rate: "50Mbit/s".parse().unwrap(),
            flows: Some(20),
            size_mean: Some(Bytes::new(size)),
            ..question("500Mbit/s")
        };
        advise(&q).unwrap()
    };
    // Transfers of 100 MB are 333 times as long: 250 / sqrt(20) = 55.9 packets.
    let long = of(100_000_000);
    assert_eq!(long.basis, Basis::SquareRoot);
    assert!((long.recommended.buffer.get() - 55.902).abs() < 0.001);
    let text = long.text(false, 80).replace('\n', " ");
    assert!(
        text.starts_with("Take 56 packets (83.85 kB, 13.42 ms when full), C T / sqrt(n)"),
        "{text}"
    );
    // 300 kB are 200 packets, and sqrt(50) times as many half the way to 50 times as many.
    assert_eq!(of(300_000).two_rules, None);
    let half = of(2_121_320);
    let two = half.two_rules.clone().unwrap();
    let middle = (two.persistent.buffer.get() * two.transfers.buffer.get()).sqrt();
    assert!((half.recommended.buffer.get() / middle - 1.0).abs() < 1e-5, "{half:?}");
    assert_eq!((half.basis, half.recommended.used), (Basis::BetweenRules, None));
    // A few large flows more or less: 8 of them fill 250 packets with M / log2(M) = 62.5, M = 574.
    let few = RouterQuestion { flows: Some(8), ..long.question.clone() };
    let size = |packets: u64| RouterQuestion {
        size_mean: Some(Bytes::new(1500 * packets)),
        ..few.clone()
    };
    assert_eq!(advise(&size(570)).unwrap().two_rules, None);
    assert!(advise(&size(580)).unwrap().two_rules.is_some());
}

#[test]
fn flows_that_persist_fill_the_link_in_the_simulator() {
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
    // 98 % are 18 / 19 of the way from 80 to 99 %: 100 x 8^(18/19) = 717.0. With 250 packets it is ln(2.5) / ln(8) of that way.
    let more = decided([0.8, 0.99, 1.0]);
    assert!((more.recommended.buffer.get() - 717.0).abs() < 0.1, "{}", more.recommended.buffer);
    assert!((more.recommended.used.unwrap() - 0.98).abs() < 1e-9);
    let text = more.text(false, 80).replace('\n', " ");
    assert!(text.contains("250 packets, would use 88.4 % of the link"), "{text}");
}

#[test]
fn a_device_for_flows_that_persist_is_judged_by_the_square_root() {
    let words = |packets: u64| {
        let available = Some(Bytes::new(1500 * packets));
        advise(&RouterQuestion { available, ..lasting() }).unwrap().answer(80).replace('\n', " ")
    };
    assert!(words(249).contains("too small") && words(251).contains(" is enough"));
    assert!(words(5001).contains("more than is good"));
    // 100,000 flows have 0.1 packets each in flight with a full buffer of C T.
    let crowd = RouterQuestion { flows: Some(100_000), ..lasting() };
    let crowd = advise(&crowd).unwrap();
    assert!(crowd.answer(80).contains("the link is overloaded"));
    assert_eq!(crowd.recommended.buffer.get(), 30.0);
    // No row and no formula is of a loss that nothing predicts.
    let text = crowd.text(true, 80);
    assert!(!text.contains("L-model") && !text.contains("loss: p ="), "{text}");
    assert!(!text.contains("  used  "), "{text}");
    // Without the number of flows nothing tells whether they persist.
    let unknown = advise(&RouterQuestion { flows: None, ..lasting() }).unwrap();
    assert_eq!(unknown.recommended.used, None);
    assert!(unknown.answer(80).replace('\n', " ").contains("their number would decide"));
}

#[test]
fn flows_that_their_inputs_keep_below_the_link_are_named() {
    // Ten inputs of 100 Mbit/s are the link's 1 Gbit/s, eleven more.
    let named = |flows: u64| {
        let q = RouterQuestion { flows: Some(flows), ..question("100Mbit/s") };
        advise(&q)
            .unwrap()
            .answer(80)
            .replace("\n  ", " ")
            .contains(&format!("{flows} flows of 100 Mbit/s or less cannot exceed 1 Gbit/s"))
    };
    assert!(named(10) && !named(11));
}

#[test]
fn a_single_flow_needs_a_bandwidth_delay_product() {
    // 7.5 MB.
    let one = advise(&RouterQuestion { flows: Some(1), ..question("10Gbit/s") }).unwrap();
    assert_eq!(one.recommended.bytes, Bytes::new(7_500_000));
    let text = one.text(false, 80).replace('\n', " ").replace("  ", " ");
    assert!(
        text.starts_with("Take 5000 packets (7.5 MB, 60 ms when full), C T: a single flow"),
        "{text}"
    );
    assert!(text.contains("n: 1 flow. ") && !text.contains("come and go"), "{text}");
}

#[test]
fn a_buffer_of_the_square_root_is_not_called_too_small_for_flows_of_unknown_size() {
    // C T are 100,000 packets, or 5 per flow; 150 MB / sqrt(20,000) = 1.06 MB.
    let words = |available: u64| {
        let q = RouterQuestion {
            rate: "40Gbit/s".parse().unwrap(),
            rtt: "30ms".parse().unwrap(),
            flows: Some(20_000),
            available: Some(Bytes::new(available)),
            ..question("100Gbit/s")
        };
        advise(&q).unwrap().answer(80).replace('\n', " ")
    };
    assert!(words(1_000_000).contains("1 MB is too small by both rules"));
    let between = words(16_000_000);
    assert!(
        between.contains("16 MB is between the two rules: enough if all flows persist"),
        "{between}"
    );
    assert!(between.contains("707 packets, keeps the link almost full"), "{between}");
    assert!(words(160_000_000).contains("more than either rule asks for"));
}

#[test]
fn without_enough_inputs_nothing_queues() {
    let basis = |input: &str, inputs| {
        advise(&RouterQuestion { inputs: Some(inputs), ..question(input) }).unwrap().basis
    };
    assert_eq!(basis("100Mbit/s", 10), Basis::NothingQueues);
    assert_ne!(basis("100Mbit/s", 11), Basis::NothingQueues);
    // Equal rates: one input fills the output and no more.
    assert_eq!(basis("1Gbit/s", 1), Basis::NothingQueues);
    for (input, max) in [("1Gbit/s", "1 such input sends"), ("100Mbit/s", "10 such inputs send")] {
        let text = advise(&question(input)).unwrap().text(false, 80).replace('\n', " ");
        assert!(text.contains(&format!("unless more than {max}")), "{text}");
    }
}

#[test]
fn an_exponential_needs_both_of_its_parameters() {
    let half = Parameters { loss_a: Some(0.1), ..Parameters::default() };
    let e = advise(&RouterQuestion { parameters: half, ..question("100Mbit/s") }).unwrap_err();
    assert!(e.to_string().contains("needs both"), "{e}");
    // b C T_o = 1 < 2 f D / ...: eq. (18) without a root: no buffer is best, so bursts decide.
    let flat = Parameters {
        loss_a: Some(0.01),
        loss_b: Some(1e-5),
        delay_f: Some(0.5),
        ..Parameters::default()
    };
    let advice = advise(&RouterQuestion { parameters: flat, ..question("100Mbit/s") }).unwrap();
    assert_eq!((advice.basis, advice.recommended.buffer.get()), (Basis::Simulation, 30.0));
}

#[test]
fn what_the_device_has_is_judged() {
    let words = |bytes: u64| {
        let available = Some(Bytes::new(bytes));
        let q = RouterQuestion { available, parameters: poisson(), ..question("10Gbit/s") };
        advise(&q).unwrap().text(false, 80).replace('\n', " ")
    };
    assert!(words(30_000).contains("too small"));
    // The best is 823 packets, 1.2 MB.
    assert!(words(1_200_000).contains("within the range"));
    assert!(words(100_000_000).contains("more than is good"));
}

#[test]
fn impossible_links_are_refused_in_words_and_light_tails_warned_of() {
    let refused = |q: RouterQuestion| advise(&q).unwrap_err().to_string();
    assert!(refused(RouterQuestion { rate: Rate::ZERO, ..question("1Gbit/s") }).contains("rate "));
    assert!(refused(RouterQuestion { inputs: Some(0), ..question("1Gbit/s") }).contains("inputs "));
    assert!(refused(RouterQuestion { flows: Some(0), ..question("1Gbit/s") }).contains("flows "));
    assert!(refused(RouterQuestion { load: Some(0.0), ..question("1Gbit/s") }).contains("load "));
    let size_mean = Some(Bytes::ZERO);
    assert!(refused(RouterQuestion { size_mean, ..question("1Gbit/s") }).contains("size_mean "));
    let tail = |tail_index| Parameters { tail_index: Some(tail_index), ..Parameters::default() };
    assert!(
        refused(RouterQuestion { parameters: tail(1.0), ..question("1Gbit/s") }).contains("tail")
    );
    let light = advise(&RouterQuestion { parameters: tail(2.5), ..question("10Gbit/s") }).unwrap();
    assert_eq!(light.expected, None);
    assert!(light.text(false, 80).replace("\n  ", " ").contains("neither of its loss forms"));
}

#[test]
fn a_loss_form_above_one_is_blamed_on_its_parameters() {
    let parameters = Parameters { loss_a: Some(100.0), loss_b: Some(0.05), ..Default::default() };
    // 100 B^-0.05 is above 1 for every buffer that a link has.
    let refused =
        advise(&RouterQuestion { parameters, ..question("10Gbit/s") }).unwrap_err().to_string();
    assert!(refused.contains("a loss form") && refused.contains("100 and 0.05"), "{refused}");
}

/// A simulation of three buffers in which bulk transfers get these Mbit/s, each +- 0.1.
fn simulated(bulk: [u64; 3]) -> Simulated {
    let rate = |mbit: u64, flows| SimulatedRate {
        rate: Rate::from_mbit_per_second(mbit),
        error: Rate::from_bits_per_second(100_000),
        flows,
    };
    let buffer = |(buffer, bulk): (f64, u64)| SimulatedBuffer {
        buffer: Packets::new(buffer).unwrap(),
        loss: 0.01,
        mean_delay: Duration::from_millis(5),
        used: 0.9,
        short: rate(1, 500),
        bulk: rate(bulk, 50),
    };
    Simulated {
        rate: Rate::from_mbit_per_second(1000),
        scale: 1.0,
        users: 200,
        inputs: 20,
        seconds: 30,
        seeds: 2,
        buffers: [100.0, 800.0, 5000.0].into_iter().zip(bulk).map(buffer).collect(),
        advised: 1,
        rule: 2,
    }
}

#[test]
fn bulk_transfers_get_the_rule_unless_another_buffer_is_significantly_better() {
    // The formula asks for 823 packets; C T are 5000.
    let advice = advise(&RouterQuestion { parameters: poisson(), ..question("10Gbit/s") }).unwrap();
    let decided = |bulk| advice.clone().decided_by(simulated(bulk)).recommended;
    for bulk in [[2, 4, 4], [2, 4, 6]] {
        assert_eq!(decided(bulk).buffer.get(), 5000.0);
    }
    assert_eq!(decided([2, 4, 6]).bulk, Some(Rate::from_mbit_per_second(6)));
    // t = 2 / 0.14 = 14.1 with one degree of freedom: p = 0.045.
    assert!((decided([2, 6, 4]).buffer.get() - 823.4).abs() < 0.1);
    // A difference of 0.1 Mbit/s could be chance.
    let mut close = simulated([2, 4, 4]);
    close.buffers[1].bulk.rate = Rate::from_bits_per_second(4_300_000);
    assert_eq!(advice.clone().decided_by(close).recommended.buffer.get(), 5000.0);
}

#[test]
fn the_more_overload_the_nearer_bulk_transfers_buffer_is_the_formulas() {
    // The formula asks for 823.4 packets; C T are 5000. sqrt(823.4 x 5000) = 2029 at 2^-1/2 of the loss of overload, 9.375 %.
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
    // 1 % of loss with 800 packets and 6.6 % with 5000: ln(2029 / 800) / ln(5000 / 800) = 0.508 of the way.
    let crowd = decided(0.066_291);
    assert_eq!((crowd.basis, crowd.json()["basis"].as_str()), (Basis::Crowd, Some("crowd")));
    assert!((crowd.recommended.loss.unwrap() - (0.01 + 0.508 * 0.056_291)).abs() < 1e-4);
}

#[test]
fn a_small_part_of_the_link_is_simulated_and_decides_nothing() {
    // C T / sqrt(n) of a hundredth of link and flows is a tenth of the whole's, so 10 times its share of the link.
    let advice = advise(&RouterQuestion { parameters: poisson(), ..question("10Gbit/s") }).unwrap();
    let part = Simulated { scale: 0.01, ..simulated([2, 4, 6]) };
    let shown = advice.clone().decided_by(part);
    assert_eq!((&shown.recommended, shown.basis), (&advice.recommended, advice.basis));
    assert_eq!(shown.json()["simulation"]["decides"], false);
    let text = shown.text(false, 80).replace("\n  ", " ").replace('\n', " ");
    assert!(text.contains("up to 10.0 times the share of buffer"), "{text}");
    assert!(text.contains("only 1.00 % of the link could be simulated"), "{text}");
    assert!(!text.contains("in the simulator"), "{text}");
    assert!(!text.lines().any(|line| line.ends_with("  take")), "{text}");
    // 1 / sqrt(0.5) is 1.4, less than a step of the buffers tried.
    assert!(Simulated { scale: 0.5, ..simulated([2, 4, 6]) }.decides());
}

#[test]
fn the_range_is_that_of_the_table_shown() {
    let q = RouterQuestion { favour: Favour::Latency, ..question("10Gbit/s") };
    let advice = advise(&q).unwrap();
    let mut table = simulated([2, 4, 6]);
    // 100 packets give half of what 800, nearest to the advice, do, and 5000 give 95 %.
    for (buffer, kbit) in table.buffers.iter_mut().zip([500, 1000, 950]) {
        buffer.short.rate = Rate::from_bits_per_second(kbit * 1000);
    }
    table.buffers[1].buffer = advice.recommended.buffer;
    table.buffers[0].buffer = Packets::new(2.0).unwrap();
    let found = advice.clone().decided_by(table.clone()).text(false, 80).replace('\n', " ");
    let from = advice.recommended.buffer.get();
    let words = format!("From {from:.0} packets on it keeps 90 % of its rate in the simulator.");
    assert!(found.contains(&words), "{found}");
    assert!(found.contains("keeps 90 % of its best rate or more"), "{found}");
    // Half of the best: the claim of the formula is dropped.
    table.buffers[2].short.rate = Rate::from_bits_per_second(2_000_000);
    let found = advice.decided_by(table).text(false, 80).replace('\n', " ");
    assert!(!found.contains("best rate or more"), "{found}");
}

#[test]
fn a_link_on_which_flows_have_less_than_four_packets_is_named_overloaded() {
    let advice = advise(&RouterQuestion { parameters: poisson(), ..question("10Gbit/s") }).unwrap();
    let said = |loss: f64| {
        let mut table = simulated([2, 4, 6]);
        table.buffers[2].loss = loss;
        advice.clone().decided_by(table).text(false, 80).contains("the link is overloaded")
    };
    // sqrt(1.5 / p) = 4 at p = 9.375 %.
    assert!(said(0.0938) && !said(0.0937));
}

#[test]
fn the_rules_of_the_square_root_are_there_for_the_flows_assumed() {
    let q = question("10Gbit/s");
    let advice = advise(&q).unwrap();
    let text = advice.text(false, 80).replace("\n  ", " ");
    // 80 kB: 54 segments in 6 rounds of slow start; 2 x 6 x 5000 / 54 = 1111. 7.5 MB / sqrt(1111) = 225 kB.
    assert!(text.contains("n: 1111 flows, assumed. Cubic: 3/7"), "{text}");
    let bytes = advice.json()["rules"]["BDP/sqrt(n)"]["bytes"].as_f64().unwrap();
    assert!((bytes / 225_011.0 - 1.0).abs() < 1e-3, "{bytes}");
    assert_eq!(advice.json()["flows"], 1111);
    // The legend explains no row that is not there.
    assert!(!text.contains("paper:"), "{text}");
    let few = advise(&RouterQuestion { flows: Some(100), ..question("100Mbit/s") }).unwrap();
    let text = few.text(false, 80).replace("\n  ", " ");
    assert!(text.contains("n: 100 flows. Cubic") && text.contains("paper: its buffer"), "{text}");
}

#[test]
fn each_table_has_one_basis() {
    let advice = advise(&RouterQuestion { parameters: poisson(), ..question("10Gbit/s") }).unwrap();
    // The rule wins, and the formulas say the same of it in both rows.
    let decided = advice.clone().decided_by(simulated([2, 4, 6]));
    let rule = decided.rules.iter().find(|rule| rule.name == "BDP").unwrap();
    let own = &decided.by_formula;
    assert_eq!((own.buffer, own.loss, own.bulk), (rule.buffer, rule.loss, rule.bulk));
    assert_ne!(own.bulk, decided.recommended.bulk);
    // So no row of the formulas' table is called recommended.
    assert!(!decided.text(false, 80).contains("  recommended "));
    assert!(advice.text(false, 80).contains("  recommended "));
    // The formula's own buffer stays in the table as it was.
    assert_eq!(advice.clone().decided_by(simulated([2, 6, 4])).by_formula, advice.recommended);
    let text = decided.text(false, 80);
    assert_eq!(text.lines().filter(|line| line.ends_with("  take")).count(), 1, "{text}");
    assert!(text.lines().any(|line| line.contains(" 5000'") && line.ends_with("take")), "{text}");
}

#[test]
fn a_larger_buffer_is_named_once_beside_the_claim_about_smaller_ones() {
    let advice = advise(&RouterQuestion { parameters: poisson(), ..question("10Gbit/s") }).unwrap();
    let mut table = simulated([2, 4, 4]);
    table.buffers.push(SimulatedBuffer {
        buffer: Packets::new(20_000.0).unwrap(),
        ..table.buffers[2].clone()
    });
    table.buffers[3].bulk.rate = Rate::from_mbit_per_second(8);
    let text = advice.decided_by(table).text(false, 80).replace('\n', " ");
    assert_eq!(text.matches("up to C x T").count(), 1, "{text}");
    assert!(text.contains("20000 packets, gave 8 Mbit/s and would delay everybody"), "{text}");
}

#[test]
fn links_of_a_few_packets_are_refused_and_nothing_exceeds_the_link() {
    // 1 kbit/s x 2 s = 250 B; 1 Mbit/s x 48 ms = 6000 B, four packets.
    let link = |rate: &str, rtt: &str| RouterQuestion {
        rate: rate.parse().unwrap(),
        rtt: rtt.parse().unwrap(),
        ..question("100Mbit/s")
    };
    let refused = advise(&link("1kbit/s", "2s")).unwrap_err().to_string();
    assert!(refused.contains("250 B") && refused.contains("four packets"), "{refused}");
    assert!(refused.contains("a packet for each input"), "{refused}");
    let small = advise(&link("1Mbit/s", "48ms")).unwrap();
    let max = Rate::from_mbit_per_second(1);
    let rates = small.rules.iter().chain([&small.recommended]);
    assert!(rates.flat_map(|choice| [choice.short, choice.bulk]).flatten().all(|r| r <= max));
    // A packet from each of ten inputs may arrive at once.
    let idle = advise(&RouterQuestion { inputs: Some(10), ..question("100Mbit/s") }).unwrap();
    assert_eq!(idle.recommended.buffer.get(), 10.0);
}

#[test]
fn too_few_transfers_for_a_median_have_no_rate_in_the_text_either() {
    let advice = advise(&RouterQuestion { parameters: poisson(), ..question("10Gbit/s") }).unwrap();
    let decided = |flows| {
        let mut table = simulated([2, 4, 4]);
        table.buffers.iter_mut().for_each(|buffer| buffer.bulk.flows = flows);
        advice.clone().decided_by(table).recommended
    };
    assert_eq!((decided(29).bulk, decided(30).bulk), (None, Some(Rate::from_mbit_per_second(4))));
}

#[test]
fn advice_has_the_numbers_of_the_simulation_that_checked_it() {
    let q =
        RouterQuestion { favour: Favour::Latency, parameters: poisson(), ..question("10Gbit/s") };
    let calm = advise(&q).unwrap();
    let checked = calm.clone().decided_by(simulated([2, 4, 6]));
    // Latency wants less than the best: the buffer stays.
    assert_eq!(checked.recommended.buffer, calm.recommended.buffer);
    assert_eq!(checked.recommended.loss, Some(0.01));
    assert_eq!(checked.json()["simulation"]["points"].as_array().unwrap().len(), 3);
}

#[test]
fn no_transfer_is_promised_more_than_its_access_link_carries() {
    let q = RouterQuestion { inputs: Some(1000), ..question("2Mbit/s") };
    let advice = advise(&q).unwrap();
    let max = Rate::from_mbit_per_second(2);
    let choices = advice.rules.iter().chain([&advice.recommended]);
    assert!(choices.flat_map(|c| [c.short, c.bulk]).flatten().all(|rate| rate <= max));
    // The paper's recommendation for slow inputs is among the rules.
    assert_eq!(advice.json()["rules"]["paper"]["bytes"], 45_000);
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
            }
        }
    }
}

proptest::proptest! {
    #[test]
    fn law_the_flows_together_use_what_the_link_is_used(
        (rate, rtt) in (7.0..11.0, -3.0..-0.3),
        (inputs, flows) in (-1.3..1.3, proptest::option::of(1..100_000u64)),
        size in proptest::option::of(3.0..9.0),
    ) {
        let ten = |exponent: f64| 10f64.powf(exponent);
        proptest::prop_assume!(ten(rate + rtt) / 12_000.0 >= 5.0);
        let q = RouterQuestion {
            rate: Rate::from_f64(ten(rate)),
            rtt: Duration::from_secs_f64(ten(rtt)),
            input_rate: Rate::from_f64(ten(rate - inputs)),
            flows,
            size_mean: size.map(|size| Bytes::from_f64(ten(size))),
            ..question("1Gbit/s")
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
    fn bulk_never_gets_less_than_with_the_rule_and_nobody_more_delay(
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
        // C T are 5000 packets.
        proptest::prop_assert!(advice.recommended.buffer.get() <= 5000.0);
        if bulk_favoured {
            proptest::prop_assert!(advice.recommended.bulk.unwrap() >= Rate::from_mbit_per_second(bulk[2]));
        }
    }
    #[test]
    fn a_few_flows_more_a_slightly_faster_link_or_larger_transfers_never_double_the_buffer(
        (rate, rtt) in (7.0..11.0, -3.0..-0.3),
        (inputs, each) in (-1.3..1.3, -1.0..4.0),
        with_flows: bool,
        size in proptest::option::of(4.0..9.0),
        favour in proptest::sample::select(vec![Favour::Throughput, Favour::Short, Favour::Latency]),
    ) {
        // Log-uniform: 10 Mbit/s to 100 Gbit/s, 1 to 500 ms, C_out / C_in from 1/20 to 20; C T of 0.1 to 10,000
        // packets per flow. From there 30 steps of 5 %, a factor of 4.3.
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
            advise(&q).unwrap().recommended.buffer.get()
        };
        let first = (bdp / ten(each)).max(1.0);
        let mut flows = first;
        let mut last = [buffer(1.0, first, 1.0); 3];
        for step in 1..=30 {
            let count = flows.floor();
            // A flow more, where 5 % are less.
            flows = (flows * 1.05).max(count + 1.0);
            let by = 1.05f64.powi(step);
            let now = [buffer(by, first, 1.0), buffer(1.0, flows, 1.0), buffer(1.0, first, by)];
            for (was, is) in last.into_iter().zip(now) {
                proptest::prop_assert!((0.5..2.0).contains(&(is / was)), "{:?} {:?}", last, now);
            }
            last = now;
        }
    }
}
