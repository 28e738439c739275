//! Laws of the improved SOBAS on scripted paths. The path carries 100 Mbit/s of payload over
//! 100 ms, so its BDP is 1.25 MB, and holds a tenth of that in its buffer, unless a test says
//! otherwise.

use crate::fluid::{Fluid, Run, play};
use sweetspot_sizing::{EventKind, Sizing};

const BDP: f64 = 1.25e6;

fn run(fluid: &Fluid, seconds: f64) -> Run {
    play(Sizing::Sobas, 33_554_432, fluid, seconds)
}

fn final_window(run: &Run) -> f64 {
    run.window.expect("a limit").as_f64()
}

#[test]
fn a_clean_path_is_filled_without_a_drop_and_with_a_small_queue() {
    let run = run(&Fluid::clean(), 20.0);
    assert!(run.saw(|e| matches!(e, EventKind::Saturated { .. })));
    assert_eq!(run.dropped_bytes, 0.0);
    // The sweet spot is [C T_m, C T_m + B] (section IV).
    assert!((BDP..BDP + 125e3).contains(&final_window(&run)), "{}", final_window(&run));
    // Slow start from ten segments takes log2(863 / 10) = 6.4 round trips: after a second
    // nothing is left to wait for.
    assert!(run.goodput(2.0, 20.0) >= 0.99 * 100e6, "{}", run.goodput(2.0, 20.0));
    assert!(run.goodput(0.0, 20.0) >= 0.95 * 100e6);
    assert!(run.queue(2.0, 20.0) <= 0.06 * BDP);
}

#[test]
fn saturation_is_not_found_while_the_rate_still_rises() {
    let run = run(&Fluid::clean(), 0.6);
    assert!(!run.saw(|e| matches!(e, EventKind::Saturated { .. })), "{:?}", run.events);
}

#[test]
fn a_deep_buffer_stays_empty() {
    let run = run(&Fluid { buffer: 2.0 * BDP, ..Fluid::clean() }, 20.0);
    assert_eq!(run.dropped_bytes, 0.0);
    assert!(run.queue(2.0, 20.0) <= 0.06 * BDP, "{}", run.queue(2.0, 20.0));
    assert!(run.goodput(2.0, 20.0) >= 0.99 * 100e6);
}

#[test]
fn trains_that_err_by_a_quarter_change_nothing_in_the_end() {
    for train_error in [0.8, 0.9, 1.1, 1.25] {
        let run = run(&Fluid { train_error, buffer: 0.3 * BDP, ..Fluid::clean() }, 60.0);
        // Too high an estimate makes it look, for a while, for others that are not there.
        assert!(run.goodput(5.0, 60.0) >= 0.97 * 100e6, "{train_error} {}", run.goodput(5.0, 60.0));
        assert!(run.queue(5.0, 60.0) <= 0.06 * BDP, "{train_error} {}", run.queue(5.0, 60.0));
        assert_eq!(run.dropped_bytes, 0.0, "{train_error}");
    }
}

#[test]
fn a_path_that_gets_faster_is_filled_again() {
    let rate = |t| if t < 8.0 { 50e6 } else { 100e6 };
    let run = run(&Fluid { rate, ..Fluid::clean() }, 20.0);
    assert!(run.goodput(4.0, 8.0) >= 0.98 * 50e6);
    // 20 round trips later.
    assert!(run.goodput(10.0, 20.0) >= 0.95 * 100e6, "{}", run.goodput(10.0, 20.0));
    assert!(run.queue(11.0, 20.0) <= 0.08 * BDP);
}

#[test]
fn a_path_that_gets_slower_loses_its_queue_again() {
    let rate = |t| if t < 8.0 { 100e6 } else { 50e6 };
    let run = run(&Fluid { rate, buffer: BDP, ..Fluid::clean() }, 20.0);
    assert!(run.goodput(10.0, 20.0) >= 0.98 * 50e6, "{}", run.goodput(10.0, 20.0));
    assert!(run.queue(10.0, 20.0) <= 0.06 * BDP, "{}", run.queue(10.0, 20.0));
}

#[test]
fn a_longer_route_is_not_taken_for_a_queue_for_ever() {
    let rtt = |t| if t < 8.0 { 0.1 } else { 0.13 };
    let run = run(&Fluid { rtt, ..Fluid::clean() }, 30.0);
    // Within a twentieth of the capacity that the trains saw, it no longer looks for more.
    assert!(run.goodput(20.0, 30.0) >= 0.94 * 100e6, "{}", run.goodput(20.0, 30.0));
}

