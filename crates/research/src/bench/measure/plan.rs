//! The random paths.

use sweetspot_path::{DirectionSpec, PathSpec, QueueDiscipline, Random};
use sweetspot_units::{Bytes, Duration, Probability, Rate, Volume};

/// A path and its cross traffic.
#[derive(Debug, Clone)]
pub struct PathPlan {
    /// Its name, made from its number and its properties.
    pub name: String,
    /// The path, the same in both directions.
    pub path: PathSpec,
    /// Cross traffic from the far end to the near end.
    pub cross: Option<CrossPlan>,
}

/// A flow of cross traffic.
#[derive(Debug, Clone, Copy)]
pub struct CrossPlan {
    /// Its kind.
    pub kind: CrossKind,
    /// Its mean rate on the wire.
    pub rate: Rate,
    /// Its seed.
    pub seed: u64,
}

/// The kind of cross traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrossKind {
    /// Datagrams with exponential gaps.
    Poisson,
    /// Datagrams with Pareto gaps of shape 1.5.
    Pareto,
    /// TCP paced by its sender.
    Tcp,
}

impl CrossKind {
    pub fn name(self) -> &'static str {
        match self {
            CrossKind::Poisson => "poisson",
            CrossKind::Pareto => "pareto",
            CrossKind::Tcp => "tcp",
        }
    }
}

const PACKET: Bytes = Bytes::new(1500);
/// Shares of paths with random loss, jitter, cross traffic, and a discipline other than drop-tail.
const LOSSY: f64 = 0.3;
const JITTERY: f64 = 0.25;
const SHARED: f64 = 0.6;
const MANAGED: f64 = 0.45;

/// The first `count` paths for `seed`.
pub fn plans(seed: u64, count: u64) -> Vec<PathPlan> {
    (0..count).map(|index| plan(seed, index)).collect()
}

fn plan(seed: u64, index: u64) -> PathPlan {
    let mut random = Random::new(seed * 1_000_003 + index);
    let mut between = |low: f64, high: f64| low * (high / low).powf(random.unit());
    let rate = Rate::from_f64(between(2e6, 1e8).round());
    let rtt = Duration::from_secs_f64(between(0.005, 0.2));
    let buffer = (rate * rtt).scaled(between(0.1, 3.0)).max(PACKET * 10);
    let loss = between(1e-4, 1e-2);
    let jitter = Duration::from_secs_f64(between(0.0002, 0.01));
    let share = 0.1 + 0.6 * random.unit();
    let mut has = |part: f64| random.unit() < part;
    let (lossy, jittery, shared) = (has(LOSSY), has(JITTERY), has(SHARED));
    let kinds = [CrossKind::Poisson, CrossKind::Pareto, CrossKind::Tcp];
    let kind = kinds[(random.unit() * 3.0) as usize % 3];
    let managed = random.unit() < MANAGED;
    let queues = [QueueDiscipline::Red, QueueDiscipline::CoDel, QueueDiscipline::FqCoDel];
    let chosen = queues[(random.unit() * 3.0) as usize % 3];
    let queue = if managed { chosen } else { QueueDiscipline::DropTail };
    let cross = shared.then(|| CrossPlan { kind, rate: rate.scaled(share), seed: index });
    let direction = DirectionSpec {
        loss: Probability::new(if lossy { loss } else { 0.0 }).unwrap_or(Probability::ZERO),
        jitter: if jittery { jitter } else { Duration::ZERO },
        queue,
        ..DirectionSpec::new(rate, rtt / 2, Volume::Bytes(buffer))
    };
    let mut name = format!("{index:02}");
    for (has, word) in
        [(lossy, "loss"), (jittery, "jitter"), (shared, kind.name()), (managed, queue.name())]
    {
        if has {
            name = format!("{name}-{word}");
        }
    }
    PathPlan {
        name,
        path: PathSpec { up: direction, down: direction, mtu: PACKET, seed: index + 1 },
        cross,
    }
}
