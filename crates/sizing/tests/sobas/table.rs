//! The table of ARCHITECTURE.md, a row at a time, on measurements that are scripted: each number there is in force. A path
//! carries C = 100 Mbit/s of payload over T = 100 ms, so that q, 3 % of T, is 3 ms and an epoch takes a round trip.

use sweetspot_sizing::{
    CongestionChoice, Controller, EventKind, Input, Output, Probe, Reason, SenderReport, Sizing,
    SizingPhase, Train,
};
use sweetspot_units::{Bytes, Duration, Rate, Time};

use crate::fluid::{MSS, PACKET, controller};

/// Payload bytes that the path carries in a second.
const C: f64 = 12.5e6;
const T: f64 = 0.1;
const Q: f64 = 0.003;
const BDP: f64 = C * T;

/// A controller with scripted measurements, and its requests.
struct Script {
    controller: Box<dyn Controller + Send>,
    probes: bool,
    ms: u64,
    /// The factor by which the trains are faster than the path, and each second one besides.
    train_error: f64,
    train_spread: f64,
    trains: u64,
    windows: Vec<(f64, f64)>,
    pacing: Option<Rate>,
    congestion: CongestionChoice,
    entered: Vec<(f64, SizingPhase, Reason)>,
    saved: Option<f64>,
}

impl Script {
    fn new(sizing: Sizing) -> Script {
        let mut controller = controller(sizing, 33_554_432);
        let began = Time::from_nanos(1);
        controller.handle(began, &Input::MinimumRtt(Duration::from_secs_f64(T)));
        Script {
            controller,
            probes: sizing == Sizing::Sobas,
            ms: 0,
            train_error: 1.0,
            train_spread: 1.0,
            trains: 0,
            windows: Vec::new(),
            pacing: None,
            congestion: CongestionChoice::Own,
            entered: Vec::new(),
            saved: None,
        }
    }

    /// At the capacity with the queue q: held since about 0.4 s.
    fn held() -> Script {
        let mut script = Script::new(Sizing::Sobas);
        script.run(2.0, 1.0, Q, 0);
        assert_eq!(script.phase(), Some(SizingPhase::Holding));
        script
    }

    fn now(&self) -> Time {
        Time::from_nanos(self.ms * 1_000_000 + 1)
    }

    fn seconds(&self) -> f64 {
        self.ms as f64 / 1e3
    }

    /// Reports this many retransmissions since the beginning, with a congestion window of `cwnd` after slow start.
    fn report(&mut self, retransmitted: u64, cwnd: f64) {
        let cwnd = Bytes::from_f64(cwnd);
        let ssthresh = Some(cwnd);
        self.handle(&Input::Sender(SenderReport {
            cwnd,
            ssthresh,
            retransmitted,
            ..SenderReport::default()
        }));
    }

    /// Lets `share` of the capacity arrive for `seconds`, with a queue of `queue` seconds; the first probe finds `lost` lost.
    fn run(&mut self, seconds: f64, share: f64, queue: f64, lost: u64) {
        let (mut lost, steps) = (lost, (seconds * 1e3).round() as u64);
        for _ in 0..steps {
            self.ms += 1;
            let bytes = Bytes::from_f64(share * C / 1e3);
            self.handle(&Input::Data { bytes, unread: Bytes::ZERO });
            if self.ms.is_multiple_of(20) {
                let rtt = Duration::from_secs_f64(T + queue);
                let forward_lost = std::mem::take(&mut lost);
                if self.probes {
                    self.handle(&Input::Probe(Probe { rtt, forward_lost }));
                } else {
                    self.handle(&Input::KernelRtt(rtt));
                    if forward_lost > 0 {
                        self.handle(&Input::OutOfOrder { segments: forward_lost });
                    }
                }
            }
            if self.controller.poll_timeout().is_some_and(|due| due <= self.now()) {
                self.handle(&Input::Timeout);
            }
        }
    }

