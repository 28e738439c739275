use sweetspot_tcp::congestion::window_pacing_rate;
use sweetspot_units::{Bytes, Duration, Rate};

#[test]
fn a_window_is_paced_over_its_round_trip_with_a_margin() {
    // 100 packets of 1250 B per 100 ms are 10 Mbit/s; 120 % of that, and 200 % early in slow
    // start.
    let rate = |ssthresh| {
        window_pacing_rate(100.0, ssthresh, Duration::from_millis(100), Bytes::new(1250))
    };
    assert_eq!(rate(150.0), Rate::from_mbit_per_second(12));
    assert_eq!(rate(f64::INFINITY), Rate::from_mbit_per_second(20));
}
