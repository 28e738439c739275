//! Invariants of judging the latest part of a connection's time.

use std::net::{IpAddr, Ipv4Addr};

use proptest::prelude::*;
use sweetspot_diagnose::Class;
use sweetspot_diagnose::live::{Live, OBSERVATION, Sample, SlidingLive};
use sweetspot_units::{Bytes, Duration, Rate, Time};

use crate::{bulk, receiver};

/// Possible beginnings of the window are a twentieth of its length apart, so its length is exact to half of this.
const GRAIN: Duration = Duration::from_millis(500);

/// The behaviour of a connection during a phase.
#[derive(Debug, Clone, Copy)]
enum Behaviour {
    Nothing,
    FillsPeerWindow(u64),
    FillsSendBuffer,
    LacksData,
    KeepsPacing,
    LosesAndRepairs,
    Sends {
        rtt_ms: u64,
        peer_window: u64,
    },
    ReadsLate,
    /// Receives data through a standing queue, or from a sender that pauses for `pause_ms`.
    Receives {
        rtt_ms: u64,
        pause_ms: u64,
        window: u64,
    },
}

fn doing() -> impl Strategy<Value = Behaviour> {
    prop_oneof![
        Just(Behaviour::Nothing),
        (10_000..200_000u64).prop_map(Behaviour::FillsPeerWindow),
        Just(Behaviour::FillsSendBuffer),
        Just(Behaviour::LacksData),
        Just(Behaviour::KeepsPacing),
        Just(Behaviour::LosesAndRepairs),
        (40..90u64, 0..1_000_000u64)
            .prop_map(|(rtt_ms, peer_window)| Behaviour::Sends { rtt_ms, peer_window }),
        Just(Behaviour::ReadsLate),
        (40..90u64, 0..30u64, 30_000..1_000_000u64).prop_map(|(rtt_ms, pause_ms, window)| {
            Behaviour::Receives { rtt_ms, pause_ms, window }
        }),
    ]
}

/// Phases, each with the number of its samples and their distance in milliseconds.
fn history() -> impl Strategy<Value = Vec<(Behaviour, usize, u64)>> {
    prop::collection::vec((doing(), 1..30usize, 100..1500u64), 1..8)
}

/// The sample `ms` after `last`, with its counters.
fn next(last: &Sample, doing: Behaviour, ms: u64) -> Sample {
    let time = Duration::from_millis(ms);
    let step = Sample {
        at: last.at + time,
        acked: last.acked,
        received: last.received,
        delivered: last.delivered,
        busy: last.busy,
        window_limited: last.window_limited,
        buffer_limited: last.buffer_limited,
        segments: last.segments,
        retransmitted: last.retransmitted,
        ..opened()
    };
    let sent = |bytes: u64| Sample {
        acked: last.acked + Bytes::new(bytes),
        delivered: last.delivered + bytes / 1000,
        segments: last.segments + bytes / 1000,
        busy: last.busy + time,
        ..step
    };
    let got = |bytes: u64| Sample { received: last.received + Bytes::new(bytes), ..step };
    match doing {
        Behaviour::Nothing => step,
        Behaviour::FillsPeerWindow(window) => Sample {
            window_limited: last.window_limited + time,
            peer_window: Some(Bytes::new(window)),
            // A window every 40 ms.
            ..sent(window * ms / 40)
        },
        Behaviour::FillsSendBuffer => Sample {
            buffer_limited: last.buffer_limited + time,
            segments_in_flight: 30,
            ..sent(750 * ms)
        },
        Behaviour::LacksData => Sample {
            not_sent: Bytes::ZERO,
            queued: Bytes::new(1000),
            segments_in_flight: 1,
            ..sent(ms)
        },
        Behaviour::KeepsPacing => {
            let pacing_limit = Some(Rate::from_mbit_per_second(8));
            Sample { pacing_limit, segments_in_flight: 17, ..sent(1000 * ms) }
        }
        Behaviour::LosesAndRepairs => {
            Sample { retransmitted: last.retransmitted + 3, ..sent(300 * ms) }
        }
        Behaviour::Sends { rtt_ms, peer_window } => Sample {
            rtt: Duration::from_millis(rtt_ms),
            peer_window: Some(Bytes::new(peer_window)),
            ..sent(1250 * ms)
        },
        Behaviour::ReadsLate => Sample { unread: Bytes::new(2_000_000), ..got(500 * ms) },
        Behaviour::Receives { rtt_ms, pause_ms, window } => Sample {
            receiver_rtt: Duration::from_millis(rtt_ms),
            last_arrival: Some(Duration::from_millis(pause_ms)),
            window: Some(Bytes::new(window)),
            ..got(1250 * ms)
        },
    }
}

