//! Gordon: "Impact of Bandwidth Delay Product on TCP Throughput", both tables.

use sweetspot_theory::host::advertised_window::Era;
use sweetspot_theory::host::frame::Framing;
use sweetspot_theory::path::window;
use sweetspot_units::{Bytes, Duration, Rate};

const OLD: Era = Era::ThreeQuarters;

#[test]
fn table_1_has_four_thirds_of_the_bdp() {
    let rows = [
        (100, 1, 12_500, 16_667),
        (100, 10, 125_000, 166_667),
        (1000, 1, 125_000, 166_667),
        (6, 50, 37_500, 50_000),
    ];
    for (mbit, ms, bdp, buffer) in rows {
        let window = window::needed(Rate::from_mbit_per_second(mbit), Duration::from_millis(ms));
        assert_eq!(window, Bytes::new(bdp));
        // The minimum memory for the window: three quarters of it, rounded as in the kernel, must hold the window. That is up to
        // one byte less than the exact 4/3.
        let memory = OLD.memory_for(window, None).get();
        assert!(memory == buffer || memory == buffer - 1, "{memory} {buffer}");
    }
}

#[test]
fn table_2_has_the_advertised_window_and_the_accuracy() {
    let rows = [
        // -w, advertised window, expected, measured, accuracy in percent. The third window is
        // 124.5 kB, printed as 125 (99.6 Mbit/s as 100).
        (50, 75.0, 60.0, 54.1, 90.0),
        (75, 112.5, 90.0, 82.3, 91.0),
        (83, 125.0, 100.0, 91.1, 91.0),
        (100, 150.0, 100.0, 94.0, 94.0),
        (125, 187.5, 100.0, 94.1, 94.0),
    ];
    for (asked_kb, advertised_kb, expected, measured, accuracy) in rows {
        let asked = Bytes::new(asked_kb * 1000);
        let window = OLD.window_of_so_rcvbuf(asked, Bytes::MAX, None).unwrap();
        assert!((window.as_f64() / 1e3 - advertised_kb).abs() <= 0.5, "{window}");
        let rate = window::throughput(window, Duration::from_millis(10)).unwrap();
        let rate = rate.min(Rate::from_mbit_per_second(100)).as_f64() / 1e6;
        assert!((rate - expected).abs() < 0.41, "{rate}");
        assert_eq!((100.0 * measured / rate).round(), accuracy);
    }
}

#[test]
fn the_frame_is_94_09_percent_efficient() {
    let payload = Bytes::new(1432);
    assert_eq!(Framing::COMMON.on_the_wire(payload), Ok(Bytes::new(1522)));
    let percent = Framing::COMMON.efficiency(payload).unwrap() * 100.0;
    assert_eq!((percent * 100.0).round() / 100.0, 94.09);
}

#[test]
fn the_measured_94_1_mbit_is_the_links_goodput() {
    // With full packets of 1448 B of payload: 94.15 Mbit/s.
    let link = Rate::from_mbit_per_second(100);
    let goodput = Framing::COMMON.goodput(link, Bytes::new(1500)).unwrap().as_f64() / 1e6;
    assert!((goodput - 94.1).abs() < 0.06, "{goodput}");
}

#[test]
fn since_3_4_half_of_the_buffer_is_window() {
    // The blog's update of 2013-01-16.
    let window = Era::Half.window_of_so_rcvbuf(Bytes::new(50_000), Bytes::MAX, None);
    assert_eq!(window, Ok(Bytes::new(50_000)));
}
