//! The sequence of steps of a measurement.

use sweetspot_statistics::Sorted;
use sweetspot_units::{Bytes, Duration, Rate};

use crate::direction_observations::Observations;
use crate::dispersion;
use crate::observation::{EchoRecord, Step, StepResult, StreamRecord, gap};
use crate::plan::{
    ECHO_INTERVAL, LONGEST_LOSS, LOSS_PACKETS_PER_SECOND, MAX_SLOW_STREAMS, OVERLOAD_GROWTH, Plan,
};
use crate::report::{HostNoise, Report};
use crate::search::{RateSearch, Verdict};
use crate::skipped::{Purpose, SkippedSteps};
use crate::spacing::Spacing;
use crate::stage::Stage;
use crate::traces::{DirectionTrace, Traces, round_trips};
use crate::trend::{MIN_NOISE, trend};
use crate::{Bound, Finding, Overload, available_bandwidth};

/// Bytes of an echo on the wire, the smallest size of its datagram.
const ECHO_SIZE: Bytes = Bytes::new(100);
/// Rate of a stream that fills the buffer, as a multiple of the capacity.
const OVERLOAD_RATIO: f64 = 1.5;
/// A slight stream exceeds the upper end of the available bandwidth by this share of the capacity.
const SLIGHT_EXCESS: f64 = 0.02;
/// Packets of a scout train, few enough to fit into most buffers.
const SCOUT_PACKETS: u32 = 6;
/// Sparse packets, and pairs, use this share of the capacity.
const SPARSE_SHARE: f64 = 0.1;
/// Gap within a pair, as a share of a packet's time on the link, so that the link stays busy in between.
const PAIR_GAP: f64 = 0.9;
/// Small packets use this share of the available bandwidth.
const LOSS_SHARE: f64 = 0.3;
/// With this many losses, their rate is known to a factor of 1.5: (1.96 / ln 1.5)^2. Until then, up to [`MAX_SLOW_STREAMS`]
/// streams are sent.
const TARGET_LOSSES: u32 = 24;
/// Minimum number of packets in a stream.
const MIN_STREAM_PACKETS: u32 = 30;
/// Maximum number of packets in a stream.
const MAX_STREAM_PACKETS: u32 = 100_000;

/// A measurement: it chooses the next step and evaluates the results.
///
/// Call [`Measurement::poll_step`], carry out the step, pass its result to [`Measurement::handle`], and repeat until there is
/// no further step. Report a step that fails as failed; the measurement continues with the others.
#[derive(Debug, Clone)]
pub struct Measurement {
    plan: Plan,
    stage: Stage,
    idle: Vec<EchoRecord>,
    observations: Vec<Observations>,
    /// Skipped measurements of the RTT, with the reasons.
    left_out: SkippedSteps,
    spent: Bytes,
    failures: u32,
    /// Mean time that this host's threads waited for a CPU.
    cpu_wait: Duration,
}

/// After this many consecutive failed steps the rest is skipped.
const MAX_FAILURES: u32 = 3;

impl Measurement {
    /// A measurement by this plan.
    pub fn new(plan: Plan) -> Measurement {
        let observations = plan.directions.iter().map(|_| Observations::default()).collect();
        let (idle, spent) = (Vec::new(), Bytes::ZERO);
        Measurement {
            plan,
            stage: Stage::Idle,
            idle,
            observations,
            left_out: SkippedSteps::default(),
            spent,
            failures: 0,
            cpu_wait: Duration::ZERO,
        }
    }

    /// The next step; `None` at the end. Returns the same step until [`Measurement::handle`] is called.
    pub fn poll_step(&mut self) -> Option<Step> {
        loop {
            if self.stage == Stage::Done || self.failures >= MAX_FAILURES {
                return None;
            }
            match self.step() {
                Some(step) if self.fits_budget(&step) => return Some(step),
                Some(step) => {
                    let budget = self.plan.budget.unwrap_or(Bytes::ZERO);
                    self.skip_step(format!(
                        "{} more would exceed the budget of {budget}",
                        step.cost()
                    ));
                    self.skip();
                }
                None => {
                    if let Some(why) = self.why_no_load() {
                        self.skip_step(why);
                    }
                    self.skip();
                }
            }
        }
    }

    /// The current step as text: its purpose, and its direction if it has one.
    pub fn progress(&self) -> String {
        match self.stage.direction() {
            Some(d) => {
                format!("{} ({})", self.stage.purpose().name(), self.plan.directions[d].name())
            }
            None => self.stage.purpose().name().to_owned(),
        }
    }

