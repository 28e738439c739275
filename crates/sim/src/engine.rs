use sweetspot_scenario::{Engine, EngineResult, NoRecorder, Outcome, Recorder, Scenario};
use sweetspot_sizing::{BdpDefinition, KnownPath, Sizing};
use sweetspot_units::{Duration, Rate, Time};

use crate::build::build;
use crate::event::Event;
use crate::hosts::ControllerMaker;
use crate::observers::{FlowRecorder, Sampler};
use crate::outcome::{Snapshot, outcome};
use crate::scheduler::{QuadHeap, Scheduler, Wheel};
use crate::world::World;

/// The packet-level simulator as an [`Engine`]. It runs every scenario and never returns an error.
#[derive(Debug, Clone, Copy, Default)]
pub struct Simulator;

impl Engine for Simulator {
    fn name(&self) -> &'static str {
        "sim"
    }

    fn run(&self, scenario: &Scenario, recorder: &mut dyn Recorder) -> EngineResult {
        Ok(run_steered(scenario, recorder, Vec::new()))
    }
}

/// With at least this many flows, a wheel is faster than a heap (docs/results/speed.md).
const WHEEL_FLOWS: usize = 16;

/// Runs `scenario` with the caller's own controllers.
///
/// `makers` has one entry per transfer, in the order of the file; `None` keeps the scenario's
/// sizing. Transfers beyond its end also keep theirs.
pub fn run_steered(
    scenario: &Scenario,
    recorder: &mut dyn Recorder,
    makers: Vec<Option<ControllerMaker>>,
) -> Outcome {
    if scenario.cross.is_empty() && scenario.transfers.len() < WHEEL_FLOWS {
        return run(scenario, recorder, QuadHeap::default, makers);
    }
    run(scenario, recorder, || Wheel::of(&scenario.path), makers)
}

/// Runs `scenario` on the caller's scheduler. The outcome does not depend on the scheduler.
///
/// `scheduler` creates an empty one. It is called twice if a sizing needs a first pass.
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
        // BTC and T_a are the rate and RTT of a transfer limited only by congestion control:
        // measure them in a first pass.
        let mut first = scenario.clone();
        for transfer in &mut first.transfers {
            transfer.sizing = Sizing::Max;
        }
        let first = simulate(&first, known, &mut NoRecorder, scheduler(), Vec::new());
        let transfer = &first.transfers[0];
        known.bulk_capacity = Some(Rate::from_f64(transfer.goodput_bps));
        known.loaded_rtt = Some(Duration::from_secs_f64(transfer.rtt_mean_s));
    }
    simulate(scenario, known, recorder, scheduler(), makers)
}

fn simulate<S: Scheduler>(
    scenario: &Scenario,
    known: KnownPath,
    recorder: &mut dyn Recorder,
    scheduler: S,
    makers: Vec<Option<ControllerMaker>>,
) -> Outcome {
    let mut world = build(scenario, known, scheduler, makers);
    world.observers.recorder = recorder.wants_flows().then(|| FlowRecorder::new(scenario));
    let sampler = Sampler::new(recorder);
    Simulation { world, scenario, recorder, sampler }.simulate()
}

/// A run in progress.
struct Simulation<'a, S> {
    world: World<S>,
    scenario: &'a Scenario,
    recorder: &'a mut dyn Recorder,
    sampler: Sampler,
}

struct MeasurementTimes {
    /// The last third of the time before the first transfer, after the effects of start-up.
    before: (Time, Time),
    /// From the end of the warm-up to the end.
    measured: (Time, Time),
}

impl<S: Scheduler> Simulation<'_, S> {
    fn simulate(mut self) -> Outcome {
        let begin = Time::ZERO + self.scenario.warmup;
        let first = self.scenario.transfers.iter().filter(|t| !t.follows).map(|t| t.start).min();
        let first = Time::ZERO + first.unwrap_or(self.scenario.warmup);
        let times = MeasurementTimes {
            before: (Time::from_nanos(first.as_nanos() / 3 * 2), first),
            measured: (begin, begin + self.scenario.duration),
        };
        self.schedule_observations(&times);
        let (mut before, mut until, mut start) = (None, None, None);
        let end = loop {
            let Some(index) = self.world.run() else { break self.snapshot() };
            let now = self.world.observers.times[index];
            self.world.watch_all();
            if self.sampler.is_due(now) {
                self.sample(now);
            }
            if now == times.before.0 && before.is_none() {
                before = Some(self.snapshot());
                let World { network, observers, .. } = &mut self.world;
                observers.path.start_averages(network, now);
            }
            if now == times.before.1 && until.is_none() {
                until = Some(self.snapshot());
            }
            if now == times.measured.0 && start.is_none() {
                let narrow = self.world.observers.path.narrow();
                self.world.network.hop(narrow).reset_max(now);
                start = Some(self.snapshot());
            }
            if now == times.measured.1 {
                self.hand_over_flows();
                break self.snapshot();
            }
            self.world.observers.clear_samples();
            self.world.look_ahead();
        };
        self.world.network.assert_conservation();
        outcome(self.scenario, &self.world, start.as_ref().unwrap_or(&end), &end, before.zip(until))
    }

    /// Schedules one event for every time that has an observation.
    fn schedule_observations(&mut self, times: &MeasurementTimes) {
        let MeasurementTimes { before, measured } = times;
        let mut times = vec![before.0, before.1, measured.0, measured.1];
        times.sort_unstable();
        self.world.observers.counts.clone_from(&times);
        self.world.look_ahead();
        times.extend(self.sampler.times(measured.1));
        times.sort_unstable();
        times.dedup();
        for (i, time) in times.iter().enumerate() {
            self.world.queue.schedule(*time, Event::Observe(i as u32));
        }
        self.world.observers.times = times;
    }

    fn hand_over_flows(&mut self) {
        let Some(recorder) = &mut self.world.observers.recorder else { return };
        for flow in recorder.take_finished() {
            self.recorder.record_flow(&flow);
        }
    }

    fn snapshot(&mut self) -> Snapshot {
        Snapshot::take(&mut self.world)
    }

    fn sample(&mut self, now: Time) {
        let World { network, hosts, observers, .. } = &mut self.world;
        self.sampler.sample(now, self.scenario, (network, hosts, observers), self.recorder);
    }
}
