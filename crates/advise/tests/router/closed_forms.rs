//! Links outside the regression's range.

use sweetspot_advise::router::{
    Basis, BufferChoice, Favour, LinkMeasurement, Mix, Parameters, RouterQuestion, advise,
};
use sweetspot_units::{Bytes, Rate};

use crate::{lasting, poisson, question};

#[test]
fn few_flows_on_a_fast_link_get_the_bdp_over_sqrt_n() {
    let fast = |flows| RouterQuestion {
        rate: "100Gbit/s".parse().unwrap(),
        flows: Some(flows),
        size_mean: Some(Bytes::new(30_000_000_000)),
        ..question("400Gbit/s")
    };
    // 750 MB / sqrt(1000) = 23.72 MB; four times the flows halve it.
    let (thousand, more) = (advise(&fast(1000)).unwrap(), advise(&fast(4000)).unwrap());
    assert_eq!(thousand.basis, Basis::SquareRoot);
    assert!((thousand.recommended.bytes.as_f64() / 23.717e6 - 1.0).abs() < 1e-4);
    let ratio = thousand.recommended.bytes.as_f64() / more.recommended.bytes.as_f64();
    assert!((ratio - 2.0).abs() < 1e-4);
    // No similar link was simulated, so eq. (3) gives the loss. The RTT is 60 ms plus the delay of half the buffer of 23.717 MB,
    // 0.949 ms. At 98 Mbit/s, 497.75 packets are in flight: (1.22 / 497.75)^2.
    let r = &thousand.recommended;
    assert_eq!((r.used, r.flow), (Some(0.98), Some(Rate::from_mbit_per_second(98))));
    assert!((r.loss.unwrap() / 6.0076e-6 - 1.0).abs() < 1e-3, "{r:?}");
    let text = thousand.text(true, 80).replace('\n', " ");
    assert!(text.contains(" a C x T of 500000 packets (16 to 1050)"), "{text}");
    assert!(text.contains("Closed forms give the buffer, as the regression"), "{text}");
}

#[test]
fn law_outside_the_regression_range_a_closed_form_gives_the_buffer() {
    // C T is 5000 packets, 4.8 times the largest simulated. By eq. (7), bulk transfers need twice C T, which is capped at C T.
    // The median for a mean of 80 kB is 42.3 kB, 29 segments, D = 5: by eq. (6) sqrt(2 x 29 x 5000 / 5) = 240.8.
    let of = |favour| {
        let q = RouterQuestion { favour, mix: Mix::Short, ..question("10Gbit/s") };
        advise(&q).unwrap()
    };
    assert_eq!(of(Favour::Throughput).recommended.buffer.get(), 5000.0);
    assert!((of(Favour::Short).recommended.buffer.get() - 240.832).abs() < 1e-3);
    // Below C T / sqrt(n) = 150, with n = 1111, the link idles.
    assert!((of(Favour::Latency).recommended.buffer.get() - 150.008).abs() < 1e-3);
    for advice in [Favour::Throughput, Favour::Short, Favour::Latency].map(of) {
        assert_eq!(advice.json()["closed_form"], true);
        assert!(!advice.text(true, 80).contains("predicted)"));
    }
    // Within its range, the regression gives the buffer.
    let slow = RouterQuestion { rate: "50Mbit/s".parse().unwrap(), ..question("500Mbit/s") };
    let json = advise(&slow).unwrap().json();
    assert_eq!(
        (json["closed_form"].as_bool(), json["basis"].as_str()),
        (Some(false), Some("optimum"))
    );
}

#[test]
fn closed_forms_cover_only_flows_in_congestion_avoidance() {
    // Eq. (3) holds for flows with five congestion events or more. Transfers of 80 kB, 53 packets, have none.
    let advice = advise(&RouterQuestion { flows: Some(1111), ..question("10Gbit/s") }).unwrap();
    assert!(advice.is_closed_form());
    let mut all = advice.rules.iter().chain([&advice.recommended]);
    assert!(
        all.all(|b| (b.loss, b.mean_delay, b.short, b.bulk) == (None, None, None, None)),
        "{advice:?}"
    );
    assert!(advice.json()["loss"].is_null() && advice.json()["bulk_bps"].is_null());
    let text = advice.answer(80).replace("\n        ", " ");
    assert!(text.contains("its transfers are too short for closed forms"), "{text}");
    // (1.22 m / (R T))^2 at 2.45 Mbit/s: 12.25 packets in 60 ms, plus the delay of half the buffer of 250 packets.
    let r = advise(&lasting()).unwrap().recommended;
    let rtt = 0.060 + r.buffer.get() / 2.0 * 12e-6;
    let loss = (1.22 / (2.45e6 * rtt / 12e3)).powi(2);
    assert!((r.loss.unwrap() / loss - 1.0).abs() < 1e-3, "{r:?}");
    // A single flow of any size has the link to itself: 98 % of 1 Gbit/s.
    let alone = advise(&RouterQuestion { flows: Some(1), ..question("10Gbit/s") }).unwrap();
    assert_eq!(alone.recommended.flow, Some(Rate::from_mbit_per_second(980)));
    // With a buffer of 2 C T, the flow's window of up to 10,000 packets has a loss of (1.22 / 9800)^2. Half of the transfers have
    // at least 0.529 of the mean size. They see five losses from a mean of 0.92 TB on: 1500 B x 5 x (9800 / 1.22)^2 / 0.529.
    assert_eq!(alone.recommended.loss, None);
    // This use is assumed, so the table has only buffers.
    let text = alone.text(false, 80);
    assert!(text.contains("use     about 98.0 % of the link (assumed)\n"), "{text}");
    assert!(text.contains("packets     bytes  full\n") && !text.contains("equal share"), "{text}");
    // A full buffer of C T delays by 60 ms, and a half-full one by 30 ms; 50,000 flows lose more than closed forms know.
    let many = advise(&RouterQuestion { flows: Some(50_000), ..question("10Gbit/s") }).unwrap();
    let text = many.text(false, 80);
    assert!(text.contains("  -            not predicted\n"), "{text}");
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains(" BDP 5000 7.5 MB 60 30 - - - - "), "{text}");
    for (gigabytes, is_known) in [(900, false), (930, true)] {
        let size_mean = Some(Bytes::new(gigabytes * 1_000_000_000));
        let q = RouterQuestion { flows: Some(1), size_mean, ..question("10Gbit/s") };
        let r = advise(&q).unwrap().recommended;
        assert_eq!((r.loss.is_some(), r.bulk.is_some()), (is_known, is_known), "{gigabytes}");
    }
    // A measured loss distinguishes bulk transfers from short ones.
    let measured = RouterQuestion { parameters: poisson(), ..question("10Gbit/s") };
    assert!(advise(&measured).unwrap().recommended.bulk.is_some());
}

