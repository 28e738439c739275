use sweetspot_path::Random;
use sweetspot_units::Duration;

use crate::random;

/// Sends datagrams whatever happens to them.
#[derive(Debug)]
pub(crate) struct Source {
    pub flow: u32,
    random: Random,
    /// Mean gap, seconds.
    mean: f64,
    gaps: Gaps,
}

/// How gaps are distributed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Gaps {
    Exponential,
    Pareto { shape: f64 },
}

impl Source {
    pub(crate) fn new(flow: u32, random: Random, mean: f64, gaps: Gaps) -> Source {
        Source { flow, random, mean, gaps }
    }

    /// Time to the next datagram.
    pub(crate) fn gap(&mut self) -> Duration {
        let random = &mut self.random;
        Duration::from_secs_f64(match self.gaps {
            Gaps::Exponential => random::exponential(random, self.mean),
            Gaps::Pareto { shape } => random::pareto(random, self.mean, shape),
        })
    }
}
