//! Laws of a path group: several downloads from one host over a path of 100 Mbit/s of payload, an RTT of 40 ms and a buffer of
//! two BDPs. A fluid model advances in steps of 1 ms.

use std::collections::{BTreeSet, VecDeque};

use sweetspot_control::{ConnectionSample, Goal, PathGroup, TuneEventKind, receiver_config};
use sweetspot_sizing::{ControllerConfig, Sizing, SizingPhase};
use sweetspot_units::{Bytes, Duration, Time};

const MSS: f64 = 1448.0;
const RATE: f64 = 100e6 / 8.0;
const RTT: f64 = 0.04;
const BDP: f64 = RATE * RTT;
const BUFFER: f64 = 2.0 * BDP;
const STEP: f64 = 0.001;

struct Flow {
    begins: f64,
    cwnd: f64,
    limit: f64,
    in_flight: f64,
    received: f64,
    queued: f64,
    acked: VecDeque<(f64, f64)>,
    limits: VecDeque<(f64, f64)>,
}

struct Run {
    /// Bytes received by each flow in the second half.
    shares: Vec<f64>,
    /// Mean queue in the second half, in bytes.
    queue: f64,
    dropped: f64,
}

fn group(sizing: &str) -> PathGroup {
    let config = ControllerConfig {
        mss: Bytes::new(1448),
        packet: Bytes::new(1500),
        max_window: Bytes::new(33_554_432),
        size: None,
        path: None,
    };
    let sizing: Sizing = sizing.parse().unwrap();
    PathGroup::new(sizing.controller(&config).unwrap(), config.mss)
}

fn simulate(sizing: &str, begins: &[f64], seconds: f64, path_cache: Option<Bytes>) -> Run {
    let mut group = group(sizing);
    group.set_ceiling(path_cache);
    let mut flows: Vec<Flow> = begins
        .iter()
        .map(|begins| Flow {
            begins: *begins,
            cwnd: 10.0 * MSS,
            limit: f64::INFINITY,
            in_flight: 0.0,
            received: 0.0,
            queued: 0.0,
            acked: VecDeque::new(),
            limits: VecDeque::new(),
        })
        .collect();
    let (mut next_round, mut dropped, mut seen) = (0.0, 0.0, BTreeSet::new());
    let (mut halfway, mut queues) = (vec![0.0; flows.len()], Vec::new());
    for n in 0..(seconds / STEP) as u64 {
        let t = n as f64 * STEP;
        let now = Time::from_nanos((t * 1e9) as u64 + 1);
        for flow in &mut flows {
            flow.send(t);
        }
        let mut queue: f64 = flows.iter().map(|f| f.queued).sum();
        if queue > BUFFER {
            // The flow with the most data in the queue suffers the loss.
            let lost = queue - BUFFER;
            dropped += lost;
            let worst = flows.iter_mut().max_by(|a, b| a.queued.total_cmp(&b.queued)).unwrap();
            worst.queued -= lost;
            worst.in_flight -= lost;
            worst.cwnd *= 0.7;
            queue = BUFFER;
        }
        let served = queue.min(RATE * STEP);
        for flow in &mut flows {
            let part = if queue > 0.0 { served * flow.queued / queue } else { 0.0 };
            flow.queued -= part;
            flow.received += part;
            flow.acked.push_back((t + RTT, part));
        }
        queue -= served;
        if t >= seconds / 2.0 {
            if queues.is_empty() {
                halfway = flows.iter().map(|f| f.received).collect();
            }
            queues.push(queue);
        }
        if t >= next_round {
            let ms = ((RTT + queue / RATE) * 1e3).floor() as u64;
            for (i, flow) in flows.iter().enumerate().filter(|(_, f)| f.begins <= t) {
                let sample = ConnectionSample {
                    received: Bytes::from_f64(flow.received),
                    unread: Bytes::ZERO,
                    rtt: Duration::from_millis(ms).nonzero(),
                    minimum_rtt: Some(Duration::from_secs_f64(RTT)),
                    out_of_order: 0,
                    advertised: None,
                };
                if seen.insert(i) {
                    group.add(now, i as u64, sample);
                }
                group.handle_sample(now, i as u64, sample);
            }
            group.handle_round(now);
            while let Some(action) = group.poll_limit_change() {
                let limit = action.limit.map_or(f64::INFINITY, |l| l.as_f64());
                flows[action.cookie as usize].limits.push_back((t + RTT / 2.0, limit));
            }
            next_round = t + group.pause(now, Duration::ZERO).as_secs_f64();
        }
    }
    let shares = flows.iter().zip(halfway).map(|(f, before)| f.received - before).collect();
    Run { shares, queue: queues.iter().sum::<f64>() / queues.len() as f64, dropped }
}