    /// Handles the result of the step that [`Measurement::poll_step`] returned.
    pub fn handle(&mut self, result: StepResult) {
        if let Some(step) = self.step() {
            self.spent += cost_of(&step, &result);
        }
        if let StepResult::Failed(why) = result {
            self.failures += 1;
            self.skip_step(why);
            return self.skip();
        }
        self.failures = 0;
        match (self.stage, result) {
            (Stage::Idle | Stage::Again, StepResult::Echo(record)) => {
                self.idle.push(record);
                self.skip();
            }
            (Stage::Scouts(d, left), StepResult::Stream(record, _)) => {
                self.observations[d].scouts.push(record);
                self.stage = if left > 1 { Stage::Scouts(d, left - 1) } else { Stage::Sparse(d) };
            }
            (Stage::Sparse(d), StepResult::Stream(record, _)) => {
                self.observations[d].sparse = Some(record);
                self.skip();
            }
            (Stage::Pairs(d), StepResult::Stream(record, _)) => {
                self.observations[d].pairs = Some(record);
                self.skip();
            }
            (Stage::Trains(d, left), StepResult::Stream(record, _)) => {
                self.observations[d].trains.push(record);
                self.stage = if left > 1 { Stage::Trains(d, left - 1) } else { Stage::Pairs(d) };
            }
            (Stage::Bounding(d), StepResult::Stream(record, _)) => self.bounded(d, record),
            (Stage::Averaging(d, left), StepResult::Stream(record, _)) => {
                self.observations[d].streams.push(record);
                self.stage = if left > 1 { Stage::Averaging(d, left - 1) } else { Stage::Slow(d) };
            }
            (Stage::Slow(d), StepResult::Stream(record, _)) => {
                let slow = &mut self.observations[d].slow;
                slow.push(record);
                let lost: u32 = slow.iter().map(StreamRecord::lost).sum();
                // Too few losses for an interval of a factor of 1.5, so another stream is sent.
                let more = (1..TARGET_LOSSES).contains(&lost) && slow.len() < MAX_SLOW_STREAMS;
                if !more {
                    self.skip();
                }
            }
            (Stage::Overload(d, length), StepResult::Stream(stream, echoes)) => {
                self.overloaded(d, length, stream, echoes);
            }
            (Stage::Slight(d), StepResult::Stream(record, _)) => {
                self.observations[d].slight = Some(record);
                self.skip();
            }
            (Stage::Load(d), StepResult::Load(record)) => {
                self.observations[d].load = Some(record);
                self.skip();
            }
            _ => self.skip(),
        }
    }

    /// Ends the measurement because of `why`. The results so far remain, and each direction reports `why` for the rest.
    pub fn end_early(&mut self, why: &str) {
        for (d, observations) in self.observations.iter_mut().enumerate() {
            if self.stage.direction().is_none_or(|current| d >= current) {
                observations.left_out.push(Purpose::Rest, why.to_owned());
            }
        }
        self.stage = Stage::Done;
    }

    /// The observations so far, for plots.
    pub fn traces(&self) -> Traces {
        let idle = self.idle.first().map_or_else(Vec::new, round_trips);
        let directions = self.plan.directions.iter().zip(&self.observations);
        let directions = directions.map(|(direction, o)| DirectionTrace::of(*direction, o));
        Traces { idle, directions: directions.collect() }
    }

    /// Takes the mean time for which the threads that send and receive packets waited for a CPU.
    pub fn handle_cpu_wait(&mut self, mean: Duration) {
        self.cpu_wait = mean;
    }

    /// The results so far.
    pub fn report(&self) -> Report {
        let noise = HostNoise { delays: self.noise(), cpu_wait: self.cpu_wait };
        Report::new(&self.plan, &self.idle, &self.observations, &self.left_out, self.spent, noise)
    }

    fn bounded(&mut self, d: usize, record: StreamRecord) {
        let noise = self.noise();
        let Some(rate) = dispersion(&record).map(|found| found.rate_in) else { return self.skip() };
        let observations = &mut self.observations[d];
        let loading = observations.loading(std::slice::from_ref(&record));
        let trend = loading.first().and_then(|stream| trend(stream, noise));
        let Some(search) = &mut observations.search else { return self.skip() };
        search.handle(rate, Verdict::from(trend));
        observations.streams.push(record);
    }

    /// Repeats a stream that did not fill the buffer with a longer one.
    fn overloaded(&mut self, d: usize, length: Duration, stream: StreamRecord, echoes: EchoRecord) {
        let capacity = self.capacity(d).unwrap_or(Rate::from_mbit_per_second(1));
        let reference_s = self.observations[d].reference_s().unwrap_or(0.0);
        let base_rtt = Duration::ZERO;
        let overload = Overload {
            direction: self.plan.directions[d],
            stream: &stream,
            echoes: &echoes,
            capacity,
            reference_s,
            base_rtt,
            random_loss: 0.0,
        };
        let full = overload.is_full();
        self.observations[d].overloads.push((stream, echoes));
        let longest = self.plan.overload.unwrap_or(length);
        if full || length >= longest {
            self.skip();
        } else {
            self.stage = Stage::Overload(d, (length * OVERLOAD_GROWTH).min(longest));
        }
    }

