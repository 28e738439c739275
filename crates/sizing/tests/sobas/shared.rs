//! Laws of the improved SOBAS where others share the path: 20 transfers of 22 packets of 1000 B and
//! 100 ms (Figure 4 of the paper) on 50 Mbit/s, 35.2 Mbit/s of them while no queue stands. Eq. (6):
//! behind a queue of q round trips they fall to 35.2 / (1 + q), and eq. (7) leaves us the rest.

use crate::fluid::{Fluid, Run, TRAINS, play};
use sweetspot_sizing::Sizing;

/// C T_m = 50 Mbit/s x 100 ms.
const BDP: f64 = 625e3;

fn shared() -> Fluid {
    Fluid { rate: |_| 50e6, cross: |drain| 20.0 * 22e3 * 8.0 / (0.1 + drain), ..Fluid::clean() }
}

fn run(fluid: &Fluid, seconds: f64) -> Run {
    play(Sizing::Sobas, 33_554_432, fluid, seconds)
}

/// An empty path of 20 Mbit/s, 20 ms and 15 kB of buffer, where a train of five packets lasts no
/// longer than 2.4 ms, behind a host that is late by up to 1.5 ms.
fn empty() -> Fluid {
    Fluid { rate: |_| 20e6, rtt: |_| 0.02, buffer: 15e3, probe_noise: 0.001_5, ..Fluid::clean() }
}

#[test]
fn an_empty_path_with_a_noisy_train_is_never_taken_for_shared() {
    for odd_train in 0..TRAINS {
        for error in [0.5, 0.8, 0.9, 1.1, 1.25, 2.0] {
            let run = run(&Fluid { odd_train: Some((odd_train, error)), ..empty() }, 30.0);
            assert_eq!(run.trains, TRAINS, "{odd_train} {error}");
            let goodput = run.goodput(2.0, 30.0);
            assert!(goodput >= 0.97 * 20e6, "{odd_train} {error} {goodput}");
        }
    }
}

#[test]
fn a_loss_while_the_window_opens_makes_no_path_look_shared() {
    for hundredths in 5..100 {
        let loses_at = Some(f64::from(hundredths) / 100.0);
        let run = run(&Fluid { loses_at, ..empty() }, 30.0);
        assert_eq!(run.trains, TRAINS, "{hundredths}");
        let goodput = run.goodput(3.0, 30.0);
        assert!(goodput >= 0.95 * 20e6, "{hundredths} {goodput}");
    }
}

#[test]
fn heralds_are_lost_and_data_is_not() {
    for share in [0.3, 0.5, 1.0] {
        let run = run(&Fluid { buffer: share * BDP, ..shared() }, 90.0);
        // Once slow start is over.
        assert!(run.last_drop < 2.0, "{share} {}", run.last_drop);
        assert!(run.lost_train_packets > 0, "{share}");
        // A tenth of a round trip of it is left to the herald and a step back, or a seventh of the
        // buffer to others' bursts. At q = 0.2, 0.4, 0.87 eq. (7) gives 50 - 35.2 / (1 + q) =
        // 20.7, 24.9, 31.2 Mbit/s.
        let queue = (share - 0.1).min(share / 1.15);
        let expected = 50e6 - 35.2e6 / (1.0 + queue);
        let goodput = run.goodput(60.0, 90.0);
        assert!(goodput >= 0.95 * expected, "{share} {goodput} {expected}");
    }
}

#[test]
fn trains_that_others_held_up_hide_nobody() {
    // Nine such transfers leave 50 - 15.8 = 34.2 Mbit/s; all trains but one say 50 / 1.7 = 29.4.
    let odd_train = Some((3, 1.0));
    let cross = |drain| 9.0 * 22e3 * 8.0 / (0.1 + drain);
    let run = run(&Fluid { cross, train_error: 1.7, odd_train, buffer: BDP, ..shared() }, 90.0);
    assert!(run.trains > TRAINS);
    // Eq. (7) with q = 0.87, as above: 50 - 15.8 / 1.87 = 41.5 Mbit/s.
    assert!(run.goodput(60.0, 90.0) >= 0.95 * 41.5e6, "{}", run.goodput(60.0, 90.0));
}

#[test]
fn where_all_five_trains_were_too_slow_the_heralds_tell_that_others_are_there() {
    // Nine transfers again; 50 / 1.3 = 38.5 Mbit/s, and whoever gets 0.95 of that seems alone.
    let cross = |drain| 9.0 * 22e3 * 8.0 / (0.1 + drain);
    let slow = Fluid { cross, train_error: 1.3, herald_error: Some(1.0), buffer: BDP, ..shared() };
    let run = run(&slow, 120.0);
    assert!(run.trains > TRAINS);
    // Eq. (7) with q = 0.87 as above: 41.5 Mbit/s.
    assert!(run.goodput(60.0, 120.0) >= 0.95 * 41.5e6, "{}", run.goodput(60.0, 120.0));
}

#[test]
fn however_deep_the_buffer_the_queue_stays_short() {
    let run = run(&Fluid { buffer: 4.0 * BDP, ..shared() }, 120.0);
    assert_eq!((run.dropped_bytes, run.lost_train_packets), (0.0, 0));
    assert!(run.queue(90.0, 120.0) <= 1.6 * BDP, "{}", run.queue(90.0, 120.0) / BDP);
    // Eq. (7) with q = 1.5: 50 - 35.2 / 2.5 = 35.9 Mbit/s.
    assert!(run.goodput(90.0, 120.0) >= 0.95 * 35.9e6, "{}", run.goodput(90.0, 120.0));
}

#[test]
fn unresponsive_cross_traffic_is_not_queued_against() {
    // Eq. (4) with A = 50 - 30 Mbit/s: a longer queue brings nothing.
    let run = run(&Fluid { cross: |_| 30e6, buffer: BDP, ..shared() }, 120.0);
    assert!(run.last_drop < 2.0, "{}", run.last_drop);
    assert!(run.goodput(20.0, 120.0) >= 0.97 * 20e6, "{}", run.goodput(20.0, 120.0));
    assert!(run.queue(20.0, 120.0) <= 0.1 * BDP, "{}", run.queue(20.0, 120.0) / BDP);
}