impl Flow {
    fn send(&mut self, t: f64) {
        while self.limits.front().is_some_and(|(due, _)| *due <= t) {
            self.limit = self.limits.pop_front().unwrap().1;
        }
        while self.acked.front().is_some_and(|(due, _)| *due <= t) {
            let bytes = self.acked.pop_front().unwrap().1;
            self.in_flight -= bytes;
            self.cwnd = (self.cwnd + bytes).min(2.0 * self.limit);
        }
        if t >= self.begins {
            let room = (self.cwnd.min(self.limit) - self.in_flight).max(0.0);
            let sent = room.min(2.0 * self.cwnd / RTT * STEP);
            self.in_flight += sent;
            self.queued += sent;
        }
    }
}

/// The fairness index of Jain, Chiu and Hawe (1984).
fn jain(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    sum * sum / (shares.len() as f64 * shares.iter().map(|x| x * x).sum::<f64>())
}

/// A window that fills the path and puts a twentieth of a BDP into the buffer: 525 kB.
const FULL: &str = "fixed:525kB";

#[test]
fn five_downloads_share_the_window_equally_whenever_they_start() {
    for begins in [[0.0; 5], [0.0, 1.0, 2.0, 3.0, 4.0]] {
        let run = simulate(FULL, &begins, 20.0, None);
        assert!(jain(&run.shares) >= 0.95, "{:?}", run.shares);
        let goodput = run.shares.iter().sum::<f64>() / 10.0;
        assert!(goodput >= 0.98 * RATE, "{goodput}");
        assert!(run.queue <= 0.1 * BDP, "{}", run.queue);
        assert_eq!(run.dropped, 0.0);
    }
}

#[test]
fn one_download_has_the_whole_window() {
    let run = simulate(FULL, &[0.0], 10.0, None);
    assert!(run.shares[0] / 5.0 >= 0.99 * RATE, "{:?}", run.shares);
    assert!(run.queue <= 0.1 * BDP, "{}", run.queue);
}

#[test]
fn a_hundred_downloads_queue_no_more_than_fast_retransmit_needs() {
    // Four segments each are 579 kB, 79 kB more than the path holds.
    let begins: Vec<f64> = (0..100).map(|i| f64::from(i) * 0.04).collect();
    let run = simulate(FULL, &begins, 20.0, None);
    let floor = 100.0 * 4.0 * MSS - BDP;
    assert!(run.queue <= floor + 0.05 * BDP, "{}", run.queue);
    assert!(jain(&run.shares) >= 0.95, "{:?}", run.shares);
}

#[test]
fn the_memory_budget_bounds_the_sum_of_all_windows() {
    // 250 kB are half of a BDP, which allows half of the rate.
    for sizing in ["sobas:live", "max", FULL] {
        let run = simulate(sizing, &[0.0, 0.0], 10.0, Some(Bytes::new(250_000)));
        let goodput = run.shares.iter().sum::<f64>() / 5.0;
        assert!((0.4 * RATE..0.55 * RATE).contains(&goodput), "{sizing} {goodput}");
        assert!(jain(&run.shares) >= 0.99, "{sizing}");
    }
}

fn at(ms: u64) -> Time {
    Time::from_nanos(ms * 1_000_000)
}

fn sample(received: u64) -> ConnectionSample {
    ConnectionSample {
        received: Bytes::new(received),
        unread: Bytes::ZERO,
        rtt: Some(Duration::from_millis(40)),
        minimum_rtt: Some(Duration::from_millis(40)),
        out_of_order: 0,
        advertised: None,
    }
}

