//! Laws of a paced upload over a path of 100 Mbit/s of payload and an RTT of 40 ms. In a fluid model with steps of
//! 1 ms, the sender increases its window until the buffer overflows.

use std::collections::VecDeque;

use sweetspot_control::{PaceStep, PacedUpload, TuneEventKind};
use sweetspot_sizing::{SavedWindow, SenderReport};
use sweetspot_units::{Bytes, Duration, Rate, Time};

const RATE: f64 = 100e6 / 8.0;
const RTT: f64 = 0.04;
const BDP: f64 = RATE * RTT;
const STEP: f64 = 0.001;
const MSS: f64 = 1448.0;

/// The parameters of a test.
struct Case {
    buffer: f64,
    /// The path's rate as a function of time.
    rate: fn(f64) -> f64,
    /// A change of the path's rate for eight seconds: its time, the rate during it, and the rate otherwise.
    change: Option<(f64, f64, f64)>,
    /// Bytes of cross traffic in the buffer.
    cross_traffic: fn(f64) -> f64,
    /// The time between two runs of the tuner. Above the usual 25 ms the host is busy, and timers do not bring a
    /// run forward.
    sample_interval: f64,
    /// The interval of samples by the kernel; a run reads those since the last one. `None`: one sample per run.
    sampled: Option<f64>,
    /// The program's maximum sending rate, in bytes per second.
    program: f64,
    /// The time at which the program stops sending.
    stops: f64,
    /// The size of the program's send buffer.
    send_buffer: f64,
    /// Whether the upload is paced.
    paced: bool,
    /// Whether it is a less-than-best-effort upload.
    background: bool,
    /// The path's saved parameters. The upload begins with half of that window, paced at window / min RTT.
    saved: Option<SavedWindow>,
}

const USUAL: Case = Case {
    buffer: 2.0 * BDP,
    rate: |_| RATE,
    change: None,
    cross_traffic: |_| 0.0,
    sample_interval: 0.025,
    sampled: None,
    program: f64::INFINITY,
    stops: f64::INFINITY,
    send_buffer: f64::INFINITY,
    paced: true,
    background: false,
    saved: None,
};

