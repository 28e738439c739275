//! Laws of SOBAS on a path with cross traffic: 20 transfers of 22 packets of 1000 B and 100 ms (Figure
//! 4 of the paper) on 50 Mbit/s. Without a queue they use 35.2 Mbit/s. By eq. (6), a queue of q round
//! trips reduces their rate to 35.2 / (1 + q). By eq. (7) the rest is ours, and congestion control
//! takes it if the window is left to it.

use crate::fluid::{Fluid, Run, TRAINS, simulate};
use sweetspot_sizing::Sizing;

/// C T_m = 50 Mbit/s x 100 ms.
const BDP: f64 = 625e3;

/// The share of its untuned goodput that a transfer keeps.
const MIN_GOODPUT_SHARE: f64 = 0.97;

fn shared() -> Fluid {
    Fluid { rate: |_| 50e6, cross: |drain| 20.0 * 22e3 * 8.0 / (0.1 + drain), ..Fluid::clean() }
}

fn run(fluid: &Fluid, seconds: f64) -> Run {
    simulate(Sizing::Sobas, 33_554_432, fluid, seconds)
}

/// The goodput of the transfer, tuned and untuned.
fn beside_alone(fluid: &Fluid, seconds: f64) -> (f64, f64) {
    let alone = simulate(Sizing::Max, 33_554_432, fluid, seconds);
    (run(fluid, seconds).goodput(0.0, seconds), alone.goodput(0.0, seconds))
}

/// An empty path of 20 Mbit/s, 20 ms and 15 kB of buffer, to a host with delays of up to 1.5 ms. A
/// train of five packets lasts only 2.4 ms there.
fn empty() -> Fluid {
    Fluid { rate: |_| 20e6, rtt: |_| 0.02, buffer: 15e3, probe_noise: 0.001_5, ..Fluid::clean() }
}

#[test]
fn one_wrong_train_costs_no_goodput_and_triggers_no_more_trains() {
    for odd_train in 0..TRAINS {
        for error in [0.5, 0.8, 0.9, 1.1, 1.25, 2.0] {
            let fluid = Fluid { odd_train: Some((odd_train, error)), ..empty() };
            let trains = run(&fluid, 30.0).trains;
            assert!(trains <= TRAINS, "{odd_train} {error} {trains}");
            let (ours, theirs) = beside_alone(&fluid, 30.0);
            assert!(ours >= MIN_GOODPUT_SHARE * theirs, "{odd_train} {error} {ours} {theirs}");
        }
    }
}

#[test]
fn a_loss_during_startup_costs_no_goodput() {
    for hundredths in 5..100 {
        let loses_at = Some(f64::from(hundredths) / 100.0);
        let (ours, theirs) = beside_alone(&Fluid { loses_at, ..empty() }, 30.0);
        assert!(ours >= MIN_GOODPUT_SHARE * theirs, "{hundredths} {ours} {theirs}");
    }
}

#[test]
fn next_to_window_limited_transfers_a_queue_is_left_to_congestion_control() {
    for share in [0.3, 0.5, 1.0, 4.0] {
        let fluid = Fluid { buffer: share * BDP, ..shared() };
        let (ours, theirs) = beside_alone(&fluid, 90.0);
        assert!(ours >= MIN_GOODPUT_SHARE * theirs, "{share} {ours} {theirs}");
    }
}

#[test]
fn trains_delayed_by_cross_traffic_cost_no_goodput() {
    // Nine such transfers leave 50 - 15.8 = 34.2 Mbit/s. All trains but one measure 50 / 1.7 = 29.4; or
    // all measure 50 / 1.3 = 38.5.
    let cross = |drain: f64| 9.0 * 22e3 * 8.0 / (0.1 + drain);
    for (train_error, odd_train) in [(1.7, Some((3, 1.0))), (1.3, None)] {
        let fluid = Fluid { cross, train_error, odd_train, buffer: BDP, ..shared() };
        let (ours, theirs) = beside_alone(&fluid, 90.0);
        assert!(ours >= MIN_GOODPUT_SHARE * theirs, "{train_error} {ours} {theirs}");
    }
}

#[test]
fn unresponsive_cross_traffic_leaves_us_the_rest() {
    // Eq. (4) with A = 50 - 30 Mbit/s.
    let run = run(&Fluid { cross: |_| 30e6, buffer: BDP, ..shared() }, 120.0);
    assert!(run.goodput(20.0, 120.0) >= 0.97 * 20e6, "{}", run.goodput(20.0, 120.0));
}
