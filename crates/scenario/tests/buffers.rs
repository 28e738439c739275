//! Buffers as multiples of their path's capacity.

use sweetspot_scenario::Scenario;
use sweetspot_units::{Bytes, Volume};

fn buffers(path: &str) -> Vec<Volume> {
    let text = format!("duration = \"5s\"\n[path]\n{path}\n[[transfer]]");
    Scenario::parse(&text).unwrap().path.hops.iter().map(|hop| hop.buffer).collect()
}

/// 50 Mbit/s x 100 ms = 625 kB. Each hop uses its own rate and the whole path's RTT.
#[test]
fn a_buffer_may_be_a_multiple_of_the_bandwidth_delay_product() {
    let half = buffers("rate = \"50Mbit/s\"\nrtt = \"100ms\"\nbuffer = \"0.5bdp\"");
    assert_eq!(half, [Volume::Bytes(Bytes::new(312_500))]);
    let hop = |rate: &str| format!("[[path.hop]]\nrate = \"{rate}\"\nbuffer = \"1bdp\"");
    let path = format!("rtt = \"100ms\"\n{}\n{}", hop("50Mbit/s"), hop("10Mbit/s"));
    let both = [625_000, 125_000].map(|bytes| Volume::Bytes(Bytes::new(bytes)));
    assert_eq!(buffers(&path), both);
}
