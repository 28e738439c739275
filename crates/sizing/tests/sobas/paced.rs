//! Whether losses at a pacing rate are random, on scripted measurements. A climb reached the capacity of a path that loses one
//! segment in 200.

use sweetspot_sizing::{CongestionChoice, Reason, SizingPhase};

use crate::climb::{Unused, abort_reason, alone, holds};
use crate::script::{Q, Script, T};

const LOSS: f64 = 0.005;

/// A path that loses segments at random, held at its capacity.
fn paced() -> Unused {
    let mut unused = Unused::new(0.09);
    unused.loss = LOSS;
    unused.run(holds, |sent, _| alone(sent));
    assert!(holds(&unused.script), "{:?}", unused.script.entered);
    unused.paces.clear();
    unused
}

/// Runs for `seconds`; `path` maps the pacing rate to the probes' delay and the share of lost segments. Returns the times of
/// changes of the pacing rate, with the new share of the capacity.
fn run(
    unused: &mut Unused,
    seconds: f64,
    mut path: impl FnMut(f64) -> (f64, f64),
) -> Vec<(f64, f64)> {
    let ends = unused.script.seconds() + seconds;
    let mut changes: Vec<(f64, f64)> = Vec::new();
    while unused.script.seconds() < ends && unused.script.congestion == CongestionChoice::Bbr {
        let pace = unused.script.pacing.expect("a pace").as_f64() / 8.0 / crate::script::C;
        let now = unused.script.seconds();
        if changes.last().is_none_or(|(_, last)| (last - pace).abs() > 0.001) {
            changes.push((now, pace));
        }
        let (delay, loss) = path(pace);
        unused.loss = loss;
        let until = now + 0.02;
        unused.run(|script: &Script| script.seconds() >= until - 1e-9, |sent, _| (sent, delay));
    }
    changes
}

/// Asserts that the window was left to congestion control for good.
fn assert_left(unused: &mut Unused) {
    assert_eq!(unused.script.congestion, CongestionChoice::Own);
    assert_eq!(abort_reason(&unused.script), Some(Reason::CrossTrafficQueue));
    unused.run(|_| false, |sent, _| (sent, 0.0));
    assert_eq!(unused.script.phase(), Some(SizingPhase::Open));
    assert_eq!(unused.script.congestion, CongestionChoice::Own);
}

#[test]
fn random_losses_are_retested_at_seven_tenths_at_growing_intervals() {
    let mut unused = paced();
    let changes = run(&mut unused, 12.0, |_| (0.0, LOSS));
    let paces: Vec<f64> = changes.iter().map(|(_, pace)| *pace).collect();
    for (found, expected) in paces.iter().zip([0.99, 0.7, 0.99, 0.7, 0.99]) {
        assert!((found / expected - 1.0).abs() < 0.002, "{paces:?}");
    }
    assert_eq!(paces.len(), 5, "{changes:?}");
    let epochs: Vec<f64> = changes.windows(2).map(|pair| (pair[1].0 - pair[0].0) / T).collect();
    // Each epoch loses some of its 863 segments. No loss at all among 3 x 863 would be significant. At 0.7 of the rate, that is
    // after five epochs; another five pass before the pacing rate takes effect and earlier losses are repaired.
    assert!((16.0..=22.0).contains(&epochs[0]), "{epochs:?}");
    assert!((9.0..=12.0).contains(&epochs[1]), "{epochs:?}");
    assert!((37.0..=40.0).contains(&epochs[2]), "{epochs:?}");
    assert_eq!(unused.script.congestion, CongestionChoice::Bbr);
}

#[test]
fn losses_only_at_the_full_pacing_rate_come_from_cross_traffic() {
    let mut unused = paced();
    run(&mut unused, 20.0, |pace| (0.0, if pace > 0.9 { LOSS } else { 0.0 }));
    assert_left(&mut unused);
}

#[test]
fn pacing_ends_if_cross_traffic_takes_what_a_lower_rate_leaves() {
    let mut unused = paced();
    run(&mut unused, 20.0, |pace| (if pace > 0.9 { 0.0 } else { 0.9 * Q }, LOSS));
    assert_left(&mut unused);
}

#[test]
fn overflows_on_each_return_to_the_full_rate_come_from_cross_traffic() {
    let mut unused = paced();
    let (mut last, mut overflows) = (0.99, 0);
    run(&mut unused, 20.0, |pace| {
        // Overflows last for two epochs after each return.
        overflows = if pace > last + 0.1 { 10_u32 } else { overflows.saturating_sub(1) };
        last = pace;
        (0.0, if overflows > 0 { 0.1 } else { LOSS })
    });
    assert_left(&mut unused);
}

#[test]
fn a_single_test_that_finds_cross_traffic_may_be_chance() {
    let mut unused = paced();
    let mut clean = 0;
    // No packet is lost in the ten epochs of a test.
    let changes = run(&mut unused, 12.0, |pace| {
        clean += u32::from(pace < 0.9);
        (0.0, if pace < 0.9 && clean < 52 { 0.0 } else { LOSS })
    });
    // A second test follows, and the pacing rate returns.
    let epochs = (changes[2].0 - changes[1].0) / T;
    assert!((18.0..=23.0).contains(&epochs), "{changes:?}");
    assert_eq!(unused.script.congestion, CongestionChoice::Bbr);
}

#[test]
fn a_loss_on_a_previously_shared_path_starts_no_pacing() {
    let mut script = Script::held();
    // Cross traffic appears and disappears.
    script.run(2.0, 0.75, 0.037, 0);
    script.run(3.0, 0.9, 0.0, 0);
    for _ in 0..2 {
        script.run(1.0, 0.9, 0.0, 1);
    }
    script.run(2.0, 1.0, Q, 0);
    assert_eq!(script.phase(), Some(SizingPhase::Holding), "{:?}", script.entered);
    let since = script.seconds();
    script.run(1.0, 1.0, 0.9 * Q, 1);
    assert_eq!(script.opened(since).map(|(_, reason)| reason), Some(Reason::RandomLoss));
    assert_eq!(script.congestion, CongestionChoice::Own);
}

#[test]
fn past_idle_probes_do_not_restart_pacing_amid_cross_traffic() {
    let mut unused = paced();
    // Random losses end, and the window becomes the limit again.
    run(&mut unused, 20.0, |_| (0.0, 0.0));
    assert_eq!(unused.script.congestion, CongestionChoice::Own);
    assert!(holds(&unused.script), "{:?}", unused.script.entered);
    let since = unused.script.seconds();
    unused.own = 0.75;
    unused.run(|script| script.opened(since).is_some(), |sent, _| (sent, 0.9 * Q));
    assert_eq!(
        unused.script.opened(since).map(|(_, reason)| reason),
        Some(Reason::CrossTrafficQueue)
    );
    assert_eq!(unused.script.congestion, CongestionChoice::Own);
}
