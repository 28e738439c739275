//! Laws of SOBAS as section VII-A of the paper describes it, on scripted paths.

use crate::fluid::{Fluid, MSS, PACKET, Run, simulate};
use sweetspot_sizing::{EventKind, Sizing};

const BDP: f64 = 1.25e6;

fn run(fluid: &Fluid, seconds: f64) -> Run {
    simulate(Sizing::SobasPaper, 33_554_432, fluid, seconds)
}

fn limits(run: &Run) -> Vec<(f64, f64)> {
    let limit = |(t, kind): &(f64, EventKind)| match kind {
        EventKind::Limited { window } => Some((*t, window.as_f64())),
        _ => None,
    };
    run.events.iter().filter_map(limit).collect()
}

fn saturated_at(run: &Run) -> Option<f64> {
    run.first(|kind| matches!(kind, EventKind::Saturated { .. }))
}

#[test]
fn the_initial_limit_is_the_train_capacity_times_the_rtt() {
    let run = run(&Fluid::clean(), 3.0);
    let (_, first) = limits(&run)[0];
    // Trains see the wire's rate, 100 Mbit/s x 1500/1448 = 103.6 Mbit/s; times 100 ms: 1.295 MB.
    let wire = 100e6 / 8.0 * PACKET / MSS * 0.1;
    assert!((first / wire - 1.0).abs() < 0.01, "{first} {wire}");
}

#[test]
fn beyond_the_initial_limit_the_window_grows_by_two_segments_per_rtt() {
    // The trains see half the capacity, so the limit is reached and then raised.
    let run = run(&Fluid { train_error: 2.0, ..Fluid::clean() }, 6.0);
    let limits = limits(&run);
    let (first, last) = (limits[2], limits[limits.len() - 1]);
    let round_trips = (last.0 - first.0) / 0.1;
    let grown = (last.1 - first.1) / (2.0 * MSS);
    assert!((grown / round_trips - 1.0).abs() < 0.1, "{grown} steps in {round_trips} RTT");
}

#[test]
fn saturation_needs_five_flat_seconds_and_sets_rate_times_rtt() {
    let run = run(&Fluid { buffer: BDP, ..Fluid::clean() }, 12.0);
    let at = saturated_at(&run).expect("saturation");
    assert!(at >= 5.0, "{at}");
    let Some((_, EventKind::Saturated { rate, rtt })) =
        run.events.iter().find(|(_, kind)| matches!(kind, EventKind::Saturated { .. }))
    else {
        unreachable!()
    };
    assert_eq!(run.window, Some(*rate * *rtt));
    assert!((rate.as_f64() / 100e6 - 1.0).abs() < 0.02);
}

#[test]
fn saturation_is_not_detected_while_throughput_rises() {
    // The bottleneck's rate grows by 3 % per second.
    let rate = |t: f64| 50e6 * 1.03f64.powf(t);
    let run = run(&Fluid { rate, train_error: 0.4, buffer: BDP, ..Fluid::clean() }, 15.0);
    assert_eq!(saturated_at(&run), None);
}

#[test]
fn the_limit_is_set_once_and_never_readjusted() {
    let rate = |t| if t < 10.0 { 50e6 } else { 100e6 };
    let run = run(&Fluid { rate, buffer: BDP, ..Fluid::clean() }, 30.0);
    let at = saturated_at(&run).expect("saturation");
    assert!(limits(&run).iter().all(|(t, _)| *t <= at + 0.001));
}

#[test]
fn a_lost_probe_among_the_last_1000_leaves_the_window_unlimited() {
    let run = run(&Fluid { lose_every: Some(100), buffer: BDP, ..Fluid::clean() }, 20.0);
    assert!(run.has_seen(|kind| matches!(kind, EventKind::Congested)));
    assert_eq!(run.window, None);
}

#[test]
fn a_stalled_application_is_not_saturation() {
    let sender_stalls = |t: f64| t > 3.0;
    let run = run(&Fluid { sender_stalls, buffer: BDP, ..Fluid::clean() }, 20.0);
    assert_eq!(saturated_at(&run), None);
}

#[test]
fn no_trains_give_no_initial_limit() {
    let run = run(&Fluid { udp_passes: false, buffer: BDP, ..Fluid::clean() }, 4.0);
    assert!(limits(&run).is_empty());
}
