use sweetspot_units::Duration;

use crate::{MAX, MSS, RTT, Script};

/// The first window that the rule sets after a round trip of 100 segments, once the window has grown to the buffer's full
/// size.
fn after_a_hundred(sizing: &str) -> u64 {
    let mut script = Script::new(sizing);
    script.receive(100 * MSS, RTT);
    // Round trips of equal size change nothing more; meanwhile rcv_ssthresh catches up.
    for _ in 0..30 {
        script.receive(100 * MSS, RTT);
    }
    script.window
}

#[test]
fn the_window_starts_at_half_of_the_default_buffer() {
    // tcp_rmem[1] = 131,072 at a scaling ratio of 50 %.
    assert_eq!(Script::new("linux").window, 65_536);
}

/// The window after 100 segments in a round trip, with an initial space of 10. The measurement began at time 0, so it
/// holds 100 segments; every rule starts from twice that.
#[test]
fn each_kernel_grows_by_its_own_rule() {
    // <= 6.15: rcvwin = 2 * 100 + 16 = 216; grow = 216 * (100 - 10) / 10 = 1944; 216 + 2 * 1944
    // = 4104 segments.
    assert_eq!(after_a_hundred("linux:6.15"), 4104 * MSS);
    // 6.16: 2 * 100.
    assert_eq!(after_a_hundred("linux:6.16"), 200 * MSS);
    // 6.18: 200 + 2 * 200 * 9 = 3800.
    assert_eq!(after_a_hundred("linux:6.18"), 3800 * MSS);
    assert_eq!(after_a_hundred("linux:6.19"), 3800 * MSS);
}

#[test]
fn below_1_ms_the_newest_kernel_grows_in_proportion_to_the_rtt() {
    // 200 + 200 * 0.5 ms / 1 ms = 300 segments.
    let mut script = Script::new("linux:6.19");
    let rtt = Duration::from_micros(500);
    script.rtt(rtt);
    for _ in 0..10 {
        script.receive(100 * MSS, rtt);
    }
    assert_eq!(script.window, 300 * MSS);
}

#[test]
fn the_window_grows_by_two_bytes_per_byte_received() {
    let mut script = Script::new("linux:6.18");
    script.receive(100 * MSS, RTT);
    // The buffer grew with the hundredth segment, so that segment's own 2000 bytes already count.
    assert_eq!(script.window, 65_536 + 2 * MSS);
    script.receive(10 * MSS, RTT);
    assert_eq!(script.window, 65_536 + 22 * MSS);
}

#[test]
fn the_window_never_shrinks() {
    let mut script = Script::new("linux");
    let mut last = 0;
    for segments in [100, 300, 20, 1, 500, 3, 0, 800] {
        script.receive(segments * MSS, RTT);
        assert!(script.window >= last);
        last = script.window;
    }
}

#[test]
fn unread_data_does_not_grow_the_buffer_since_6_16() {
    // 50 read, 45 waiting: 5 is below the initial space of 10, nothing happens. Older kernels
    // count all 50 and grow.
    for (sizing, grows) in [("linux:6.15", true), ("linux:6.16", false), ("linux:6.18", false)] {
        let mut script = Script::new(sizing);
        script.receive_leaving(50 * MSS, RTT, 45 * MSS);
        script.receive_leaving(50 * MSS, RTT, 45 * MSS);
        assert_eq!(script.window > 65_536, grows, "{sizing}");
    }
}

#[test]
fn the_hosts_limit_caps_the_window() {
    let mut script = Script::new("linux:6.15");
    for segments in [100, 1000, 10_000, 10_000, 10_000] {
        script.receive(segments * MSS, RTT);
    }
    assert_eq!(script.window, MAX);
}