    fn handle(&mut self, input: &Input) {
        self.controller.handle(self.now(), input);
        while let Some(output) = self.controller.poll_output() {
            match output {
                Output::Window(window) => {
                    let window = window.map_or(f64::INFINITY, Bytes::as_f64);
                    self.windows.push((self.seconds(), window));
                }
                Output::Pacing(pacing) => self.pacing = pacing,
                Output::Congestion(choice) => self.congestion = choice,
                Output::Saved(saved) => self.saved = saved.map(|saved| saved.window.as_f64()),
                Output::Train(request) => {
                    self.trains += 1;
                    let gaps = f64::from(request.packets - 1) * request.size.as_f64();
                    let spread =
                        if self.trains.is_multiple_of(2) { self.train_spread } else { 1.0 };
                    let wire = C * PACKET / MSS * self.train_error * spread;
                    let train = Train {
                        sent: request.packets,
                        received: request.packets,
                        bytes_after_first: Bytes::from_f64(gaps),
                        dispersion: Duration::from_secs_f64(gaps / wire),
                    };
                    self.handle(&Input::Train(train));
                }
                Output::Event(event) => {
                    if let EventKind::Entered { phase, reason } = event.kind {
                        self.entered.push((self.seconds(), phase, reason));
                    }
                }
                other => panic!("no row for {other:?}"),
            }
        }
    }

    fn phase(&self) -> Option<SizingPhase> {
        self.entered.last().map(|(_, phase, _)| *phase)
    }

    fn window(&self) -> f64 {
        self.windows.last().expect("a limit").1
    }

    /// When and why the path was opened after `since`, in epochs.
    fn opened(&self, since: f64) -> Option<(f64, Reason)> {
        let opens = |entered: &&(f64, SizingPhase, Reason)| {
            entered.0 > since && entered.1 == SizingPhase::Open
        };
        self.entered.iter().find(opens).map(|(at, _, reason)| ((at - since) / T, *reason))
    }
}

/// To a segment: rates are whole bits, times whole nanoseconds.
fn assert_near(found: f64, expected: f64) {
    assert!((found - expected).abs() <= MSS, "{found} for {expected}");
}

fn assert_pace(script: &Script, share: f64) {
    let pace = script.pacing.expect("a pace").as_f64() / 8.0;
    assert!((pace / (share * C) - 1.0).abs() < 0.002, "{pace}");
}

#[test]
fn startup_is_limited_to_1_1_bdp_of_the_first_train() {
    let mut script = Script::new(Sizing::Sobas);
    // Faster than the following ones by a tenth, so that it differs from the capacity.
    script.train_error = 1.1;
    while script.trains == 0 {
        script.run(0.001, 0.1, 0.0, 0);
    }
    script.train_error = 1.0;
    script.run(0.002, 0.1, 0.0, 0);
    assert_near(script.window(), 1.1 * 1.1 * BDP);
}

#[test]
fn a_hold_has_room_for_q_and_two_segments_and_paces_one_per_cent_above() {
    let script = Script::held();
    assert_near(script.window(), C * (T + Q) + 2.0 * MSS);
    assert_pace(&script, 1.01);
}

#[test]
fn two_epochs_far_below_the_capacity_open_the_path_and_four_a_little_below() {
    for (share, queue, epochs, why) in [
        // So much stands in the queue that the window binds: R (T + Q) is the window's C (T + q).
        (0.85, 0.021, 2.0, Reason::RateFell),
        (0.95, 0.008, 4.0, Reason::RateFell),
        (0.75, 0.037, 2.0, Reason::OthersQueue),
    ] {
        let mut script = Script::held();
        let since = script.seconds();
        script.run(2.0, share, queue, 0);
        let (after, reason) = script.opened(since).expect("the path is opened");
        assert_eq!(reason, why, "{share}");
        // The epoch under way counts for the lower rate or not.
        assert!((epochs - 1.0..=epochs + 1.5).contains(&after), "{share}: {after}");
    }
}

