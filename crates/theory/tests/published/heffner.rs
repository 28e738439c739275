//! Heffner: "High Bandwidth TCP Queuing".

use sweetspot_theory::host::window_scale::WindowScale;
use sweetspot_theory::path::Path;
use sweetspot_theory::path::saturation::congestion_limited;
use sweetspot_units::{Bytes, Duration, Rate};

#[test]
fn section_6_3_has_524280_bytes_at_scale_3_and_8388480_at_scale_7() {
    let largest = |bits| WindowScale::new(bits).unwrap().largest_window();
    assert_eq!(largest(3), Bytes::new(524_280));
    assert_eq!(largest(7), Bytes::new(8_388_480));
}

#[test]
fn section_6_3_is_wrong_about_the_granularity_of_scale_7() {
    // A shift of 7 steps by 2^7 = 128 B; the text prints 256.
    let scale = WindowScale::new(7).unwrap();
    assert_eq!(scale.granularity(), Bytes::new(128));
    // The text's argument still holds: a modem's segment of 536 B can be advertised almost exactly.
    assert_eq!(scale.advertised(Bytes::new(536)), Bytes::new(640));
}

#[test]
fn section_6_3_scale_7_exceeds_a_continental_bdp_at_100_mbit() {
    // The text compares 10^8 x 0.07 = 7x10^6 with 8,388,480, bits with bytes. 100 Mbit/s over 70 ms
    // are 875 kB, so a scale of 7 allows almost ten times the BDP.
    let bdp = Rate::from_mbit_per_second(100) * Duration::from_millis(70);
    assert_eq!(bdp, Bytes::new(875_000));
    assert_eq!(WindowScale::for_window(bdp).unwrap().bits(), 4);
}

#[test]
fn section_7_2_has_three_quarters_of_capacity_under_buffered() {
    let capacity = Rate::from_mbit_per_second(100);
    let path = Path::new(capacity, Duration::from_millis(70), Bytes::ZERO).unwrap();
    assert_eq!(congestion_limited(&path), Rate::from_mbit_per_second(75));
}
