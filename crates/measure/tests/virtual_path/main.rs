//! Whole measurements on paths with known properties.

mod path;

use path::{Truth, followed, measure, timed};
use sweetspot_measure::{Bound, Direction, DirectionReport, Discipline, Finding, Plan, Purpose};
use sweetspot_path::Random;
use sweetspot_units::{Bytes, Duration, Rate};

/// One direction without TCP, because these paths cannot carry it.
fn plan() -> Plan {
    Plan { directions: vec![Direction::Down], load: None, ..Plan::full() }
}

fn found(truth: Truth) -> DirectionReport {
    measure(truth, plan(), 7).directions.remove(0)
}

fn off(found: Option<Rate>, truth: Rate) -> f64 {
    found.map_or(f64::INFINITY, |rate| (rate.as_f64() / truth.as_f64() - 1.0).abs())
}

#[test]
fn an_idle_path_is_measured_accurately() {
    let truth = Truth::plain();
    let report = measure(truth, plan(), 7);
    let down = &report.directions[0];
    assert!(off(down.capacity.value(), truth.rate) < 0.005, "{:?}", down.capacity);
    assert!(off(down.available.value(), truth.rate) < 0.03, "{:?}", down.available);
    let buffer = down.buffer.bytes.value().unwrap();
    assert!((buffer.as_f64() / 250_000.0 - 1.0).abs() < 0.02, "{buffer}");
    assert_eq!(down.discipline, Ok(Discipline::DropTail));
    assert_eq!(down.loss.lost, 0);
    assert_eq!(down.reordering.reordered, 0);
    let base = report.round_trip.base.value().unwrap();
    assert!((base.as_secs_f64() - 0.04).abs() < 1e-5, "{base}");
}

/// Linux's tbf and most providers' shapers pass a burst at line rate. It is not part of the rate, and its gaps are not cross
/// traffic.
#[test]
fn a_shapers_burst_is_not_mistaken_for_its_rate() {
    let rate = Rate::from_mbit_per_second(30);
    for burst in [16_000, 32_000, 64_000] {
        for cross in [0.0, 0.3] {
            let cross = rate.scaled(cross);
            let burst = Bytes::new(burst);
            let truth = Truth { rate, cross, burst, ..Truth::plain() };
            let down = found(truth);
            assert!(off(down.capacity.value(), rate) < 0.03, "{burst} {:?}", down.capacity);
            assert!(off(down.available.value(), rate - cross) < 0.15, "{:?}", down.available);
            let bucket = down.burst.unwrap().as_f64();
            assert!((bucket / burst.as_f64() - 1.0).abs() < 0.3, "{bucket} of {burst}");
        }
    }
}

#[test]
fn bandwidth_used_by_cross_traffic_is_not_available() {
    for pareto in [false, true] {
        for share in [0.2, 0.5, 0.7] {
            let cross = Rate::from_mbit_per_second(50).scaled(share);
            let truth = Truth { cross, pareto, ..Truth::plain() };
            let down = found(truth);
            assert!(off(down.capacity.value(), truth.rate) < 0.03, "{share} {:?}", down.capacity);
            assert_eq!(down.burst, None, "{share}");
            let left = truth.rate - cross;
            assert!(off(down.available.value(), left) < 0.15, "{share} {:?}", down.available);
        }
    }
}

/// If each flow has its own queue, a train gets the share that other queues leave; the link itself is not slower.
#[test]
fn a_fair_queueing_share_is_not_mistaken_for_the_capacity() {
    for share in [0.3, 0.5, 0.65] {
        let cross = Rate::from_mbit_per_second(20).scaled(share);
        let rate = Rate::from_mbit_per_second(20);
        let truth = Truth { rate, cross, queue: "fq-codel", ..Truth::plain() };
        let down = found(truth);
        assert!(off(down.capacity.value(), rate) < 0.03, "{share} {:?}", down.capacity);
        assert!(off(down.available.value(), rate - cross) < 0.1, "{share} {:?}", down.available);
    }
}

