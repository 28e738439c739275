//! The table of ARCHITECTURE.md row by row, on scripted measurements: each of its numbers is tested.

use sweetspot_sizing::{CongestionChoice, Input, Reason, SenderReport, Sizing, SizingPhase};
use sweetspot_units::Bytes;

use crate::fluid::MSS;
use crate::script::{BDP, C, Q, Script, T, assert_near, assert_pace};

#[test]
fn the_first_train_limits_startup_to_1_1_bdp() {
    let mut script = Script::new(Sizing::Sobas);
    // The first train is faster than the later ones by a tenth, so that its rate differs from the capacity.
    script.train_error = 1.1;
    while script.trains == 0 {
        script.run(0.001, 0.1, 0.0, 0);
    }
    script.train_error = 1.0;
    script.run(0.002, 0.1, 0.0, 0);
    assert_near(script.window(), 1.1 * 1.1 * BDP);
}

#[test]
fn a_hold_allows_q_plus_two_segments_and_paces_one_percent_above() {
    let script = Script::held();
    assert_near(script.window(), C * (T + Q) + 2.0 * MSS);
    assert_pace(&script, 1.01);
}

#[test]
fn two_epochs_far_below_capacity_or_four_slightly_below_end_the_hold() {
    for (share, queue, epochs, why) in [
        // The queue is long enough for the window to bind: R (T + Q) is the window's C (T + q).
        (0.85, 0.021, 2.0, Reason::RateFell),
        (0.95, 0.008, 4.0, Reason::RateFell),
        (0.75, 0.037, 2.0, Reason::CrossTrafficQueue),
    ] {
        let mut script = Script::held();
        let since = script.seconds();
        script.run(2.0, share, queue, 0);
        let (after, reason) = script.opened(since).expect("the path is opened");
        assert_eq!(reason, why, "{share}");
        // The current epoch may count for the lower rate or not.
        assert!((epochs - 1.0..=epochs + 1.5).contains(&after), "{share}: {after}");
    }
}

#[test]
fn a_three_percent_step_follows_36_epochs_and_is_reverted() {
    let mut script = Script::held();
    let held = script.window();
    let since = script.windows.last().unwrap().0;
    script.run(6.0, 1.0, Q, 0);
    let steps: Vec<(f64, f64)> =
        script.windows.iter().copied().filter(|(at, _)| *at > since).collect();
    let [(up, wider), (down, back), ..] = steps[..] else { panic!("{steps:?}") };
    assert_near(wider, 1.03 * C * (T + Q) + 2.0 * MSS);
    assert_near(back, held);
    // Two epochs pass before a change counts; the epochs last a round trip of 103 ms.
    let epoch = T + Q;
    assert!((36.0..=40.0).contains(&((up - since) / epoch)), "{}", (up - since) / epoch);
    assert!((5.0..=8.0).contains(&((down - up) / epoch)), "{}", (down - up) / epoch);
}

#[test]
fn a_rate_that_follows_three_steps_releases_the_hold() {
    let mut script = Script::held();
    let since = script.seconds();
    // All data of a window arrive at once, without a queue.
    while script.opened(since).is_none() && script.seconds() < 30.0 {
        let share = script.window() / BDP;
        script.run(0.02, share, 0.0, 0);
    }
    assert_eq!(script.opened(since).map(|(_, reason)| reason), Some(Reason::PathFaster));
    // 3 %, doubled each time up to a tenth: 1.03 x 1.06 x 1.1.
    let widest = script.windows.iter().map(|(_, window)| *window).filter(|w| w.is_finite());
    let widest = widest.fold(0.0, f64::max);
    assert!(widest >= 1.03 * 1.06 * 1.1 * C * (T + Q), "{widest}");
}

/// Loses a packet at random: congestion control continues at 0.7 of the rate until BBR takes over.
fn lose_by_chance(script: &mut Script) {
    let mut lost = 1;
    script.report(0, 0.7 * BDP);
    while script.congestion == CongestionChoice::Own && script.seconds() < 5.0 {
        script.run(0.02, 0.7, 0.0, std::mem::take(&mut lost));
    }
    assert_eq!(script.congestion, CongestionChoice::Bbr);
}

#[test]
fn a_loss_within_three_epochs_of_a_queue_is_an_overflow() {
    for (epochs_later, is_random) in [(1.0, false), (2.0, false), (3.6, true)] {
        let mut script = Script::held();
        script.run(2.0 * T, 1.0, 3.0 * Q, 0);
        script.run(epochs_later * T, 1.0, 0.9 * Q, 0);
        script.run(1.5 * T, 1.0, 0.9 * Q, 1);
        let queue = if is_random { Q } else { Q / 2.0 };
        assert_near(script.window(), C * (T + queue) + 2.0 * MSS);
        assert_eq!(script.congestion, CongestionChoice::Own, "{epochs_later}");
    }
}

