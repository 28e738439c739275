//! Do no harm: a download in a path group keeps at least 97 % of the goodput of an untuned download. Each test runs the same
//! connection with and without a tuner, where a limit has little to gain and something to lose. A fluid model advances in steps
//! of 1 ms; senders increase their windows until data are lost.

mod condition;

use condition::{BDP, Condition, RATE, Run, USUAL, simulate};
use sweetspot_control::TuneEventKind;

/// The minimum goodput of a tuned download, relative to an untuned one. An occasional trial costs 1 %; the random times of its
/// losses account for 2 %.
const MIN_GOODPUT_SHARE: f64 = 0.97;

/// Runs the same condition without and with a tuner.
fn both(condition: &Condition, seconds: usize) -> [Run; 2] {
    [false, true].map(|tuned| simulate(condition, tuned, seconds))
}

/// Asserts that a tuned download keeps its share of an untuned download's goodput, over its whole life.
fn kept(condition: &Condition, seconds: usize) {
    let [alone, tuned] = both(condition, seconds);
    let ratio = tuned.received / alone.received;
    assert!(ratio >= MIN_GOODPUT_SHARE, "{ratio}: {:?} against {:?}", tuned.seconds, alone.seconds);
}

#[test]
fn tuning_keeps_goodput_on_a_clean_path() {
    for buffer in [0.25 * BDP, 2.0 * BDP] {
        kept(&Condition { buffer, ..USUAL }, 20);
    }
}

#[test]
fn tuning_keeps_goodput_of_an_application_limited_sender() {
    kept(&Condition { program: 0.3 * RATE, ..USUAL }, 10);
}

#[test]
fn tuning_keeps_goodput_with_a_slow_reader() {
    kept(&Condition { reader: 0.3 * RATE, ..USUAL }, 20);
}

/// The random times of the losses make a difference of their own, so the mean of many runs counts. Each run lasts two minutes,
/// because slow start leaves an untuned transfer a queue that takes several losses to drain.
#[test]
fn tuning_keeps_goodput_under_random_loss() {
    for loss in [1e-5, 1e-4, 1e-3] {
        let (mut alone, mut tuned) = (0.0, 0.0);
        for seed in 1..=40 {
            let runs = both(&Condition { loss, seed: seed * 7919, ..USUAL }, 120);
            alone += runs[0].received;
            tuned += runs[1].received;
        }
        assert!(tuned >= MIN_GOODPUT_SHARE * alone, "loss {loss}: {}", tuned / alone);
    }
}

#[test]
fn tuning_keeps_goodput_on_a_jittery_path() {
    kept(&Condition { jitter: 0.008, ..USUAL }, 60);
}

/// The excess is constant: the apparent queue does not exist, and any window that would remove it leaves the path idle.
#[test]
fn tuning_keeps_goodput_if_the_loaded_rtt_exceeds_the_handshakes() {
    for held_back in [0.003, 0.005, 0.007, 0.009, 0.012] {
        kept(&Condition { held_back, ..USUAL }, 20);
    }
}

#[test]
fn tuning_keeps_goodput_with_a_buffer_of_a_twentieth_of_a_bdp() {
    kept(&Condition { buffer: 0.05 * BDP, ..USUAL }, 30);
}

#[test]
fn tuning_keeps_goodput_at_short_and_long_rtts() {
    kept(&Condition { rtt: 0.002, buffer: 0.1 * BDP, ..USUAL }, 10);
    kept(&Condition { rtt: 0.2, buffer: 5.0 * BDP, ..USUAL }, 60);
}

/// An untuned download that has filled the buffer keeps a newcomer out for a while. So a tuned one suffers no harm if it keeps
/// its fair half. A hold keeps the share with which its trial began. A trial cannot detect deviations below 9 %, but on average
/// this share is the fair one.
#[test]
fn tuning_keeps_a_fair_share_beside_a_flow_that_fills_the_buffer() {
    let starts: Vec<f64> = (0..=10).map(f64::from).collect();
    let shares = starts.iter().map(|start| {
        let late = |run: &Run| run.seconds[40..].iter().sum::<f64>() / 20.0;
        let [alone, tuned] = both(&Condition { rival: Some(*start), ..USUAL }, 60);
        late(&tuned) / late(&alone).min(50.0)
    });
    let shares: Vec<f64> = shares.collect();
    let mean = shares.iter().sum::<f64>() / shares.len() as f64;
    assert!(mean >= MIN_GOODPUT_SHARE, "{mean}: {shares:?}");
    assert!(shares.iter().all(|share| *share >= 0.91), "{shares:?}");
}

