//! A download under a bundle is never slower than one left alone by more than 2 %: the same
//! connection, with and without, under conditions in which a limit has little to win and something
//! to lose. A fluid that steps by a millisecond; senders grow their windows until they lose.

mod condition;

use condition::{BDP, Condition, MSS, RATE, Run, USUAL, play};

/// The same, left alone and tuned.
fn both(condition: &Condition, seconds: usize) -> [Run; 2] {
    [false, true].map(|tuned| play(condition, tuned, seconds))
}

/// How much of the goodput left alone a tuned download has, for its whole life.
fn kept(condition: &Condition, seconds: usize) -> f64 {
    let [alone, tuned] = both(condition, seconds);
    let ratio = tuned.received / alone.received;
    assert!(ratio >= 0.98, "{ratio}: {:?} against {:?}", tuned.seconds, alone.seconds);
    ratio
}

#[test]
fn a_clean_path() {
    for buffer in [0.25 * BDP, 2.0 * BDP] {
        kept(&Condition { buffer, ..USUAL }, 20);
    }
}

#[test]
fn a_sender_with_little_to_send() {
    kept(&Condition { program: 0.3 * RATE, ..USUAL }, 10);
}

#[test]
fn a_program_that_reads_slowly() {
    kept(&Condition { reader: 0.3 * RATE, ..USUAL }, 20);
}

/// Where the losses fall makes a difference of its own: the mean of many runs tells. Over two
/// minutes, for slow start's overshoot leaves who is left alone a queue that lasts some losses.
#[test]
fn random_loss() {
    for loss in [1e-5, 1e-4, 1e-3] {
        let (mut alone, mut tuned) = (0.0, 0.0);
        for seed in 1..=40 {
            let runs = both(&Condition { loss, seed: seed * 7919, ..USUAL }, 120);
            alone += runs[0].received;
            tuned += runs[1].received;
        }
        assert!(tuned >= 0.98 * alone, "loss {loss}: {}", tuned / alone);
    }
}

#[test]
fn a_path_that_jitters() {
    kept(&Condition { jitter: 0.008, ..USUAL }, 60);
}

#[test]
fn a_buffer_of_a_twentieth_of_a_round_trip() {
    kept(&Condition { buffer: 0.05 * BDP, ..USUAL }, 30);
}

#[test]
fn a_short_round_trip_and_a_long_one() {
    kept(&Condition { rtt: 0.002, buffer: 0.1 * BDP, ..USUAL }, 10);
    kept(&Condition { rtt: 0.2, buffer: 5.0 * BDP, ..USUAL }, 60);
}

/// Left alone, a download that has filled the buffer keeps a newcomer out of it for a while. One
/// that is tuned has its fair half, not less.
#[test]
fn a_rival_that_fills_the_buffer_leaves_a_fair_half() {
    for rival in [0.0, 5.0] {
        let run = play(&Condition { rival: Some(rival), ..USUAL }, true, 60);
        let half = run.seconds[40..].iter().sum::<f64>() / 20.0 / 50.0;
        assert!(half >= 0.95, "{half}: {:?}", run.seconds);
    }
}

/// What a ramp that spares small buffers costs, once, where the buffer is deep: some round trips.
#[test]
fn a_short_flow_loses_no_more_than_three_round_trips() {
    let size = 5e6;
    let [alone, tuned] = both(&USUAL, 3).map(|run| run.took(size));
    assert!(tuned <= alone + 3.0 * 0.04, "{tuned} against {alone}");
}

#[test]
fn a_window_that_does_not_keep_to_its_limit_is_left_alone_and_told_of() {
    let run = play(&Condition { obeys: false, ..USUAL }, true, 20);
    assert_eq!(run.refusals, 1);
    // Lifted for good.
    assert_eq!(run.limit, f64::INFINITY);
    let run = play(&USUAL, true, 20);
    assert_eq!(run.refusals, 0);
    assert!(run.limit < 2.0 * BDP && run.limit > 4.0 * MSS);
}
