//! The window that `advise window` recommends for a path without cross traffic, in the simulator.

use sweetspot_advise::window::{LossResponse, WindowQuestion, advise};
use sweetspot_path::Random;
use sweetspot_scenario::{Engine, NoRecorder, Scenario};
use sweetspot_sim::Simulator;
use sweetspot_units::{Bytes, Duration, Rate};

const MTU: Bytes = Bytes::new(1500);

/// A random path: 10 to 60 Mbit/s, 20 to 100 ms, five packets to 2 BDP of buffer, each log-uniform.
fn drawn(random: &mut Random) -> WindowQuestion {
    let mut between = |low: f64, high: f64| low * (high / low).powf(random.unit());
    let rate = Rate::from_f64(between(10e6, 60e6));
    let rtt = Duration::from_secs_f64(between(0.02, 0.1));
    let buffer = between((MTU * 5).as_f64(), (rate * rtt).as_f64() * 2.0);
    WindowQuestion {
        rate,
        rtt,
        buffer: Some(Bytes::from_f64(buffer)),
        cross: None,
        loss: None,
        congestion: LossResponse::Cubic,
        mtu: MTU,
        kernel: "6.18".parse().unwrap(),
    }
}

/// Goodput and loss with a fixed window, once CUBIC has recovered from the losses of slow start.
fn simulated(question: &WindowQuestion, window: Bytes) -> (f64, f64) {
    let text = format!(
        "warmup = \"60s\"\nduration = \"20s\"\n[path]\nrate = \"{}bit/s\"\nrtt = \"{}us\"\nbuffer = \"{}B\"\npacket = \"{}B\"\n\
         [tcp]\nflavour = \"linux\"\n[[transfer]]\ncongestion = \"{}\"\nsizing = \"fixed:{}B\"\n",
        question.rate.bits_per_second(),
        question.rtt.as_secs_f64() * 1e6,
        question.buffer.unwrap().get(),
        question.mtu.get(),
        question.congestion,
        window.get(),
    );
    let outcome = Simulator.run(&Scenario::parse(&text).unwrap(), &mut NoRecorder).unwrap();
    (outcome.transfers[0].goodput_bps, outcome.transfers[0].loss_rate)
}

/// The best window of a sweep from half to twice the recommended one is at most 3 % faster, and no packet
/// is lost.
#[test]
fn the_recommended_window_fills_the_path_without_loss() {
    let mut random = Random::new(1);
    for _ in 0..20 {
        let question = drawn(&mut random);
        let window = advise(&question).unwrap().recommended.window.unwrap();
        let (rate, loss) = simulated(&question, window);
        let sweep = [0.5, 0.7, 0.9, 0.95, 1.05, 1.1, 1.2, 1.5, 2.0];
        let others = sweep.map(|share| simulated(&question, window.scaled(share)).0);
        let best = others.into_iter().fold(rate, f64::max);
        assert!(
            rate >= 0.97 * best && loss == 0.0,
            "{question:?}: {window}, {rate} of {best}, {loss}"
        );
    }
}
