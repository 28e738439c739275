use sweetspot_scenario::{Engine, EngineError, NoRecorder, Outcome, Recorder, Sample, Scenario};
use sweetspot_sizing::{BdpDefinition, KnownPath, Sizing};
use sweetspot_units::{Duration, Rate, Time};

use crate::build::build;
use crate::event::Event;
use crate::outcome::{Snapshot, mean_rate, outcome, utilisation};
use crate::recorder::FlowRecorder;
use crate::scheduler::{QuadHeap, Scheduler, Wheel};
use crate::target::ControllerMaker;
use crate::world::World;

/// The packet-level simulator.
#[derive(Debug, Clone, Copy, Default)]
pub struct Simulator;

impl Engine for Simulator {
    fn name(&self) -> &'static str {
        "sim"
    }

    fn run(
        &self,
        scenario: &Scenario,
        recorder: &mut dyn Recorder,
    ) -> Result<Outcome, EngineError> {
        Ok(run_steered(scenario, recorder, Vec::new()))
    }
}

/// From so many flows on a wheel is faster than a heap (docs/results/speed.md).
const MANY: usize = 16;

/// Plays `scenario` with controllers of the caller's own: `makers` has one for each transfer, in
/// the order of the file, or `None` where the scenario's sizing stays.
pub fn run_steered(
    scenario: &Scenario,
    recorder: &mut dyn Recorder,
    makers: Vec<Option<ControllerMaker>>,
) -> Outcome {
    if scenario.cross.is_empty() && scenario.transfers.len() < MANY {
        return run(scenario, recorder, QuadHeap::default, makers);
    }
    run(scenario, recorder, || Wheel::of(&scenario.path), makers)
}

/// Plays `scenario` on schedulers of the caller's choice; the outcome is the same on all.
pub fn run_with<S: Scheduler>(
    scenario: &Scenario,
    recorder: &mut dyn Recorder,
    scheduler: impl Fn() -> S,
) -> Outcome {
    run(scenario, recorder, scheduler, Vec::new())
}

fn run<S: Scheduler>(
    scenario: &Scenario,
    recorder: &mut dyn Recorder,
    scheduler: impl Fn() -> S,
    makers: Vec<Option<ControllerMaker>>,
) -> Outcome {
    let path = &scenario.path;
    let mut known = KnownPath::new(path.narrow().rate, path.rtt);
    let needs_pass = Sizing::BdpBy(BdpDefinition::Bdp5);
    if scenario.transfers.iter().any(|transfer| transfer.sizing == needs_pass) {
        // BTC and T_a are what a transfer limited by congestion alone gets: a first pass.
        let mut first = scenario.clone();
        for transfer in &mut first.transfers {
            transfer.sizing = Sizing::Max;
        }
        let first = play(&first, known, &mut NoRecorder, scheduler(), Vec::new());
        let transfer = &first.transfers[0];
        known.bulk_capacity = Some(Rate::from_f64(transfer.goodput_bps));
        known.loaded_rtt = Some(Duration::from_secs_f64(transfer.rtt_mean_s));
    }
    play(scenario, known, recorder, scheduler(), makers)
}

fn play<S: Scheduler>(
    scenario: &Scenario,
    known: KnownPath,
    recorder: &mut dyn Recorder,
    scheduler: S,
    makers: Vec<Option<ControllerMaker>>,
) -> Outcome {
    let mut world = build(scenario, known, scheduler, makers);
    world.recorder = recorder.wants_flows().then(|| FlowRecorder::new(scenario));
    Run { world, scenario, recorder, next_sample: 0, sampled: (Time::ZERO, 0) }.play()
}

struct Run<'a, S> {
    world: World<S>,
    scenario: &'a Scenario,
    recorder: &'a mut dyn Recorder,
    /// The next sample's time, in intervals.
    next_sample: u64,
    /// When the sample before was taken, and what the narrow link had sent by then.
    sampled: (Time, u64),
}

/// The times that matter to the outcome.
struct MeasurementTimes {
    /// The last third of the time before the first transfer: what start-up did is over.
    before: (Time, Time),
    measured: (Time, Time),
}