#[test]
fn jitter_in_either_direction_does_not_inflate_the_base_rtt() {
    let mut near = 0;
    for seed in 0..20 {
        let truth = Truth { jitter: Duration::from_millis(5), ..Truth::plain() };
        let found = measure(truth, plan(), seed).round_trip.base.estimate().unwrap();
        near += u32::from((found.value.as_secs_f64() - 0.04).abs() < 0.3e-3);
    }
    // In each direction, the earliest of 60 is 5 ms / 61 late on average, and the second is as far behind it. Their differences
    // are below 0.3 ms in all but exp(-3.7) x (1 + 3.7 / 2) = 7 % of the cases.
    assert!(near >= 16, "{near} of 20");
}

#[test]
fn bandwidth_that_cross_traffic_yields_after_loss_is_not_available() {
    for (mbit, packets) in [(3, 10), (10, 10), (10, 40), (80, 200)] {
        let rate = Rate::from_mbit_per_second(mbit);
        let cross = rate.scaled(0.5);
        let buffer = Bytes::new(1500 * packets);
        let truth = Truth { rate, cross, buffer, yields: true, ..Truth::plain() };
        let down = found(truth);
        assert!(off(down.available.value(), rate - cross) < 0.1, "{mbit} {:?}", down.available);
    }
}

#[test]
fn a_buffer_that_fills_before_an_aqm_acts_leaves_the_discipline_unknown() {
    for queue in ["drop-tail", "codel"] {
        // 12 ms: the buffer is full before CoDel's interval of 100 ms has passed.
        let rate = Rate::from_mbit_per_second(10);
        let down = found(Truth { rate, queue, buffer: Bytes::new(15_000), ..Truth::plain() });
        let why = down.discipline.expect_err(queue).to_string();
        assert!(why.contains("drop-tail, or an AQM that did not act"), "{queue}: {why}");
    }
}

#[test]
fn each_queue_discipline_is_identified_by_its_overload_behaviour() {
    for (queue, expected) in [
        ("drop-tail", Discipline::DropTail),
        ("red", Discipline::ActiveQueueManagement),
        ("codel", Discipline::ActiveQueueManagement),
        ("fq-codel", Discipline::PerFlow),
    ] {
        // 160 ms: four BDPs, as in buffers for which the discipline matters.
        let down = found(Truth { queue, buffer: Bytes::new(1_000_000), ..Truth::plain() });
        assert_eq!(down.discipline, Ok(expected), "{queue}");
    }
}

/// The queue that was observed fitted into the buffer, whatever the AQM dropped.
#[test]
fn a_buffer_behind_per_flow_queues_is_at_least_the_longest_observed_queue() {
    for (mbit, buffer) in [(8, 120_000), (50, 1_000_000)] {
        let (rate, buffer) = (Rate::from_mbit_per_second(mbit), Bytes::new(buffer));
        let truth = Truth { rate, buffer, queue: "fq-codel", ..Truth::plain() };
        let report = measure(truth, plan(), 7);
        let down = &report.directions[0];
        let Finding::Bounded { bound: Bound::AtLeast(low), why } = &down.buffer.bytes else {
            panic!("{:?}", down.buffer)
        };
        assert_eq!(why, "drops come from the AQM, not from a full buffer");
        let longest = Duration::from_secs_f64(report.intrusion.longest_queue_s);
        assert_eq!(*low, down.capacity.value().unwrap() * longest);
        // The capacity is accurate to 1 %.
        assert!(low.as_f64() <= buffer.as_f64() * 1.01, "{low} of {buffer}");
    }
}

/// A drop-tail buffer followed by a pausing host. Packets that the host delays seem to wait for longer than the buffer is deep,
/// but only a full buffer dropped packets.
#[test]
fn host_pauses_are_not_mistaken_for_queueing_or_an_aqm() {
    for seed in 0..24 {
        let mut random = Random::new(seed);
        let rate = Rate::from_f64((5e6 * 20f64.powf(random.unit())).round());
        let buffer = (rate * Duration::from_millis(20)).scaled(1.0 + 3.0 * random.unit());
        let stall = Duration::from_secs_f64(0.01 + 0.03 * random.unit());
        let truth = Truth { rate, buffer, stall, ..Truth::plain() };
        let report = measure(truth, plan(), seed);
        let discipline = &report.directions[0].discipline;
        assert_ne!(*discipline, Ok(Discipline::ActiveQueueManagement), "{truth:?}");
        // Waits are accurate to a twentieth of a pause, and the capacity to 3 %.
        let deep = (buffer / rate).as_secs_f64() * 1.03 + stall.as_secs_f64() / 20.0;
        let longest = report.intrusion.longest_queue_s;
        assert!(longest < deep, "{longest} s: {truth:?}");
    }
}