#[test]
fn a_sender_that_stalls_is_not_saturation() {
    let sender_stalls = |t: f64| (5.0..7.0).contains(&t);
    let run = run(&Fluid { sender_stalls, ..Fluid::clean() }, 15.0);
    assert!(run.goodput(8.0, 15.0) >= 0.98 * 100e6, "{}", run.goodput(8.0, 15.0));
    assert!(final_window(&run) >= BDP);
}

#[test]
fn a_sender_that_stalls_while_ramping_is_not_saturation() {
    let sender_stalls = |t: f64| (0.5..2.0).contains(&t);
    let run = run(&Fluid { sender_stalls, ..Fluid::clean() }, 15.0);
    assert!(run.goodput(4.0, 15.0) >= 0.98 * 100e6, "{}", run.goodput(4.0, 15.0));
}

#[test]
fn a_receiver_that_stalls_is_not_saturation() {
    let receiver_stalls = |t: f64| (5.0..5.4).contains(&t);
    let run = run(&Fluid { receiver_stalls, ..Fluid::clean() }, 15.0);
    assert!(run.goodput(7.0, 15.0) >= 0.98 * 100e6, "{}", run.goodput(7.0, 15.0));
    assert!(run.queue(7.0, 15.0) <= 0.06 * BDP, "{}", run.queue(7.0, 15.0));
}

#[test]
fn noise_on_the_probes_is_not_a_queue() {
    let run = run(&Fluid { probe_noise: 0.02, ..Fluid::clean() }, 20.0);
    assert!(run.goodput(3.0, 20.0) >= 0.98 * 100e6, "{}", run.goodput(3.0, 20.0));
    assert_eq!(run.dropped_bytes, 0.0);
}

#[test]
fn a_congested_path_is_left_to_congestion_control() {
    // Others keep the queue at half its buffer and overflow it every 700 ms, so that the
    // congestion window, halved each time, is what holds the transfer back.
    let fluid = Fluid {
        rtt: |t| if ((t * 10.0) as u64).is_multiple_of(7) { 0.1 } else { 0.15 },
        others_congest: Some(0.7),
        ..Fluid::clean()
    };
    let run = run(&fluid, 30.0);
    assert!(run.saw(|e| matches!(e, EventKind::Congested)), "{:?}", run.events);
    assert_eq!(run.window, None);
}

#[test]
fn a_queue_that_stands_before_we_could_have_made_one_is_left_to_congestion_control() {
    // Others fill the path and 40 ms of its buffer by themselves, and give way beyond.
    let cross = |drain: f64| if drain < 0.04 { 120e6 } else { 90e6 };
    let run = run(&Fluid { cross, buffer: BDP, ..Fluid::clean() }, 5.0);
    let at = |wanted: EventKind| run.events.iter().find(|(_, kind)| *kind == wanted).map(|e| e.0);
    // An eighth of the path takes slow start from 10 packets of 850, at 140 ms, until 0.7 s.
    assert!(at(EventKind::Congested).is_some_and(|at| at < 1.0), "{:?}", run.events);
    assert_eq!(run.window, None);
    // A congestion window twice in a round trip.
    let pace = run.pacing.map_or(0.0, |pace| pace.as_f64());
    assert!(pace >= 1.5 * run.goodput(4.0, 5.0), "{pace} for {}", run.goodput(4.0, 5.0));
}

#[test]
fn a_burst_of_others_while_the_window_opens_is_not_congestion() {
    let rtt = |t: f64| if (0.45..0.55).contains(&t) { 0.13 } else { 0.1 };
    let run = run(&Fluid { rtt, ..Fluid::clean() }, 12.0);
    assert!(!run.saw(|e| matches!(e, EventKind::Congested)), "{:?}", run.events);
}

#[test]
fn a_single_lost_probe_is_not_congestion() {
    let run = run(&Fluid { lose_every: Some(400), ..Fluid::clean() }, 12.0);
    assert!(!run.saw(|e| matches!(e, EventKind::Congested)), "{:?}", run.events);
    assert!(run.goodput(2.0, 12.0) >= 0.93 * 100e6, "{}", run.goodput(2.0, 12.0));
}

