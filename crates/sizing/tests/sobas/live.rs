//! Laws of SOBAS on connections of other programs: no probes, no trains, a sender that takes no
//! hints. The path carries 100 Mbit/s of payload over 40 ms, so its BDP is 500 kB, and holds two
//! of them in its buffer, unless a test says otherwise.

use crate::fluid::{Fluid, Run, controller, play};
use sweetspot_sizing::{Controller, EventKind, Input, Output, Sizing};
use sweetspot_units::{Bytes, Duration, Time};

const BDP: f64 = 500e3;

fn path() -> Fluid {
    Fluid { rtt: |_| 0.04, buffer: 2.0 * BDP, udp_passes: false, paces: false, ..Fluid::clean() }
}

fn run(fluid: &Fluid, seconds: f64) -> Run {
    play(Sizing::SobasLive, 6_291_456, fluid, seconds)
}

#[test]
fn a_deep_buffer_stays_empty_and_the_path_full() {
    let run = run(&path(), 20.0);
    assert_eq!(run.dropped_bytes, 0.0);
    // 80 ms would stand there: a tenth of that is 8 ms or 100 kB.
    assert!(run.queue(2.0, 20.0) <= 0.2 * BDP, "{}", run.queue(2.0, 20.0));
    assert!(run.goodput(2.0, 20.0) >= 0.99 * 100e6, "{}", run.goodput(2.0, 20.0));
    assert!(run.goodput(0.0, 20.0) >= 0.96 * 100e6, "{}", run.goodput(0.0, 20.0));
}

#[test]
fn a_quarter_of_a_bdp_does_not_overflow() {
    let run = run(&Fluid { buffer: 0.25 * BDP, ..path() }, 20.0);
    assert_eq!(run.dropped_bytes, 0.0);
    assert!(run.goodput(2.0, 20.0) >= 0.99 * 100e6, "{}", run.goodput(2.0, 20.0));
}

/// 20 round trips of 40 ms are 0.8 s.
#[test]
fn a_rate_that_halves_and_doubles_is_followed_in_twenty_round_trips() {
    let rate = |t: f64| if (8.0..16.0).contains(&t) { 50e6 } else { 100e6 };
    let run = run(&Fluid { rate, ..path() }, 24.0);
    assert!(run.goodput(8.8, 16.0) >= 0.95 * 50e6, "{}", run.goodput(8.8, 16.0));
    assert!(run.queue(8.8, 16.0) <= 0.2 * BDP, "{}", run.queue(8.8, 16.0));
    assert!(run.goodput(16.8, 24.0) >= 0.95 * 100e6, "{}", run.goodput(16.8, 24.0));
    assert!(run.queue(17.6, 24.0) <= 0.2 * BDP, "{}", run.queue(17.6, 24.0));
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
fn where_others_keep_a_queue_and_take_the_path_the_window_is_let_go() {
    // Others send 80 Mbit/s as long as the queue is short of 40 ms: a queue that is not ours.
    let cross = |drain: f64| if drain < 0.04 { 120e6 } else { 40e6 };
    let run = run(&Fluid { cross, ..path() }, 20.0);
    assert!(run.saw(|e| matches!(e, EventKind::Congested)), "{:?}", run.events);
}

#[test]
fn scale_changes_nothing() {
    // 400 Mbit/s and 20 ms, 1 MB of BDP; 20 Mbit/s and 100 ms, 250 kB; half of it in the buffer.
    let fast = Fluid { rate: |_| 400e6, rtt: |_| 0.02, buffer: 500e3, ..path() };
    let slow = Fluid { rate: |_| 20e6, rtt: |_| 0.1, buffer: 125e3, ..path() };
    for (path, rate) in [(fast, 400e6), (slow, 20e6)] {
        let run = run(&path, 15.0);
        assert!(run.goodput(3.0, 15.0) >= 0.98 * rate, "{}", run.goodput(3.0, 15.0));
        assert_eq!(run.dropped_bytes, 0.0, "{rate}");
    }
}

/// The last of the limits that the controller asks for now, if it asks for any.
fn last_limit(controller: &mut dyn Controller) -> Option<Option<Bytes>> {
    let outputs = std::iter::from_fn(|| controller.poll_output());
    let limit = |output| if let Output::Window(limit) = output { Some(limit) } else { None };
    outputs.filter_map(limit).last()
}

/// Who looks after 100 ms for the first time sees several flights at once: of 100 kB 40 in each round
/// trip of 40 ms, on average. Twice that is what the next flight may be, or what a receiving kernel
/// begins with, 65 kB.
#[test]
fn what_came_while_nobody_looked_is_not_one_flight() {
    let mut controller = controller(Sizing::SobasLive, 6_291_456);
    let at = |ms: u64| Time::from_nanos(ms * 1_000_000);
    controller.handle(at(0), &Input::MinimumRtt(Duration::from_millis(40)));
    controller.handle(at(0), &Input::Data { bytes: Bytes::ZERO, unread: Bytes::ZERO });
    controller.handle(at(100), &Input::Data { bytes: Bytes::new(100_000), unread: Bytes::ZERO });
    for ms in (103..=139).step_by(3) {
        controller.handle(at(ms), &Input::Data { bytes: Bytes::ZERO, unread: Bytes::ZERO });
    }
    assert_eq!(last_limit(&mut *controller), Some(Some(Bytes::new(80_000))));
}

/// 12.5 kB in each ms are 100 Mbit/s, but what arrives in 6 of every 20 ms comes within the two after:
/// looks see up to twice the path in so short a time, and the window opens far beyond it. A round trip
/// holds 500 kB all the same: with a queue of a twentieth of it and what a receiver holds back, no
/// window larger than 528 kB is kept once packets are missing behind a queue.
#[test]
fn a_window_that_opened_too_far_comes_back_to_what_arrived_in_a_round_trip() {
    let mut controller = controller(Sizing::SobasLive, 6_291_456);
    let mut window = None;
    let mut look = |ms: u64, bytes: u64, rtt: u64, missing: u64| {
        let now = Time::from_nanos(ms * 1_000_000);
        controller.handle(now, &Input::MinimumRtt(Duration::from_millis(40)));
        controller.handle(now, &Input::KernelRtt(Duration::from_millis(rtt)));
        if missing > 0 {
            controller.handle(now, &Input::OutOfOrder { segments: missing });
        }
        controller.handle(now, &Input::Data { bytes: Bytes::new(bytes), unread: Bytes::ZERO });
        window = last_limit(&mut *controller).unwrap_or(window);
        window.map_or(u64::MAX, Bytes::get)
    };
    let mut opened = 0;
    for ms in 1..200 {
        let held = (10..16).contains(&(ms % 20));
        let bytes = if held {
            0
        } else if matches!(ms % 20, 16 | 17) {
            50_000
        } else {
            12_500
        };
        opened = look(ms, bytes, 41, 0);
    }
    assert!((570_000..u64::MAX).contains(&opened), "{opened}");
    let mut kept = opened;
    for ms in 200..300 {
        // The sender halves its window, and the queue is gone.
        let rtt = if ms < 212 { 60 } else { 41 };
        kept = look(ms, 12_500 / 2, rtt, u64::from(ms == 210) * 10);
    }
    assert!(kept <= 528_000, "{kept}");
}
