//! Laws of SOBAS on connections of other programs: no probes, no trains, a sender that takes no
//! hints. The path carries 100 Mbit/s of payload over 40 ms, so its BDP is 500 kB, and holds two
//! of them in its buffer, unless a test says otherwise.

use crate::fluid::{Fluid, Run, play};
use sweetspot_sizing::{EventKind, Sizing, SizingPhase};

const BDP: f64 = 500e3;

fn path() -> Fluid {
    Fluid { rtt: |_| 0.04, buffer: 2.0 * BDP, udp_passes: false, paces: false, ..Fluid::clean() }
}

fn run(fluid: &Fluid, seconds: f64) -> Run {
    play(Sizing::SobasLive, 6_291_456, fluid, seconds)
}

/// What a tuned download keeps of the goodput that it would have if left alone.
const KEPT: f64 = 0.97;

/// Judges a path by the goodput of a download left alone.
fn does_no_harm(fluid: &Fluid, seconds: f64) {
    let theirs = play(Sizing::Max, 6_291_456, fluid, seconds).goodput(0.0, seconds);
    let ours = run(fluid, seconds).goodput(0.0, seconds);
    assert!(ours >= KEPT * theirs, "{ours} {theirs}");
}

#[test]
fn a_full_deep_buffer_is_emptied_and_the_path_stays_full() {
    let fluid = path();
    let run = run(&fluid, 40.0);
    does_no_harm(&fluid, 40.0);
    assert!(run.saw(|e| matches!(e, EventKind::Entered { phase: SizingPhase::Holding, .. })));
    // Left alone a window of 2 BDP and more stands there: half of that is what a trial must gain.
    assert!(run.queue(30.0, 40.0) <= 0.5 * BDP, "{}", run.queue(30.0, 40.0));
}

#[test]
fn a_quarter_of_a_bdp_is_left_to_congestion_control() {
    does_no_harm(&Fluid { buffer: 0.25 * BDP, ..path() }, 20.0);
}

#[test]
fn a_rate_that_halves_and_doubles_costs_no_goodput() {
    let rate = |t: f64| if (8.0..16.0).contains(&t) { 50e6 } else { 100e6 };
    does_no_harm(&Fluid { rate, ..path() }, 24.0);
}

#[test]
fn a_longer_route_is_not_taken_for_a_queue_for_ever() {
    let rtt = |t| if t < 8.0 { 0.04 } else { 0.06 };
    let run = run(&Fluid { rtt, ..path() }, 30.0);
    assert!(run.goodput(15.0, 30.0) >= 0.94 * 100e6, "{}", run.goodput(15.0, 30.0));
}

#[test]
fn a_sender_that_stalls_is_not_saturation() {
    let sender_stalls = |t: f64| (0.3..2.0).contains(&t) || (5.0..7.0).contains(&t);
    let run = run(&Fluid { sender_stalls, ..path() }, 15.0);
    assert!(run.goodput(3.0, 5.0) >= 0.98 * 100e6, "{}", run.goodput(3.0, 5.0));
    assert!(run.goodput(8.0, 15.0) >= 0.98 * 100e6, "{}", run.goodput(8.0, 15.0));
}

#[test]
fn a_receiver_that_stalls_is_not_saturation() {
    let receiver_stalls = |t: f64| (5.0..5.4).contains(&t);
    let run = run(&Fluid { receiver_stalls, ..path() }, 15.0);
    assert!(run.goodput(7.0, 15.0) >= 0.98 * 100e6, "{}", run.goodput(7.0, 15.0));
}

#[test]
fn where_others_keep_a_queue_and_take_the_path_no_goodput_is_lost() {
    // Others send 80 Mbit/s as long as the queue is short of 40 ms: a queue that is not ours.
    let cross = |drain: f64| if drain < 0.04 { 120e6 } else { 40e6 };
    does_no_harm(&Fluid { cross, ..path() }, 20.0);
}

#[test]
fn scale_changes_nothing() {
    // 400 Mbit/s and 20 ms, 1 MB of BDP; 20 Mbit/s and 100 ms, 250 kB; half of it in the buffer.
    let fast = Fluid { rate: |_| 400e6, rtt: |_| 0.02, buffer: 500e3, ..path() };
    let slow = Fluid { rate: |_| 20e6, rtt: |_| 0.1, buffer: 125e3, ..path() };
    for path in [fast, slow] {
        does_no_harm(&path, 15.0);
    }
}
