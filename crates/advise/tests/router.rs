//! What the router advice must hold.

use sweetspot_advise::router::{Basis, Favour, Mix, Parameters, RouterQuestion, advise};
use sweetspot_units::{Bytes, Rate};

fn question(input: &str) -> RouterQuestion {
    RouterQuestion {
        rate: "1Gbit/s".parse().unwrap(),
        rtt: "60ms".parse().unwrap(),
        input_rate: input.parse().unwrap(),
        inputs: None,
        flows: Some(100),
        mix: Mix::Bulk,
        favour: Favour::Throughput,
        available: None,
        packet: Bytes::new(1500),
        parameters: Parameters::default(),
        measurement: None,
    }
}

#[test]
fn a_server_farms_link_by_hand() {
    // Gamma = 0.1; eq. (11) with b = 0.5, f = 0.4: 0.8333 of 5000 packets = 4166.7 = 6.25 MB,
    // 50 ms when full; p = 0.186 / sqrt(4166.7) = 0.288 %.
    let json = advise(&question("10Gbit/s")).unwrap().json();
    assert_eq!((json["gamma"].as_f64(), json["form"].as_str()), (Some(0.1), Some("PL")));
    assert!((json["buffer_packets"].as_f64().unwrap() - 4166.67).abs() < 0.01);
    assert_eq!(json["buffer_bytes"], 6_250_000);
    assert_eq!(json["buffer_delay_s"], 0.05);
    assert!((json["loss"].as_f64().unwrap() - 0.002_881).abs() < 1e-6);
    // C T / sqrt(100) = 750 kB.
    assert_eq!(json["rules"]["BDP/sqrt(n)"]["bytes"], 750_000);
    let range = &json["range_90_percent"];
    let (low, high) = (range["low_packets"].as_f64(), range["high_packets"].as_f64());
    assert!(low.unwrap() < 4166.0 && 4167.0 < high.unwrap());
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
fn slow_inputs_need_a_few_packets_or_none() {
    let access = advise(&question("100Mbit/s")).unwrap();
    assert_eq!((access.basis, access.recommended.buffer.get()), (Basis::Simulation, 30.0));
    // The paper prints no loss for it, so none is made up.
    assert_eq!((access.recommended.loss, access.range), (None, None));
    let few = RouterQuestion { inputs: Some(10), ..question("100Mbit/s") };
    assert_eq!(advise(&few).unwrap().basis, Basis::NothingQueues);
}

#[test]
fn measured_parameters_replace_the_papers() {
    let parameters =
        Parameters { loss_a: Some(1.0), loss_b: Some(1.0), delay_f: Some(0.5), tail_index: None };
    // Eq. (7): twice the bandwidth-delay product.
    let advice = advise(&RouterQuestion { parameters, ..question("10Gbit/s") }).unwrap();
    assert_eq!(advice.recommended.bytes, Bytes::new(15_000_000));
    let half = Parameters { loss_a: Some(0.1), ..Parameters::default() };
    let e = advise(&RouterQuestion { parameters: half, ..question("100Mbit/s") }).unwrap_err();
    assert!(e.to_string().contains("needs both"), "{e}");
}

#[test]
fn what_the_device_has_is_judged() {
    let words = |bytes: u64| {
        let q = RouterQuestion { available: Some(Bytes::new(bytes)), ..question("10Gbit/s") };
        advise(&q).unwrap().text(false).replace('\n', " ")
    };
    assert!(words(100_000).contains("too small"));
    assert!(words(6_000_000).contains("within the range"));
    assert!(words(100_000_000).contains("more than is good"));
}

#[test]
fn impossible_links_and_light_tails_are_refused_in_words() {
    let refused = |q: RouterQuestion| advise(&q).unwrap_err().to_string();
    assert!(refused(RouterQuestion { rate: Rate::ZERO, ..question("1Gbit/s") }).contains("--rate"));
    assert!(
        refused(RouterQuestion { inputs: Some(0), ..question("1Gbit/s") }).contains("--inputs")
    );
    assert!(refused(RouterQuestion { flows: Some(0), ..question("1Gbit/s") }).contains("--flows"));
    let parameters = Parameters { tail_index: Some(2.5), ..Parameters::default() };
    assert!(
        refused(RouterQuestion { parameters, ..question("10Gbit/s") }).contains("no closed form")
    );
}

#[test]
fn a_loss_form_above_one_is_blamed_on_its_parameters() {
    let parameters = Parameters { loss_a: Some(100.0), loss_b: Some(0.05), ..Default::default() };
    // 100 B^-0.05 is above 1 for every buffer that a link has.
    let refused =
        advise(&RouterQuestion { parameters, ..question("10Gbit/s") }).unwrap_err().to_string();
    assert!(refused.contains("--loss-a") && refused.contains("100 and 0.05"), "{refused}");
}

#[test]
fn no_line_is_longer_than_80_columns() {
    for input in ["10Gbit/s", "100Mbit/s"] {
        for favour in [Favour::Throughput, Favour::Short, Favour::Latency] {
            let available = Some(Bytes::new(123_456_789));
            let q = RouterQuestion { favour, available, ..question(input) };
            let text = advise(&q).unwrap().text(true);
            assert!(text.lines().all(|l| l.chars().count() <= 80), "{text}");
        }
    }
}