/// Random buffers: the interval covers the granularity of full packets, and both units agree.
#[test]
fn buffer_intervals_contain_the_depth_in_bytes_and_as_delay() {
    for seed in 0..20 {
        let mut random = Random::new(seed + 100);
        let rate = Rate::from_f64((5e6 * 20f64.powf(random.unit())).round());
        let buffer = Bytes::new(20_000 + (400_000.0 * random.unit()) as u64);
        let report = measure(Truth { rate, buffer, ..Truth::plain() }, plan(), seed);
        let down = &report.directions[0];
        let (bytes, delay) = (&down.buffer.bytes, &down.buffer.delay);
        let (bytes, delay) = (bytes.estimate().unwrap(), delay.estimate().unwrap());
        let capacity = down.capacity.value().unwrap();
        assert!((bytes.low..=bytes.high).contains(&buffer), "{buffer} at {rate}: {bytes:?}");
        assert_eq!(delay.value, bytes.value / capacity);
        // No packet waited for longer than a full buffer takes to drain.
        let longest = report.intrusion.longest_queue_s;
        assert!(longest <= delay.high.as_secs_f64(), "{longest}: {delay:?}");
    }
}

#[test]
fn random_loss_is_measured_and_not_mistaken_for_an_aqm() {
    let down = found(Truth { loss: 0.005, ..Truth::plain() });
    let loss = down.loss.rate.estimate().unwrap();
    assert!(loss.low.get() <= 0.005 && 0.005 <= loss.high.get(), "{loss:?}");
    assert_eq!(down.discipline, Ok(Discipline::DropTail));
    let burst = down.loss.burst.estimate().unwrap();
    assert!(burst.low <= 1.01, "independent losses come alone: {burst:?}");
}

#[test]
fn jitter_is_not_mistaken_for_buffer() {
    let jitter = Duration::from_millis(10);
    let down = found(Truth { jitter, ..Truth::plain() });
    let buffer = down.buffer.bytes.value().unwrap_or_else(|| panic!("{down:?}"));
    assert!((buffer.as_f64() / 250_000.0 - 1.0).abs() < 0.15, "{buffer}");
    let found = down.jitter.value().unwrap_or_else(|| panic!("{down:?}"));
    assert!((found.as_secs_f64() - 0.010).abs() < 0.0015, "{found}");
}

#[test]
fn the_budget_is_kept_and_skipped_measurements_are_listed() {
    let budget = Bytes::new(3_000_000);
    let report = measure(Truth::plain(), Plan { budget: Some(budget), ..plan() }, 7);
    assert!(report.intrusion.bytes <= budget.get(), "{:?}", report.intrusion);
    let left_out = &report.directions[0].left_out;
    assert!(left_out.iter().any(|skipped| skipped.why.contains("budget of 3 MB")), "{left_out:?}");
}

/// Echoes, scouts, sparse packets and trains take 12 kB + 108 kB + 4.8 MB + 2.16 MB. Sparse packets show the loss, but the 2 MB for
/// more of them and the 3.75 MB for the queue exceed this budget.
#[test]
fn a_measurement_that_was_cut_short_is_missing_only_accuracy() {
    let budget = Some(Bytes::new(8_000_000));
    let report = measure(Truth::plain(), Plan { budget, ..plan() }, 7);
    let down = &report.directions[0];
    let left_out = &down.left_out;
    let loss = left_out.iter().find(|skipped| skipped.purpose == Purpose::RandomLoss).unwrap();
    assert!(down.loss.rate.value().is_some() && loss.is_cut_short, "{down:?}");
    assert!(loss.to_string().starts_with("more exact random loss: "), "{loss}");
    let queue = left_out.iter().find(|skipped| skipped.purpose == Purpose::Queue).unwrap();
    assert!(down.buffer.bytes.value().is_none() && !queue.is_cut_short, "{down:?}");
}

