//! The rate that `advise window` predicts under random loss, compared with the simulator's.

use sweetspot_advise::window::{LossResponse, WindowQuestion, advise};
use sweetspot_experiment::Workers;
use sweetspot_experiment::window::try_windows;
use sweetspot_scenario::{Engine, NoRecorder, Scenario};
use sweetspot_sim::Simulator;
use sweetspot_units::Bytes;

/// Paths on which loss alone allows 0.7 to 3 times the capacity. Their buffers absorb the burst after a recovery, which refills
/// the window that lost packets occupied.
const PATHS: [(&str, &str, &str, u64); 8] = [
    ("35Mbit/s", "40ms", "1e-4", 175_000),
    ("100Mbit/s", "10ms", "2e-4", 125_000),
    ("50Mbit/s", "20ms", "2e-4", 125_000),
    ("20Mbit/s", "30ms", "5e-4", 75_000),
    ("60Mbit/s", "15ms", "1e-4", 112_500),
    ("10Mbit/s", "100ms", "3e-4", 125_000),
    ("40Mbit/s", "60ms", "3e-5", 300_000),
    ("8Mbit/s", "50ms", "2e-3", 50_000),
];

/// The mean rate in fifteen runs of 60 s with a fixed window, headers included.
fn simulated(question: &WindowQuestion, window: Bytes) -> f64 {
    let text = format!(
        "warmup = \"10s\"\nduration = \"60s\"\n[path]\nrate = \"{}bit/s\"\nrtt = \"{}us\"\nbuffer = \"{}B\"\npacket = \"1500B\"\nloss = {}\n\
         [tcp]\nflavour = \"linux\"\n[[transfer]]\ncongestion = \"{}\"\nsizing = \"fixed:{}B\"\n",
        question.rate.bits_per_second(),
        question.rtt.as_secs_f64() * 1e6,
        question.buffer.unwrap().get(),
        question.loss.unwrap().get(),
        question.congestion,
        window.get(),
    );
    let scenario = Scenario::parse(&text).unwrap();
    let run = |seed| {
        let outcome = Simulator.run(&Scenario { seed, ..scenario.clone() }, &mut NoRecorder);
        outcome.unwrap().transfers[0].goodput_bps / question.payload_share()
    };
    (1..=15).map(run).sum::<f64>() / 15.0
}

#[test]
fn near_the_loss_limit_the_expected_rate_matches_the_simulator() {
    let mut ratios = Vec::new();
    for congestion in [LossResponse::Cubic, LossResponse::Reno] {
        for (rate, rtt, loss, buffer) in PATHS {
            let question = WindowQuestion {
                rate: rate.parse().unwrap(),
                rtt: rtt.parse().unwrap(),
                buffer: Some(Bytes::new(buffer)),
                cross: None,
                loss: Some(loss.parse().unwrap()),
                congestion,
                mtu: Bytes::new(1500),
                kernel: "6.18".parse().unwrap(),
            };
            let advice = advise(&question).unwrap();
            let half = advice.wrong_by_two[0].clone();
            for choice in [advice.recommended, half] {
                let (window, expected) = choice.window.zip(choice.rate).unwrap();
                let ratio = expected.as_f64() / simulated(&question, window);
                // Fifteen runs: a standard error of about 1 %.
                assert!((ratio - 1.0).abs() < 0.08, "{congestion} {rate} {window}: {ratio}");
                ratios.push(ratio);
            }
        }
    }
    let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
    assert!((mean - 1.0).abs() < 0.04, "{mean}");
}

/// Packets that arrive while the link is busy wait for at most a window, so the mean over time is at most the link's use times
/// the window's transmission time: 0.06 x 2.4 ms. Half the packets' RTTs include a delayed ACK, which is no queue.
#[test]
fn law_a_delayed_ack_is_no_queue() {
    let question = WindowQuestion {
        rate: "100Mbit/s".parse().unwrap(),
        rtt: "20ms".parse().unwrap(),
        buffer: Some(Bytes::new(250_000)),
        cross: None,
        loss: Some("1%".parse().unwrap()),
        congestion: LossResponse::Cubic,
        mtu: Bytes::new(1500),
        kernel: "6.18".parse().unwrap(),
    };
    let window = Bytes::new(28_960);
    let tried = try_windows(&Simulator, &question, &[window], 1..=2, Workers::per_core()).unwrap();
    let one = &tried.windows[0];
    let used = one.rate.as_f64() / question.rate.as_f64();
    let sent = window.scaled(1.0 / question.payload_share()) / question.rate;
    assert!(used < 0.1 && one.delay <= sent.scaled(used), "{used} {} {}", one.delay, sent);
}