fn actions(group: &mut PathGroup) -> Vec<(u64, Option<Bytes>)> {
    std::iter::from_fn(|| group.poll_limit_change()).map(|a| (a.cookie, a.limit)).collect()
}

/// Max-min fairness: a connection that uses little leaves the rest to the others, but its limit is at least an equal part.
#[test]
fn the_window_is_divided_max_min_fair() {
    let mut group = group("fixed:600kB");
    // Connections 1 and 2 receive 5 MB/s each, 200 kB per RTT. Connection 3 receives 0.25 MB/s, 10 kB per RTT, and may have
    // half as much again. So 1 and 2 share 585 of the 600 kB.
    let rates = [(1, 5_000), (2, 5_000), (3, 250)];
    for (cookie, _) in rates {
        group.add(at(0), cookie, sample(60_000));
    }
    for ms in (10..=4_000).step_by(10) {
        for (cookie, per_ms) in rates {
            group.handle_sample(at(ms), cookie, sample(60_000 + per_ms * ms));
        }
        group.handle_round(at(ms));
        actions(&mut group);
    }
    let limit = |cookie| group.limit(cookie).unwrap().as_f64();
    // (600 - 15) / 2 = 292.5 kB. Deviations of up to 2 % are not worth a change.
    for cookie in [1, 2] {
        assert!((limit(cookie) / 292_500.0 - 1.0).abs() < 0.03, "{}", limit(cookie));
    }
    assert!((limit(3) / 200_000.0 - 1.0).abs() < 0.03, "{}", limit(3));
}

#[test]
fn a_finished_download_frees_its_share_and_the_last_leaves_no_limit() {
    let mut group = group("fixed:600kB");
    for cookie in [1, 2, 3] {
        group.add(at(0), cookie, sample(0));
    }
    // The third connection is not a bulk transfer, and is never limited.
    let round = |group: &mut PathGroup, ms: u64, bulk: &[u64]| {
        bulk.iter().for_each(|cookie| group.handle_sample(at(ms), *cookie, sample(100_000 * ms)));
        group.handle_sample(at(ms), 3, sample(1_000));
        group.handle_round(at(ms));
        actions(group)
    };
    let (half, whole) = (Some(Bytes::new(300_000)), Some(Bytes::new(600_000)));
    assert_eq!(round(&mut group, 10, &[1, 2]), [(1, half), (2, half)]);
    group.remove(at(15), 1);
    assert_eq!(round(&mut group, 20, &[2]), [(2, whole)]);
    group.remove(at(25), 2);
    assert_eq!(group.window(), None);
    assert_eq!(round(&mut group, 30, &[]), []);
    assert_eq!(group.limit(3), None);
}

#[test]
fn a_download_after_an_idle_group_is_limited_like_the_first() {
    for sizing in ["sobas:live", "rledbat", "fixed:600kB"] {
        let mut group = group(sizing);
        let limits = [(1, 0), (2, 10_000)].map(|(cookie, begins)| {
            group.add(at(begins), cookie, sample(0));
            // 10 MB/s for five seconds, sampled every 10 ms.
            for ms in (10..5_000).step_by(10) {
                group.handle_sample(at(begins + ms), cookie, sample(10_000 * ms));
                group.handle_round(at(begins + ms));
                actions(&mut group);
            }
            let limit = group.limit(cookie);
            group.remove(at(begins + 5_000), cookie);
            limit
        });
        assert!(limits[0].is_some() && limits[1] == limits[0], "{sizing}: {limits:?}");
    }
}

/// A bulk transfer is first seen with a window of 150 kB. It keeps that window until the controller knows more, unless the
/// memory is limited or the window is fixed.
#[test]
fn an_unlimited_path_keeps_the_advertised_window() {
    let first_limit = |sizing: &str, ceiling: Option<u64>| {
        let mut group = group(sizing);
        group.set_ceiling(ceiling.map(Bytes::new));
        let begun = ConnectionSample { advertised: Some(Bytes::new(150_000)), ..sample(61_000) };
        group.add(at(0), 1, begun);
        group.handle_sample(at(3), 1, ConnectionSample { received: Bytes::new(62_000), ..begun });
        group.handle_round(at(3));
        group.limit(1).map(Bytes::get)
    };
    assert_eq!(first_limit("sobas:live", None), Some(150_000));
    assert_eq!(first_limit("sobas:live", Some(100_000)), Some(65_535));
    assert_eq!(first_limit("fixed:90kB", None), Some(90_000));
}