/// The echoes take 12 kB and each of the first trains 9 kB: the first budget suffices for neither, the second for some trains.
#[test]
fn a_spent_budget_is_the_reason_for_each_unknown_quantity() {
    for (bytes, words) in [(100, "budget of 100 B"), (30_000, "budget of 30 kB")] {
        let budget = Some(Bytes::new(bytes));
        let plan = Plan { budget, load: Plan::full().load, ..plan() };
        let report = measure(Truth::plain(), plan, 7);
        let down = &report.directions[0];
        let discipline = down.discipline.as_ref().err().map(ToString::to_string);
        let reasons = [
            down.capacity.why(),
            down.available.why(),
            down.buffer.bytes.why(),
            discipline.as_ref(),
            down.loss.rate.why(),
            down.loss.burst.why(),
            down.jitter.why(),
        ];
        assert_eq!(down.capacity.value().is_some(), bytes == 30_000, "{down:?}");
        for (n, why) in reasons.into_iter().enumerate().skip(usize::from(bytes == 30_000)) {
            assert!(why.is_some_and(|why| why.contains(words)), "{n}: {down:?}");
        }
        let purposes: Vec<Purpose> = down.left_out.iter().map(|left| left.purpose).collect();
        assert!(down.load.is_none() && purposes.contains(&Purpose::Load), "{purposes:?}");
        let is_first = |(n, one): (usize, &Purpose)| !purposes[..n].contains(one);
        assert!(purposes.iter().enumerate().all(is_first), "{purposes:?}");
    }
}

/// Jitter hides idle time and pairs, so without streams the available bandwidth is unknown.
#[test]
fn an_interruption_is_the_reason_for_each_quantity_that_it_leaves_unknown() {
    let truth = Truth { jitter: Duration::from_millis(3), ..Truth::plain() };
    for last in ["base RTT", "rough capacity (down)", "available bandwidth by streams (down)"] {
        let (report, _) = followed(truth, plan(), 7, &mut |measurement| {
            if measurement.progress() == last {
                measurement.end_early("it was interrupted");
            }
        });
        let down = &report.directions[0];
        let discipline = down.discipline.as_ref().err().map(ToString::to_string);
        let unknown = [down.available.why(), down.buffer.bytes.why(), down.jitter.why()];
        for why in unknown.into_iter().chain([discipline.as_ref()]) {
            assert_eq!(why.map(String::as_str), Some("it was interrupted"), "{last}: {down:?}");
        }
        for why in [down.capacity.why(), down.loss.rate.why()].into_iter().flatten() {
            assert_eq!(why, "it was interrupted", "{last}: {down:?}");
        }
    }
}

/// 60 echoes of 100 B, there and back, are 12 kB.
#[test]
fn the_least_budget_pays_for_the_rtt() {
    assert_eq!(plan().min_budget(), Bytes::new(12_000));
    for (bytes, is_known) in [(11_999, false), (12_000, true)] {
        let budget = Some(Bytes::new(bytes));
        let report = measure(Truth::plain(), Plan { budget, ..plan() }, 7);
        assert_eq!(report.round_trip.base.value().is_some(), is_known);
    }
}

/// The echoes alone exceed this budget.
#[test]
fn a_skipped_rtt_belongs_to_no_direction() {
    let budget = Some(Bytes::new(1000));
    let report = measure(Truth::plain(), Plan { budget, ..plan() }, 7);
    let rtt = [Purpose::BaseRtt, Purpose::BaseRttAgain];
    assert_eq!(report.left_out.iter().map(|left| left.purpose).collect::<Vec<_>>(), rtt);
    let why = report.round_trip.base.why().expect("no echoes");
    assert!(why.contains("budget of 1 kB"), "{why}");
    for direction in report.directions {
        assert!(
            !direction.left_out.iter().any(|left| rtt.contains(&left.purpose)),
            "{direction:?}"
        );
    }
}

#[test]
fn a_gentle_measurement_fills_no_queue() {
    let report = measure(Truth::plain(), plan().gentle(), 7);
    // Sixteen packets of 1500 bytes at 50 Mbit/s take 3.84 ms; a stream at the last rate below the capacity causes less.
    assert!(report.intrusion.longest_queue_s < 0.005, "{:?}", report.intrusion);
    let down = &report.directions[0];
    assert!(off(down.capacity.value(), Rate::from_mbit_per_second(50)) < 0.02);
    assert!(down.buffer.bytes.value().is_none() && down.discipline.is_err());
}

