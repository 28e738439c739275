//! Laws of a paced upload over a path with an RTT far shorter than the time between two samples. Its sender keeps a queue of 20
//! ms. As on any short path, the kernel sends bursts of 64 KiB, and delays the next one by burst / pace.

use sweetspot_control::{PacedUpload, TuneEventKind};
use sweetspot_sizing::SenderReport;
use sweetspot_units::{Bytes, Duration, Rate, Time};

const BURST: f64 = 65_536.0;
const BASE: f64 = 20e-6;
const STEP: f64 = 0.001;

struct Run {
    /// Mean payload rate after the first second, bit/s.
    rate: f64,
    /// The longest time without a delivery, seconds.
    longest_gap: f64,
    steps: Vec<Option<TuneEventKind>>,
}

/// The sender's window: a queue of 20 ms, at least two bursts, and one more burst.
fn window(byte_rate: f64) -> f64 {
    (2.0 * BURST).max(0.02 * byte_rate) + BURST
}

/// An upload over a path of `rate` bit/s, sampled every 25 ms.
fn simulate(rate: f64, seconds: f64) -> Run {
    let byte_rate = rate / 8.0;
    let window = window(byte_rate);
    let (mut upload, mut pace) = (PacedUpload::default(), f64::INFINITY);
    let (mut queue, mut delivered, mut departure, mut next_sample) = (0.0_f64, 0.0, 0.0_f64, 0.0);
    let (mut first, mut last, mut run) =
        (None, 0.0, Run { rate: 0.0, longest_gap: 0.0, steps: Vec::new() });
    for n in 0..(seconds / STEP) as u64 {
        let t = n as f64 * STEP;
        while t >= departure && queue + BURST <= window {
            queue += BURST;
            // The kernel's timer has a finer resolution than a step.
            departure = departure.max(t - STEP) + BURST / pace;
        }
        let served = queue.min(byte_rate * STEP);
        (queue, delivered) = (queue - served, delivered + served);
        if served > 0.0 {
            run.longest_gap = f64::max(run.longest_gap, t - last);
            last = t;
        }
        if t >= 1.0 {
            first.get_or_insert(delivered);
        }
        let now = Time::from_nanos((t * 1e9) as u64 + 1);
        let mut steps = Vec::new();
        if t >= next_sample {
            next_sample = t + 0.025;
            let report = SenderReport {
                in_flight: Bytes::from_f64(queue),
                minimum_rtt: Duration::from_secs_f64(BASE),
                ..SenderReport::default()
            };
            let rtt = Duration::from_secs_f64(BASE + queue / byte_rate);
            steps.extend(upload.handle_sample(now, Bytes::from_f64(delivered), Some(rtt), &report));
        }
        if upload.poll_timeout() <= now {
            steps.extend(upload.handle_timeout(now));
        }
        for step in steps {
            pace = step.pace.map_or(f64::INFINITY, |pace: Rate| pace.as_f64() / 8.0);
            run.steps.push(step.kind);
        }
    }
    run.rate = (delivered - first.unwrap()) * 8.0 / (seconds - 1.0);
    run
}

/// A queue L is drained at C T / (T + L), with T^2 = L x burst / C, but T >= 25 ms. A burst then delays the next one by burst /
/// C x (1 + L / T). The path takes burst / C to deliver it, so it is idle for at most burst / C x L / T <= T.
#[test]
fn draining_a_queue_never_stops_the_upload() {
    for mbit in [2.0, 10.0, 57.0, 200.0, 1000.0] {
        let run = simulate(mbit * 1e6, 10.0);
        assert!(run.steps.contains(&Some(TuneEventKind::Taken)), "{mbit}: {:?}", run.steps);
        let byte_rate = mbit * 1e6 / 8.0;
        let longest = f64::max(0.025, (window(byte_rate) / byte_rate * BURST / byte_rate).sqrt());
        assert!(run.longest_gap <= longest + STEP, "{mbit} Mbit/s: {} s", run.longest_gap);
    }
}

/// The pacing rate is 0.99 of the path's rate. Trials are compensated, and drains leave the path idle now and then.
#[test]
fn pacing_keeps_the_rate_of_a_short_path() {
    for mbit in [57.0, 200.0, 1000.0] {
        let rate = simulate(mbit * 1e6, 10.0).rate / (mbit * 1e6);
        assert!(rate >= 0.95, "{mbit} Mbit/s: {rate}");
    }
}