/// A connection that has just opened.
fn opened() -> Sample {
    let Sample { receiver_rtt, timestamps, last_arrival, window, .. } = receiver();
    Sample {
        busy: Duration::ZERO,
        acked: Bytes::ZERO,
        delivered: 0,
        segments: 0,
        receiver_rtt,
        timestamps,
        last_arrival,
        window,
        ..bulk()
    }
}

fn samples(history: &[(Behaviour, usize, u64)]) -> Vec<Sample> {
    let mut all = vec![opened()];
    for (doing, count, ms) in history {
        for _ in 0..*count {
            all.push(next(all.last().unwrap(), *doing, *ms));
        }
    }
    all
}

fn sliding() -> SlidingLive {
    let address = |last| IpAddr::V4(Ipv4Addr::new(192, 0, 2, last));
    SlidingLive::between(address(1), address(2), OBSERVATION)
}

proptest! {
    /// `top` and `diagnose` share one engine: for the same samples they report the same limit and evidence.
    #[test]
    fn the_sliding_window_of_a_short_history_covers_all_of_it(history in history()) {
        let (mut window, mut all) = (sliding(), Live::default());
        for sample in samples(&history) {
            if sample.at > Time::ZERO + OBSERVATION {
                break;
            }
            window.handle(sample);
            all.handle(sample);
            prop_assert_eq!(window.period(), all.period());
            let verdict = all.period().verdict();
            let named = window.period().named();
            prop_assert_eq!((named.class, named.cause), (verdict.class, verdict.cause));
            prop_assert_eq!(window.period().verdict(), verdict);
        }
    }

    /// No time is lost or counted twice, even if a queue is proven long after it began.
    #[test]
    fn the_sliding_window_neither_loses_nor_double_counts_time(history in history()) {
        let mut window = sliding();
        let samples = samples(&history);
        let start = samples[0].at;
        let mut before = start;
        let (mut last, mut moved_at, mut restarted) = ((Bytes::ZERO, Bytes::ZERO), start, false);
        for sample in samples {
            window.handle(sample);
            let interval = sample.at.since(before);
            before = sample.at;
            let period = window.period();
            prop_assert_eq!(period.limits.total(), period.evidence.lasted);
            // After an idle time of this length, the window restarts.
            let moved = (sample.acked, sample.received);
            if moved != last {
                (last, moved_at) = (moved, sample.at);
            }
            let was_idle = sample.at.since(moved_at) > OBSERVATION;
            let followed = sample.at.since(start);
            let least = if was_idle || restarted { interval } else { followed.min(OBSERVATION - GRAIN / 2) };
            restarted = was_idle || (restarted && period.evidence.lasted < OBSERVATION - GRAIN / 2);
            prop_assert!(period.evidence.lasted >= least, "{:?} is less than {least}", period.evidence.lasted);
            // Marks may be a grain plus a sample interval apart.
            let most = OBSERVATION + GRAIN / 2 + Duration::from_millis(1500);
            prop_assert!(period.evidence.lasted <= most.max(interval), "{:?}", period.evidence.lasted);
        }
    }

    /// A limit that has ended disappears once the window has passed it, whatever came before.
    #[test]
    fn a_finished_phase_leaves_the_window(before in history(), last in doing(), ms in 100..1000u64) {
        let shares = |history: &[(Behaviour, usize, u64)]| {
            let mut window = sliding();
            samples(history).into_iter().for_each(|sample| window.handle(sample));
            window.period()
        };
        // The queue of an earlier phase, and a loss in the last 30 s, still affect later verdicts.
        let enough = (60_000 / ms) as usize;
        let both = shares(&[&before[..], &[(last, enough, ms)]].concat());
        let own: &[Class] = match last {
            Behaviour::Nothing => &[Class::Idle],
            Behaviour::LacksData => &[Class::Application],
            Behaviour::FillsPeerWindow(_) => &[Class::ReceiverWindow, Class::ReceiverApplication],
            Behaviour::FillsSendBuffer => &[Class::SenderWindow, Class::Bandwidth],
            Behaviour::KeepsPacing => &[Class::Pacing],
            Behaviour::ReadsLate => &[Class::ReceiverApplication],
            Behaviour::LosesAndRepairs => &[Class::Congestion, Class::Bandwidth],
            Behaviour::Sends { .. } => return Ok(()),
            Behaviour::Receives { .. } => return Ok(()),
        };
        let time: Duration = Duration::from_nanos(own.iter().map(|c| both.limits.time(*c).as_nanos()).sum());
        prop_assert_eq!(time, both.limits.total(), "{:?}", both.limits);
    }

    /// A connection without data is idle, whatever it did before.
    #[test]
    fn a_connection_without_data_is_idle(before in history(), ms in 100..1000u64) {
        let mut window = sliding();
        samples(&before).into_iter().for_each(|sample| window.handle(sample));
        let mut last = *window.live().last().unwrap();
        let start = last.at;
        // Marks may be a grain plus a sample interval apart.
        while last.at.since(start) < OBSERVATION + GRAIN / 2 + Duration::from_millis(3000) {
            last = next(&last, Behaviour::Nothing, ms);
            window.handle(last);
        }
        prop_assert!(window.period().is_idle(), "{:?}", window.period());
    }
}

