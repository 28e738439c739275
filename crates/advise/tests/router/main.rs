//! Expected results of the router advice.

mod answers;
mod closed_forms;
mod device;
mod laws;
mod noise;
mod simulation;

use sweetspot_advise::router::{Basis, Favour, Mix, Parameters, RouterQuestion, advise};
use sweetspot_theory::router::capacity_ratio::Form;
use sweetspot_units::{Bytes, Rate};

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

/// C T of 5000 packets and 400 flows. Their mean transfer is 100 times the largest that was simulated, 200 packets.
fn lasting() -> RouterQuestion {
    let size_mean = Some(Bytes::new(30_000_000));
    RouterQuestion { flows: Some(400), size_mean, ..question("10Gbit/s") }
}

#[test]
fn advice_for_short_transfers_at_a_known_loss_matches_hand_calculation() {
    // Eq. (6): sqrt(2 M C T_o / D) with M = 30, D = 5 and 5000 packets is sqrt(60,000) = 244.95, or 367 kB. The delay is 2.94 ms
    // when full and half of that on average; p = 1 / 244.95.
    let q = RouterQuestion {
        favour: Favour::Short,
        mix: Mix::Sizes(vec![Bytes::new(45_000)]),
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
    // Eq. (7) gives 2 C T_o; the square-root rule C T / sqrt(100).
    assert_eq!(json["rules"]["L-model"]["bytes"], 15_000_000);
    assert_eq!(json["rules"]["BDP/sqrt(n)"]["bytes"], 750_000);
    assert_eq!(json["maximised"], "short");
}

#[test]
fn bulk_transfers_get_at_most_one_bdp() {
    // 80 kB x 8 x 2^(2/3) is 677.3 packets, or 678 segments: D = 10. f = 1/2 gives sqrt(2 x 678 x 5000 / 10) = 823.4; f = 1/100
    // gives sqrt(100 x 678 x 5000 / 10) = 5822 > 5000.
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
fn short_flows_and_latency_need_smaller_buffers() {
    let buffer = |favour| {
        let q = RouterQuestion { favour, mix: Mix::Short, ..question("10Gbit/s") };
        advise(&q).unwrap().recommended.buffer
    };
    let [long, short, latency] = [Favour::Throughput, Favour::Short, Favour::Latency].map(buffer);
    assert!(latency < short && short < long);
}

#[test]
fn operator_inputs_change_the_answer() {
    let small = RouterQuestion { rate: "50Mbit/s".parse().unwrap(), ..question("500Mbit/s") };
    let advice = |q: RouterQuestion| advise(&q).unwrap();
    let usual = advice(small.clone());
    assert!(usual.outside.is_empty(), "{:?}", usual.outside);
    // At the same rate, more flows raise the loss, and a lighter load lowers it.
    let crowded = advice(RouterQuestion { flows: Some(400), ..small.clone() });
    let light = advice(RouterQuestion { load: Some(0.7), ..small.clone() });
    let (max, loss, min) =
        (crowded.recommended.loss, usual.recommended.loss, light.recommended.loss);
    assert!(max > loss && loss > min, "{max:?} {loss:?} {min:?}");
    assert!(light.recommended.used < usual.recommended.used);
    // --tail-index and --size-mean both affect the advice.
    let parameters = Parameters { tail_index: Some(1.9), ..Parameters::default() };
    let tail = advice(RouterQuestion { parameters, ..small.clone() });
    let size = advice(RouterQuestion { size_mean: Some(Bytes::new(200_000)), ..small });
    assert_ne!(tail.recommended.buffer, usual.recommended.buffer);
    assert_ne!(size.recommended.buffer, usual.recommended.buffer);
}

#[test]
fn no_bulk_transfer_exceeds_the_largest_sampled_size() {
    // The mean is 5.03 MB, and 8 x 2^(1 / 1.5) means are 63.9 MB.
    let sizes = vec![10_000, 80_000, 15_000_000].into_iter().map(Bytes::new).collect();
    let q = RouterQuestion { mix: Mix::Sizes(sizes), ..question("10Gbit/s") };
    let advice = advise(&q).unwrap();
    assert_eq!(advice.transfers[1], Bytes::new(15_000_000));
    // A simulation draws other sizes: their median is 2^(1 / 1.5) / 3 of the mean, 2.66 MB.
    let simulated = advice.decided_by(simulation::simulated([2, 4, 6]));
    let [short, bulk] = simulated.transfers.map(|size| size.as_f64() / 1e6);
    assert!((short - 2.661).abs() < 0.01 && (bulk - 63.88).abs() < 0.1, "{short} {bulk}");
    assert!(simulated.answer(80).contains("Pareto sizes"), "{}", simulated.answer(80));
}

#[test]
fn advice_for_a_single_burst_buffer_warns_of_its_loss() {
    let q = RouterQuestion {
        rate: "50Mbit/s".parse().unwrap(),
        favour: Favour::Latency,
        ..question("500Mbit/s")
    };
    let advice = advise(&q).unwrap();
    assert_eq!(advice.recommended.buffer.get(), 20.0);
    let text = advice.text(false, 80).replace('\n', " ");
    assert!(
        text.contains("less than the 20 packets that hold the bursts of single flows"),
        "{text}"
    );
    // 0.691 of 0.721 Mbit/s.
    assert!(text.contains("keep 95 % of the best rate in the table"), "{text}");
    // With 100 flows, the formula's buffer has a loss of 7.25 %: Reno's mean window is sqrt(1.5 / 0.0725) = 4.5 packets.
    let crowd = RouterQuestion { favour: Favour::Throughput, flows: Some(100), ..q };
    let warnings = advise(&crowd).unwrap().warnings().join(" ");
    assert!(warnings.contains("loses 7.25 % of the packets"), "{warnings}");
    assert!(warnings.contains("each flow about 5 packets in flight"), "{warnings}");
}

#[test]
fn a_negligible_loss_is_printed_as_an_upper_bound() {
    // For a single flow, eq. (3) gives a loss of at most 1.1e-5.
    let q = RouterQuestion {
        rate: "50Mbit/s".parse().unwrap(),
        flows: Some(1),
        size_mean: Some(Bytes::new(10_000_000_000)),
        ..question("500Mbit/s")
    };
    let advice = advise(&q).unwrap();
    assert!(advice.recommended.loss.is_some_and(|loss| loss > 0.0 && loss < 1e-4), "{advice:?}");
    let text = advice.text(false, 80);
    assert!(text.contains("loss    less than 0.01 %") && text.contains(" <0.01 "), "{text}");
}

#[test]
fn a_load_above_the_link_rate_is_rejected_as_parsed() {
    let error = advise(&RouterQuestion { load: Some(120.0), ..question("10Gbit/s") });
    let error = error.unwrap_err().to_string();
    assert!(
        error.contains("load 120 (12000 %)") && error.contains("such as 0.8 or 80%"),
        "{error}"
    );
}

#[test]
fn short_flows_that_cannot_fill_the_link_get_no_share_of_it() {
    // 80 kB is 54 packets in 6 RTTs of 60 ms: 1.778 Mbit/s each and 35.6 Mbit/s together, 3.6 % of the link.
    let q = RouterQuestion {
        flows: Some(20),
        mix: Mix::Short,
        favour: Favour::Short,
        ..question("10Gbit/s")
    };
    let advice = advise(&q).unwrap();
    let r = &advice.recommended;
    let is_close = |found: f64, wanted: f64| (found / wanted - 1.0).abs() < 1e-3;
    assert!(is_close(r.flow.unwrap().as_f64(), 640_000.0 / 0.36), "{r:?}");
    assert!(is_close(r.used.unwrap(), 20.0 * 640_000.0 / 0.36 / 1e9), "{r:?}");
    // Bursts still queue, which no formula here predicts; the numbers are unknown, not zero.
    assert_eq!((r.loss, r.mean_delay, r.short, r.bulk), (None, None, None, None));
    let text = advice.answer(80).replace("\n  ", " ");
    assert!(text.contains("20 flows of 80 kB on average use 3.6 % of the link,"), "{text}");
}

#[test]
fn flows_of_unknown_size_get_a_buffer_between_the_two_rules() {
    // C T is 5000 packets, or 20 for each of 250 flows. The buffer is ln(20 / 13) / ln(8) = 0.2072 of the way from the best
    // buffer for transfers to 5000 / sqrt(250) = 316.2 packets. Flows of M packets fill the link if M / log2(M) = 2 x 20: M =
    // 335.6, or 503.4 kB.
    let of =
        |flows| advise(&RouterQuestion { flows: Some(flows), ..question("10Gbit/s") }).unwrap();
    let advice = of(250);
    let two = advice.two_rules.clone().unwrap();
    let (low, high) = (two.persistent.buffer.get(), two.transfers.buffer.get());
    assert!((low - 316.2).abs() < 0.1 && low < high, "{low} {high}");
    let way = (high / advice.recommended.buffer.get()).ln() / (high / low).ln();
    assert!((way - 0.2072).abs() < 1e-4, "{way}");
    // Their assumed size is 50^0.2072 times as large.
    let size = 503.4e3 * 50f64.powf(0.2072);
    assert!((advice.size_mean.as_f64() / size - 1.0).abs() < 1e-3, "{}", advice.size_mean);
    assert_eq!(advice.basis, Basis::BetweenRules);
    let words = advice.text(true, 80).replace('\n', " ");
    assert!(words.contains("C T / sqrt(n), 316 packets"), "{words}");
    assert!(words.contains("More flows would need a larger buffer: they"), "{words}");
    // With 12 packets each, transfers fill the link; with 105, the flows persist. A given size settles the case.
    let bases = [of(417).basis, of(47).basis].map(|basis| basis == Basis::BetweenRules);
    assert_eq!((bases, of(47).basis), ([false, false], Basis::SquareRoot));
    let size_mean = Some(Bytes::new(500_000));
    let q = RouterQuestion { flows: Some(250), size_mean, ..question("10Gbit/s") };
    assert_eq!(advise(&q).unwrap().two_rules, None);
}

#[test]
fn longer_transfers_get_a_buffer_nearer_to_the_square_root_rule() {
    // C T is 250 packets, 12.5 for each of 20 flows. Filling the link takes 2 x 12.5 log2(M) packets, less than the 200 from
    // which on sizes count.
    let of = |size: u64| {
        let q = RouterQuestion {
            rate: "50Mbit/s".parse().unwrap(),
            flows: Some(20),
            size_mean: Some(Bytes::new(size)),
            ..question("500Mbit/s")
        };
        advise(&q).unwrap()
    };
    // Transfers of 100 MB are 333 times as large: 250 / sqrt(20) = 55.9 packets.
    let long = of(100_000_000);
    assert_eq!(long.basis, Basis::SquareRoot);
    assert!((long.recommended.buffer.get() - 55.902).abs() < 0.001);
    let text = long.text(true, 80);
    assert!(
        text.starts_with("buffer  56 packets (84 kB), C T / sqrt(n): rate x RTT / sqrt(flows)\n"),
        "{text}"
    );
    // 300 kB are 200 packets, and sqrt(50) times as many half the way to 50 times as many.
    assert_eq!(of(300_000).two_rules, None);
    let half = of(2_121_320);
    let two = half.two_rules.clone().unwrap();
    let middle = (two.persistent.buffer.get() * two.transfers.buffer.get()).sqrt();
    assert!((half.recommended.buffer.get() / middle - 1.0).abs() < 1e-5, "{half:?}");
    assert_eq!(half.basis, Basis::BetweenRules);
    // The effect of a few large flows more or less: 8 of them fill 250 packets with M / log2(M) = 62.5, M = 574.
    let few = RouterQuestion { flows: Some(8), ..long.question.clone() };
    let size = |packets: u64| RouterQuestion {
        size_mean: Some(Bytes::new(1500 * packets)),
        ..few.clone()
    };
    assert_eq!(advise(&size(570)).unwrap().two_rules, None);
    assert!(advise(&size(580)).unwrap().two_rules.is_some());
}

#[test]
fn the_answer_names_flows_whose_inputs_cannot_fill_the_link() {
    // Ten inputs of 100 Mbit/s fill the link of 1 Gbit/s; eleven exceed it.
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
fn a_single_flow_needs_one_bdp() {
    // One flow needs C T, 7.5 MB.
    let one = advise(&RouterQuestion { flows: Some(1), ..question("10Gbit/s") }).unwrap();
    assert_eq!(one.recommended.bytes, Bytes::new(7_500_000));
    let text = one.text(false, 80);
    assert!(text.starts_with("buffer  5000 packets (7.5 MB), C x T: rate x RTT\n"), "{text}");
    assert!(text.contains("A single flow needs C x T"), "{text}");
    assert!(text.contains("\n  n            1 flow\n") && !text.contains("come and go"), "{text}");
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
    // Two inputs of 1 Gbit/s, or eleven of 100 Mbit/s, exceed 1 Gbit/s.
    for (input, least) in [("1Gbit/s", 2), ("100Mbit/s", 11)] {
        // It may change the decision.
        let text = advise(&question(input)).unwrap().answer(200);
        assert!(
            text.contains(&format!(
                "Warning: nothing queues unless {least} such inputs or more send"
            )),
            "{text}"
        );
    }
}

#[test]
fn if_nothing_queues_the_answer_omits_loss_and_rules() {
    // Two inputs of 500 Mbit/s fill the link of 1 Gbit/s.
    for (inputs, buffer) in
        [(1, "1 packet (1.5 kB), one for each input"), (2, "2 packets (3 kB), one for each input")]
    {
        let advice =
            advise(&RouterQuestion { inputs: Some(inputs), ..question("500Mbit/s") }).unwrap();
        let text = advice.text(false, 80);
        assert_eq!(text.lines().next(), Some(format!("buffer  {buffer}").as_str()));
        assert!(
            !text.contains("loss") && !text.contains("rule") && text.lines().count() <= 4,
            "{text}"
        );
        let json = advice.json();
        assert_eq!((json["loss"].as_f64(), json["delay_s"].as_f64()), (Some(0.0), Some(0.0)));
        assert!(json["utilisation"].is_null() && json["bulk_bps"].is_null());
    }
}

#[test]
fn a_buffer_that_overloads_its_flows_draws_a_warning() {
    // C T is 250 packets for 50 flows: a buffer of 20 packets leaves each flow fewer than four.
    let q = RouterQuestion {
        rate: "50Mbit/s".parse().unwrap(),
        flows: Some(50),
        favour: Favour::Latency,
        ..question("500Mbit/s")
    };
    let advice = advise(&q).unwrap();
    assert!(advice.recommended.loss.unwrap() > 3.0 / 32.0, "{:?}", advice.recommended);
    assert!(advice.warnings().iter().any(|warning| warning.contains("this buffer loses")));
}

/// 20 persistent flows share 2 C T = 100 packets, five each. That exceeds the four packets of an overload with C T, but the loss
/// is too high for any closed form.
#[test]
fn a_loss_too_high_for_closed_forms_draws_a_warning() {
    let few = RouterQuestion {
        rate: Rate::from_mbit_per_second(10),
        flows: Some(20),
        size_mean: Some(Bytes::new(1_000_000_000)),
        ..question("1Gbit/s")
    };
    let answer = advise(&few).unwrap().answer(80).replace("\n  ", " ");
    assert!(answer.contains("loss    above 9.38 %"), "{answer}");
    assert!(
        answer.contains("Warning: this buffer loses more than 9.38 % of the packets"),
        "{answer}"
    );
}

#[test]
fn the_explanation_states_the_size_at_which_flows_persist() {
    let of = |size: u64| {
        let size_mean = Some(Bytes::new(size));
        let q = RouterQuestion { flows: Some(20), size_mean, ..question("10Gbit/s") };
        advise(&q).unwrap()
    };
    // C T = 5000 packets: 5000 / sqrt(20) = 1118.
    let text = of(1_000_000).text(true, 80).replace('\n', " ");
    let (_, rest) = text.split_once("Transfers of 1 MB come and go; C T / sqrt(n), 1118 packets, is enough for 20 flows of ").unwrap();
    let (size, _) = rest.split_once(" or more.").unwrap();
    let lasting: Bytes = size.replace(' ', "").parse().unwrap();
    assert_eq!(of(lasting.get() + lasting.get() / 1000).basis, Basis::SquareRoot, "{size}");
    assert_eq!(of(lasting.get() * 9 / 10).basis, Basis::BetweenRules, "{size}");
}

#[test]
fn a_loss_form_needs_both_parameters_unless_a_fit_has_the_other() {
    let of = |loss_a, loss_b| {
        let parameters = Parameters { loss_a, loss_b, ..Parameters::default() };
        advise(&RouterQuestion { parameters, ..question("10Gbit/s") })
    };
    let whole = of(Some(0.3), Some(0.5)).unwrap().answer(200);
    assert!(whole.contains("\nsource  the loss form given\n"), "{whole}");
    for (a, b, other) in [(Some(0.3), None, "loss_b"), (None, Some(0.5), "loss_a")] {
        let alone = of(a, b).unwrap_err().to_string();
        assert!(alone.contains(&format!("add {other}")), "{alone}");
    }
}

#[test]
fn an_exponential_needs_both_of_its_parameters() {
    let half = Parameters { loss_a: Some(0.1), ..Parameters::default() };
    let e = advise(&RouterQuestion { parameters: half, ..question("100Mbit/s") }).unwrap_err();
    assert!(e.to_string().contains("needs both parameters"), "{e}");
    // b C T_o = 1 < 2 f D / ..., so eq. (18) has no root. The optimum is no buffer, so bursts decide.
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
fn impossible_links_are_rejected_and_light_tails_draw_a_warning() {
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
    assert!(light.text(false, 80).replace("\n  ", " ").contains("neither loss form fits well"));
}

#[test]
fn a_loss_form_above_one_is_rejected_with_its_parameters() {
    let parameters = Parameters { loss_a: Some(100.0), loss_b: Some(0.05), ..Default::default() };
    // 100 B^-0.05 exceeds 1 for any buffer that a link has.
    let refused =
        advise(&RouterQuestion { parameters, ..question("10Gbit/s") }).unwrap_err().to_string();
    assert!(refused.contains("a loss form") && refused.contains("100 and 0.05"), "{refused}");
}

#[test]
fn square_root_rules_use_the_assumed_number_of_flows() {
    let q = question("10Gbit/s");
    let advice = advise(&q).unwrap();
    let text = advice.text(false, 80);
    // 80 kB is 54 segments in 6 rounds of slow start: 2 x 6 x 5000 / 54 = 1111. 7.5 MB / sqrt(1111) = 225 kB.
    assert!(
        text.contains("\n  n            1111 flows assumed, as many as fill the link (--flows)\n  Cubic, BBR   3/7 and"),
        "{text}"
    );
    let bytes = advice.json()["rules"]["BDP/sqrt(n)"]["bytes"].as_f64().unwrap();
    assert!((bytes / 225_011.0 - 1.0).abs() < 1e-3, "{bytes}");
    assert_eq!(advice.json()["flows"], 1111);
    assert!(text.contains("\n  Cubic rule ") && text.contains("\n  BBR rule "), "{text}");
    // The legend explains only rows in the table.
    assert!(!text.contains("\n  paper "), "{text}");
    let few = advise(&RouterQuestion { flows: Some(100), ..question("100Mbit/s") }).unwrap();
    let text = few.text(false, 80);
    assert!(text.contains("\n  n            100 flows\n"), "{text}");
    assert!(text.contains("\n  paper        Prasad et al.'s, for inputs slower"), "{text}");
}

/// A median of 80 kB x (1 / 3) x 2^(2 / 3) = 42.33 kB, and above 640 kB one of 640 kB x 2^(2 / 3) = 1.016 MB.
#[test]
fn the_legend_explains_the_sizes_and_the_flows_behind_the_numbers() {
    let rate = "20Mbit/s".parse().unwrap();
    let q = RouterQuestion { rate, flows: Some(20), mix: Mix::Short, ..question("100Mbit/s") };
    let text = advise(&q).unwrap().text(false, 80);
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for legend in [
        "short, bulk rate of transfers of 42.33 kB and 1.016 MB, Mbit/s",
        "sizes the medians of all transfers and of those above 8 x the mean (mean: 80 kB)",
        "Cubic or BBR flows; the results are for flows that halve their window",
        "tiny for paced senders or slow inputs",
        "--verify none, a simulation checks them",
    ] {
        assert!(words.contains(legend), "{legend}: {text}");
    }
    let why = "too many packets".to_owned();
    let unchecked = advise(&q).unwrap().unsimulated(why).text(false, 200);
    assert!(unchecked.contains("; estimate only: bulk rates may be several times too low\n"));
}

#[test]
fn tiny_bdps_get_the_initial_window_and_no_rate_exceeds_the_link() {
    // 1 kbit/s x 2 s = 250 B; 1 Mbit/s x 48 ms = 6000 B, four packets.
    let link = |rate: &str, rtt: &str| RouterQuestion {
        rate: rate.parse().unwrap(),
        rtt: rtt.parse().unwrap(),
        ..question("100Mbit/s")
    };
    let tiny = advise(&link("1kbit/s", "2s")).unwrap();
    assert_eq!((tiny.basis, tiny.can_be_simulated()), (Basis::InitialWindow, false));
    // RFC 6928: ten packets, 15,000 B, which take 120 s at 1 kbit/s.
    let text = tiny.text(true, 80).replace('\n', " ");
    assert!(
        text.starts_with(
            "buffer  10 packets (15 kB), TCP's initial window queue   120 s when full "
        ),
        "{text}"
    );
    assert!(text.contains("Rate x RTT is 250 B, fewer than the 4 packets"), "{text}");
    let json = tiny.json();
    assert_eq!((json["basis"].as_str(), json["loss"].as_f64()), (Some("initial_window"), None));
    let small = RouterQuestion { available: Some(Bytes::new(3000)), ..link("1kbit/s", "2s") };
    assert!(advise(&small).unwrap().answer(80).contains("device  2 packets (3 kB): too small\n"));
    let small = advise(&link("1Mbit/s", "48ms")).unwrap();
    let max = Rate::from_mbit_per_second(1);
    let rates = small.rules.iter().chain([&small.recommended]);
    assert!(rates.flat_map(|choice| [choice.short, choice.bulk]).flatten().all(|r| r <= max));
    // One packet from each of ten inputs may arrive at once.
    let idle = advise(&RouterQuestion { inputs: Some(10), ..question("100Mbit/s") }).unwrap();
    assert_eq!(idle.recommended.buffer.get(), 10.0);
}

#[test]
fn no_predicted_rate_exceeds_the_access_link() {
    let q = RouterQuestion { inputs: Some(1000), ..question("2Mbit/s") };
    let advice = advise(&q).unwrap();
    let max = Rate::from_mbit_per_second(2);
    let choices = advice.rules.iter().chain([&advice.recommended]);
    assert!(choices.flat_map(|c| [c.short, c.bulk]).flatten().all(|rate| rate <= max));
    // The paper's recommendation for slow inputs is among the rules.
    assert_eq!(advice.json()["rules"]["paper"]["bytes"], 45_000);
}

#[test]
fn the_explanation_cites_no_repository_files() {
    for flows in [None, Some(100), Some(20)] {
        for (rate, input) in [("1Gbit/s", "10Gbit/s"), ("50Mbit/s", "500Mbit/s")] {
            let q = RouterQuestion { rate: rate.parse().unwrap(), flows, ..question(input) };
            let advice = advise(&q).unwrap();
            let all = format!("{}{}", advice.text(true, 80), advice.json());
            assert!(!all.contains("docs/") && !all.contains(".md"), "{all}");
        }
    }
}
