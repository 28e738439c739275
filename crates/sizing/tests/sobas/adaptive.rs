//! Laws of SOBAS on scripted paths. It holds the window on paths on which the limit costs nothing, and does no harm on any
//! path, compared with the same path without tuning. Unless a test says otherwise, the path carries 100 Mbit/s of payload
//! over 100 ms. Its BDP is 1.25 MB, and its buffer a tenth of that.

use crate::fluid::{Fluid, Run, config, drive, simulate};
use sweetspot_sizing::{ControllerConfig, EventKind, Reason, Sizing, SizingPhase};
use sweetspot_units::Bytes;

const BDP: f64 = 1.25e6;

fn run(fluid: &Fluid, seconds: f64) -> Run {
    simulate(Sizing::Sobas, 33_554_432, fluid, seconds)
}

/// A run on the same path with the window left to congestion control.
fn alone(fluid: &Fluid, seconds: f64) -> Run {
    simulate(Sizing::Max, 33_554_432, fluid, seconds)
}

/// Why the controller left the window to congestion control, if it did.
fn opened(run: &Run) -> Option<Reason> {
    run.events.iter().find_map(|(_, kind)| match kind {
        EventKind::Entered { phase: SizingPhase::Open, reason } => Some(*reason),
        _ => None,
    })
}

/// The share of its untuned goodput that a tuned transfer keeps.
const MIN_GOODPUT_SHARE: f64 = 0.97;

fn final_window(run: &Run) -> f64 {
    run.window.expect("a limit").as_f64()
}

#[test]
fn a_clean_path_fills_without_drops_and_with_a_short_queue() {
    let run = run(&Fluid::clean(), 20.0);
    assert_eq!(opened(&run), None);
    assert_eq!(run.dropped_bytes, 0.0);
    // The sweet spot is [C T_m, C T_m + B] (section IV).
    assert!((BDP..BDP + 125e3).contains(&final_window(&run)), "{}", final_window(&run));
    // Slow start from ten segments takes log2(863 / 10) = 6.4 round trips, so after a second it is over.
    assert!(run.goodput(2.0, 20.0) >= 0.99 * 100e6, "{}", run.goodput(2.0, 20.0));
    assert!(run.goodput(0.0, 20.0) >= 0.95 * 100e6);
    assert!(run.queue(2.0, 20.0) <= 0.06 * BDP);
}

/// A receiver advertises no less than the kernel would until it has measured the path.
#[test]
fn if_no_train_arrives_slow_start_runs_as_without_tuning() {
    for rtt in [(|_| 0.03) as fn(f64) -> f64, |_| 0.06, |_| 0.1, |_| 0.3] {
        let fluid = Fluid { udp_passes: false, rtt, ..Fluid::clean() };
        let (run, alone) = (run(&fluid, 3.0), alone(&fluid, 3.0));
        for until in [0.5, 1.0, 2.0, 3.0] {
            let (kept, whole) = (run.goodput(0.0, until), alone.goodput(0.0, until));
            assert!(kept >= MIN_GOODPUT_SHARE * whole, "until {until} s: {kept} of {whole}");
        }
    }
}

/// Five trains of at least five packets of 1500 B are 37.5 kB, which is 0.5 % of 7.5 MB.
#[test]
fn a_transfer_too_short_for_trains_is_neither_probed_nor_limited() {
    for (size, short) in [(7_400_000, true), (1_000_000_000, false)] {
        let mut controller = Sizing::Sobas
            .controller(&ControllerConfig { size: Some(Bytes::new(size)), ..config(33_554_432) })
            .unwrap();
        let run = drive(&mut *controller, &Fluid::clean(), 5.0);
        assert_eq!(opened(&run) == Some(Reason::ShortTransfer), short);
        assert_eq!(run.window.is_none(), short);
        assert_eq!(run.trains == 0, short);
    }
}