#[derive(Default)]
struct Run {
    /// Bytes delivered in each second.
    seconds: Vec<f64>,
    /// The mean queue of the upload in each second, in bytes.
    queues: Vec<f64>,
    /// Bytes delivered so far and bytes queued, for each millisecond.
    delivered: Vec<f64>,
    standing: Vec<f64>,
    /// The kinds of events; `None` for a change that is not reported.
    steps: Vec<Option<TuneEventKind>>,
    /// The reasons for the changes between events.
    reasons: Vec<String>,
    /// The pacing rates before and after each reduction.
    tightened: Vec<(Option<Rate>, Option<Rate>)>,
    /// The number of runs of the tuner in each second.
    looks: Vec<u32>,
    /// The parameters saved for the path.
    left: Option<Option<SavedWindow>>,
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

fn simulate(case: &Case, seconds: usize) -> Run {
    let (first, begins) = (Time::from_nanos(1), |saved: SavedWindow| saved.window.as_f64() / 2.0);
    let mut upload = match case.saved {
        Some(saved) => PacedUpload::resumed(first, saved),
        None if case.background => PacedUpload::background(Bytes::from_f64(MSS)),
        None => PacedUpload::default(),
    };
    let (mut cwnd, mut slow_start) = (case.saved.map_or(10.0 * MSS, begins), true);
    let mut pace = case
        .saved
        .map_or(f64::INFINITY, |saved| saved.window.as_f64() / saved.minimum_rtt.as_secs_f64());
    let (mut in_flight, mut queue, mut delivered, mut reduced_until) = (0.0, 0.0_f64, 0.0, 0.0);
    let mut acks: VecDeque<(f64, f64)> = VecDeque::new();
    let mut run = Run::default();
    let (mut second, mut depth, mut rtt, mut next_reading, mut looks) = (0.0, 0.0, RTT, 0.0, 0);
    let mut retransmitted = 0;
    let (mut samples, mut next_sample) = (Vec::new(), 0.0);
    for n in 0..(seconds as f64 / STEP) as u64 {
        let t = n as f64 * STEP;
        while acks.front().is_some_and(|(due, _)| *due <= t) {
            let (_, bytes) = acks.pop_front().unwrap();
            in_flight -= bytes;
            delivered += bytes;
            second += bytes;
            // A cwnd that is not used does not grow (RFC 7661).
            if in_flight + bytes > 0.9 * cwnd {
                cwnd += if slow_start { bytes } else { 2.0 * MSS * bytes / cwnd };
            }
        }
        let program = if t < case.stops { case.program } else { 0.0 };
        let window = cwnd.min(case.send_buffer);
        let sent = (window - in_flight).max(0.0).min(pace.min(program) * STEP);
        in_flight += sent;
        queue += sent;
        let rate = case.change.map_or((case.rate)(t), |(begin, slow, fast)| {
            if (begin..begin + 8.0).contains(&t) { slow } else { fast }
        });
        let cross_traffic = (case.cross_traffic)(t);
        let full = queue + cross_traffic;
        if full > case.buffer && t > reduced_until {
            (cwnd, slow_start, reduced_until) = (cwnd * 0.7, false, t + rtt);
            retransmitted += 1;
        }
        // The queue is FIFO: the upload gets its share of the queue.
        let served = if full > 0.0 { (rate * STEP).min(full) * queue / full } else { 0.0 };
        queue -= served;
        rtt = RTT + full / rate;
        acks.push_back((t + RTT, served));
        depth += queue * STEP;
        run.delivered.push(delivered);
        run.standing.push(queue);
        let now = Time::from_nanos((t * 1e9) as u64 + 1);
        if t >= case.sampled.map_or(next_reading, |_| next_sample) {
            let report = SenderReport {
                retransmitted,
                in_flight: Bytes::from_f64(in_flight),
                minimum_rtt: Duration::from_secs_f64(RTT),
                starved: program < RATE || in_flight >= case.send_buffer,
                ..SenderReport::default()
            };
            let (bytes, rtt) = (Bytes::from_f64(delivered), Duration::from_secs_f64(rtt));
            samples.push((now, bytes, rtt, report));
            next_sample = t + case.sampled.unwrap_or(0.0);
        }
        if t >= next_reading {
            looks += 1;
            let mut steps: Vec<PaceStep> = samples
                .drain(..)
                .filter_map(|(at, bytes, rtt, report)| {
                    upload.handle_sample(at, bytes, Some(rtt), &report)
                })
                .collect();
            if upload.poll_timeout() <= now {
                steps.extend(upload.handle_timeout(now));
            }
            let due = upload.poll_timeout().as_secs_f64();
            let min = if case.sample_interval > USUAL.sample_interval {
                case.sample_interval
            } else {
                0.0
            };
            next_reading = (t + case.sample_interval).min(due.max(t + min));
            for step in steps {
                run.steps.push(step.kind);
                if step.kind.is_none() {
                    run.reasons.push(step.why.clone());
                }
                if step.kind == Some(TuneEventKind::Tightened) {
                    run.tightened.push((step.before, step.pace));
                }
                if case.paced {
                    pace = step.pace.map_or(f64::INFINITY, |rate| rate.as_f64() / 8.0);
                }
            }
        }
        if (n + 1) % 1000 == 0 {
            run.seconds.push(std::mem::take(&mut second));
            run.queues.push(std::mem::take(&mut depth));
            run.looks.push(std::mem::take(&mut looks));
        }
    }
    run.left = upload.end(Time::from_nanos((seconds as f64 * 1e9) as u64 + 2));
    run
}

#[test]
fn a_paced_upload_is_as_fast_and_keeps_no_queue() {
    for buffer in [0.25 * BDP, 2.0 * BDP] {
        let alone = simulate(&Case { buffer, paced: false, ..USUAL }, 20);
        let paced = simulate(&Case { buffer, ..USUAL }, 20);
        let ratio = paced.goodput(0..20) / alone.goodput(0..20);
        assert!(ratio >= 0.98, "buffer {buffer}: {ratio} {:?}", paced.seconds);
        // Apart from trials, the queue is at most a twentieth of an RTT.
        let queue = paced.queue(5..20);
        assert!(queue <= 0.1 * BDP, "{queue} {:?}", paced.queues);
        if buffer > BDP {
            assert!(queue <= 0.2 * alone.queue(5..20), "{queue}");
        }
    }
}

/// Linux counts a sender with a full send buffer as application-limited.
#[test]
fn an_upload_whose_send_buffer_fills_the_path_is_still_paced() {
    for share in [1.2, 1.3, 1.5] {
        let path = Case { send_buffer: share * BDP, ..USUAL };
        let (alone, paced) = (simulate(&Case { paced: false, ..path }, 20), simulate(&path, 20));
        assert!(
            paced.goodput(5..20) >= 0.98 * alone.goodput(5..20),
            "{share}: {:?}",
            paced.seconds
        );
        // Without pacing, everything beyond one BDP stands in the buffer.
        assert!(alone.queue(5..20) >= 0.9 * (share - 1.0) * BDP, "{share}: {:?}", alone.queues);
        assert!(paced.queue(5..20) <= 0.1 * BDP, "{share}: {:?}", paced.queues);
        assert!(paced.left.flatten().is_some(), "{share}");
    }
}

#[test]
fn pacing_follows_a_path_that_slows_down_and_speeds_up() {
    let rate = |t: f64| if (8.0..16.0).contains(&t) { RATE / 2.0 } else { RATE };
    let run = simulate(&Case { rate, ..USUAL }, 30);
    assert!(run.goodput(10..16) >= 0.95 * RATE / 2.0, "{:?}", run.seconds);
    assert!(run.queue(12..16) <= 0.15 * BDP, "{:?}", run.queues);
    assert!(run.goodput(22..30) >= 0.95 * RATE, "{:?}", run.seconds);
    assert!(
        run.steps.contains(&Some(TuneEventKind::Tightened))
            && run.steps.contains(&Some(TuneEventKind::Reopened))
    );
}

/// 20 RTTs of 40 ms are 0.8 s. As in the benchmark, the two seconds after that count.
fn follows_within_twenty_round_trips(sampled: Option<f64>) {
    // The change may fall anywhere in the cycle of trials, which takes eight RTTs.
    for shift in 0..8 {
        let begin = 8.0 + f64::from(shift) * 0.04;
        for (slow, fast) in [(0.5, 1.0), (0.25, 0.5)] {
            let run = simulate_change(begin, slow * RATE, fast * RATE, sampled);
            for (at, rate) in [(begin, slow), (begin + 8.0, fast)] {
                let from = ((at + 0.8) / STEP) as usize;
                let got = (run.delivered[from + 2000] - run.delivered[from]) / 2.0;
                assert!(got >= 0.95 * rate * RATE, "{at}: {}", got / (rate * RATE));
                let mut queues = run.standing[from..from + 2000].to_vec();
                queues.sort_by(f64::total_cmp);
                // A tenth of an RTT at that rate.
                assert!(queues[1000] <= 0.1 * rate * BDP, "{at}: {}", queues[1000] / (rate * BDP));
            }
        }
    }
}

#[test]
fn pacing_adapts_to_a_rate_change_within_twenty_rtts() {
    follows_within_twenty_round_trips(None);
}

/// The kernel takes a sample every quarter of an interval, but timers run by the clock.
#[test]
fn samples_older_than_the_timer_do_not_change_the_outcome() {
    follows_within_twenty_round_trips(Some(USUAL.sample_interval / 4.0));
    let samples = Case { sampled: Some(USUAL.sample_interval / 4.0), ..USUAL };
    let (looked, sampled) = (simulate(&USUAL, 20), simulate(&samples, 20));
    let ratio = sampled.goodput(5..20) / looked.goodput(5..20);
    assert!((0.99..=1.01).contains(&ratio), "{ratio}");
    assert!(sampled.queue(5..20) <= 0.1 * BDP, "{:?}", sampled.queues);
}

/// A path with the rate `slow` for eight seconds from `begin` on, and `fast` otherwise.
fn simulate_change(begin: f64, slow: f64, fast: f64, sampled: Option<f64>) -> Run {
    simulate(&Case { change: Some((begin, slow, fast)), sampled, ..USUAL }, 20)
}

/// Each trial then lasts until the next run of the tuner.
#[test]
fn a_host_that_samples_late_still_finds_a_faster_path() {
    let rate = |t: f64| if t < 16.0 { RATE / 2.0 } else { RATE };
    let run = simulate(&Case { rate, sample_interval: 0.2, ..USUAL }, 30);
    assert!(run.goodput(8..16) >= 0.95 * RATE / 2.0, "{:?}", run.seconds);
    assert!(run.goodput(22..30) >= 0.95 * RATE, "{:?}", run.seconds);
}

/// A trial briefly puts 0.99 x 1.2 - 1 = 0.19 BDP into a full path's buffer.
#[test]
fn trials_do_not_overflow_a_quarter_bdp_buffer() {
    let run = simulate(&Case { buffer: 0.25 * BDP, ..USUAL }, 20);
    let deepest = run.standing[5000..].iter().fold(0.0_f64, |max, queue| max.max(*queue));
    assert!(deepest < 0.25 * BDP, "{}", deepest / BDP);
    // The excess is then drained: a triangle of two RTTs in every eight has a mean of 1/40 BDP.
    assert!(run.queue(5..20) <= 0.05 * BDP, "{}", run.queue(5..20) / BDP);
}

#[test]
fn pacing_is_released_if_cross_traffic_keeps_the_queue() {
    // From the fourth second on, cross traffic keeps 1.2 BDP in the buffer, whatever the upload does.
    let cross_traffic = |t: f64| if t > 4.0 { 1.2 * BDP } else { 0.0 };
    let alone = simulate(&Case { cross_traffic, paced: false, ..USUAL }, 40);
    let paced = simulate(&Case { cross_traffic, ..USUAL }, 40);
    assert!(paced.steps.contains(&Some(TuneEventKind::LetGo)), "{:?}", paced.steps);
    let ratio = paced.goodput(0..40) / alone.goodput(0..40);
    assert!(ratio >= 0.98, "{ratio} {:?} {:?}", paced.seconds, alone.seconds);
}

#[test]
fn a_background_upload_yields_while_cross_traffic_keeps_the_queue() {
    // Cross traffic keeps 2 BDP in the buffer: 80 ms, more than the 60 ms of RFC 9840.
    let cross_traffic = |t: f64| if (8.0..16.0).contains(&t) { 2.0 * BDP } else { 0.0 };
    let path = Case { buffer: 4.0 * BDP, cross_traffic, ..USUAL };
    let run = simulate(&Case { background: true, ..path }, 30);
    // Alone, it is as fast as an upload for throughput.
    assert!(run.goodput(2..8) >= 0.95 * RATE, "{:?}", run.seconds);
    // Two segments a round trip of 120 ms are 0.2 % of the rate.
    assert!(run.goodput(11..16) <= 0.01 * RATE, "{:?}", run.seconds);
    assert!(run.goodput(22..30) >= 0.95 * RATE, "{:?}", run.seconds);
    for kind in [TuneEventKind::Held, TuneEventKind::Yielded, TuneEventKind::Reopened] {
        assert!(run.steps.contains(&Some(kind)), "{kind:?}");
    }
    assert!(!run.steps.contains(&Some(TuneEventKind::LetGo)));
    // An upload for throughput takes its share of the same path.
    assert!(simulate(&path, 30).goodput(11..16) >= 0.2 * RATE);
}

/// A buffer of 1.2 BDP holds 48 ms, less than the 60 ms of RFC 9840. A loss lowers the target to half of the queue.
#[test]
fn a_background_upload_yields_although_the_buffer_is_shorter_than_the_target() {
    let cross_traffic = |t: f64| if (8.0..16.0).contains(&t) { BDP } else { 0.0 };
    let path = Case { buffer: 1.2 * BDP, cross_traffic, background: true, ..USUAL };
    let run = simulate(&path, 30);
    assert!(run.goodput(2..8) >= 0.95 * RATE, "{:?}", run.seconds);
    // Two segments a round trip of 80 ms are 0.3 % of the rate.
    assert!(run.goodput(11..16) <= 0.01 * RATE, "{:?}", run.seconds);
    assert!(run.goodput(22..30) >= 0.95 * RATE, "{:?}", run.seconds);
}

/// On a full path, each trial of a faster rate queues, and the queue drains at a lower rate.
#[test]
fn each_change_of_a_held_rate_names_its_part_of_a_trial() {
    let run = simulate(&USUAL, 10);
    let trial = [
        "a trial of a faster rate begins",
        "a trial of a faster rate ends",
        "the queue of the trial has drained",
    ];
    let held = run.reasons.iter().skip_while(|why| **why != trial[0]).collect::<Vec<_>>();
    assert!(held.len() > trial.len(), "{:?}", run.reasons);
    for (at, why) in held.into_iter().enumerate() {
        assert_eq!(why, trial[at % trial.len()]);
    }
}

#[test]
fn a_rate_that_rises_is_never_called_reduced() {
    // The rate changes at each place in the cycle of trials.
    let mut reductions = 0;
    for shift in 0..8 {
        let begin = 8.0 + f64::from(shift) * 0.04;
        for otherwise in [0.3, 0.5, 0.8, 1.2, 1.5, 3.0] {
            let run = simulate_change(begin, RATE, otherwise * RATE, None);
            let falls = run.tightened.iter().all(|(before, pace)| pace < before);
            assert!(falls, "{shift} {otherwise} {:?}", run.tightened);
            reductions += run.tightened.len();
        }
    }
    assert!(reductions > 0);
}

#[test]
fn an_application_limited_upload_is_not_paced() {
    let run = simulate(&Case { program: 0.5 * RATE, ..USUAL }, 10);
    assert_eq!(run.steps, vec![]);
}

/// A run every 25 ms makes 40 per second, and the start and end of each trial may add one each. If the end of a
/// trial stayed due, there would be a thousand.
#[test]
fn a_program_that_stops_during_a_trial_is_not_sampled_more_often() {
    for shift in 0..8 {
        let run = simulate(&Case { stops: 9.0 + f64::from(shift) * RTT, ..USUAL }, 12);
        assert!(run.looks[9..12].iter().all(|looks| *looks <= 60), "{:?}", run.looks);
    }
}

#[test]
fn an_outage_does_not_lower_the_capacity_estimate() {
    let rate = |t: f64| if (10.0..11.0).contains(&t) { 1.0 } else { RATE };
    let run = simulate(&Case { rate, ..USUAL }, 20);
    assert!(run.goodput(13..20) >= 0.95 * RATE, "{:?}", run.seconds);
}

/// The saved parameters of the path after an upload at `share` of the path's rate.
fn saved(share: f64) -> SavedWindow {
    let window = Bytes::from_f64(share * BDP);
    SavedWindow { window, minimum_rtt: Duration::from_secs_f64(RTT) }
}

#[test]
fn an_upload_saves_its_path_rate_wherever_in_a_trial_it_ends() {
    // A trial and its compensation take two of every eight RTTs.
    for shift in 0..8 {
        let stops = 12.0 + f64::from(shift) * RTT;
        let run = simulate(&Case { stops, ..USUAL }, 14);
        let left = run.left.flatten().expect("a window");
        // The upload was paced at 0.99 of the path's rate.
        let share = left.window.as_f64() / BDP;
        assert!((0.95..=1.0).contains(&share), "{share}");
        assert_eq!(left.minimum_rtt, Duration::from_secs_f64(RTT));
    }
}

#[test]
fn an_upload_that_never_filled_its_path_keeps_the_saved_state() {
    assert_eq!(simulate(&Case { program: 0.5 * RATE, ..USUAL }, 10).left, None);
}

#[test]
fn an_upload_beside_cross_traffic_saves_no_path_state() {
    let cross_traffic = |t: f64| if t > 4.0 { 1.2 * BDP } else { 0.0 };
    let left = simulate(&Case { cross_traffic, ..USUAL }, 12).left;
    assert_eq!(left, Some(None));
}

/// Slow start would have left half of a window in the buffer.
#[test]
fn an_upload_over_a_saved_path_never_overflows_a_quarter_bdp_buffer() {
    let case = Case { buffer: 0.25 * BDP, saved: Some(saved(0.99)), ..USUAL };
    let run = simulate(&case, 20);
    let deepest = run.standing.iter().fold(0.0_f64, |max, queue| max.max(*queue));
    assert!(deepest < 0.25 * BDP, "{}", deepest / BDP);
    let alone = simulate(&Case { paced: false, saved: None, ..case }, 20);
    assert!(run.goodput(0..20) >= alone.goodput(0..20), "{:?}", run.seconds);
    assert_eq!(run.steps.first(), Some(&Some(TuneEventKind::Taken)));
}

#[test]
fn an_upload_over_a_wrongly_saved_path_finds_its_rate() {
    for share in [0.5, 2.0] {
        let run = simulate(&Case { saved: Some(saved(share)), ..USUAL }, 20);
        assert!(run.goodput(2..20) >= 0.95 * RATE, "{share}: {:?}", run.seconds);
        assert!(run.queue(2..20) <= 0.1 * BDP, "{share}: {:?}", run.queues);
    }
}
