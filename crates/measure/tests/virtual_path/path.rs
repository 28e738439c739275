//! A path in virtual time for a measurement: the elements of `sweetspot-path`, with cross traffic.

use sweetspot_measure::{
    Arrival, Direction, Echo, EchoRecord, LoadRecord, Measurement, PAUSE, Plan, Report, Step,
    StepResult, StreamRecord,
};
use sweetspot_path::{
    Codel, CodelConfig, DirectionSpec, Discipline, DropTail, FqCodel, FqCodelConfig, Link, Packet,
    Propagation, Random, RandomLoss, Red, RedConfig, TokenBucket,
};
use sweetspot_units::{Bytes, Duration, Probability, Rate, Time, Volume};

/// The properties of both directions of a path.
#[derive(Debug, Clone, Copy)]
pub struct Truth {
    pub rate: Rate,
    pub delay: Duration,
    pub buffer: Bytes,
    /// The depth of a token bucket filled at `rate`; zero for a link of constant rate.
    pub burst: Bytes,
    pub queue: &'static str,
    pub loss: f64,
    pub jitter: Duration,
    /// How long the receiving host pauses in every [`STALL_INTERVAL`]. Packets received meanwhile are delivered at the
    /// end of the pause.
    pub stall: Duration,
    /// The mean rate of cross traffic, and whether its gaps are Pareto or exponential.
    pub cross: Rate,
    pub pareto: bool,
    /// Whether cross traffic halves its rate when it loses a packet, and regains it within ten seconds, like paced TCP.
    pub yields: bool,
}

