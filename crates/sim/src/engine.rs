use sweetspot_scenario::{
    BottleneckOutcome, CrossOutcome, Engine, EngineError, Outcome, Recorder, Sample, Scenario,
    TransferOutcome,
};
use sweetspot_tcp::Statistics;
use sweetspot_units::{Duration, Time};

use crate::build::build;
use crate::event::Event;
use crate::group::Totals;
use crate::histogram::Histogram;
use crate::meter::QueueTotals;
use crate::scheduler::{QuadHeap, Scheduler};
use crate::world::World;

/// The packet-level simulator.
#[derive(Debug, Clone, Copy, Default)]
pub struct Simulator;

impl Engine for Simulator {
    fn name(&self) -> &'static str {
        "sim"
    }

    fn run(&self, scenario: &Scenario, recorder: &mut dyn Recorder) -> Result<Outcome, EngineError> {
        Ok(run_with(scenario, recorder, QuadHeap::default()))
    }
}

/// Plays `scenario` on a scheduler of the caller's choice; the outcome is the same on all.
pub fn run_with<S: Scheduler>(
    scenario: &Scenario,
    recorder: &mut dyn Recorder,
    scheduler: S,
) -> Outcome {
    let mut run = Run { world: build(scenario, scheduler), scenario, recorder };
    run.play()
}

/// Entries of the run's agenda.
const BEFORE_BEGINS: u32 = 0;
const BEFORE_ENDS: u32 = 1;
const MEASURE: u32 = 2;
const END: u32 = 3;
const SAMPLE: u32 = 4;

struct Run<'a, S> {
    world: World<S>,
    scenario: &'a Scenario,
    recorder: &'a mut dyn Recorder,
}

/// Everything countable at one time.
struct Snapshot {
    at: Time,
    queue: QueueTotals,
    targets: Vec<(u64, Statistics, u64)>,
    groups: Vec<Totals>,
}

