//! Laws of SOBAS on other programs' connections: no probes, no trains, and a sender that obeys no requests. Unless a test says
//! otherwise, the path carries 100 Mbit/s of payload over 40 ms. Its BDP is 500 kB, and its buffer holds two BDPs.

use crate::fluid::{Fluid, Run, controller, drive, drive_from, simulate};
use sweetspot_sizing::{Controller, EventKind, Input, Output, Reason, Sizing, SizingPhase};
use sweetspot_units::{Bytes, Duration, Time};

const BDP: f64 = 500e3;

fn path() -> Fluid {
    Fluid { rtt: |_| 0.04, buffer: 2.0 * BDP, udp_passes: false, paces: false, ..Fluid::clean() }
}

fn run(fluid: &Fluid, seconds: f64) -> Run {
    simulate(Sizing::SobasLive, 6_291_456, fluid, seconds)
}

/// The share of its untuned goodput that a tuned download keeps.
const MIN_GOODPUT_SHARE: f64 = 0.97;

/// Compares a tuned download's goodput on a path with an untuned one's.
fn does_no_harm(fluid: &Fluid, seconds: f64) {
    let theirs = simulate(Sizing::Max, 6_291_456, fluid, seconds).goodput(0.0, seconds);
    let ours = run(fluid, seconds).goodput(0.0, seconds);
    assert!(ours >= MIN_GOODPUT_SHARE * theirs, "{ours} {theirs}");
}

#[test]
fn a_deep_buffer_drains_while_the_path_stays_full() {
    let fluid = path();
    let run = run(&fluid, 40.0);
    does_no_harm(&fluid, 40.0);
    assert!(run.has_seen(|e| matches!(e, EventKind::Entered { phase: SizingPhase::Holding, .. })));
    // Of an untuned window, 2 BDP or more would wait in the queue: a trial must remove at least half.
    assert!(run.queue(30.0, 40.0) <= 0.5 * BDP, "{}", run.queue(30.0, 40.0));
}

#[test]
fn a_sender_without_pacing_gets_no_pacing_rate() {
    let run = run(&path(), 40.0);
    assert!(run.has_seen(|e| matches!(e, EventKind::Entered { phase: SizingPhase::Holding, .. })));
    assert_eq!(run.pacing, None);
}

#[test]
fn a_quarter_bdp_buffer_costs_no_goodput_and_stops_overflowing() {
    let shallow = Fluid { buffer: 0.25 * BDP, ..path() };
    does_no_harm(&shallow, 20.0);
    let run = run(&shallow, 40.0);
    // A window of 0.7 x 1.25 BDP grows by a segment per round trip and fills the buffer after 130 round trips, 6 s. The
    // controller finds the path full before the second overflow after slow start.
    assert!(run.has_seen(|e| matches!(e, EventKind::Entered { phase: SizingPhase::Holding, .. })));
    assert!(run.last_drop <= 12.0, "{}", run.last_drop);
}

#[test]
fn a_rate_that_halves_and_doubles_costs_no_goodput() {
    let rate = |t: f64| if (8.0..16.0).contains(&t) { 50e6 } else { 100e6 };
    does_no_harm(&Fluid { rate, ..path() }, 24.0);
}

#[test]
fn a_longer_route_is_not_mistaken_for_a_queue_forever() {
    let rtt = |t| if t < 8.0 { 0.04 } else { 0.06 };
    let run = run(&Fluid { rtt, ..path() }, 30.0);
    assert!(run.goodput(15.0, 30.0) >= 0.94 * 100e6, "{}", run.goodput(15.0, 30.0));
}

#[test]
fn a_path_that_turns_faster_and_longer_at_once_is_detected() {
    // A longer route looks like the held queue, and the rate of a held window stays the same.
    let fast: fn(f64) -> f64 = |t| if t < 15.0 { 100e6 } else { 300e6 };
    let rtt: fn(f64) -> f64 = |t| if t < 15.0 { 0.04 } else { 0.0412 };
    let run = run(&Fluid { rate: fast, rtt, ..path() }, 40.0);
    // The step is doubled every 36 epochs of 60 ms, and the path opened after three steps of six.
    assert!(run.has_seen(|e| matches!(e, EventKind::Entered { reason: Reason::PathFaster, .. })));
    assert!(run.goodput(25.0, 40.0) >= 0.9 * 300e6, "{}", run.goodput(25.0, 40.0));
}