#[test]
fn tuning_does_not_delay_a_short_flow() {
    for buffer in [0.25 * BDP, 2.0 * BDP] {
        let size = 5e6;
        let [alone, tuned] = both(&Condition { buffer, ..USUAL }, 5).map(|run| run.took(size));
        assert!(alone >= MIN_GOODPUT_SHARE * tuned, "{tuned} against {alone}");
    }
}

const SHORT: Condition = Condition { size: 5e6, ..USUAL };

/// The mean duration of the downloads that began between `from` and `to`.
fn took(run: &Run, from: f64, to: f64) -> f64 {
    let within = run.downloads.iter().filter(|d| (from..to).contains(&d.began));
    let times: Vec<f64> = within.map(|d| d.ended - d.began).collect();
    times.iter().sum::<f64>() / times.len() as f64
}

#[test]
fn tuning_does_not_delay_consecutive_short_flows() {
    for buffer in [0.25 * BDP, 2.0 * BDP] {
        let [alone, tuned] = both(&Condition { buffer, ..SHORT }, 20).map(|r| took(&r, 0.0, 20.0));
        assert!(alone >= MIN_GOODPUT_SHARE * tuned, "{tuned} against {alone}");
    }
}

#[test]
fn a_finished_download_leaves_no_limit_behind() {
    for sizing in ["sobas:live", "rledbat", "fixed:400kB"] {
        let run = simulate(&Condition { sizing, ..SHORT }, true, 20);
        assert!(run.downloads.len() >= 5, "{sizing}");
        assert_eq!(run.left_behind, [], "{sizing}");
    }
}

/// The rate halves or doubles, so the window of the last hold no longer fits the path.
#[test]
fn tuning_keeps_goodput_if_the_path_changes_between_downloads() {
    let slower = |t: f64| if t < 5.0 { RATE } else { RATE / 2.0 };
    let faster = |t: f64| if t < 5.0 { RATE / 2.0 } else { RATE };
    for rate in [slower, faster] {
        let [alone, tuned] = both(&Condition { rate, ..SHORT }, 20).map(|r| took(&r, 7.0, 20.0));
        assert!(alone >= MIN_GOODPUT_SHARE * tuned, "{tuned} against {alone}");
    }
}

#[test]
fn a_window_that_ignores_its_limit_is_released_and_reported() {
    let fixed = Condition { sizing: "fixed:400kB", ..USUAL };
    let run = simulate(&Condition { obeys: false, ..fixed }, true, 20);
    assert_eq!(run.refusals, 1);
    // The limit is lifted for good.
    assert_eq!(run.limit, f64::INFINITY);
    let run = simulate(&fixed, true, 20);
    assert_eq!((run.refusals, run.limit), (0, 400e3));
    // A limit that was never applied cannot be ignored.
    let run = simulate(&Condition { obeys: false, is_dry_run: true, ..fixed }, true, 20);
    assert_eq!(run.refusals, 0);
}

/// The buffer of two BDPs fills, so the controller decides on a trial with a smaller window. A dry run does not make it, so its
/// result is unknown.
#[test]
fn a_dry_run_reports_nothing_after_the_first_trial_or_hold() {
    let is_decision =
        |kind: &TuneEventKind| matches!(kind, TuneEventKind::Tightened | TuneEventKind::Held);
    // One download of a minute, and three for which tuning starts anew.
    for (size, seconds, downloads) in [(f64::INFINITY, 60, 1), (150e6, 38, 3)] {
        let run = simulate(&Condition { is_dry_run: true, size, ..USUAL }, false, seconds);
        for download in 0..downloads {
            let events = run.events.iter().filter(|(of, _)| *of == download);
            let kinds: Vec<TuneEventKind> = events.map(|(_, kind)| *kind).collect();
            let first = kinds.iter().position(is_decision);
            assert_eq!(first.map(|first| first + 1), Some(kinds.len()), "{kinds:?}");
        }
    }
}
