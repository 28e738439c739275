//! Advice about a router's buffer, tested in the simulator.

use sweetspot_advise::router::{Basis, Favour, Mix, Parameters, RouterQuestion, advise};
use sweetspot_experiment::router::{BufferTrial, Effort, Runner};
use sweetspot_experiment::{NoStore, Workers};
use sweetspot_sim::Simulator;
use sweetspot_units::Bytes;

fn question(rate: &str, input: &str) -> RouterQuestion {
    RouterQuestion {
        rate: rate.parse().unwrap(),
        rtt: "60ms".parse().unwrap(),
        input_rate: input.parse().unwrap(),
        inputs: None,
        flows: None,
        load: None,
        size_mean: None,
        mix: Mix::Short,
        favour: Favour::Short,
        available: None,
        packet: Bytes::new(1500),
        parameters: Parameters::default(),
        measurement: None,
    }
}

fn runner() -> Runner<'static> {
    Runner { engine: &Simulator, store: &NoStore, workers: Workers::new(2), watch: &|_, _| {} }
}

#[test]
fn the_advised_buffer_is_simulated_and_reported_for_the_real_link() {
    // 10 Gbit/s is simulated as a slower link; its buffers are reported for the real link.
    for (rate, input) in [("20Mbit/s", "200Mbit/s"), ("10Gbit/s", "40Gbit/s")] {
        let advice = advise(&question(rate, input)).unwrap();
        let trial = BufferTrial::new(&advice, Effort::Quick).unwrap();
        let tried = trial.run(&runner()).unwrap();
        assert_eq!(trial.runs() as u64, tried.buffers.len() as u64 * tried.seeds);
        let advised = tried.buffers[tried.advised].buffer.get();
        let packets = advice.recommended.buffer.get();
        // Accurate to a packet of the simulated link.
        assert!((advised - packets).abs() <= 0.5 / tried.scale + 1e-9, "{advised} {packets}");
        assert!(tried.buffers.windows(2).all(|pair| pair[0].buffer < pair[1].buffer));
        assert!(tried.buffers.windows(2).all(|pair| pair[0].used <= pair[1].used + 0.02));
        assert_eq!(tried.scale < 1.0, rate == "10Gbit/s");
    }
}

#[test]
fn the_available_buffer_is_always_simulated() {
    // C T is 100 packets: almost as many, and ten times as many.
    for packets in [96, 1000] {
        let available = Some(Bytes::new(1500 * packets));
        let advice =
            advise(&RouterQuestion { available, ..question("20Mbit/s", "200Mbit/s") }).unwrap();
        let tried = BufferTrial::new(&advice, Effort::Quick).unwrap().run(&runner()).unwrap();
        assert!(
            tried.buffers.iter().any(|tried| tried.buffer.get() == packets as f64),
            "{tried:?}"
        );
        let device = &advice.decided_by(tried).json()["available"];
        assert!(device["loss"].is_f64() && device["short_bps"].is_u64(), "{device}");
    }
}

/// The sizes above which flows count as persistent: 50 times the larger of 200 packets and M / log2(M) = 2 C T / n, with C T of
/// 250 packets. For 8 flows M is 574.
#[test]
fn law_persistent_flows_use_95_percent_with_the_square_root_buffer() {
    for (flows, packets) in [(8, 574), (20, 200), (50, 200)] {
        let q = RouterQuestion {
            flows: Some(flows),
            size_mean: Some(Bytes::new(1500 * 50 * packets)),
            mix: Mix::Bulk,
            favour: Favour::Throughput,
            ..question("50Mbit/s", "500Mbit/s")
        };
        let advice = advise(&q).unwrap();
        assert_eq!(advice.basis, Basis::SquareRoot);
        let tried = BufferTrial::new(&advice, Effort::Quick).unwrap().run(&runner()).unwrap();
        let used = tried.buffers[tried.advised].used;
        assert!(used >= 0.95, "{flows} flows use {used}");
        // The advice keeps 98 % of the utilisation with C T.
        let full = tried.buffers[tried.rule].used;
        let decided = advice.decided_by(tried);
        assert!(decided.recommended.used.unwrap() >= 0.98 * full - 1e-9, "{decided:?}");
    }
}

#[test]
fn the_simulated_link_has_the_requested_load() {
    for (rate, input, load) in [
        ("50Mbit/s", "5Mbit/s", 0.2),
        ("100Mbit/s", "1Gbit/s", 0.5),
        ("50Mbit/s", "50Mbit/s", 0.9),
        ("100Mbit/s", "1Gbit/s", 0.95),
    ] {
        let q = RouterQuestion { load: Some(load), ..question(rate, input) };
        let trial = BufferTrial::new(&advise(&q).unwrap(), Effort::Quick).unwrap();
        // The largest buffer is ample. The search's last number of users was not tried itself.
        let used = trial.run(&runner()).unwrap().buffers.last().unwrap().used;
        assert!((used - load).abs() < 0.025, "{rate}, {load}: {used}");
    }
}

#[test]
fn the_simulated_link_has_the_requested_number_of_flows() {
    for (rate, input, flows, favour) in [
        ("50Mbit/s", "500Mbit/s", 10, Favour::Short),
        ("50Mbit/s", "500Mbit/s", 50, Favour::Short),
        ("50Mbit/s", "5Mbit/s", 200, Favour::Throughput),
    ] {
        let size_mean = Some(Bytes::new(80_000));
        let question = question(rate, input);
        let q = RouterQuestion { flows: Some(flows), size_mean, favour, ..question };
        let trial = BufferTrial::new(&advise(&q).unwrap(), Effort::Quick).unwrap();
        let tried = trial.run(&runner()).unwrap();
        let buffer = if favour == Favour::Short { tried.advised } else { tried.rule };
        let active = tried.buffers[buffer].flows;
        // Accurate to one user; the search's last number of users was not tried itself.
        assert!((active - flows as f64).abs() < 1.0 + 0.025 * flows as f64, "{flows}: {active}");
    }
}

#[test]
fn links_that_cannot_be_simulated_are_rejected_with_a_reason() {
    // 40e6 packets of 12 kbit in 8 x 4 x 15 s are 1 Gbit/s, 1 % of the link; and 1 % of 100 flows is a single flow.
    let refusal = |rate: &str, flows| {
        let few = RouterQuestion { flows: Some(flows), ..question(rate, "400Gbit/s") };
        BufferTrial::new(&advise(&few).unwrap(), Effort::Quick).unwrap_err().to_string()
    };
    let fast = refusal("100Gbit/s", 100);
    assert!(fast.contains("1.00 % of so fast a link") && fast.contains("1.0 flows"), "{fast}");
    // A slow link is simulated as a whole.
    let slow = refusal("50Mbit/s", 5);
    assert_eq!(slow, "5 flows are too few for an average; it takes 8 or more");
    let alone = RouterQuestion { inputs: Some(1), ..question("1Gbit/s", "1Gbit/s") };
    let advice = advise(&alone).unwrap();
    assert_eq!(advice.basis, Basis::NothingQueues);
    assert!(!advice.can_be_simulated());
    assert!(BufferTrial::new(&advice, Effort::Quick).is_err());
}
