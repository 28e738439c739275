use sweetspot_path::Random;
use sweetspot_scenario::TrafficKind;
use sweetspot_units::{Bytes, Duration};

use super::random;
use crate::plan::Load;

/// One source of a load: a flow, a user, or a stream of arrivals.
#[derive(Debug)]
pub(super) struct TrafficSource {
    pub load: usize,
    /// Index of its node within the load.
    pub node: usize,
    random: Random,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Action {
    /// Opens a connection for this many bytes; `None`: endless.
    Open(Option<Bytes>),
    Send,
}

impl TrafficSource {
    /// The sources of load number `load`, spread over its nodes as evenly as possible, each with
    /// its start time.
    pub fn all(seed: u64, side: u64, load: usize, of: &Load) -> Vec<(TrafficSource, Duration)> {
        let nodes = of.host_pairs.len() as u64;
        let source = |n: u64| {
            // Each load has its own range of streams: no load has 2^32 sources.
            let mut random = random::stream(seed, side, (load as u64) << 32 | n);
            let start = random.between(of.start);
            // The first nodes get the remainder of the division.
            let node = (n * nodes / of.sources.max(1)) as usize;
            (TrafficSource { load, node, random }, start)
        };
        (0..of.sources).map(source).collect()
    }

    /// Its next action.
    pub fn action(&mut self, load: &Load) -> Action {
        let random = &mut self.random;
        let packets = match load.kind {
            TrafficKind::Pareto { .. } | TrafficKind::Poisson { .. } => return Action::Send,
            TrafficKind::Elephants { .. } => return Action::Open(None),
            TrafficKind::Mice { packets, .. } => random.whole(packets),
            TrafficKind::ClosedLoop { size_mean, size_shape, .. }
            | TrafficKind::Arrivals { size_mean, size_shape, .. } => {
                let bytes = random.pareto(size_mean.as_f64(), size_shape);
                // Whole packets, as in the simulator.
                ((bytes / load.payload.as_f64()).ceil() as u64).clamp(1, 1 << 40)
            }
        };
        Action::Open(Some(load.payload * packets))
    }

    /// Time from this action to the next; `None` if the source waits for the end of its connection.
    pub fn gap(&mut self, load: &Load) -> Option<Duration> {
        let random = &mut self.random;
        let bits = load.packet.as_f64() * 8.0;
        Some(Duration::from_secs_f64(match load.kind {
            TrafficKind::Pareto { rate, shape, .. } => random.pareto(bits / rate.as_f64(), shape),
            TrafficKind::Poisson { rate, .. } => random.exponential(bits / rate.as_f64()),
            TrafficKind::Arrivals { rate, size_mean, .. } => {
                let mean = size_mean.as_f64() * 8.0 / rate.as_f64() * load.sources as f64;
                random.exponential(mean)
            }
            _ => return None,
        }))
    }

    /// Time from the end of its connection until it opens the next one; `None` for never.
    pub fn pause(&mut self, load: &Load) -> Option<Duration> {
        /// An elephant retries after its connection breaks.
        const RECONNECT_DELAY: Duration = Duration::from_secs(1);
        let random = &mut self.random;
        match load.kind {
            TrafficKind::Mice { sleep, .. } => Some(random.between(sleep)),
            TrafficKind::ClosedLoop { think_mean, .. } => {
                let seconds = random.exponential(think_mean.as_secs_f64());
                Some(Duration::from_secs_f64(seconds))
            }
            TrafficKind::Elephants { .. } => Some(RECONNECT_DELAY),
            TrafficKind::Pareto { .. }
            | TrafficKind::Poisson { .. }
            | TrafficKind::Arrivals { .. } => None,
        }
    }
}