/// A recalled group still has its old ceiling, which must go if there is no budget any more.
#[test]
fn without_a_budget_no_group_keeps_a_ceiling() {
    let limited_by = |memory: Option<u64>| {
        let mut group = group("sobas:live");
        group.set_ceiling(Some(Bytes::new(80_000)));
        PathGroup::share_memory(
            memory.map(Bytes::new),
            Bytes::new(1 << 20),
            std::iter::once((&mut group, 1)),
        );
        let begun = ConnectionSample { advertised: Some(Bytes::new(150_000)), ..sample(61_000) };
        group.add(at(0), 1, begun);
        group.handle_sample(at(3), 1, ConnectionSample { received: Bytes::new(62_000), ..begun });
        group.handle_round(at(3));
        group.limit(1).map(Bytes::get)
    };
    // The test above has the same limits.
    assert_eq!(limited_by(Some(100_000)), Some(65_535));
    assert_eq!(limited_by(None), Some(150_000));
}

/// A budget that holds the kernel's own maximum for every connection limits nothing before the controller does.
#[test]
fn an_ample_budget_sets_no_limit_of_its_own() {
    let mut group = group("rledbat");
    let max_window = Bytes::new(1 << 20);
    PathGroup::share_memory(Some(max_window), max_window, std::iter::once((&mut group, 1)));
    group.add(at(0), 1, sample(61_000));
    group.handle_sample(at(3), 1, sample(62_000));
    group.handle_round(at(3));
    assert!(group.limit(1).is_none_or(|limit| limit < max_window), "{:?}", group.limit(1));
}

/// Samples without arrival times of single packets do not show the capacity: the controller lets the window grow,
/// and its limit has reduced nothing.
#[test]
fn a_limit_that_reduced_nothing_is_not_released() {
    let mut group = group("sobas:live");
    group.add(at(0), 1, sample(61_000));
    let mut kinds = Vec::new();
    for round in 1..100 {
        group.handle_sample(at(40 * round), 1, sample(61_000 + 500_000 * round));
        group.handle_round(at(40 * round));
        kinds.extend(std::iter::from_fn(|| group.poll_event()).map(|(kind, _)| kind));
        if group.phase() == SizingPhase::Open {
            break;
        }
    }
    assert_eq!(group.phase(), SizingPhase::Open);
    assert!(group.limit(1).is_some());
    assert_eq!(kinds, []);
}

/// 60 kB have arrived when slow start's third flight has. The fifth flight, two RTTs later, overflows a quarter of a BDP. A
/// sample every quarter of an RTT comes early enough, even if it takes 0.3 ms.
#[test]
fn a_new_connection_is_sampled_before_slow_start_overflows_the_path() {
    let mut group = group("sobas:live");
    group.add(at(0), 1, ConnectionSample { rtt: None, ..sample(0) });
    let cpu_budget = Duration::from_millis(75);
    assert!(group.pause(at(0), cpu_budget) <= Duration::from_millis(10));
    // A connection without data costs no more than any other.
    assert!(group.pause(at(1000), cpu_budget) >= cpu_budget);
}

/// Slow start's bursts show the path's rate if each is sampled twice.
#[test]
fn a_bulk_transfer_is_sampled_every_3_ms_for_three_seconds() {
    let mut group = group("sobas:live");
    group.add(at(0), 1, sample(0));
    for ms in [10, 20] {
        group.handle_sample(at(ms), 1, sample(100_000 * ms));
        group.handle_round(at(ms));
    }
    assert_eq!(group.pause(at(20), Duration::ZERO), Duration::from_millis(3));
    // Half of the RTT of 40 ms.
    assert_eq!(group.pause(at(3_010), Duration::ZERO), Duration::from_millis(20));
}

