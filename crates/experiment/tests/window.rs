//! Windows tried in the simulator when no closed form certainly gives the best one.

use sweetspot_advise::window::{
    CrossKind, CrossShare, LossResponse, TriedWindow, TriedWindows, WindowQuestion, advise,
};
use sweetspot_experiment::Workers;
use sweetspot_experiment::window::{packets, runs, seeds, try_windows};
use sweetspot_sim::Simulator;
use sweetspot_statistics::student_t;
use sweetspot_units::{Bytes, Duration, Probability, Rate};

/// The path of Figures 2 to 5 in the first paper, with windows from 100 to 1000 packets of 1000 B.
fn tried(cross: Option<(CrossKind, f64)>, buffer: u64, workers: Workers) -> TriedWindows {
    let windows: Vec<Bytes> = (1..=10).map(|i| Bytes::new(i * 100_000)).collect();
    let question = question(cross, buffer);
    try_windows(&Simulator, &question, &windows, 1..=8, workers).expect("a path that can be run")
}

fn question(cross: Option<(CrossKind, f64)>, buffer: u64) -> WindowQuestion {
    WindowQuestion {
        rate: Rate::from_mbit_per_second(50),
        rtt: Duration::from_millis(100),
        buffer: Some(Bytes::new(buffer)),
        cross: cross.map(|(kind, share)| CrossShare {
            kind,
            share: Probability::new(share).expect("a share"),
        }),
        loss: None,
        congestion: LossResponse::Cubic,
        mtu: Bytes::new(1000),
        kernel: "6.18".parse().expect("a kernel"),
    }
}

fn hold(tried: &TriedWindows) -> TriedWindow {
    *tried.hold().expect("a window that moved data")
}

fn rate(tried: &TriedWindows, window: u64) -> f64 {
    let found = tried.windows.iter().find(|w| w.window == Bytes::new(window));
    found.map_or(0.0, |w| w.rate.as_f64() / 1e6)
}

#[test]
fn without_cross_traffic_the_smallest_window_that_fills_the_path_wins() {
    // C T_m = 625 kB of packets, which hold 592.5 kB of payload, 948 B in each of 1000 B; 500 kB are too few. 300 kB are 316.5
    // packets, 25.3 Mbit/s.
    let tried = tried(None, 625_000, Workers::new(2));
    assert_eq!(hold(&tried).window, Bytes::new(600_000));
    assert!((rate(&tried, 300_000) - 25.3).abs() < 0.5, "{}", rate(&tried, 300_000));
}

#[test]
fn with_elephants_the_bound_of_equation_8_is_too_large() {
    // Equation 8 allows 812.5 kB of packets, 770 kB of payload, and predicts 32.5 Mbit/s; the paper says that both are too high.
    let tried = tried(Some((CrossKind::Elephants, 0.7)), 625_000, Workers::new(2));
    let hold = hold(&tried);
    assert!(hold.window < Bytes::new(770_250), "{hold:?}");
    assert!(rate(&tried, 900_000) < 1.03 * hold.rate.as_f64() / 1e6, "{tried:?}");
    assert!(hold.loss == 0.0 && tried.windows[9].loss > 0.0, "{tried:?}");
    assert!((27.0..31.0).contains(&(hold.rate.as_f64() / 1e6)), "{hold:?}");
}

#[test]
fn results_do_not_depend_on_the_number_of_workers() {
    let cross = Some((CrossKind::Udp, 0.7));
    let alone = tried(cross, 313_000, Workers::ONE);
    assert_eq!(alone, tried(cross, 313_000, Workers::new(3)));
    // 15 Mbit/s are available; no window gets more.
    assert!(alone.windows.iter().all(|w| w.rate.as_f64() < 15.5e6), "{alone:?}");
}

#[test]
fn mice_yield_to_the_transfer() {
    let tried = tried(Some((CrossKind::Mice, 0.5)), 625_000, Workers::new(2));
    // 25 Mbit/s are available, and a transfer with more in flight than that gets more (Figure 5).
    let best = tried.windows.iter().map(|w| w.rate.as_f64()).fold(0.0, f64::max);
    assert!(best > 25e6, "{tried:?}");
}

/// Welch's t-test for the means of eight runs with these standard errors: the probability that chance alone makes them differ
/// this much.
fn by_chance(one: &TriedWindow, other: &TriedWindow) -> f64 {
    let [a, b] = [one, other].map(|tried| tried.rate_error.as_f64().powi(2));
    let degrees = 7.0 * (a + b).powi(2) / (a * a + b * b);
    student_t::two_sided_tail((one.rate.as_f64() - other.rate.as_f64()) / (a + b).sqrt(), degrees)
}

#[test]
fn no_tried_window_is_significantly_faster_than_the_recommended_one() {
    for (kind, share) in
        [(CrossKind::Udp, 0.5), (CrossKind::Elephants, 0.5), (CrossKind::Mice, 0.7)]
    {
        // A fifth of C T_m (125 kB), and twice that.
        for buffer in [25_000, 250_000] {
            let fast = question(Some((kind, share)), buffer);
            let question = WindowQuestion { rate: Rate::from_mbit_per_second(10), ..fast };
            let windows: Vec<Bytes> = (1..=8).map(|i| Bytes::new(i * 25_000)).collect();
            let tried = try_windows(&Simulator, &question, &windows, 1..=8, Workers::new(2));
            let tried = tried.expect("a path that can be run");
            let hold = hold(&tried);
            for other in &tried.windows {
                let excess = other.rate.as_f64() / hold.rate.as_f64() - 1.0;
                // A sweep's rule: up to half a percent does not count, and above two percent is too slow.
                assert!(excess <= 0.02 / 0.98, "{kind:?} {buffer} {hold:?} {other:?}");
                assert!(
                    excess <= 0.005 / 0.995 || by_chance(&hold, other) > 0.05,
                    "{kind:?} {buffer} {hold:?} {other:?}"
                );
            }
        }
    }
}