#[test]
fn no_window_is_held_before_the_capacity_is_known() {
    // The trains are spread over a round trip. Two round trips precede them: one for the first probe, one for the first
    // train.
    let run = run(&Fluid::clean(), 0.25);
    assert!(run.events.iter().all(|(_, kind)| !matches!(kind, EventKind::Entered { .. })));
    // The initial window of a Linux receiver.
    assert!(run.window.is_none_or(|window| window >= Bytes::new(65_535)));
}

#[test]
fn a_deep_buffer_stays_empty() {
    let run = run(&Fluid { buffer: 2.0 * BDP, ..Fluid::clean() }, 20.0);
    assert_eq!(run.dropped_bytes, 0.0);
    assert!(run.queue(2.0, 20.0) <= 0.06 * BDP, "{}", run.queue(2.0, 20.0));
    assert!(run.goodput(2.0, 20.0) >= 0.99 * 100e6);
}

#[test]
fn a_common_error_of_all_trains_costs_no_goodput() {
    for train_error in [0.8, 0.9, 1.1, 1.25] {
        let fluid = Fluid { train_error, buffer: 0.3 * BDP, ..Fluid::clean() };
        let (run, alone) = (run(&fluid, 60.0), alone(&fluid, 60.0));
        let (ours, theirs) = (run.goodput(0.0, 60.0), alone.goodput(0.0, 60.0));
        assert!(ours >= MIN_GOODPUT_SHARE * theirs, "{train_error} {ours} {theirs}");
    }
}

#[test]
fn a_faster_path_is_not_held_to_its_old_rate() {
    let rate = |t| if t < 8.0 { 50e6 } else { 100e6 };
    let fluid = Fluid { rate, ..Fluid::clean() };
    let (run, alone) = (run(&fluid, 30.0), alone(&fluid, 30.0));
    assert!(run.goodput(4.0, 8.0) >= 0.98 * 50e6);
    assert_eq!(opened(&run), Some(Reason::PathFaster));
    let (ours, theirs) = (run.goodput(8.0, 30.0), alone.goodput(8.0, 30.0));
    assert!(ours >= MIN_GOODPUT_SHARE * theirs, "{ours} {theirs}");
}

#[test]
fn a_slower_path_is_left_to_congestion_control_and_stays_full() {
    let rate = |t| if t < 8.0 { 100e6 } else { 50e6 };
    let fluid = Fluid { rate, buffer: BDP, ..Fluid::clean() };
    let (run, alone) = (run(&fluid, 20.0), alone(&fluid, 20.0));
    assert!(opened(&run).is_some());
    let (ours, theirs) = (run.goodput(8.0, 20.0), alone.goodput(8.0, 20.0));
    assert!(ours >= MIN_GOODPUT_SHARE * theirs, "{ours} {theirs}");
}

#[test]
fn a_longer_route_costs_no_goodput() {
    let rtt = |t| if t < 8.0 { 0.1 } else { 0.13 };
    let fluid = Fluid { rtt, ..Fluid::clean() };
    let (run, alone) = (run(&fluid, 30.0), alone(&fluid, 30.0));
    let (ours, theirs) = (run.goodput(8.0, 30.0), alone.goodput(8.0, 30.0));
    assert!(ours >= MIN_GOODPUT_SHARE * theirs, "{ours} {theirs}");
}

#[test]
fn a_sender_stall_is_not_saturation() {
    let sender_stalls = |t: f64| (5.0..7.0).contains(&t);
    let run = run(&Fluid { sender_stalls, ..Fluid::clean() }, 15.0);
    assert!(run.goodput(8.0, 15.0) >= 0.98 * 100e6, "{}", run.goodput(8.0, 15.0));
    assert!(final_window(&run) >= BDP);
}

#[test]
fn a_sender_stall_while_ramping_is_not_saturation() {
    let sender_stalls = |t: f64| (0.5..2.0).contains(&t);
    let run = run(&Fluid { sender_stalls, ..Fluid::clean() }, 15.0);
    assert!(run.goodput(4.0, 15.0) >= 0.98 * 100e6, "{}", run.goodput(4.0, 15.0));
}

