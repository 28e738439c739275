//! Advice about a router's buffer, tried as it is given.

use sweetspot_advise::router::{Basis, Favour, Mix, Parameters, RouterQuestion, advise};
use sweetspot_experiment::router::{Effort, Runner, try_buffers};
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
fn the_advised_buffer_is_among_those_tried_and_counts_in_the_links_own_packets() {
    // 10 Gbit/s is simulated as a slower link; its buffers are reported for the link itself.
    for (rate, input) in [("20Mbit/s", "200Mbit/s"), ("10Gbit/s", "40Gbit/s")] {
        let advice = advise(&question(rate, input)).unwrap();
        let tried = try_buffers(&runner(), &advice, Effort::Quick).unwrap();
        let advised = tried.buffers[tried.advised].buffer.get();
        let packets = advice.recommended.buffer.get();
        // To a whole packet of the simulated link.
        assert!((advised - packets).abs() <= 0.5 / tried.scale + 1e-9, "{advised} {packets}");
        assert!(tried.buffers.windows(2).all(|pair| pair[0].buffer < pair[1].buffer));
        assert!(tried.buffers.windows(2).all(|pair| pair[0].used <= pair[1].used + 0.02));
        assert_eq!(tried.scale < 1.0, rate == "10Gbit/s");
    }
}

#[test]
fn what_cannot_be_run_in_small_is_said_and_not_tried() {
    let few = RouterQuestion { flows: Some(100), ..question("100Gbit/s", "400Gbit/s") };
    let told = try_buffers(&runner(), &advise(&few).unwrap(), Effort::Quick).unwrap_err();
    assert!(told.to_string().contains("eight flows"), "{told}");
    let alone = RouterQuestion { inputs: Some(1), ..question("1Gbit/s", "1Gbit/s") };
    let advice = advise(&alone).unwrap();
    assert_eq!(advice.basis, Basis::NothingQueues);
    assert!(!advice.can_be_simulated());
    assert!(try_buffers(&runner(), &advice, Effort::Quick).is_err());
}
