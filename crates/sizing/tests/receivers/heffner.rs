use sweetspot_units::Duration;

use crate::{MSS, RTT, Script};

/// The clock's tick.
const TICK: Duration = Duration::from_nanos(976_563);

/// 100 ms are 102.4 ticks: 102 whole ticks, and one for the fraction. Two nanoseconds compensate for the rounding of `TICK`.
const MEASURED: Duration = Duration::from_nanos(103 * 976_563 + 2);

#[test]
fn the_window_starts_at_four_segments() {
    assert_eq!(Script::new("heffner").window, 4 * MSS);
}

#[test]
fn the_window_is_one_rtts_arrivals_plus_four_segments() {
    let mut script = Script::new("heffner");
    script.receive(50 * MSS, MEASURED);
    assert_eq!(script.window, 54 * MSS);
    script.receive(80 * MSS, MEASURED);
    assert_eq!(script.window, 84 * MSS);
}

#[test]
fn the_window_never_shrinks_by_more_than_half() {
    // 84 segments; after a round trip with one segment, 42 and not 5; then 21.
    let mut script = Script::new("heffner");
    script.receive(80 * MSS, MEASURED);
    script.receive(MSS, MEASURED);
    assert_eq!(script.window, 42 * MSS);
    script.receive(MSS, MEASURED);
    assert_eq!(script.window, 21 * MSS);
}

#[test]
fn the_min_rtt_sets_the_measurement_interval() {
    // After a sample of 50 ms, later samples of 200 ms do not lengthen the measurement: 52 ticks, 50.8 ms.
    let mut script = Script::new("heffner");
    script.rtt(Duration::from_millis(50));
    script.rtt(Duration::from_millis(200));
    // The first 20 segments take 50 ms, and the 21st arrives after 52.5 ms.
    script.receive(21 * MSS, Duration::from_micros(52_500));
    assert_eq!(script.window, 25 * MSS);
}

#[test]
fn the_rtt_is_overestimated_by_at_most_one_tick() {
    // 10.5 ticks: 10, and one for the fraction. A packet after 10.9 ticks is too early, one after 11.1 ends the measurement.
    let mut script = Script::new("heffner");
    script.rtt(TICK.scaled(10.5));
    script.receive(MSS, TICK.scaled(10.9));
    assert_eq!(script.window, 4 * MSS);
    script.receive(MSS, TICK.scaled(0.2));
    assert_eq!(script.window, 6 * MSS);
}

#[test]
fn unread_data_counts_as_arrived() {
    // The application read 50 segments and left 10 unread: 60 arrived, and the space is 4 more. TCP computes its free part.
    let mut script = Script::new("heffner");
    script.receive_leaving(50 * MSS, MEASURED, 10 * MSS);
    assert_eq!(script.window, (50 + 10 + 4) * MSS);
}

#[test]
fn the_read_variant_counts_only_data_the_application_read() {
    let mut script = Script::new("heffner:read");
    script.receive_leaving(50 * MSS, MEASURED, 10 * MSS);
    assert_eq!(script.window, 2 * (50 + 4) * MSS);
}

#[test]
fn heffner_twice_doubles_the_window_per_rtt_until_the_link_is_full() {
    // The arrivals match the advertised window, until the link carries no more than 600 segments per RTT.
    let mut script = Script::new("heffner:twice");
    for round in 0..12 {
        let before = script.window;
        script.receive(before.min(600 * MSS), MEASURED);
        let doubled = 2 * before.min(600 * MSS);
        assert!(script.window >= doubled, "round {round}: {} after {before}", script.window);
        assert!(script.window <= doubled + 8 * MSS, "round {round}");
    }
    // Figure 1: "remaining constant (at twice the BDP)", and twice the four segments.
    assert_eq!(script.window, 2 * (600 + 4) * MSS);
}

#[test]
fn inflating_every_rtt_inflates_the_window_by_the_same_factor() {
    // Section 4.2.2: "the buffer will be proportionally larger". 100 segments per true round trip arrive throughout.
    for factor in [1, 2, 4, 8] {
        let mut script = Script::unmeasured("heffner:twice");
        script.rtt(RTT.scaled(factor as f64));
        for _ in 0..10 * factor {
            script.receive(100 * MSS, RTT);
        }
        let expected = 200 * factor * MSS;
        let window = script.window;
        // Eight segments, and the arrivals of one tick.
        assert!((expected..expected + 12 * MSS).contains(&window), "{factor}: {window}");
    }
}

#[test]
fn one_honest_sample_ends_the_attack() {
    // The lowest sample counts, so an attacker must inflate the first one as well as all later ones.
    let mut script = Script::new("heffner:twice");
    script.rtt(RTT.scaled(8.0));
    for _ in 0..40 {
        script.receive(100 * MSS, RTT);
    }
    assert!(script.window < 212 * MSS, "{}", script.window);
}