/// The time in seconds of the first decision for the `expected` reason.
fn decided(run: &Run, expected: Reason) -> Option<f64> {
    run.first(|kind| matches!(kind, EventKind::Entered { reason, .. } if *reason == expected))
}

#[test]
fn a_doubled_rate_is_detected_after_three_doubling_steps() {
    let rate: fn(f64) -> f64 = |t| if t < 15.0 { 100e6 } else { 200e6 };
    let run = run(&Fluid { rate, ..path() }, 20.0);
    let opened = decided(&run, Reason::PathFaster).expect("it is opened");
    // Four epochs of 60 ms without a queue, three steps of six, and the two epochs that contain the change.
    assert!(opened > 15.0 && opened <= 15.0 + 24.0 * 0.06, "{opened}");
}

#[test]
fn a_trial_is_abandoned_if_the_path_becomes_faster() {
    let tried = decided(&run(&path(), 10.0), Reason::RateInelastic).expect("it is tried");
    assert!(tried < 1.2, "{tried}");
    type RateAt = fn(f64) -> f64;
    fn quadruples<const MS: u64>(t: f64) -> f64 {
        if t * 1e3 < MS as f64 { 100e6 } else { 400e6 }
    }
    let jumps = [
        (1.2, quadruples::<1200> as RateAt),
        (1.4, quadruples::<1400>),
        (1.6, quadruples::<1600>),
        (1.8, quadruples::<1800>),
        (2.0, quadruples::<2000>),
        (2.2, quadruples::<2200>),
    ];
    for (at, rate) in jumps {
        let run = run(&Fluid { rate, ..path() }, 10.0);
        let opened = decided(&run, Reason::PathFaster).expect("it is opened");
        // A queue is tried for two epochs until it takes effect, and for four that are judged, each of 60 ms by now. Both the
        // current and the next queue may be tried.
        assert!(opened > at && opened <= at + 12.0 * 0.06, "{at}: {opened}");
    }
}

#[test]
fn endless_probing_of_a_full_path_keeps_its_queue_short() {
    let run = run(&path(), 300.0);
    assert!(!run.has_seen(|e| matches!(e, EventKind::Entered { reason: Reason::PathFaster, .. })));
    // The held window has an excess of 3 % of the RTT and two segments, and a step adds 3 % more.
    assert!(run.queue(200.0, 300.0) <= 0.1 * BDP, "{}", run.queue(200.0, 300.0));
}

#[test]
fn a_sender_stall_is_not_saturation() {
    let sender_stalls = |t: f64| (0.3..2.0).contains(&t) || (5.0..7.0).contains(&t);
    let run = run(&Fluid { sender_stalls, ..path() }, 15.0);
    assert!(run.goodput(3.0, 5.0) >= 0.98 * 100e6, "{}", run.goodput(3.0, 5.0));
    assert!(run.goodput(8.0, 15.0) >= 0.98 * 100e6, "{}", run.goodput(8.0, 15.0));
}

#[test]
fn a_receiver_stall_is_not_saturation() {
    let receiver_stalls = |t: f64| (5.0..5.4).contains(&t);
    let run = run(&Fluid { receiver_stalls, ..path() }, 15.0);
    assert!(run.goodput(7.0, 15.0) >= 0.98 * 100e6, "{}", run.goodput(7.0, 15.0));
}

#[test]
fn queue_building_cross_traffic_costs_no_goodput() {
    // Cross traffic sends 80 Mbit/s while the queue is shorter than 40 ms: such a queue is not ours.
    let cross = |drain: f64| if drain < 0.04 { 120e6 } else { 40e6 };
    does_no_harm(&Fluid { cross, ..path() }, 20.0);
}

#[test]
fn fast_and_slow_paths_lose_no_goodput() {
    // 400 Mbit/s and 20 ms, a BDP of 1 MB; 20 Mbit/s and 100 ms, 250 kB. Each buffer is half of the BDP.
    let fast = Fluid { rate: |_| 400e6, rtt: |_| 0.02, buffer: 500e3, ..path() };
    let slow = Fluid { rate: |_| 20e6, rtt: |_| 0.1, buffer: 125e3, ..path() };
    for path in [fast, slow] {
        does_no_harm(&path, 15.0);
    }
}

/// A transfer that was held to its end over `first`, and `pause` seconds later one of 20 s over `second`.
fn again(first: &Fluid, second: &Fluid, pause: f64) -> Run {
    let mut controller = controller(Sizing::SobasLive, 6_291_456);
    let before = drive(&mut *controller, first, 40.0);
    assert_eq!(controller.phase(), SizingPhase::Holding, "{:?}", before.events);
    controller.handle(Time::from_nanos(40_000_000_002), &Input::End);
    while controller.poll_output().is_some() {}
    drive_from(&mut *controller, second, 20.0, 41.0 + pause)
}