impl<S: Scheduler> Run<'_, S> {
    fn play(&mut self) -> Outcome {
        let measure = Time::ZERO + self.scenario.warmup;
        let first = self.scenario.transfers.iter().map(|t| t.start).min();
        let first = Time::ZERO + first.unwrap_or(self.scenario.warmup);
        // The last third of the time before the first transfer: what start-up did is over.
        let quiet = Time::from_nanos(first.as_nanos() / 3 * 2);
        self.world.schedule(quiet, Event::Agenda(BEFORE_BEGINS));
        self.world.schedule(first, Event::Agenda(BEFORE_ENDS));
        self.world.schedule(measure, Event::Agenda(MEASURE));
        self.world.schedule(measure + self.scenario.duration, Event::Agenda(END));
        if self.recorder.interval().is_some() {
            self.world.schedule(Time::ZERO, Event::Agenda(SAMPLE));
        }
        let (mut before, mut after, mut begin) = (None, None, None);
        while let Some(entry) = self.world.run() {
            match entry {
                BEFORE_BEGINS => before = Some(self.snapshot()),
                BEFORE_ENDS => after = Some(self.snapshot()),
                MEASURE => {
                    self.world.targets.iter_mut().for_each(|t| t.rtt = Histogram::default());
                    let narrow = self.narrow();
                    self.world.hops[narrow].meter.most = 0;
                    begin = Some(self.snapshot());
                }
                SAMPLE => self.sample(),
                _ => break,
            }
        }
        let end = self.snapshot();
        self.world.assert_conservation();
        let before = before.zip(after);
        self.outcome(begin.as_ref().unwrap_or(&end), &end, before)
    }

    fn narrow(&self) -> usize {
        self.scenario.path.bottleneck()
    }

    fn snapshot(&mut self) -> Snapshot {
        let narrow = self.narrow();
        let world = &mut self.world;
        let now = world.now;
        let hop = &mut world.hops[narrow];
        hop.advance(now);
        let queue = hop.meter.totals(now);
        let mut groups: Vec<Totals> = world.groups.iter().map(|group| group.totals).collect();
        for (flow, sender) in world.flows.iter().zip(&world.senders) {
            groups[flow.group as usize].add(sender.acknowledged(), sender.statistics());
        }
        let targets = (0..world.targets.len()).map(|i| {
            let sender = &world.senders[i];
            (sender.acknowledged(), sender.statistics(), world.flows[i].dropped)
        });
        Snapshot { at: now, queue, targets: targets.collect(), groups }
    }

    fn sample(&mut self) {
        let narrow = self.narrow();
        let now = self.world.now;
        self.world.hops[narrow].advance(now);
        for transfer in 0..self.world.targets.len() {
            let sender = &self.world.senders[transfer];
            let group = &self.world.groups[self.world.flows[transfer].group as usize];
            self.recorder.record(&Sample {
                at_s: now.as_secs_f64(),
                transfer,
                cwnd_packets: sender.cwnd(),
                ssthresh_packets: sender.ssthresh(),
                window_bytes: self.world.receivers[transfer].advertised() * group.payload.get(),
                acked_bytes: sender.acknowledged() * group.payload.get(),
                queue_packets: self.world.hops[narrow].waiting(),
                dropped_packets: self.world.hops[narrow].meter.dropped(),
            });
        }
        if let Some(interval) = self.recorder.interval() {
            let next = now + interval.max(Duration::from_micros(1));
            self.world.schedule(next, Event::Agenda(SAMPLE));
        }
    }

    fn outcome(
        &self,
        begin: &Snapshot,
        end: &Snapshot,
        before: Option<(Snapshot, Snapshot)>,
    ) -> Outcome {
        let transfers = 0..self.world.targets.len();
        let crosses = self.scenario.transfers.len()..self.world.groups.len();
        let forwarded = self.world.hops.iter().map(|hop| hop.meter.departed()).sum();
        Outcome {
            scenario: self.scenario.title.clone(),
            engine: "sim".into(),
            seed: self.scenario.seed,
            version: env!("CARGO_PKG_VERSION").into(),
            transfers: transfers.map(|i| self.transfer_outcome(i, begin, end)).collect(),
            cross: crosses.map(|i| self.cross_outcome(i, begin, end)).collect(),
            bottleneck: self.bottleneck_outcome(begin, end, before),
            events: self.world.events,
            packets_forwarded: forwarded,
            wall_s: 0.0,
        }
    }

    fn transfer_outcome(&self, i: usize, begin: &Snapshot, end: &Snapshot) -> TransferOutcome {
        let world = &self.world;
        let payload = world.groups[world.flows[i].group as usize].payload;
        let ((acked0, stats0, dropped0), (acked1, stats1, dropped1)) =
            (begin.targets[i], end.targets[i]);
        let elapsed = end.at.since(begin.at).as_secs_f64();
        let rtt = &world.targets[i].rtt;
        TransferOutcome {
            goodput_bps: (acked1 - acked0) as f64 * payload.as_f64() * 8.0 / elapsed,
            rtt_mean_s: rtt.mean().as_secs_f64(),
            rtt_p99_s: rtt.quantile(0.99).as_secs_f64(),
            loss_rate: ratio(dropped1 - dropped0, stats1.sent - stats0.sent),
            retransmitted_packets: stats1.retransmitted - stats0.retransmitted,
            timeouts: stats1.timeouts - stats0.timeouts,
            window_final_bytes: world.receivers[i].advertised() * payload.get(),
            sizing: self.scenario.transfers[i].sizing.to_string(),
            events: Vec::new(),
        }
    }

    fn cross_outcome(&self, i: usize, begin: &Snapshot, end: &Snapshot) -> CrossOutcome {
        let totals = end.groups[i].since(begin.groups[i]);
        let payload = self.world.groups[i].payload;
        let elapsed = end.at.since(begin.at).as_secs_f64();
        let kind = &self.scenario.cross[i - self.scenario.transfers.len()].kind;
        CrossOutcome {
            kind: kind.name().into(),
            goodput_bps: totals.delivered as f64 * payload.as_f64() * 8.0 / elapsed,
            loss_rate: ratio(totals.dropped, totals.sent),
            retransmitted_packets: totals.retransmitted,
            timeouts: totals.timeouts,
            completed: totals.completed,
            completion_mean_s: match totals.completed {
                0 => 0.0,
                n => totals.completion as f64 / n as f64 / 1e9,
            },
        }
    }

    fn bottleneck_outcome(
        &self,
        begin: &Snapshot,
        end: &Snapshot,
        before: Option<(Snapshot, Snapshot)>,
    ) -> BottleneckOutcome {
        let narrow = self.narrow();
        let rate = self.scenario.path.narrow().rate.as_f64();
        let elapsed = end.at.since(begin.at).as_secs_f64();
        let nanos = elapsed * 1e9;
        let utilisation = |a: &Snapshot, b: &Snapshot| {
            let bytes = b.queue.departed_bytes - a.queue.departed_bytes;
            let seconds = b.at.since(a.at).as_secs_f64();
            if seconds > 0.0 { bytes as f64 * 8.0 / rate / seconds } else { 0.0 }
        };
        let (a, b) = (&begin.queue, &end.queue);
        BottleneckOutcome {
            utilisation: utilisation(begin, end),
            utilisation_before: before.map_or(0.0, |(a, b)| utilisation(&a, &b)),
            loss_rate: ratio(b.drops - a.drops, b.arrivals - a.arrivals),
            queue_mean_packets: (b.packet_time - a.packet_time) as f64 / nanos,
            queue_max_packets: self.world.hops[narrow].meter.most,
            queue_delay_mean_s: (b.byte_time - a.byte_time) as f64 / nanos * 8.0 / rate,
        }
    }
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