#[test]
fn a_receiver_stall_is_not_saturation() {
    let receiver_stalls = |t: f64| (5.0..5.4).contains(&t);
    let run = run(&Fluid { receiver_stalls, ..Fluid::clean() }, 15.0);
    assert!(run.goodput(7.0, 15.0) >= 0.98 * 100e6, "{}", run.goodput(7.0, 15.0));
    assert!(run.queue(7.0, 15.0) <= 0.06 * BDP, "{}", run.queue(7.0, 15.0));
}

#[test]
fn probe_noise_costs_no_goodput() {
    let fluid = Fluid { probe_noise: 0.02, ..Fluid::clean() };
    let (run, alone) = (run(&fluid, 20.0), alone(&fluid, 20.0));
    let (ours, theirs) = (run.goodput(0.0, 20.0), alone.goodput(0.0, 20.0));
    assert!(ours >= MIN_GOODPUT_SHARE * theirs, "{ours} {theirs}");
}

#[test]
fn a_congested_path_is_left_to_congestion_control() {
    // Competing flows keep the queue at half its buffer and overflow it every 700 ms. The congestion window is halved each
    // time and limits the transfer.
    let fluid = Fluid {
        rtt: |t| if ((t * 10.0) as u64).is_multiple_of(7) { 0.1 } else { 0.15 },
        others_congest: Some(0.7),
        ..Fluid::clean()
    };
    let (run, alone) = (run(&fluid, 30.0), alone(&fluid, 30.0));
    let (ours, theirs) = (run.goodput(0.0, 30.0), alone.goodput(0.0, 30.0));
    assert!(opened(&run).is_some(), "{:?}", run.events);
    assert!(ours >= MIN_GOODPUT_SHARE * theirs, "{ours} {theirs}");
}

#[test]
fn a_queue_that_predates_the_transfer_is_left_to_congestion_control() {
    // Cross traffic alone fills the path and 40 ms of its buffer, and yields if the queue is longer.
    let cross = |drain: f64| if drain < 0.04 { 120e6 } else { 90e6 };
    let run = run(&Fluid { cross, buffer: BDP, ..Fluid::clean() }, 5.0);
    assert!(opened(&run).is_some(), "{:?}", run.events);
    // A transfer that has to compete is not paced.
    assert_eq!(run.pacing, None);
}

#[test]
fn a_burst_of_cross_traffic_during_startup_is_not_congestion() {
    let rtt = |t: f64| if (0.45..0.55).contains(&t) { 0.13 } else { 0.1 };
    let run = run(&Fluid { rtt, ..Fluid::clean() }, 12.0);
    assert!(!run.has_seen(|e| matches!(e, EventKind::Congested)), "{:?}", run.events);
}

#[test]
fn a_single_lost_probe_is_not_congestion() {
    let run = run(&Fluid { lose_every: Some(400), ..Fluid::clean() }, 12.0);
    assert!(!run.has_seen(|e| matches!(e, EventKind::Congested)), "{:?}", run.events);
    assert!(run.goodput(2.0, 12.0) >= 0.93 * 100e6, "{}", run.goodput(2.0, 12.0));
}

#[test]
fn without_probes_the_window_is_left_to_congestion_control() {
    let fluid = Fluid { udp_passes: false, buffer: BDP, ..Fluid::clean() };
    let (run, alone) = (run(&fluid, 20.0), alone(&fluid, 20.0));
    assert_eq!(opened(&run), Some(Reason::CapacityUnknown));
    let (ours, theirs) = (run.goodput(0.0, 20.0), alone.goodput(0.0, 20.0));
    assert!(ours >= MIN_GOODPUT_SHARE * theirs, "{ours} {theirs}");
}

#[test]
fn a_sender_that_ignores_pacing_overflows_only_in_slow_start() {
    let run = run(&Fluid { paces: false, ..Fluid::clean() }, 20.0);
    assert!(run.last_drop <= 2.0, "{}", run.last_drop);
}