#[test]
fn the_cost_of_advice_is_the_packets_carried_in_all_runs() {
    // 50 Mbit/s are 6250 packets of 1000 B per second, and 625 in an RTT of 100 ms. CUBIC recovers from a loss in cbrt(0.3 / 0.4
    // x 625) = 7.768 s. Two recoveries to settle and four measured are more than 200 RTTs; 3 windows, 8 seeds.
    let question = question(None, 625_000);
    let near = |packets: f64, expected: f64| (packets / expected - 1.0).abs() < 1e-3;
    assert!(near(packets(&question, 3), 6250.0 * 6.0 * 7.768 * 24.0));
    // With 1 ms, 6.25 packets recover in 6.25 x 0.3 / 0.53 RTTs: 10 s to settle, and 10 s measured.
    let short = WindowQuestion { rtt: Duration::from_millis(1), ..question };
    assert!(near(packets(&short, 1), 6250.0 * 20.0 * 8.0));
}

#[test]
fn longer_runs_use_fewer_seeds_but_at_least_three() {
    // At 1 Gbit/s, 12,500 packets recover in cbrt(0.75 x 12,500) = 21.09 s. A run has 126.5 s of 125,000 packets, and 12 runs
    // have 190 million, more than the usual 150 million. With 2 windows, 4 seeds have 126 million.
    let fast = WindowQuestion { rate: Rate::from_mbit_per_second(1000), ..question(None, 625_000) };
    assert_eq!((seeds(&fast, 12), runs(&fast, 12)), (1..=3, 36));
    assert_eq!((seeds(&fast, 2), runs(&fast, 2)), (1..=4, 8));
}

#[test]
fn a_loss_limited_run_measures_ten_losses() {
    let loss = Some(Probability::new(1e-3).expect("a share"));
    let question = WindowQuestion { loss, ..question(None, 625_000) };
    let rate = advise(&question).expect("a path").recommended.rate.expect("a rate");
    // After 10 s to settle, 10 losses at a loss rate of 1/1000 take 10,000 packets of 1000 B.
    let expected = (rate.as_f64() / 8000.0 * 10.0 + 10_000.0) * 8.0;
    assert!((packets(&question, 1) / expected - 1.0).abs() < 1e-6, "{expected}");
}

/// 100 Mbit/s x 40 ms are 500 kB. After a loss, the segments in flight fill a window of that size. The sender then waits for the
/// recovery and sends 0.7 windows at once, 350 kB, more than the buffer of 250 kB holds. With a window of twice what path and
/// buffer hold, it never waits.
#[test]
fn a_bdp_sized_window_on_a_lossy_path_bursts_into_the_buffer() {
    let question = WindowQuestion {
        rate: Rate::from_mbit_per_second(100),
        rtt: Duration::from_millis(40),
        loss: Some(Probability::new(1e-5).expect("a share")),
        mtu: Bytes::new(1500),
        ..question(None, 250_000)
    };
    let windows = [506_800, 1_450_000].map(Bytes::new);
    let tried = try_windows(&Simulator, &question, &windows, 1..=8, Workers::new(2));
    let tried = tried.expect("a path that can be run");
    assert_eq!(hold(&tried).window, windows[1]);
    let [just, twice] = [&tried.windows[0], &tried.windows[1]];
    assert!(just.loss > 5.0 * 1e-5 && twice.loss < 5.0 * 1e-5, "{tried:?}");
    assert!(just.rate.as_f64() < 0.9 * twice.rate.as_f64(), "{tried:?}");
}

/// 750 Mbit/s x 200 ms are 18.75 MB. Linux's defaults would stop at a send buffer of 4 MiB and a receive window of 16 MiB. 17.2 MB per RTT are
/// 688 Mbit/s of payload, 1448 of 1500 B, so 712.7 Mbit/s on the link.
#[test]
fn only_the_candidate_window_limits_the_hosts() {
    let question = WindowQuestion {
        rate: Rate::from_mbit_per_second(750),
        rtt: Duration::from_millis(200),
        mtu: Bytes::new(1500),
        ..question(None, 18_750_000)
    };
    let window = Bytes::new(17_200_000);
    let tried = try_windows(&Simulator, &question, &[window], 1..=1, Workers::ONE);
    let tried = tried.expect("a path that can be run");
    assert!((hold(&tried).rate.as_f64() / 712.7e6 - 1.0).abs() < 0.01, "{tried:?}");
}

/// 1 Gbit/s x 80 ms with a loss of 1e-6 loses a packet in a million. Two losses to settle and ten measured are 12 million packets.
#[test]
fn the_cap_never_leaves_a_loss_limited_run_with_too_few_losses() {
    let question = WindowQuestion {
        rate: Rate::from_mbit_per_second(1000),
        rtt: Duration::from_millis(80),
        loss: Some(Probability::new(1e-6).expect("a share")),
        mtu: Bytes::new(1500),
        ..question(None, 10_000_000)
    };
    let of_a_run = packets(&question, 12) / runs(&question, 12) as f64;
    assert!((of_a_run / 12e6 - 1.0).abs() < 1e-6, "{of_a_run}");
}