    /// The current stage's step; `None` if nothing is left to do in it.
    fn step(&mut self) -> Option<Step> {
        let packet = self.plan.packet;
        match self.stage {
            Stage::Idle | Stage::Again => Some(Step::Echo {
                packets: self.plan.echoes,
                interval: ECHO_INTERVAL,
                size: ECHO_SIZE,
            }),
            Stage::Scouts(d, _) => Some(self.train(d, SCOUT_PACKETS)),
            Stage::Sparse(d) => self.sparse_stream(d),
            Stage::Pairs(d) => self.pairs_stream(d),
            Stage::Trains(d, _) => Some(self.train(d, self.plan.train_packets)),
            Stage::Bounding(d) => {
                if self.observations[d].undisturbed(packet).is_some() {
                    return None;
                }
                let max = self.plan.bounding;
                let rate = self.search(d)?.next_rate(max)?;
                Some(self.stream(d, rate, self.plan.stream, false))
            }
            Stage::Averaging(d, _) => {
                if self.observations[d].undisturbed(packet).is_some() {
                    return None;
                }
                let rate = self.search(d)?.averaging_rate();
                Some(self.stream(d, rate, self.plan.stream, false))
            }
            Stage::Slow(d) => self.slow_stream(d),
            Stage::Overload(d, length) => {
                self.plan.overload?;
                let rate = self.capacity(d)?.scaled(OVERLOAD_RATIO);
                Some(self.stream(d, rate, length, true))
            }
            Stage::Slight(d) => {
                let rate = self.slight_rate(d)?;
                Some(self.stream(d, rate, self.plan.slight?, false))
            }
            Stage::Load(d) => {
                let (duration, rate) = (self.plan.load?, self.min_capacity(d)?);
                let max = (rate * duration).scaled(1.2) + Bytes::new(1_000_000);
                Some(Step::Load { direction: self.plan.directions[d], duration, max })
            }
            Stage::Done => None,
        }
    }

    fn search(&mut self, d: usize) -> Option<&RateSearch> {
        let capacity = self.capacity(d)?;
        let search = &mut self.observations[d].search;
        Some(search.get_or_insert(RateSearch::new(capacity)))
    }

    fn capacity(&self, d: usize) -> Option<Rate> {
        self.observations[d].capacity().capacity.value()
    }

    /// The capacity, or its lower bound on a path faster than the sender: TCP's load needs no more.
    fn min_capacity(&self, d: usize) -> Option<Rate> {
        match self.observations[d].capacity().capacity {
            Finding::Bounded { bound: Bound::AtLeast(rate), .. } => Some(rate),
            found => found.value(),
        }
    }

    fn stream(&self, d: usize, rate: Rate, length: Duration, echoes: bool) -> Step {
        let size = self.plan.packet;
        let packets = packets_in(rate * length, size);
        Step::Stream {
            direction: self.plan.directions[d],
            packets: packets.clamp(MIN_STREAM_PACKETS, MAX_STREAM_PACKETS),
            size,
            gap: gap(size, rate),
            spacing: Spacing::Even,
            echoes,
        }
    }

    fn train(&self, d: usize, packets: u32) -> Step {
        Step::Stream {
            direction: self.plan.directions[d],
            packets,
            size: self.plan.packet,
            gap: Duration::ZERO,
            spacing: Spacing::Even,
            echoes: false,
        }
    }

    /// A stream of small packets with exponential gaps, which sample the link's time average (PASTA).
    fn sparse_stream(&self, d: usize) -> Option<Step> {
        let fastest = ECHO_SIZE.as_f64() * 8.0 * LOSS_PACKETS_PER_SECOND;
        let rate = Rate::from_f64((self.fastest(d)?.as_f64() * SPARSE_SHARE).min(fastest));
        self.at_random(d, ECHO_SIZE, rate, Spacing::Poisson)
    }

    /// A stream of pairs, for links on which packets' waits are too short to be distinguished from noise.
    fn pairs_stream(&self, d: usize) -> Option<Step> {
        let observations = &self.observations[d];
        let packet = self.plan.packet;
        observations.sparse.as_ref()?;
        if observations.undisturbed(packet).is_some() {
            return None;
        }
        let capacity = self.fastest(d)?;
        let within = (packet / capacity).scaled(PAIR_GAP);
        self.at_random(d, packet, capacity.scaled(SPARSE_SHARE), Spacing::PoissonPairs(within))
    }