fn resumed(run: &Run) -> bool {
    run.has_seen(|e| matches!(e, EventKind::Entered { reason: Reason::PathRemembered, .. }))
}

/// Compares the second transfer with an untuned one.
fn does_no_harm_again(first: &Fluid, second: &Fluid) -> Run {
    let theirs = simulate(Sizing::Max, 6_291_456, second, 20.0).goodput(0.0, 20.0);
    let ours = again(first, second, 0.0);
    assert!(
        ours.goodput(0.0, 20.0) >= MIN_GOODPUT_SHARE * theirs,
        "{} {theirs}",
        ours.goodput(0.0, 20.0)
    );
    ours
}

#[test]
fn a_remembered_path_never_overflows() {
    let run = does_no_harm_again(&path(), &path());
    assert!(resumed(&run));
    assert_eq!(run.dropped_bytes, 0.0);
    // A hold keeps a queue of 3 % of the round trip; slow start sends bursts.
    assert!(run.queue(2.0, 20.0) <= 0.1 * BDP, "{}", run.queue(2.0, 20.0));
}

/// Slow start would leave half of the window in a queue. The window opens in steps of the buffer's size.
#[test]
fn a_remembered_path_with_a_small_buffer_never_overflows() {
    for share in [0.15, 0.25, 0.35, 0.5, 0.75] {
        let shallow = Fluid { buffer: share * BDP, ..path() };
        let run = does_no_harm_again(&shallow, &shallow);
        assert!(resumed(&run), "{share}");
        assert_eq!(run.dropped_bytes, 0.0, "{share}");
    }
}

/// A hold that was slightly too low is corrected by the buffer's size; the path does not open.
#[test]
fn a_slightly_faster_remembered_path_never_overflows() {
    for rate in [(|_| 104e6) as fn(f64) -> f64, |_| 108e6] {
        let shallow = Fluid { buffer: 0.25 * BDP, ..path() };
        let run = does_no_harm_again(&shallow, &Fluid { rate, ..shallow });
        assert!(resumed(&run), "{}", rate(0.0));
        assert_eq!(run.dropped_bytes, 0.0, "{}", rate(0.0));
    }
}

/// Nothing was lost, so slow start needs no help.
#[test]
fn a_path_never_held_or_overflowed_is_not_remembered() {
    let deep = Fluid { buffer: 4.0 * BDP, ..path() };
    let mut controller = controller(Sizing::SobasLive, 6_291_456);
    let first = drive(&mut *controller, &deep, 0.4);
    assert_eq!((controller.phase(), first.dropped_bytes), (SizingPhase::Open, 0.0));
    controller.handle(Time::from_nanos(400_000_002), &Input::End);
    while controller.poll_output().is_some() {}
    assert!(!resumed(&drive_from(&mut *controller, &deep, 5.0, 2.0)));
}

/// The trial began while the window was about to overflow the buffer, and the limit had not taken effect yet.
#[test]
fn a_loss_before_a_trials_limit_takes_effect_does_not_end_it() {
    for lost in [4.52, 4.6, 4.65] {
        // The trial begins at 4.5 s.
        let path = Fluid { buffer: 0.25 * BDP, loses_at: Some(lost), ..path() };
        let run = simulate(Sizing::SobasLive, 6_291_456, &path, 20.0);
        let entered = |phase| {
            let is_it = |kind: &EventKind| matches!(kind, EventKind::Entered { phase: p, .. } if *p == phase);
            run.first(is_it).unwrap_or(f64::INFINITY)
        };
        assert!(entered(SizingPhase::Trying) < lost, "{lost}: {:?}", run.events);
        assert!(entered(SizingPhase::Holding) < 8.0, "{lost}: {:?}", run.events);
    }
}

/// Feeds `controller` this rate in Mbit/s between two times in seconds, every 5 ms, with an RTT of 40 ms plus `queue` (ms). In
/// each sample `lost` segments arrive out of order, and `unread` bytes wait for the application.
fn show(
    controller: &mut dyn Controller,
    times: (f64, f64),
    (rate, queue): (f64, impl Fn(f64) -> f64),
    waiting: (u64, u64),
) {
    let rtt = |t| Duration::from_secs_f64(0.04 + queue(t) / 1e3);
    show_over(Duration::from_millis(40), controller, times, (rate, rtt), waiting);
}