#[test]
fn a_step_of_three_per_cent_comes_after_36_epochs_and_is_taken_back() {
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
fn a_rate_that_follows_three_steps_opens_the_path() {
    let mut script = Script::held();
    let since = script.seconds();
    // All that the window lets in arrives at once, and no queue stands.
    while script.opened(since).is_none() && script.seconds() < 30.0 {
        let share = script.window() / BDP;
        script.run(0.02, share, 0.0, 0);
    }
    assert_eq!(script.opened(since).map(|(_, reason)| reason), Some(Reason::PathFaster));
    // 3 %, then twice as much each time, up to a tenth: 1.03 x 1.06 x 1.1.
    let widest = script.windows.iter().map(|(_, window)| *window).filter(|w| w.is_finite());
    let widest = widest.fold(0.0, f64::max);
    assert!(widest >= 1.03 * 1.06 * 1.1 * C * (T + Q), "{widest}");
}

#[test]
fn a_loss_within_three_epochs_of_a_queue_is_an_overflow_and_later_it_is_random() {
    for (epochs_later, is_random) in [(1.0, false), (2.0, false), (3.6, true)] {
        let mut script = Script::held();
        script.run(2.0 * T, 1.0, 3.0 * Q, 0);
        script.run(epochs_later * T, 1.0, 0.9 * Q, 0);
        script.run(1.5 * T, 1.0, 0.9 * Q, 1);
        assert_eq!(script.congestion == CongestionChoice::Bbr, is_random, "{epochs_later}");
    }
}

#[test]
fn random_losses_get_three_windows_a_pace_below_the_capacity_and_bbr_until_cubic_is_back() {
    let mut script = Script::held();
    script.run(1.0, 1.0, 0.9 * Q, 1);
    assert_eq!(script.congestion, CongestionChoice::Bbr);
    assert_near(script.window(), 3.0 * (C * (T + Q) + 2.0 * MSS));
    assert_pace(&script, 0.99);
    // K of CUBIC, 8.65 s, from the first epoch of that second on.
    let k = (0.3 / 0.4 * BDP / MSS).cbrt();
    script.run(k - 1.0 - T, 0.99, 0.0, 0);
    assert_eq!(script.congestion, CongestionChoice::Bbr);
    script.run(5.0 * T, 0.99, 0.0, 0);
    assert_eq!(script.congestion, CongestionChoice::Own);
}

#[test]
fn others_that_keep_twice_the_queue_end_what_random_losses_began() {
    for (queue, opens) in [(1.9 * Q, false), (2.1 * Q, true)] {
        let mut script = Script::held();
        script.run(1.0, 1.0, 0.9 * Q, 1);
        let since = script.seconds();
        script.run(1.0, 0.99, queue, 0);
        let why = script.opened(since).map(|(_, reason)| reason);
        assert_eq!(why, opens.then_some(Reason::OthersQueue), "{queue}");
    }
}

/// A held path that loses a packet without a queue, and then a share of `loss`: until BBR is over, two cycles of eight epochs
/// at most.
fn paced_with(loss: f64) -> Script {
    let mut script = Script::held();
    script.report(1, 2.0 * BDP);
    script.run(1.0, 1.0, 0.9 * Q, 1);
    assert_eq!(script.congestion, CongestionChoice::Bbr);
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
fn a_pace_that_loses_no_more_than_before_stays() {
    assert_eq!(paced_with(0.0).congestion, CongestionChoice::Bbr);
}

#[test]
fn a_pace_that_loses_more_than_before_was_an_overflow_and_half_of_the_queue_is_kept() {
    let script = paced_with(0.05);
    assert_eq!(script.congestion, CongestionChoice::Own);
    assert_eq!(script.phase(), Some(SizingPhase::Holding));
    assert_near(script.window(), C * (T + Q / 2.0) + 2.0 * MSS);
}

#[test]
fn a_pace_that_loses_more_while_less_arrives_leaves_the_path_to_others_for_good() {
    for (loss, tries_again) in [(0.0, true), (0.2, false)] {
        let mut script = Script::held();
        script.report(1, 2.0 * BDP);
        script.run(6.0 * T, 1.0, 0.9 * Q, 1);
        assert_eq!(script.congestion, CongestionChoice::Bbr);
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
fn a_path_that_congestion_control_leaves_unused_for_two_epochs_is_paced_unless_others_queue() {
    for (in_slow_start, queue, paces) in
        [(false, 0.0, true), (true, 0.0, false), (false, 1.1 * Q, false)]
    {
        let mut script = Script::held();
        if !in_slow_start {
            script.report(0, 0.5 * BDP);
        }
        script.run(6.0 * T, 0.5, queue, 0);
        assert_eq!(script.congestion == CongestionChoice::Bbr, paces, "{in_slow_start} {queue}");
        if paces {
            assert_pace(&script, 0.99);
        }
    }
}

#[test]
fn a_loss_during_a_step_ends_the_steps_and_not_congestion_control() {
    let mut script = Script::held();
    let held = script.window();
    while script.window() <= held {
        script.run(0.02, 1.0, Q, 0);
    }
    script.run(1.0, 1.0, 0.9 * Q, 1);
    assert_eq!(script.congestion, CongestionChoice::Own);
    assert_near(script.window(), held);
    // No step comes in twice the time of the first.
    let since = script.windows.len();
    script.run(8.0, 1.0, Q, 0);
    assert_eq!(script.windows.len(), since);
}

#[test]
fn two_epochs_with_random_losses_on_an_open_path_send_trains_again() {
    let mut script = Script::held();
    // Others come, and go.
    script.run(2.0, 0.75, 0.037, 0);
    assert_eq!(script.phase(), Some(SizingPhase::Open));
    script.run(3.0, 0.9, 0.0, 0);
    let trains = script.trains;
    script.run(1.0, 0.9, 0.0, 1);
    assert_eq!(script.phase(), Some(SizingPhase::Open));
    script.run(1.0, 0.9, 0.0, 1);
    assert!(script.trains > trains, "{:?}", script.entered);
}

/// As Linux's window does; events and limits follow in steps of a quarter.
#[test]
fn an_open_window_grows_by_two_bytes_for_each_to_eight_flights() {
    let mut script = Script::new(Sizing::SobasLive);
    for _ in 0..40 {
        script.run(0.01, 0.2, 0.0, 0);
        let arrived = script.seconds() * 0.2 * C;
        let grown = 65_535.0 + 2.0 * arrived;
        if grown < 8.0 * 0.2 * BDP {
            // In the first milliseconds eight flights were less than the first window.
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
fn a_window_that_was_held_grows_by_a_quarter_of_a_byte_for_each() {
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

/// A window that the last transfer held is opened from twice three quarters of its longest queue.
#[test]
fn a_memory_begins_with_twice_three_quarters_of_the_longest_queue() {
    let mut script = Script::new(Sizing::Sobas);
    script.run(2.0, 1.0, Q, 0);
    // A queue that lasts, too short for others' and too long for a transfer alone.
    script.run(0.5, 1.0, 0.012, 0);
    script.handle(&Input::End);
    let longest = C * 0.012;
    assert_near(script.saved.expect("the path is remembered"), 2.0 * 0.75 * longest);
}

/// A path on which congestion control keeps a sender far below the capacity, so that packet trains do not agree.
struct Unused {
    script: Script,
    /// The share of the capacity under the sender's own congestion control.
    own: f64,
    /// The share of segments that the path loses, and the segments retransmitted so far.
    loss: f64,
    retransmitted: f64,
    /// Paces asked for, as shares of the capacity.
    paces: Vec<f64>,
}

impl Unused {
    fn new(own: f64) -> Unused {
        let mut script = Script::new(Sizing::Sobas);
        script.train_spread = 0.5;
        Unused { script, own, loss: 0.0, retransmitted: 0.0, paces: Vec::new() }
    }

    /// Lets sent data arrive until `done`, for ten seconds at most. `path` turns the sent share of the capacity into the
    /// arriving share, and the delay beyond the base RTT.
    fn run(
        &mut self,
        done: impl Fn(&Script) -> bool,
        mut path: impl FnMut(f64, &Script) -> (f64, f64),
    ) {
        let ends = self.script.seconds() + 10.0;
        while !done(&self.script) && self.script.seconds() < ends {
            let pace = self.script.pacing.map(|pace| pace.as_f64() / 8.0 / C);
            let is_switched = self.script.congestion == CongestionChoice::Bbr;
            let sent = pace.filter(|_| is_switched).unwrap_or(self.own);
            self.paces.extend(pace.filter(|pace| self.paces.last() != Some(pace)));
            let (share, delay) = path(sent, &self.script);
            self.script.report(self.retransmitted as u64, self.own * BDP);
            self.script.run(0.02, share, delay, 0);
            self.retransmitted += self.loss * share * C * 0.02 / MSS;
        }
    }
}

fn holds(script: &Script) -> bool {
    script.phase() == Some(SizingPhase::Holding)
}

/// Whether a climb was given up for that reason.
fn gave_up(script: &Script) -> Option<Reason> {
    let tried = script.entered.iter().position(|entered| entered.1 == SizingPhase::Trying)?;
    let opens = |entered: &&(f64, SizingPhase, Reason)| entered.1 == SizingPhase::Open;
    script.entered[tried..].iter().find(opens).map(|(_, _, reason)| *reason)
}

/// The rate and queue of an unshared path for this sending rate: beyond the capacity a queue of 20 ms, more than an eighth of
/// T.
fn alone(sent: f64) -> (f64, f64) {
    (sent.min(1.0), if sent > 1.0 { 0.02 } else { 0.0 })
}

#[test]
fn an_unused_path_is_climbed_by_a_quarter_and_then_by_doubling_to_its_capacity() {
    let mut unused = Unused::new(0.09);
    unused.run(holds, |sent, _| alone(sent));
    assert!(holds(&unused.script), "{:?}", unused.script.entered);
    // The rate follows up to the capacity, and not beyond it: that is held.
    for (found, expected) in unused.paces.iter().zip([0.1125, 0.225, 0.45, 0.9, 1.8]) {
        assert!((found / expected - 1.0).abs() < 0.02, "{:?}", unused.paces);
    }
    assert_eq!(unused.script.congestion, CongestionChoice::Bbr);
    assert_pace(&unused.script, 0.99);
}

#[test]
fn where_a_queue_grows_while_the_rate_follows_others_give_way_and_the_climb_ends() {
    let mut unused = Unused::new(0.09);
    unused.run(|script| gave_up(script).is_some(), |sent, _| (sent, 0.2 * (sent - 0.09)));
    assert_eq!(gave_up(&unused.script), Some(Reason::OthersQueue));
    // The pace at which 0.2 s x (0.225 - 0.09) exceed an eighth of T was the last one.
    assert!(unused.paces.iter().all(|pace| *pace < 0.23), "{:?}", unused.paces);
    let (congestion, pacing) = (unused.script.congestion, unused.script.pacing);
    assert_eq!((congestion, pacing), (CongestionChoice::Own, None));
    // It is not tried again.
    let tried = unused.script.entered.len();
    unused.run(|_| false, |sent, _| (sent, 0.0));
    assert_eq!(unused.script.entered.len(), tried);
}

#[test]
fn a_path_with_a_delay_of_more_than_q_is_not_climbed() {
    for (delay, climbs) in [(0.9 * Q, true), (1.1 * Q, false)] {
        let mut unused = Unused::new(0.09);
        // The first round trip has none: T is the least.
        let delay = |script: &Script| if script.seconds() < 0.05 { 0.0 } else { delay };
        unused.run(
            |script| holds(script) || gave_up(script).is_some(),
            |sent, script| (alone(sent).0, alone(sent).1 + delay(script)),
        );
        assert_eq!(holds(&unused.script), climbs, "{:?}", unused.script.entered);
        assert_eq!(gave_up(&unused.script), (!climbs).then_some(Reason::OthersQueue));
    }
}

#[test]
fn a_capacity_that_loses_more_than_before_is_given_back_by_nine_per_cent_and_then_left() {
    let mut unused = Unused::new(0.09);
    unused.run(holds, |sent, _| alone(sent));
    let since = unused.paces.len();
    // Others fill a buffer too small for its queue to show: one segment in twenty is lost.
    unused.loss = 0.05;
    unused.run(|script| gave_up(script).is_some(), |sent, _| (sent, 0.0));
    let paces: Vec<f64> = unused.paces[since..].to_vec();
    let expected = [0, 1, 2, 3].map(|times| 0.99 * 0.91_f64.powi(times));
    assert_eq!(paces.len(), expected.len(), "{paces:?}");
    for (found, expected) in paces.iter().zip(expected) {
        assert!((found / expected - 1.0).abs() < 0.002, "{paces:?}");
    }
    assert_eq!(gave_up(&unused.script), Some(Reason::OthersQueue));
}

#[test]
fn others_that_keep_twice_the_queue_get_a_climbed_path_back_within_two_epochs() {
    let mut unused = Unused::new(0.09);
    unused.run(holds, |sent, _| alone(sent));
    let since = unused.script.seconds();
    unused.run(|script| gave_up(script).is_some(), |sent, _| (sent, 2.1 * Q));
    assert_eq!(gave_up(&unused.script), Some(Reason::OthersQueue));
    // Two epochs until the pace is in force, two of observation, and the one under way.
    assert!(unused.script.seconds() - since < 5.5 * (T + 2.1 * Q));
}