/// With an RTT below a millisecond, bursts cannot be timed. From the beginning, such a connection is sampled every half of the
/// receiver's assumed RTT of 40 ms.
#[test]
fn a_short_path_is_sampled_no_more_often_than_any_other() {
    let mut group = group("sobas:live");
    let minimum_rtt = Some(Duration::from_micros(30));
    let short = |received| ConnectionSample { minimum_rtt, ..sample(received) };
    group.add(at(0), 1, short(0));
    for ms in [10, 20] {
        group.handle_sample(at(ms), 1, short(100_000 * ms));
        group.handle_round(at(ms));
    }
    assert_eq!(group.pause(at(20), Duration::ZERO), Duration::from_millis(20));
}

/// Cross traffic begins after 40 round trips and keeps a queue of 50 to 90 ms. The minimum share of four segments exceeds the
/// controller's smallest window by two, which add 0.2 ms at the path's rate. So the queue never counts as gone (below 45 ms).
#[test]
fn a_held_download_yields_to_a_queue_of_cross_traffic_until_it_ends() {
    let mut group = group("rledbat");
    let sample = |received: f64, rtt, window: f64| ConnectionSample {
        received: Bytes::from_f64(received),
        unread: Bytes::ZERO,
        rtt: Some(Duration::from_millis(rtt)),
        minimum_rtt: Some(Duration::from_millis(40)),
        out_of_order: 0,
        advertised: Some(Bytes::from_f64(window)),
    };
    let (mut now, mut received) = (Time::from_nanos(1), 0.0);
    group.add(now, 1, sample(received, 40, BDP));
    let mut kinds = Vec::new();
    for (n, rtt) in
        [[40; 10].as_slice(), &[110; 30], &[130, 90].repeat(40)].concat().into_iter().enumerate()
    {
        now += Duration::from_millis(rtt);
        let window = group.limit(1).map_or(BDP, Bytes::as_f64);
        received += if n < 40 { RATE * rtt as f64 / 1e3 } else { window };
        group.handle_sample(now, 1, sample(received, rtt, window));
        group.handle_round(now);
        kinds.extend(std::iter::from_fn(|| group.poll_event()).map(|(kind, _)| kind));
    }
    assert_eq!(kinds, [TuneEventKind::Held, TuneEventKind::Yielded]);
    assert_eq!(group.limit(1), Some(Bytes::new(4 * 1448)));
}

/// The queue of a transfer that nothing limits exceeds the target from the eleventh round trip on. Its slowdown would be due two round
/// trips after slow start, when the delay of 50 ms ended that.
#[test]
fn a_dry_run_previews_a_hold_rather_than_a_slowdown() {
    let config = receiver_config(Bytes::new(1448), Bytes::new(33_554_432));
    let goal = Goal::LessThanBestEffort;
    let held = |controller| {
        let mut group = PathGroup::new(controller, config.mss);
        group.handle_dry_run(true);
        let mut now = Time::from_nanos(1);
        let sample = |received: f64, rtt| ConnectionSample {
            received: Bytes::from_f64(received),
            unread: Bytes::ZERO,
            rtt: Some(Duration::from_millis(rtt)),
            minimum_rtt: Some(Duration::from_millis(40)),
            out_of_order: 0,
            advertised: None,
        };
        group.add(now, 1, sample(0.0, 40));
        let mut received = 0.0;
        for rtt in [[40; 8].as_slice(), &[90; 3], &[160; 10]].concat() {
            now += Duration::from_millis(rtt);
            received += RATE * rtt as f64 / 1e3;
            group.handle_sample(now, 1, sample(received, rtt));
            group.handle_round(now);
        }
        assert_eq!(group.poll_event().map(|(kind, _)| kind), Some(TuneEventKind::Held));
        group.limit(1).unwrap()
    };
    let smallest = Bytes::new(4 * 1448);
    assert_eq!(held(goal.controller(&config)), smallest);
    assert!(held(goal.rehearsal(&config)) > Bytes::from_f64(BDP / 4.0));
}