impl<S: Scheduler> Run<'_, S> {
    fn play(mut self) -> Outcome {
        let begin = Time::ZERO + self.scenario.warmup;
        let first = self.scenario.transfers.iter().map(|t| t.start).min();
        let first = Time::ZERO + first.unwrap_or(self.scenario.warmup);
        let times = MeasurementTimes {
            before: (Time::from_nanos(first.as_nanos() / 3 * 2), first),
            measured: (begin, begin + self.scenario.duration),
        };
        self.schedule_observations(&times);
        let (mut before, mut until, mut start) = (None, None, None);
        let end = loop {
            let Some(index) = self.world.run() else { break self.snapshot() };
            let now = self.world.observations[index];
            self.watch_all();
            if self.is_sample(now) {
                self.sample(now);
            }
            if now == times.before.0 && before.is_none() {
                before = Some(self.snapshot());
                self.note_path(now);
            }
            if now == times.before.1 && until.is_none() {
                until = Some(self.snapshot());
            }
            if now == times.measured.0 && start.is_none() {
                let narrow = self.world.path.narrow;
                self.world.hops[narrow].reset_most(now);
                start = Some(self.snapshot());
            }
            if now == times.measured.1 {
                self.hand_over_flows();
                break self.snapshot();
            }
            self.forget_views();
            self.world.look_ahead();
        };
        self.world.assert_conservation();
        outcome(self.scenario, &self.world, start.as_ref().unwrap_or(&end), &end, before.zip(until))
    }

    /// Puts every time at which something is looked at into the event queue, once.
    fn schedule_observations(&mut self, times: &MeasurementTimes) {
        let MeasurementTimes { before, measured } = times;
        let mut times = vec![before.0, before.1, measured.0, measured.1];
        times.sort_unstable();
        self.world.counts.clone_from(&times);
        self.world.look_ahead();
        if let Some(interval) = self.interval() {
            let count = measured.1.as_nanos() / interval.as_nanos();
            times.extend((0..=count).map(|n| Time::ZERO + interval * n));
        }
        times.sort_unstable();
        times.dedup();
        for (i, time) in times.iter().enumerate() {
            self.world.schedule(*time, Event::Observe(i as u32));
        }
        self.world.observations = times;
    }

    fn interval(&self) -> Option<Duration> {
        self.recorder.interval().map(|interval| interval.max(Duration::from_micros(1)))
    }

    fn is_sample(&self, now: Time) -> bool {
        self.interval().is_some_and(|interval| now == Time::ZERO + interval * self.next_sample)
    }

    /// Looks at the hosts that have not passed this time by themselves.
    fn watch_all(&mut self) {
        let just_after = self.world.now + Duration::from_nanos(1);
        for index in 0..self.world.targets.len() {
            self.world.watch_source(index, just_after);
            self.world.watch_sink(index, just_after);
        }
    }

    /// The views of this time are used up.
    fn forget_views(&mut self) {
        for target in &mut self.world.targets {
            target.monitor.sources.pop_front();
            target.monitor.windows.pop_front();
        }
    }

    /// From now on, averages tell static sizings about the path.
    fn note_path(&mut self, now: Time) {
        let narrow = self.world.path.narrow;
        let half = self.world.hops.len() / 2;
        let forward = self.world.hops[narrow].totals(now);
        let backward = self.world.hops[half + narrow].totals(now);
        self.world.path.before = Some((now, forward, backward));
    }

    fn hand_over_flows(&mut self) {
        let Some(recorder) = &mut self.world.recorder else { return };
        for flow in recorder.take_finished() {
            self.recorder.record_flow(&flow);
        }
    }

    fn snapshot(&mut self) -> Snapshot {
        Snapshot::take(&mut self.world)
    }

    fn sample(&mut self, now: Time) {
        self.next_sample += 1;
        let narrow = self.world.path.narrow;
        let waiting = self.world.hops[narrow].waiting(now);
        let totals = self.world.hops[narrow].totals(now);
        let (since, sent_before) = self.sampled;
        self.sampled = (now, totals.sent_bits);
        let rate = mean_rate(self.scenario, since, now);
        let used = utilisation(rate, totals.sent_bits - sent_before, now.since(since));
        for transfer in 0..self.world.targets.len() {
            let payload = self.world.payload(transfer).get();
            let monitor = &self.world.targets[transfer].monitor;
            let source = monitor.sources.front().copied().unwrap_or_default();
            self.recorder.record(&Sample {
                at_s: now.as_secs_f64(),
                transfer,
                cwnd_packets: source.cwnd,
                ssthresh_packets: source.ssthresh,
                window_bytes: monitor.windows.front().copied().unwrap_or(0) * payload,
                acked_bytes: source.acknowledged * payload,
                rtt_s: source.rtt.map(Duration::as_secs_f64),
                queue_packets: waiting,
                dropped_packets: totals.drops,
                utilisation: Some(used),
            });
        }
    }
}
