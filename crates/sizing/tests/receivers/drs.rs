use sweetspot_sizing::SizingPhase;

use crate::{MSS, RTT, Script};

/// One round trip for each of `windows`, with this number of segments.
fn rounds(script: &mut Script, windows: &[u64]) {
    for segments in windows {
        script.receive(segments * MSS, RTT);
    }
}

#[test]
fn drs_starts_from_the_usual_static_window() {
    assert_eq!(Script::new("drs").window, 65_535);
}

#[test]
fn in_slow_start_the_window_is_twice_the_arrivals_per_rtt() {
    // 10, 20, 40, 80 segments per round trip: the sender may send 160 next.
    let mut script = Script::new("drs");
    rounds(&mut script, &[10, 20, 40, 80]);
    assert_eq!(script.window, 160 * MSS);
    assert_eq!(script.controller.phase(), SizingPhase::Ramping);
}

#[test]
fn slow_start_with_delayed_acks_counts_as_slow_start() {
    // Each round trip has half as many segments more: 20, 30, 45, 68.
    let mut script = Script::new("drs");
    rounds(&mut script, &[20, 30, 45, 68]);
    assert_eq!(script.window, 136 * MSS);
}

#[test]
fn in_additive_increase_the_window_exceeds_arrivals_by_a_segment() {
    // Slow start's last 2 x 80 is remembered for four round trips. Then the window is 93 + 1.
    let mut script = Script::new("drs");
    rounds(&mut script, &[20, 40, 80, 90, 91, 92]);
    assert_eq!(script.window, 160 * MSS);
    rounds(&mut script, &[93]);
    assert_eq!(script.window, 94 * MSS);
    assert_eq!(script.controller.phase(), SizingPhase::Holding);
}

#[test]
fn drs_never_limits_slow_start_or_additive_increase() {
    let mut script = Script::new("drs");
    let mut cwnd = 10;
    for round in 0..40 {
        assert!(script.window >= cwnd * MSS, "round {round}");
        script.receive(cwnd * MSS, RTT);
        cwnd = if round < 7 { cwnd * 2 } else { cwnd + 1 };
    }
}

#[test]
fn the_window_shrinks_once_four_rtts_agree_on_a_decrease() {
    let mut script = Script::new("drs");
    rounds(&mut script, &[100, 101, 102, 103]);
    let held = script.window;
    rounds(&mut script, &[52, 53, 54]);
    assert_eq!(script.window, held.min(104 * MSS));
    rounds(&mut script, &[55]);
    assert_eq!(script.window, 56 * MSS);
}

#[test]
fn a_sender_that_fills_the_window_gains_a_segment_per_rtt() {
    // Rounds that last slightly longer than the RTT, so that rate x RTT falls short of the window.
    let longer = RTT + sweetspot_units::Duration::from_micros(3);
    let mut script = Script::new("drs");
    rounds(&mut script, &[20, 40, 80, 80, 80, 80, 80]);
    for round in 0..20 {
        let before = script.window / MSS;
        script.receive(before * MSS, longer);
        assert!(script.window / MSS > before, "round {round}: {before} segments");
    }
}
