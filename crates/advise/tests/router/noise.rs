//! Differences between simulated buffers that chance does not explain.

use sweetspot_advise::router::{Simulated, SimulatedBuffer, SimulatedErrors, advise};
use sweetspot_theory::Packets;
use sweetspot_units::Rate;

use crate::question;
use crate::simulation::simulated;

/// C T is 5000 packets. 10,000 lie halfway between 5000 and 20,000, geometrically, and so in use between 90 and 70 %.
#[test]
fn flows_that_queue_at_slow_inputs_explain_a_less_busy_link() {
    let advice = advise(&question("100Mbit/s")).unwrap();
    let words = |inputs, error| {
        let mut table = Simulated { inputs, ..simulated([2, 4, 4]) };
        table.buffers.push(SimulatedBuffer {
            buffer: Packets::new(20_000.0).unwrap(),
            used: 0.7,
            errors: SimulatedErrors { used: error, ..SimulatedErrors::default() },
            ..table.buffers[2].clone()
        });
        advice.clone().decided_by(table).text(true, 80).replace('\n', " ")
    };
    let cause = "With 10000 packets the link uses 80.0 % instead of 90.0 %: losses no longer limit";
    let text = words(20, 0.001);
    assert!(text.contains(cause) && text.contains("at their 20 inputs instead"), "{text}");
    // With an input each, the 200 users do not wait for each other. A difference of 0.1 is within two standard errors of 0.1.
    assert!(!words(200, 0.001).contains("the link uses 80.0 %"));
    assert!(!words(20, 0.1).contains("the link uses 80.0 %"));
}

/// Five seeds have four degrees of freedom: 2.776 standard errors. Of 4 Mbit/s, 10 % are 0.4 Mbit/s.
#[test]
fn the_error_decides_whether_the_answer_gives_a_range() {
    let advice = advise(&question("10Gbit/s")).unwrap();
    let text = |kbit: u64| {
        let mut table = Simulated { seeds: 5, ..simulated([2, 4, 4]) };
        for buffer in &mut table.buffers {
            buffer.bulk.error = Rate::from_bits_per_second(kbit * 1000);
            buffer.errors.loss = 0.001;
        }
        // The legend names the widest interval, too.
        table.buffers[0].errors.loss = 0.002;
        advice
            .clone()
            .decided_by(table)
            .text(true, 80)
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    };
    let [narrow, wide] = [100, 150].map(text);
    assert!(narrow.contains("4.0 +- 0.3 Mbit/s") && narrow.contains("at least 90 %"), "{narrow}");
    assert!(wide.contains("4.0 +- 0.4 Mbit/s") && !wide.contains("at least 90 %"), "{wide}");
    let all = "loss +- 0.28 (0.56), used +- 0 (0), short +- 0.28 (0.28), bulk +- 0.28 (0.28)";
    assert!(narrow.contains(all), "{narrow}");
}