#[test]
fn fast_and_slow_paths_lose_no_goodput() {
    // 400 Mbit/s and 20 ms, a BDP of 1 MB; and 20 Mbit/s and 20 ms, 50 kB. Both buffers are a tenth of the BDP, and at least
    // 15 kB.
    let fast = Fluid { rate: |_| 400e6, rtt: |_| 0.02, buffer: 100e3, ..Fluid::clean() };
    let run_fast = run(&fast, 30.0);
    let theirs = alone(&fast, 30.0).goodput(0.0, 30.0);
    assert!(
        run_fast.goodput(0.0, 30.0) >= MIN_GOODPUT_SHARE * theirs,
        "{} {theirs}",
        run_fast.goodput(0.0, 30.0)
    );
    let slow = Fluid { rate: |_| 20e6, rtt: |_| 0.02, buffer: 15e3, ..Fluid::clean() };
    let run_slow = run(&slow, 30.0);
    let theirs = alone(&slow, 30.0).goodput(0.0, 30.0);
    assert!(
        run_slow.goodput(0.0, 30.0) >= MIN_GOODPUT_SHARE * theirs,
        "{} {theirs}",
        run_slow.goodput(0.0, 30.0)
    );
}

#[test]
fn against_yielding_cross_traffic_the_queue_rises_to_its_bound() {
    // 20 transfers of 22 packets of 1000 B and 100 ms (Figure 4), on 50 Mbit/s with a buffer of 625 kB: 35.2 Mbit/s without
    // a queue. By eq. (6) their rate falls to 35.2 / (1 + Q/C / 100 ms).
    let fluid = Fluid {
        rate: |_| 50e6,
        buffer: 625e3,
        cross: |drain| 20.0 * 22e3 * 8.0 / (0.1 + drain),
        ..Fluid::clean()
    };
    let run = run(&fluid, 120.0);
    // Eq. (8) with A = 14.8 Mbit/s and B/C = 100 ms: the full buffer halves their rate, which leaves us 50 - 17.6 = 32.4
    // Mbit/s. Without a standing queue we would get 14.8.
    assert!(run.goodput(60.0, 120.0) >= 0.85 * 32.4e6, "{}", run.goodput(60.0, 120.0));
}

#[test]
fn the_transfer_gets_what_unresponsive_cross_traffic_leaves() {
    let fluid = Fluid { buffer: BDP, cross: |_| 50e6, ..Fluid::clean() };
    let run = run(&fluid, 60.0);
    // Eq. (4): A = C - R_c.
    assert!(run.goodput(5.0, 60.0) >= 0.98 * 50e6, "{}", run.goodput(5.0, 60.0));
}

#[test]
fn jitter_costs_no_goodput() {
    let short = |rtt| Fluid { rtt, buffer: 0.4 * BDP, ..Fluid::clean() };
    for (jitter, fluid) in [
        (0.002, short(|_| 0.04)),
        (0.004, short(|_| 0.04)),
        (0.008, short(|_| 0.04)),
        (0.004, short(|_| 0.02)),
        (0.004, Fluid { buffer: BDP, ..Fluid::clean() }),
    ] {
        let fluid = Fluid { jitter, ..fluid };
        let (run, alone) = (run(&fluid, 40.0), alone(&fluid, 40.0));
        let (ours, theirs) = (run.goodput(0.0, 40.0), alone.goodput(0.0, 40.0));
        assert!(ours >= MIN_GOODPUT_SHARE * theirs, "{jitter} {ours} {theirs}");
    }
}

#[test]
fn a_buffer_too_small_for_a_step_overflows_only_once() {
    // The held window exceeds the BDP of 1.25 MB by 3 % and two segments, 3.2 % in total, and a step adds 3 % more.
    let run = run(&Fluid { buffer: 0.045 * 1.25e6, ..Fluid::clean() }, 60.0);
    let steps = run.events.iter().filter(|(at, event)| {
        *at > 1.0 && matches!(event, EventKind::Limited { window } if window.as_f64() > 1.3e6)
    });
    assert_eq!(steps.count(), 1, "{:?}", run.events);
    assert!(run.goodput(20.0, 60.0) >= 0.97 * 100e6, "{}", run.goodput(20.0, 60.0));
}