/// As [`show`], with a base RTT of `base`; the kernel reports `rtt`.
fn show_over(
    base: Duration,
    controller: &mut dyn Controller,
    (from, to): (f64, f64),
    (rate, rtt): (f64, impl Fn(f64) -> Duration),
    (lost, unread): (u64, u64),
) {
    for sample in (from / 0.005) as u64..(to / 0.005) as u64 {
        let now = Time::from_nanos(sample * 5_000_000);
        controller.handle(now, &Input::MinimumRtt(base));
        controller.handle(now, &Input::KernelRtt(rtt(sample as f64 * 0.005)));
        if lost > 0 {
            controller.handle(now, &Input::OutOfOrder { segments: lost });
        }
        let unread = Bytes::new(unread);
        let bytes = Bytes::new((rate * 625.0) as u64);
        controller.handle(now, &Input::Data { bytes, unread });
        controller.handle(now, &Input::Timeout);
    }
}

#[test]
fn data_delayed_into_the_next_rtt_does_not_suggest_a_faster_path() {
    let (mut controller, mut at) = trying_under(|t| 30.0 + 10.0 * t);
    let window = last_window(&mut *controller).as_f64();
    // Several downloads are sampled one after the other: every second sample counts an eighth of the arrivals late. Where it is
    // counted, the window is full.
    let queue = window * 8.0 / 112.5e6 * 1e3 - 40.0;
    assert!(queue > 10.0, "{queue}");
    for turn in 0..20 {
        let rate = if turn % 2 == 0 { 87.5 } else { 112.5 };
        let until = at + (0.04 + queue / 1e3);
        show(&mut *controller, (at, until), (rate, |_| queue), (0, 0));
        at = until;
    }
    let opened = std::iter::from_fn(|| controller.poll_output()).any(|output| {
        let faster = EventKind::Entered { phase: SizingPhase::Open, reason: Reason::PathFaster };
        matches!(output, Output::Event(event) if event.kind == faster)
    });
    assert!(!opened);
}

/// For RTTs of 2.1 ms plus a queue, the kernel's timestamps show whole milliseconds.
#[test]
fn millisecond_rtts_do_not_make_the_window_too_small() {
    let base = Duration::from_micros(2100);
    let whole = |ms: f64| Duration::from_millis(ms as u64);
    let queue = |t: f64| 1.5 + 0.4 * t;
    let mut controller = controller(Sizing::SobasLive, 6_291_456);
    let mut at = 0.0;
    while controller.phase() != SizingPhase::Trying {
        let grows = |t| whole(2.1 + queue(t));
        show_over(base, &mut *controller, (at, at + 0.05), (100.0, grows), (0, 0));
        at += 0.05;
        assert!(at < 5.0);
    }
    show_over(base, &mut *controller, (at, at + 2.0), (100.0, |_| whole(2.9)), (0, 0));
    // The trial leaves three quarters of the queue of the last second, also on average.
    let min = 12_500.0 * (2.1 + 0.75 * queue(at - 1.0));
    let last = last_window(&mut *controller).as_f64();
    assert!(last >= min, "{last} of {min} bytes");
}

/// The last window that `controller` requested.
fn last_window(controller: &mut dyn Controller) -> Bytes {
    let outputs = std::iter::from_fn(|| controller.poll_output());
    let windows = outputs.filter_map(|output| match output {
        Output::Window(window) => window,
        _ => None,
    });
    windows.last().expect("a window")
}

/// A controller that tries a smaller window at 100 Mbit/s, under a queue that grows by 4 ms per second; and the trial's start.
fn trying() -> (Box<dyn Controller + Send>, f64) {
    trying_under(|t| 4.0 * t)
}

/// As [`trying`], under this `queue` (ms).
fn trying_under(queue: impl Fn(f64) -> f64) -> (Box<dyn Controller + Send>, f64) {
    let mut controller = controller(Sizing::SobasLive, 6_291_456);
    let mut at = 0.0;
    while controller.phase() != SizingPhase::Trying {
        show(&mut *controller, (at, at + 0.05), (100.0, &queue), (0, 0));
        at += 0.05;
        assert!(at < 5.0);
    }
    (controller, at)
}

/// Whether `controller` remembers the path when its transfer ends at `at`.
fn remembers(controller: &mut dyn Controller, at: f64) -> bool {
    controller.handle(Time::from_nanos((at * 1e9) as u64), &Input::End);
    let mut outputs = std::iter::from_fn(|| controller.poll_output());
    outputs.any(|output| matches!(output, Output::Saved(Some(_))))
}

