//! rLEDBAT tells the queue of cross traffic from its own.

mod common;

use common::simulate;

/// The times in seconds at which a transfer on a path of this rate, RTT and buffer reports that cross traffic keeps a queue.
/// `cross` is the scenario's other traffic.
fn yields([rate, rtt, buffer]: [&str; 3], cross: &str) -> Vec<f64> {
    let scenario = format!(
        "duration = \"40s\"\n[path]\nrate = \"{rate}\"\nrtt = \"{rtt}\"\nbuffer = \"{buffer}\"\n\
         [[transfer]]\nsizing = \"rledbat\"\n{cross}"
    );
    let transfer = &simulate(&scenario, &[]).transfers[0];
    let is_cross = |reason: &Option<String>| {
        reason.as_ref().is_some_and(|reason| reason == "cross traffic keeps a queue")
    };
    transfer.events.iter().filter(|event| is_cross(&event.reason)).map(|event| event.at_s).collect()
}

/// The buffer holds 123 ms. Slow start overflows it, and the program reads nothing until the losses are repaired, although the
/// queue stands.
#[test]
fn a_transfer_alone_reports_no_cross_traffic_while_it_repairs_losses() {
    assert_eq!(yields(["54.1Mbit/s", "60.6ms", "835kB"], ""), Vec::<f64>::new());
}

#[test]
fn a_transfer_yields_only_once_cross_traffic_has_begun() {
    let cross = "[[transfer]]\nsizing = \"kernel\"\nstart = \"15s\"\n";
    let all = yields(["20Mbit/s", "40ms", "400kB"], cross);
    assert!(all.first().is_some_and(|first| *first > 15.0), "{all:?}");
}