impl Truth {
    /// 50 Mbit/s, 20 ms each way, one BDP of buffer, drop-tail, no cross traffic.
    pub fn plain() -> Truth {
        Truth {
            rate: Rate::from_mbit_per_second(50),
            delay: Duration::from_millis(20),
            buffer: Bytes::new(250_000),
            burst: Bytes::ZERO,
            queue: "drop-tail",
            loss: 0.0,
            jitter: Duration::ZERO,
            stall: Duration::ZERO,
            cross: Rate::from_f64(0.0),
            pareto: false,
            yields: false,
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Probe {
    size: Bytes,
    flow: u64,
    /// The packet's index in the stream; `None` for cross traffic.
    place: Option<usize>,
    sent: Time,
}

impl Packet for Probe {
    fn wire_size(&self) -> Bytes {
        self.size
    }

    fn flow(&self) -> u64 {
        self.flow
    }
}

/// One direction with its cross traffic.
struct VirtualDirection {
    truth: Truth,
    link: Link<Probe, Discipline<Probe>>,
    propagation: Propagation,
    loss: RandomLoss,
    random: Random,
    next_cross: Time,
    /// Cross traffic's share of its full rate, and the time since which it applies.
    pace: (f64, Time),
}

/// The far end's clock is ahead by this much.
const CLOCK_OFFSET: Duration = Duration::from_secs(12_345);
/// The packet size and the number of sources of cross traffic.
const CROSS_SIZE: Bytes = Bytes::new(1000);
/// Time in which yielding cross traffic regains its rate.
const RECOVERY_TIME: Duration = Duration::from_secs(10);
/// Interval between pauses of the receiving host.
const STALL_INTERVAL: Duration = Duration::from_millis(170);
/// The rate at which a host sends a train, Mbit/s.
const HOST_RATE: u64 = 2000;

impl VirtualDirection {
    fn new(truth: Truth, seed: u64) -> VirtualDirection {
        let packet = Bytes::new(1500);
        let limit = Volume::Bytes(truth.buffer);
        let queue = match truth.queue {
            "red" => {
                let config = RedConfig::new(limit, packet, packet / truth.rate);
                Discipline::Red(Box::new(Red::new(config, seed)))
            }
            "codel" => Discipline::Codel(Box::new(Codel::new(limit, CodelConfig::default()))),
            "fq-codel" => {
                let config = FqCodelConfig::new(limit.in_packets(packet));
                Discipline::FqCodel(Box::new(FqCodel::new(config, seed)))
            }
            _ => Discipline::DropTail(DropTail::new(limit)),
        };
        let spec = DirectionSpec {
            jitter: truth.jitter,
            ..DirectionSpec::new(truth.rate, truth.delay, limit)
        };
        let link = match truth.burst {
            Bytes::ZERO => Link::new(truth.rate, queue),
            burst => Link::shaper(TokenBucket::new(truth.rate, burst), queue),
        };
        VirtualDirection {
            truth,
            link,
            propagation: Propagation::new(&spec, seed),
            loss: RandomLoss::new(Probability::new(truth.loss).unwrap(), seed),
            random: Random::new(seed),
            next_cross: Time::ZERO,
            pace: (1.0, Time::ZERO),
        }
    }

    fn cross_gap(&mut self) -> Duration {
        let mean = (CROSS_SIZE / self.truth.cross).as_secs_f64();
        let u = self.random.unit().max(1e-12);
        // A Pareto distribution of shape 1.5 has a mean of three times its minimum.
        let gap = if self.truth.pareto { mean / 3.0 * u.powf(-1.0 / 1.5) } else { -mean * u.ln() };
        Duration::from_secs_f64(gap)
    }

    /// Sends packets in order of time. Returns when each has passed.
    fn run(&mut self, packets: &[(Time, Bytes, u64)]) -> Vec<Option<Time>> {
        let mut through = vec![None; packets.len()];
        let crossing = self.truth.cross > Rate::from_f64(0.0);
        for (place, (at, size, flow)) in packets.iter().enumerate() {
            while crossing && self.next_cross <= *at {
                let due = self.next_cross;
                let flow = 100 + u64::from(self.random.unit() < 0.5);
                let probe = Probe { size: CROSS_SIZE, flow, place: None, sent: due };
                let lost = !self.enter(due, probe, &mut through);
                let (share, since) = self.pace;
                let regained = share + due.since(since).as_secs_f64() / RECOVERY_TIME.as_secs_f64();
                let now = regained.min(1.0);
                if lost && self.truth.yields {
                    self.pace = ((now / 2.0).max(0.1), due);
                }
                let gap = self.cross_gap();
                self.next_cross += gap.scaled(1.0 / now.max(0.1));
            }
            if !self.loss.takes_next() {
                let probe = Probe { size: *size, flow: *flow, place: Some(place), sent: *at };
                self.enter(*at, probe, &mut through);
            }
        }
        self.drain(Time::MAX, &mut through);
        through
    }

    /// Returns whether the buffer had space.
    fn enter(&mut self, at: Time, probe: Probe, through: &mut [Option<Time>]) -> bool {
        self.drain(at, through);
        self.link.handle_arrival(at, probe).is_ok()
    }

    /// The time at which the receiving host sees a packet that has passed at `out`.
    fn noticed(&self, out: Time) -> Time {
        let into = Duration::from_nanos(out.as_nanos() % STALL_INTERVAL.as_nanos());
        out + self.truth.stall.saturating_sub(into)
    }

    fn drain(&mut self, until: Time, through: &mut [Option<Time>]) {
        while let Some((left, probe)) = self.link.poll_departure(until, &mut |_| {}) {
            assert!(left >= probe.sent);
            let out = self.propagation.handle_departure(left);
            let out = self.noticed(out);
            if let Some(place) = probe.place {
                through[place] = Some(out);
            }
        }
    }
}

/// Runs a measurement.
pub fn measure(truth: Truth, plan: Plan, seed: u64) -> Report {
    timed(truth, plan, seed).0
}

/// As [`measure`]; also returns the duration of the steps with the pauses between them, without RTTs.
pub fn timed(truth: Truth, plan: Plan, seed: u64) -> (Report, Duration) {
    followed(truth, plan, seed, &mut |_| ())
}

/// As [`timed`], with a call of `follow` before each step.
pub fn followed(
    truth: Truth,
    plan: Plan,
    seed: u64,
    follow: &mut dyn FnMut(&mut Measurement),
) -> (Report, Duration) {
    let mut spent = Duration::ZERO;
    let mut measurement = Measurement::new(plan);
    let mut directions =
        [VirtualDirection::new(truth, seed), VirtualDirection::new(truth, seed + 1000)];
    let mut now = Time::ZERO + Duration::from_secs(1);
    while let Some(step) = measurement.poll_step() {
        follow(&mut measurement);
        let began = now;
        let result = carry_out(&step, &mut directions, &mut now);
        spent += PAUSE + now.since(began);
        if let Step::Load { duration, .. } = step {
            spent += duration;
        }
        measurement.handle(result);
        // An RTT for the final message, and time for the queue to drain.
        now += Duration::from_millis(300) + truth.delay * 2;
    }
    (measurement.report(), spent)
}

fn carry_out(step: &Step, directions: &mut [VirtualDirection; 2], now: &mut Time) -> StepResult {
    match *step {
        Step::Echo { packets, interval, size } => {
            let sent: Vec<_> = (0..packets).map(|n| *now + interval * u64::from(n)).collect();
            *now = *sent.last().unwrap();
            StepResult::Echo(echoes(&sent, size, directions, &[], 0).0)
        }
        Step::Stream { direction, packets, size, gap, spacing, echoes: beside } => {
            let min = size / Rate::from_mbit_per_second(HOST_RATE);
            let due = spacing.due(gap, now.as_nanos()).take(packets as usize);
            let mut ready = Duration::ZERO;
            let stream: Vec<_> = due
                .map(|due| {
                    let at = due.max(ready);
                    ready = at + min;
                    (*now + at, size, 1)
                })
                .collect();
            let end = stream.last().unwrap().0;
            let mut requested = Vec::new();
            // Echoes continue for a while after the stream, as on a real host that waits for its end.
            let over = end + Duration::from_millis(500);
            while beside && requested.last().is_none_or(|last| *last < over) {
                requested.push(*now + Duration::from_millis(20) * requested.len() as u64);
            }
            let way = usize::from(direction == Direction::Down);
            let (record, through) = echoes(&requested, Bytes::new(100), directions, &stream, way);
            let came = stream.iter().zip(&through).enumerate();
            let mut arrivals: Vec<_> = came
                .filter_map(|(n, ((sent, ..), out))| {
                    let (sent, received) = (*sent, out.as_ref().copied()?);
                    let (sent, received) = match direction {
                        Direction::Up => (sent, received + CLOCK_OFFSET),
                        Direction::Down => (sent + CLOCK_OFFSET, received),
                    };
                    Some(Arrival { index: n as u32, sent, received })
                })
                .collect();
            arrivals.sort_by_key(|arrival| arrival.received);
            *now = end;
            StepResult::Stream(StreamRecord { sent: packets, size, arrivals }, record)
        }
        Step::Load { .. } => StepResult::Load(LoadRecord {
            content: Bytes::ZERO,
            elapsed: Duration::ZERO,
            round_trips: Vec::new(),
            retransmitted: 0,
            congestion: "none".into(),
            echoes: EchoRecord::default(),
        }),
    }
}

/// Echoes sent at these times beside a stream in one direction, and the times at which the stream's packets passed.
fn echoes(
    requested: &[Time],
    size: Bytes,
    directions: &mut [VirtualDirection; 2],
    stream: &[(Time, Bytes, u64)],
    stream_way: usize,
) -> (EchoRecord, Vec<Option<Time>>) {
    let there = requested.iter().map(|at| (*at, size, 2)).collect();
    let (up, from_up) =
        merged(&mut directions[0], there, if stream_way == 0 { stream } else { &[] });
    let back: Vec<_> = up.iter().flatten().map(|at| (*at, size, 2)).collect();
    let sent_back: Vec<_> = requested.iter().zip(&up).filter(|(_, at)| at.is_some()).collect();
    let (down, from_down) =
        merged(&mut directions[1], back, if stream_way == 1 { stream } else { &[] });
    let echoes = sent_back.iter().zip(&down).filter_map(|((sent, at), out)| {
        Some(Echo {
            sent: **sent,
            reflected: at.as_ref().copied()? + CLOCK_OFFSET,
            held: Duration::ZERO,
            received: out.as_ref().copied()?,
        })
    });
    let record = EchoRecord { sent: requested.len() as u32, size, echoes: echoes.collect() };
    (record, if stream_way == 0 { from_up } else { from_down })
}

type Through = Vec<Option<Time>>;

/// Sends two sequences of packets in order of time.
fn merged(
    way: &mut VirtualDirection,
    first: Vec<(Time, Bytes, u64)>,
    second: &[(Time, Bytes, u64)],
) -> (Through, Through) {
    let mut all: Vec<_> = first.iter().chain(second).copied().enumerate().collect();
    all.sort_by_key(|(_, (at, ..))| *at);
    let order: Vec<_> = all.iter().map(|(_, packet)| *packet).collect();
    let through = way.run(&order);
    let mut sorted = vec![None; all.len()];
    for ((place, _), out) in all.iter().zip(through) {
        sorted[*place] = out;
    }
    let rest = sorted.split_off(first.len());
    (sorted, rest)
}
