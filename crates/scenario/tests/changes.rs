//! What is written of a path that changes.

use sweetspot_scenario::Scenario;
use sweetspot_units::Duration;

fn read(changes: &str) -> Result<Scenario, String> {
    let text = format!(
        "duration = \"10s\"\n[path]\nrate = \"40Mbit/s\"\nrtt = \"40ms\"\nbuffer = \"9pkt\"\n{changes}"
    );
    Scenario::parse(&text).map_err(|error| error.to_string())
}

#[test]
fn means_are_those_over_time() {
    let changes = "[[path.change]]\nat = \"8s\"\nrate = \"20Mbit/s\"\ndelay = \"18ms\"\n\
                   [[path.change]]\nat = \"4s\"\nrate = \"10Mbit/s\"\n";
    let path = read(changes).expect("it is a scenario").path;
    // The order of time, whatever that of the file.
    assert!(path.changes[0].at < path.changes[1].at);
    let seconds = Duration::from_secs;
    // 2 s at 40, 4 s at 10, 2 s at 20 Mbit/s.
    assert_eq!(path.mean_rate(seconds(2), seconds(10)).as_f64(), 20e6);
    assert_eq!(path.mean_rate(seconds(9), seconds(10)).as_f64(), 20e6);
    // 8 ms each way became 18 ms for a quarter of the time.
    assert!((path.mean_rtt(seconds(2), seconds(10)) - 0.045).abs() < 1e-9);
}

#[test]
fn what_cannot_be_is_named() {
    let refused = |change: &str| read(&format!("[[path.change]]\n{change}")).expect_err("wrong");
    assert!(refused("rate = \"1Mbit/s\"").contains("path.change.0.at is missing"));
    assert!(refused("at = \"1s\"").contains("path.change.0.rate is missing"));
    assert!(refused("at = \"1s\"\nrate = \"1bit/s\"").contains("between 1kbit/s and 1Tbit/s"));
    assert!(refused("at = \"1s\"\nhop = 1\ndelay = \"1ms\"").contains("between 0 and 0"));
}