#[test]
fn an_unused_path_is_paced_unless_probes_find_cross_traffic() {
    // Alone at half of the capacity, half of the probes find the path idle. Eight epochs contain forty probes; for these, a
    // quarter is lower by more than two standard errors of 0.067.
    for (one_in, paces) in [(2, true), (4, false), (10, false), (100, false)] {
        let mut script = Script::held();
        let since = script.seconds();
        script.report(0, 0.5 * BDP);
        script.run(0.02, 0.5, 0.9 * Q, 1);
        let mut switched = false;
        for probe in 1..80 {
            let waits = if probe % one_in == 0 { 0.0 } else { 0.9 * Q };
            script.run(0.02, 0.5, waits, 0);
            switched |= script.congestion == CongestionChoice::Bbr;
        }
        let opened = script.opened(since).map(|(_, reason)| reason);
        assert_eq!(opened == Some(Reason::CrossTrafficQueue), !paces, "{one_in}: {opened:?}");
        assert_eq!(switched, paces, "{one_in}");
    }
}

#[test]
fn random_losses_switch_to_bbr_below_capacity_until_cubic_recovers() {
    let mut script = Script::held();
    lose_by_chance(&mut script);
    assert_near(script.window(), 3.0 * (C * (T + Q) + 2.0 * MSS));
    assert_pace(&script, 0.99);
    // CUBIC's K: 8.65 s.
    let k = (0.3 / 0.4 * BDP / MSS).cbrt();
    script.run(k - T, 0.99, 0.0, 0);
    assert_eq!(script.congestion, CongestionChoice::Bbr);
    script.run(5.0 * T, 0.99, 0.0, 0);
    assert_eq!(script.congestion, CongestionChoice::Own);
}

#[test]
fn cross_traffic_with_twice_the_queue_ends_pacing_after_random_loss() {
    for (queue, opens) in [(1.9 * Q, false), (2.1 * Q, true)] {
        let mut script = Script::held();
        lose_by_chance(&mut script);
        let since = script.seconds();
        script.run(1.0, 0.99, queue, 0);
        let why = script.opened(since).map(|(_, reason)| reason);
        assert_eq!(why, opens.then_some(Reason::CrossTrafficQueue), "{queue}");
    }
}

/// A held path that loses a packet without a queue, and then a share of `loss`, until BBR is judged: at most two cycles of
/// eight epochs.
fn paced_with(loss: f64) -> Script {
    let mut script = Script::held();
    script.report(1, 2.0 * BDP);
    lose_by_chance(&mut script);
    let mut retransmitted = 1.0;
    for _ in 0..90 {
        if script.congestion == CongestionChoice::Own {
            break;
        }
        retransmitted += loss * 0.99 * C * 0.02 / MSS;
        script.report(retransmitted as u64, 2.0 * BDP);
        script.run(0.02, 0.99, 0.0, 0);
    }
    script
}

#[test]
fn pacing_without_more_loss_continues() {
    assert_eq!(paced_with(0.0).congestion, CongestionChoice::Bbr);
}

#[test]
fn more_loss_when_paced_means_an_overflow_and_halves_the_queue() {
    let script = paced_with(0.05);
    assert_eq!(script.congestion, CongestionChoice::Own);
    assert_eq!(script.phase(), Some(SizingPhase::Holding));
    assert_near(script.window(), C * (T + Q / 2.0) + 2.0 * MSS);
}

#[test]
fn more_loss_at_a_lower_paced_rate_ends_pacing_for_good() {
    for (loss, tries_again) in [(0.0, true), (0.2, false)] {
        let mut script = Script::held();
        script.report(1, 2.0 * BDP);
        lose_by_chance(&mut script);
        let mut retransmitted = 1.0;
        while script.congestion == CongestionChoice::Bbr {
            retransmitted += loss * 0.7 * C * 0.02 / MSS;
            script.report(retransmitted as u64, 2.0 * BDP);
            script.run(0.02, 0.7, 0.0, 0);
        }
        assert_eq!(script.entered.last().map(|entered| entered.2), Some(Reason::RateFell));
        let (trains, entered) = (script.trains, script.entered.len());
        // Losses without a queue.
        script.run(1.0, 0.7, 0.0, 1);
        script.run(1.0, 0.7, 0.0, 1);
        let tried = script.trains > trains || script.entered.len() > entered;
        assert_eq!(tried, tries_again, "{loss}: {:?}", script.entered);
    }
}

#[test]
fn a_path_unused_for_eight_epochs_is_paced_unless_a_queue_stands() {
    for (in_slow_start, queue, paces) in
        [(false, 0.0, true), (true, 0.0, false), (false, 1.1 * Q, false)]
    {
        let mut script = Script::held();
        if !in_slow_start {
            script.report(0, 0.5 * BDP);
        }
        script.run(6.5 * T, 0.5, queue, 0);
        assert_eq!(script.congestion, CongestionChoice::Own, "{in_slow_start} {queue}");
        script.run(5.0 * T, 0.5, queue, 0);
        assert_eq!(script.congestion == CongestionChoice::Bbr, paces, "{in_slow_start} {queue}");
        if paces {
            assert_pace(&script, 0.99);
        }
    }
}