    fn at_random(&self, d: usize, size: Bytes, rate: Rate, spacing: Spacing) -> Option<Step> {
        let packets = packets_in(rate * self.plan.sparse, size).min(MAX_STREAM_PACKETS);
        (packets >= MIN_STREAM_PACKETS).then(|| Step::Stream {
            direction: self.plan.directions[d],
            packets,
            size,
            gap: gap(size, rate),
            spacing,
            echoes: false,
        })
    }

    /// The capacity from the short trains; with cross traffic rather too high than too low.
    fn fastest(&self, d: usize) -> Option<Rate> {
        let found = self.observations[d].capacity();
        Some(found.capacity.value()?.max(found.pair_mode.unwrap_or(Rate::from_f64(0.0))))
    }

    /// The available bandwidth; without sparse packets or pairs for it, the middle of the search's bounds.
    fn available(&self, d: usize) -> Option<Rate> {
        let observations = &self.observations[d];
        if let Some(Finding::Known { estimate, .. }) = observations.undisturbed(self.plan.packet) {
            return Some(estimate.value);
        }
        let (low, high) = observations.search.as_ref()?.bounds();
        Some(Rate::from_f64((low.as_f64() + high.as_f64()) / 2.0))
    }

    /// A rate slightly above the available bandwidth, if the buffer was filled before.
    fn slight_rate(&self, d: usize) -> Option<Rate> {
        let observations = &self.observations[d];
        let capacity = self.capacity(d)?;
        observations.overloads.last()?;
        let found = observations.undisturbed(self.plan.packet).unwrap_or_else(|| {
            let loading = observations.loading(&observations.streams);
            available_bandwidth(capacity, &loading, self.noise())
        });
        Some(found.estimate()?.high + capacity.scaled(SLIGHT_EXCESS))
    }

    /// A stream of small packets below the available bandwidth.
    fn slow_stream(&self, d: usize) -> Option<Step> {
        let available = self.available(d)?;
        let fastest = ECHO_SIZE.as_f64() * 8.0 * LOSS_PACKETS_PER_SECOND;
        let rate = Rate::from_f64((available.as_f64() * LOSS_SHARE).min(fastest));
        let packets = packets_in(rate * LONGEST_LOSS, ECHO_SIZE).min(self.plan.loss_packets);
        (packets >= MIN_STREAM_PACKETS).then(|| Step::Stream {
            direction: self.plan.directions[d],
            packets,
            size: ECHO_SIZE,
            gap: gap(ECHO_SIZE, rate),
            spacing: Spacing::Even,
            echoes: false,
        })
    }

    /// Growth of delays below this is insignificant: the variation of single packets on the idle path.
    fn noise(&self) -> Duration {
        let echoes = self.idle.iter().flat_map(|record| &record.echoes);
        let delays: Sorted = echoes.map(|echo| echo.round_trip().as_secs_f64()).collect();
        let spread = delays.quantiles([0.25, 0.75]).map_or(0.0, |[low, high]| high - low);
        MIN_NOISE.max(Duration::from_secs_f64(spread / 2.0))
    }

    fn fits_budget(&self, step: &Step) -> bool {
        self.plan.budget.is_none_or(|budget| self.spent + step.cost() <= budget)
    }

    fn skip_step(&mut self, why: String) {
        match self.stage.direction() {
            Some(d) => self.observations[d].left_out.push(self.stage.purpose(), why),
            None => self.left_out.push(self.stage.purpose(), why),
        }
    }

    /// The reason why the plan's load cannot be sent.
    fn why_no_load(&self) -> Option<String> {
        let Stage::Load(d) = self.stage else { return None };
        self.plan.load.map(|_| self.observations[d].lacks_capacity())
    }

    /// Moves to the next stage.
    fn skip(&mut self) {
        self.stage = self.stage.next(&self.plan);
    }
}

/// The bytes that a step sent over the path, including concurrent echoes.
fn cost_of(step: &Step, result: &StepResult) -> Bytes {
    let echoes = |record: &EchoRecord| record.size * (2 * u64::from(record.sent));
    match result {
        StepResult::Stream(_, beside) => step.cost() + echoes(beside),
        StepResult::Load(load) => load.content + echoes(&load.echoes),
        StepResult::Echo(_) => step.cost(),
        StepResult::Failed(_) => Bytes::ZERO,
    }
}

/// Number of packets of `size` in `bytes`.
fn packets_in(bytes: Bytes, size: Bytes) -> u32 {
    u32::try_from(bytes.get().div_ceil(size.get().max(1))).unwrap_or(u32::MAX)
}