#[test]
fn without_probes_the_kernels_round_trip_serves() {
    let run = run(&Fluid { udp_passes: false, buffer: BDP, ..Fluid::clean() }, 20.0);
    assert!(run.goodput(5.0, 20.0) >= 0.98 * 100e6, "{}", run.goodput(5.0, 20.0));
    assert!(run.queue(10.0, 20.0) <= 0.10 * BDP, "{}", run.queue(10.0, 20.0));
}

#[test]
fn a_sender_that_ignores_pacing_overflows_in_slow_start_at_most() {
    let run = run(&Fluid { paces: false, ..Fluid::clean() }, 20.0);
    assert!(run.last_drop <= 2.0, "{}", run.last_drop);
}

#[test]
fn scale_changes_nothing() {
    // 400 Mbit/s and 20 ms, 1 MB of BDP; and 20 Mbit/s and 20 ms, 50 kB, both with the buffer of
    // a tenth (15 kB at least).
    let fast = Fluid { rate: |_| 400e6, rtt: |_| 0.02, buffer: 100e3, ..Fluid::clean() };
    let run_fast = run(&fast, 10.0);
    assert!(run_fast.goodput(1.0, 10.0) >= 0.98 * 400e6, "{}", run_fast.goodput(1.0, 10.0));
    assert_eq!(run_fast.dropped_bytes, 0.0);
    let slow = Fluid { rate: |_| 20e6, rtt: |_| 0.02, buffer: 15e3, ..Fluid::clean() };
    let run_slow = run(&slow, 10.0);
    assert!(run_slow.goodput(1.0, 10.0) >= 0.98 * 20e6, "{}", run_slow.goodput(1.0, 10.0));
    assert_eq!(run_slow.dropped_bytes, 0.0);
}

#[test]
fn where_cross_traffic_yields_to_a_queue_the_queue_is_raised_to_its_bound() {
    // 20 transfers of 22 packets of 1000 B and 100 ms (Figure 4), on 50 Mbit/s with 625 kB of
    // buffer: 35.2 Mbit/s when there is no queue. Eq. (6): they fall to 35.2 / (1 + Q/C / 100 ms).
    let fluid = Fluid {
        rate: |_| 50e6,
        buffer: 625e3,
        cross: |drain| 20.0 * 22e3 * 8.0 / (0.1 + drain),
        ..Fluid::clean()
    };
    let run = run(&fluid, 120.0);
    // Eq. (8) with A = 14.8 Mbit/s and B/C = 100 ms: the full buffer leaves them half of their
    // rate, and us 50 - 17.6 = 32.4 Mbit/s. Without a standing queue we would have 14.8.
    assert!(run.goodput(60.0, 120.0) >= 0.85 * 32.4e6, "{}", run.goodput(60.0, 120.0));
}

#[test]
fn where_cross_traffic_does_not_yield_the_queue_stays_small() {
    let fluid = Fluid { buffer: BDP, cross: |_| 50e6, ..Fluid::clean() };
    let run = run(&fluid, 60.0);
    assert!(run.goodput(5.0, 60.0) >= 0.98 * 50e6, "{}", run.goodput(5.0, 60.0));
    assert!(run.queue(5.0, 60.0) <= 0.1 * BDP, "{}", run.queue(5.0, 60.0));
    assert_eq!(run.dropped_bytes, 0.0);
}

#[test]
fn a_path_that_jitters_is_filled_and_what_jitters_is_no_queue() {
    let short = |rtt| Fluid { rtt, buffer: 0.4 * BDP, ..Fluid::clean() };
    for (jitter, fluid) in [
        (0.002, short(|_| 0.04)),
        (0.004, short(|_| 0.04)),
        (0.008, short(|_| 0.04)),
        (0.004, short(|_| 0.02)),
        (0.004, Fluid { buffer: BDP, ..Fluid::clean() }),
    ] {
        let run = run(&Fluid { jitter, ..fluid }, 40.0);
        assert!(run.goodput(10.0, 40.0) >= 0.95 * 100e6, "{jitter} {}", run.goodput(10.0, 40.0));
        // What a packet waits for those before it that are late is none of the bottleneck's queue: at
        // most all that both ways can add may stand there, too.
        let added = 2.0 * jitter * 100e6 / 8.0;
        assert!(run.queue(10.0, 40.0) <= added, "{jitter} {}", run.queue(10.0, 40.0));
        assert_eq!(run.dropped_bytes, 0.0, "{jitter}");
    }
}