/// A full window for eight seconds, and then ten seconds without data: the share falls with time, and the verdict changes
/// halfway.
#[test]
fn the_verdict_changes_when_another_limit_has_most_of_the_window() {
    let mut window = sliding();
    let history =
        [(Behaviour::FillsPeerWindow(1_000_000), 12, 1000), (Behaviour::LacksData, 12, 1000)];
    let classes: Vec<Class> = samples(&history)
        .into_iter()
        .map(|sample| {
            window.handle(sample);
            window.period().named().class
        })
        .collect();
    assert!(classes[1..=16].iter().all(|class| *class == Class::ReceiverWindow), "{classes:?}");
    assert!(classes[18..].iter().all(|class| *class == Class::Application), "{classes:?}");
}

/// If samples are far apart, only the last interval can be judged.
#[test]
fn an_interval_longer_than_the_window_is_judged_whole() {
    let mut window = sliding();
    let minute = 60_000;
    let history =
        [(Behaviour::LacksData, 3, minute), (Behaviour::FillsPeerWindow(1_000_000), 1, minute)];
    samples(&history).into_iter().for_each(|sample| window.handle(sample));
    let period = window.period();
    assert_eq!(period.evidence.lasted, Duration::from_secs(60));
    assert_eq!(period.named().class, Class::ReceiverWindow);
}

/// A minute without data, and then data limited by the peer's window: the idle time before has no share.
#[test]
fn data_after_a_long_idle_time_is_judged_alone() {
    let mut window = sliding();
    let history =
        [(Behaviour::Nothing, 60, 1000), (Behaviour::FillsPeerWindow(1_000_000), 2, 1000)];
    samples(&history).into_iter().for_each(|sample| window.handle(sample));
    let period = window.period();
    assert_eq!(period.named().class, Class::ReceiverWindow, "{:?}", period.limits);
    // The last second of the idle time, and two seconds of data.
    assert!(period.evidence.lasted <= Duration::from_secs(3), "{}", period.evidence.lasted);
}