/// Jitter hides idle time and pairs, so streams measure the available bandwidth.
#[test]
fn progress_names_each_step_once_with_its_direction() {
    let truth = Truth { jitter: Duration::from_millis(3), ..Truth::plain() };
    let plan = Plan { directions: vec![Direction::Down, Direction::Up], ..Plan::full() };
    let mut steps: Vec<String> = Vec::new();
    followed(truth, plan, 3, &mut |measurement| steps.push(measurement.progress()));
    steps.dedup();
    let purposes = [
        "rough capacity",
        "available bandwidth",
        "capacity",
        "available bandwidth by pairs",
        "available bandwidth by streams",
        "random loss",
        "buffer and queue discipline",
        "goodput and delay under load",
    ];
    let of = |way: &str| purposes.map(|purpose| format!("{purpose} ({way})"));
    let mut expected = vec!["base RTT".to_owned()];
    expected.extend(of("down"));
    expected.extend(of("up"));
    expected.push("base RTT again".to_owned());
    assert_eq!(steps, expected);
}

#[test]
fn a_measurement_takes_the_time_its_plan_predicts() {
    let plain = Truth::plain();
    let cross = Rate::from_mbit_per_second(25);
    let paths = [
        plain,
        Truth { cross, pareto: true, ..plain },
        Truth { loss: 0.001, ..plain },
        Truth { jitter: Duration::from_millis(3), ..plain },
    ];
    for plan in [Plan::full(), Plan::short(), Plan::full().gentle(), Plan::short().gentle()] {
        let (min, max) = plan.duration();
        for path in paths {
            let taken = timed(path, plan.clone(), 3).1;
            // Random gaps differ from their mean, and trains take the time of their packets.
            let bounds = min.scaled(0.95)..=max.scaled(1.05);
            assert!(bounds.contains(&taken), "{taken} is not in {min} to {max}: {path:?}");
        }
    }
}

/// Random paths: 2 to 500 Mbit/s, 2 to 150 ms each way, buffers of 0.1 to 3 BDP, load up to 60 %.
#[test]
fn most_measurements_of_random_paths_are_accurate() {
    const PATHS: u64 = 24;
    let mut misses: [Vec<String>; 3] = Default::default();
    let (mut intervals, mut held) = (0, 0);
    for seed in 0..PATHS {
        let mut random = Random::new(seed + 50);
        let rate = Rate::from_f64((2e6 * 250f64.powf(random.unit())).round());
        let delay = Duration::from_secs_f64(0.002 * 75f64.powf(random.unit()));
        let buffer = (rate * (delay * 2)).scaled(0.1 * 30f64.powf(random.unit()));
        let load = if random.unit() < 0.5 { 0.0 } else { 0.6 * random.unit() };
        let truth = Truth {
            rate,
            delay,
            buffer: buffer.max(Bytes::new(15_000)),
            cross: rate.scaled(load),
            pareto: random.unit() < 0.5,
            ..Truth::plain()
        };
        let down = measure(truth, plan(), seed).directions.remove(0);
        let case = format!("{truth:?}: {:?}", (&down.capacity, &down.available, &down.buffer));
        if off(down.capacity.value(), rate) > 0.03 {
            misses[0].push(case.clone());
        }
        if off(down.available.value(), rate - truth.cross) > 0.10 {
            misses[1].push(case.clone());
        }
        if let (Some(found), true) = (down.available.estimate(), load > 0.0) {
            intervals += 1;
            held += usize::from((found.low..=found.high).contains(&(rate - truth.cross)));
        }
        let depth = down.buffer.bytes.value().map_or(0.0, |found| found.as_f64());
        if (depth / truth.buffer.as_f64() - 1.0).abs() > 0.15 {
            misses[2].push(case);
        }
    }
    // 95 % intervals, with cross traffic of infinite variance.
    assert!(held * 10 >= intervals * 8, "{held} of {intervals} intervals hold what is available");
    // Nine in ten, eight in ten, and nine in ten must be close.
    let allowed = [PATHS as usize / 10, PATHS as usize / 5, PATHS as usize / 10];
    for (what, (misses, allowed)) in
        ["capacity", "available bandwidth", "buffer"].iter().zip(misses.iter().zip(allowed))
    {
        assert!(misses.len() <= allowed, "{what}: {} misses\n{}", misses.len(), misses.join("\n"));
    }
}
