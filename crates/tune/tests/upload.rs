//! Laws of a paced upload over a path of 100 Mbit/s of payload and 40 ms, as a fluid that steps by
//! a millisecond: a sender that grows its window until the buffer overflows.

use std::collections::VecDeque;

use sweetspot_tune::upload::{Sent, StepKind, Upload};
use sweetspot_units::{Bytes, Duration, Time};

const RATE: f64 = 100e6 / 8.0;
const RTT: f64 = 0.04;
const BDP: f64 = RATE * RTT;
const STEP: f64 = 0.001;
const MSS: f64 = 1448.0;

/// What is not as usual.
struct Case {
    buffer: f64,
    /// The path's rate at a time.
    rate: fn(f64) -> f64,
    /// Bytes that others keep in the buffer.
    others: fn(f64) -> f64,
    /// What the program sends at most, per second.
    program: f64,
    /// Whether it is steered.
    paced: bool,
}

const USUAL: Case = Case {
    buffer: 2.0 * BDP,
    rate: |_| RATE,
    others: |_| 0.0,
    program: f64::INFINITY,
    paced: true,
};

struct Run {
    /// Bytes delivered per second, by second.
    seconds: Vec<f64>,
    /// Mean of our queue, by second.
    queues: Vec<f64>,
    steps: Vec<StepKind>,
}

impl Run {
    fn goodput(&self, seconds: std::ops::Range<usize>) -> f64 {
        let n = seconds.len() as f64;
        self.seconds[seconds].iter().sum::<f64>() / n
    }

    fn queue(&self, seconds: std::ops::Range<usize>) -> f64 {
        let n = seconds.len() as f64;
        self.queues[seconds].iter().sum::<f64>() / n
    }
}

fn play(case: &Case, seconds: usize) -> Run {
    let mut upload = Upload::default();
    let (mut cwnd, mut slow_start, mut rested) = (10.0 * MSS, true, 0.0);
    let (mut in_flight, mut queue, mut delivered, mut pace) = (0.0, 0.0_f64, 0.0, f64::INFINITY);
    let mut acks: VecDeque<(f64, f64)> = VecDeque::new();
    let mut run = Run { seconds: Vec::new(), queues: Vec::new(), steps: Vec::new() };
    let (mut second, mut depth, mut rtt, mut next_look) = (0.0, 0.0, RTT, 0.0);
    for n in 0..(seconds as f64 / STEP) as u64 {
        let t = n as f64 * STEP;
        while acks.front().is_some_and(|(due, _)| *due <= t) {
            let (_, bytes) = acks.pop_front().unwrap();
            in_flight -= bytes;
            delivered += bytes;
            second += bytes;
            // A window that is not used does not grow (RFC 7661).
            if in_flight + bytes > 0.9 * cwnd {
                cwnd += if slow_start { bytes } else { 2.0 * MSS * bytes / cwnd };
            }
        }
        let sent = (cwnd - in_flight).max(0.0).min(pace.min(case.program) * STEP);
        in_flight += sent;
        queue += sent;
        let (rate, others) = ((case.rate)(t), (case.others)(t));
        let full = queue + others;
        if full > case.buffer && t > rested {
            (cwnd, slow_start, rested) = (cwnd * 0.7, false, t + rtt);
        }
        // First come, first served: ours is served as its share of the queue.
        let served = if full > 0.0 { (rate * STEP).min(full) * queue / full } else { 0.0 };
        queue -= served;
        rtt = RTT + full / rate;
        acks.push_back((t + RTT, served));
        depth += queue * STEP;
        if t >= next_look {
            next_look = t + 0.025;
            let sent = Sent {
                delivered: Bytes::from_f64(delivered),
                rtt: Duration::from_secs_f64(rtt),
                minimum_rtt: Duration::from_secs_f64(RTT),
                starved: case.program < RATE,
            };
            upload.handle_look(Time::from_nanos((t * 1e9) as u64 + 1), &sent);
            while let Some(step) = upload.poll_step() {
                run.steps.push(step.kind);
                if case.paced {
                    pace = step.pace.map_or(f64::INFINITY, |rate| rate.as_f64() / 8.0);
                }
            }
        }
        if (n + 1) % 1000 == 0 {
            run.seconds.push(std::mem::take(&mut second));
            run.queues.push(std::mem::take(&mut depth));
        }
    }
    run
}

#[test]
fn a_paced_upload_is_as_fast_and_keeps_no_queue() {
    for buffer in [0.25 * BDP, 2.0 * BDP] {
        let alone = play(&Case { buffer, paced: false, ..USUAL }, 20);
        let paced = play(&Case { buffer, ..USUAL }, 20);
        let ratio = paced.goodput(0..20) / alone.goodput(0..20);
        assert!(ratio >= 0.98, "buffer {buffer}: {ratio} {:?}", paced.seconds);
        // A twentieth of a round trip at most, but for the trials.
        let queue = paced.queue(5..20);
        assert!(queue <= 0.1 * BDP, "{queue} {:?}", paced.queues);
        if buffer > BDP {
            assert!(queue <= 0.2 * alone.queue(5..20), "{queue}");
        }
    }
}

#[test]
fn it_follows_a_path_that_gets_slower_and_faster() {
    let rate = |t: f64| if (8.0..16.0).contains(&t) { RATE / 2.0 } else { RATE };
    let run = play(&Case { rate, ..USUAL }, 30);
    assert!(run.goodput(10..16) >= 0.95 * RATE / 2.0, "{:?}", run.seconds);
    assert!(run.queue(12..16) <= 0.15 * BDP, "{:?}", run.queues);
    assert!(run.goodput(22..30) >= 0.95 * RATE, "{:?}", run.seconds);
    assert!(run.steps.contains(&StepKind::Tightened) && run.steps.contains(&StepKind::Reopened));
}

#[test]
fn it_lets_go_where_others_keep_the_queue() {
    // Others hold 1.2 BDP of the buffer, whatever we do, from the fourth second on.
    let others = |t: f64| if t > 4.0 { 1.2 * BDP } else { 0.0 };
    let alone = play(&Case { others, paced: false, ..USUAL }, 40);
    let paced = play(&Case { others, ..USUAL }, 40);
    assert!(paced.steps.contains(&StepKind::LetGo), "{:?}", paced.steps);
    let ratio = paced.goodput(0..40) / alone.goodput(0..40);
    assert!(ratio >= 0.98, "{ratio} {:?} {:?}", paced.seconds, alone.seconds);
}

#[test]
fn a_program_that_has_little_to_send_is_not_touched() {
    let run = play(&Case { program: 0.5 * RATE, ..USUAL }, 10);
    assert_eq!(run.steps, vec![]);
}