#[test]
fn a_sender_that_ignores_losses_is_paced_sooner_than_one_that_reacts() {
    let epochs_to_pace = |ssthresh| {
        let mut script = Script::held();
        let cwnd = Bytes::from_f64(BDP);
        let report = SenderReport { cwnd, ssthresh, retransmitted: 1, ..SenderReport::default() };
        script.handle(&Input::Sender(report));
        let since = script.seconds();
        while script.congestion == CongestionChoice::Own && script.seconds() < since + 40.0 * T {
            script.run(T, 0.7, 0.0, 1);
        }
        assert_pace(&script, 0.99);
        (script.seconds() - since) / T
    };
    // Like BBR, this sender has no slow-start threshold. Two epochs settle and three repair the first loss, at a rate that was
    // not low yet.
    let ignoring = epochs_to_pace(None);
    assert!((6.0..8.0).contains(&ignoring), "{ignoring}");
    let heeding = epochs_to_pace(Some(Bytes::from_f64(0.7 * BDP)));
    assert!((8.0..20.0).contains(&heeding), "{heeding}");
}

#[test]
fn a_loss_during_a_step_ends_the_steps_but_keeps_congestion_control() {
    let mut script = Script::held();
    let held = script.window();
    while script.window() <= held {
        script.run(0.02, 1.0, Q, 0);
    }
    script.run(1.0, 1.0, 0.9 * Q, 1);
    assert_eq!(script.congestion, CongestionChoice::Own);
    assert_near(script.window(), held);
    // No step follows within twice the time of the first.
    let since = script.windows.len();
    script.run(8.0, 1.0, Q, 0);
    assert_eq!(script.windows.len(), since);
}

#[test]
fn two_epochs_of_random_loss_on_an_open_path_trigger_new_trains() {
    let mut script = Script::held();
    // Cross traffic appears and disappears.
    script.run(2.0, 0.75, 0.037, 0);
    assert_eq!(script.phase(), Some(SizingPhase::Open));
    script.run(3.0, 0.9, 0.0, 0);
    let trains = script.trains;
    script.run(1.0, 0.9, 0.0, 1);
    assert_eq!(script.phase(), Some(SizingPhase::Open));
    script.run(1.0, 0.9, 0.0, 1);
    assert!(script.trains > trains, "{:?}", script.entered);
}

/// The window grows as Linux's does; events and limits follow in steps of a quarter.
#[test]
fn an_open_window_grows_two_bytes_per_byte_up_to_eight_flights() {
    let mut script = Script::new(Sizing::SobasLive);
    for _ in 0..40 {
        script.run(0.01, 0.2, 0.0, 0);
        let arrived = script.seconds() * 0.2 * C;
        let grown = 65_535.0 + 2.0 * arrived;
        if grown < 8.0 * 0.2 * BDP {
            // In the first milliseconds, eight flights were less than the first window.
            let min = (grown - 20e3) / 1.25 - 4.0 * MSS;
            assert!(script.window() >= min, "{} {grown}", script.window());
        }
        assert!(script.window() <= grown + 4.0 * MSS, "{} {grown}", script.window());
    }
    script.run(5.0, 0.2, 0.0, 0);
    let flights = script.window() / (0.2 * BDP);
    assert!((8.0 / 1.25..=8.2).contains(&flights), "{flights}");
}

#[test]
fn a_released_window_grows_by_a_quarter_byte_per_byte_received() {
    let mut script = Script::held();
    let since = script.seconds();
    while script.opened(since).is_none() {
        script.run(0.001, 0.75, 0.037, 0);
    }
    let (began, held) = (script.seconds(), script.window());
    script.run(2.0, 0.75, 0.0, 0);
    let grown = held + 0.25 * 0.75 * C * (script.seconds() - began);
    assert!(script.window() <= grown + 4.0 * MSS, "{} {grown}", script.window());
    assert!(script.window() >= grown / 1.25 - 4.0 * MSS, "{} {grown}", script.window());
}

/// A window that the last transfer held is opened from 2 x 3/4 of its longest queue.
#[test]
fn a_remembered_path_starts_from_1_5_times_its_longest_queue() {
    let mut script = Script::new(Sizing::Sobas);
    script.run(2.0, 1.0, Q, 0);
    // A standing queue, too short for cross traffic's and too long for a transfer alone.
    script.run(0.5, 1.0, 0.012, 0);
    script.handle(&Input::End);
    let longest = C * 0.012;
    assert_near(script.saved.expect("the path is remembered"), 2.0 * 0.75 * longest);
}
