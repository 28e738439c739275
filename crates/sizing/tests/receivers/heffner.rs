use sweetspot_units::Duration;

use crate::{MSS, RTT, Script};

#[test]
fn it_starts_with_four_segments() {
    assert_eq!(Script::new("heffner").window, 4 * MSS);
}

#[test]
fn the_space_is_what_arrived_in_a_round_trip_and_four_segments() {
    let mut script = Script::new("heffner");
    script.receive(50 * MSS, RTT);
    assert_eq!(script.window, 54 * MSS);
    script.receive(80 * MSS, RTT);
    assert_eq!(script.window, 84 * MSS);
}

#[test]
fn the_space_never_falls_below_half_of_what_it_was() {
    // 84, then a round trip with one segment: 42 and not 5; then 21.
    let mut script = Script::new("heffner");
    script.receive(80 * MSS, RTT);
    script.receive(MSS, RTT);
    assert_eq!(script.window, 42 * MSS);
    script.receive(MSS, RTT);
    assert_eq!(script.window, 21 * MSS);
}

#[test]
fn the_lowest_round_trip_counts() {
    // Once 50 ms were seen, later samples of 200 ms do not lengthen the measurement.
    let mut script = Script::new("heffner");
    script.rtt(Duration::from_millis(50));
    script.rtt(Duration::from_millis(200));
    script.receive(40 * MSS, RTT);
    assert_eq!(script.window, 24 * MSS);
}

#[test]
fn what_waits_for_the_application_has_arrived() {
    // 50 segments were read and 10 still wait: 60 arrived, and 4 more make the space. TCP computes its free part.
    let mut script = Script::new("heffner");
    script.receive_leaving(50 * MSS, RTT, 10 * MSS);
    assert_eq!(script.window, (50 + 10 + 4) * MSS);
}

#[test]
fn announced_twice_the_window_doubles_each_round_trip_until_the_link_is_full() {
    // The arrivals match the advertised window, until the link carries no more than 600 segments per RTT.
    let mut script = Script::new("heffner:twice");
    for round in 0..12 {
        let before = script.window;
        script.receive(before.min(600 * MSS), RTT);
        let doubled = 2 * before.min(600 * MSS);
        assert!(script.window >= doubled, "round {round}: {} after {before}", script.window);
        assert!(script.window <= doubled + 8 * MSS, "round {round}");
    }
    // Figure 1: "remaining constant (at twice the BDP)", and twice the four segments.
    assert_eq!(script.window, 2 * (600 + 4) * MSS);
}