/// The rules assume a number of flows: enough to fill the link in twice their slow start. The loss of these flows is not a
/// prediction, and no reason for a warning.
#[test]
fn closed_forms_predict_no_loss_for_assumed_flows_or_spare_capacity() {
    let assumed = |q: RouterQuestion| {
        let advice = advise(&q).unwrap();
        let r = &advice.recommended;
        assert!(advice.is_closed_form());
        assert_eq!((r.loss, r.mean_delay, r.flow, r.short), (None, None, None, None), "{r:?}");
        assert!(advice.rules.iter().all(|rule| rule.loss.is_none()), "{advice:?}");
        assert_eq!(advice.warnings(), Vec::<String>::new());
        let answer = advice.answer(80);
        let words = answer.replace("\n        ", " ");
        assert!(
            words.contains("loss    not predicted on this link without a simulation"),
            "{answer}"
        );
        let wanted = match q.load {
            Some(_) => "simulation: its flows do not fill it\n",
            None => "simulation or --flows\n",
        };
        assert!(words.contains(wanted), "{answer}");
        (advice.json(), r.buffer)
    };
    let half = RouterQuestion { load: Some(0.5), ..question("10Gbit/s") };
    let large = RouterQuestion { packet: Bytes::new(9000), ..question("10Gbit/s") };
    assert!(assumed(half).0["loss"].is_null() && assumed(large.clone()).0["delay_s"].is_null());
    // The same number of flows, if given, overloads the link: 741 flows share 2 C T of 1667 packets, fewer than four each.
    let given = advise(&RouterQuestion { flows: Some(741), ..large.clone() }).unwrap();
    assert!(given.warnings().join(" ").contains("the link is overloaded"));
    assert_eq!(given.recommended.buffer, assumed(large).1);
    // On a link with spare capacity, loss is not what slows the flows down.
    let room = RouterQuestion { load: Some(0.5), flows: Some(700), ..question("10Gbit/s") };
    let room = advise(&room).unwrap();
    assert_eq!((room.recommended.loss, room.recommended.flow), (None, None));
    assert!(room.warnings().is_empty() && room.answer(200).contains("its flows do not fill it"));
}

/// p = 0.1 / B^0.5, with another a.
#[test]
fn the_answer_names_a_parameter_that_overrides_the_fit() {
    let parameters = Parameters { loss_a: Some(1.0), ..Parameters::default() };
    let (rate, packet) = ("1Gbit/s".parse().unwrap(), Bytes::new(1500));
    let measured = LinkMeasurement::read("25,2%\n100,1%\n400,0.5%\n1600,0.25%\n", rate, packet);
    let measurement = Some(measured.unwrap());
    let q = RouterQuestion { parameters, measurement, ..question("10Gbit/s") };
    let answer = advise(&q).unwrap().answer(200);
    let line = "source  a loss form fitted to the measurements, with your a = 1\n";
    assert!(answer.contains(line), "{answer}");
}

/// p = a B^-b falls with the buffer, so the flows can use more of the link. A larger buffer therefore never idles it.
#[test]
fn a_larger_buffer_never_uses_less_of_a_link_with_a_measured_loss() {
    for (a, b) in [(0.4, 0.8), (0.4, 0.33), (0.1, 0.5)] {
        let (loss_a, loss_b) = (Some(a), Some(b));
        let of = |delay_f| {
            let parameters = Parameters { loss_a, loss_b, delay_f, ..Parameters::default() };
            let rate = Rate::from_mbit_per_second(50);
            advise(&RouterQuestion { rate, parameters, ..question("500Mbit/s") }).unwrap()
        };
        let mut rules = of(None).rules;
        rules.sort_by(|one, other| one.buffer.get().total_cmp(&other.buffer.get()));
        let used: Vec<f64> = rules.iter().map(|rule| rule.used.unwrap()).collect();
        assert!(used.is_sorted_by(|less, more| *more >= less - 1e-9), "{a} {b}: {used:?}");
        // A measured queue stays as it is.
        let measured = of(Some(0.5));
        let is_half = |choice: &BufferChoice| {
            let [mean, full] =
                [choice.mean_delay.unwrap(), choice.worst_delay].map(|d| d.as_secs_f64());
            (mean / full - 0.5).abs() < 1e-3
        };
        assert!(measured.rules.iter().all(is_half), "{measured:?}");
    }
}