/// A receiver does not take back an advertised window: the sender must use up a window far above the data in flight before a
/// limit acts. Until then, losses belong to the earlier window, while the data in flight grow as before.
#[test]
fn an_overflow_before_a_trial_takes_effect_reveals_the_capacity() {
    // An application that waits for missing data has a lot to read after the repair.
    for unread in [0, 400_000] {
        let (mut controller, at) = trying();
        let grows = (100.0, |t| 4.0 * t);
        show(&mut *controller, (at, at + 1.0), grows, (0, 0));
        show(&mut *controller, (at + 1.0, at + 1.1), grows, (30, unread));
        show(&mut *controller, (at + 1.1, at + 1.2), grows, (0, 0));
        assert_eq!(controller.phase(), SizingPhase::Trying, "{unread} bytes unread");
        assert!(remembers(&mut *controller, at + 1.2), "{unread} bytes unread");
    }
}

/// Until an overflow has been repaired, the rate is no evidence about the window.
#[test]
fn an_overflow_repaired_while_a_trial_settles_does_not_end_it() {
    let (mut controller, at) = trying();
    show(&mut *controller, (at, at + 0.1), (100.0, |_| 10.0), (30, 0));
    show(&mut *controller, (at + 0.1, at + 0.3), (80.0, |_| 14.0), (0, 0));
    show(&mut *controller, (at + 0.3, at + 3.0), (100.0, |_| KEPT_QUEUE), (0, 0));
    assert_eq!(controller.phase(), SizingPhase::Holding);
}

/// The held queue in ms, 3 % of the round trip.
const KEPT_QUEUE: f64 = 1.2;

#[test]
fn a_slightly_slower_sender_does_not_release_a_held_window() {
    let (mut controller, at) = trying();
    show(&mut *controller, (at, at + 3.0), (100.0, |_| KEPT_QUEUE), (0, 0));
    assert_eq!(controller.phase(), SizingPhase::Holding);
    // 96 Mbit/s over 40.2 ms are 94 % of the window. If the window were the limit, the RTT would be 43 ms.
    show(&mut *controller, (at + 3.0, at + 6.0), (96.0, |_| 0.2), (0, 0));
    assert_eq!(controller.phase(), SizingPhase::Holding);
    show(&mut *controller, (at + 6.0, at + 9.0), (96.0, |_| 2.9), (0, 0));
    assert_eq!(controller.phase(), SizingPhase::Open);
}

#[test]
fn a_path_held_until_a_random_loss_is_remembered() {
    let (mut controller, at) = trying();
    // The path is remembered only if the longest queue was at least a tenth of a round trip.
    show(&mut *controller, (at, at + 0.1), (100.0, |_| 5.0), (0, 0));
    show(&mut *controller, (at + 0.1, at + 3.0), (100.0, |_| KEPT_QUEUE), (0, 0));
    assert_eq!(controller.phase(), SizingPhase::Holding);
    show(&mut *controller, (at + 3.0, at + 3.1), (100.0, |_| 0.0), (1, 0));
    show(&mut *controller, (at + 3.1, at + 5.0), (60.0, |_| 0.0), (0, 0));
    assert_eq!(controller.phase(), SizingPhase::Open);
    assert!(remembers(&mut *controller, at + 5.0));
}

#[test]
fn a_remembered_path_whose_rate_changed_costs_no_goodput() {
    for rate in [(|_| 40e6) as fn(f64) -> f64, |_| 250e6] {
        let run = does_no_harm_again(&path(), &Fluid { rate, ..path() });
        assert!(resumed(&run));
    }
}

#[test]
fn new_cross_traffic_on_a_remembered_path_costs_no_goodput() {
    let cross = |drain: f64| if drain < 0.04 { 120e6 } else { 40e6 };
    does_no_harm_again(&path(), &Fluid { cross, ..path() });
}

#[test]
fn a_very_different_rtt_means_another_path() {
    // RFC 9959, section 4.2.1: less than half of the saved RTT, or more than ten times as much.
    for rtt in [(|_| 0.015) as fn(f64) -> f64, |_| 0.45] {
        assert!(!resumed(&again(&path(), &Fluid { rtt, ..path() }, 0.0)));
    }
}

#[test]
fn a_path_is_forgotten_after_five_minutes() {
    assert!(resumed(&again(&path(), &path(), 290.0)));
    assert!(!resumed(&again(&path(), &path(), 300.0)));
}
