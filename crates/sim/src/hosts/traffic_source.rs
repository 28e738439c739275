use sweetspot_path::Random;
use sweetspot_units::{Bytes, Duration};

/// Sends datagrams or opens connections at random times, regardless of their fate; or divides memory.
#[derive(Debug)]
pub(crate) struct TrafficSource {
    pub sends: Sends,
    random: Random,
    /// Mean gap, seconds.
    mean: f64,
    gaps: Gaps,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Sends {
    Datagrams(u32),
    /// Opens connections with the parameters of this flow.
    Connections(u32),
    /// Sends nothing: divides this memory among the senders of measured transfers.
    SendPool(Bytes),
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Gaps {
    Exponential,
    Pareto { shape: f64 },
    Constant,
}

impl TrafficSource {
    /// A source with gaps of `mean` seconds on average.
    pub(crate) fn new(sends: Sends, random: Random, mean: f64, gaps: Gaps) -> TrafficSource {
        TrafficSource { sends, random, mean, gaps }
    }

    /// Draws the gap to the next datagram or connection.
    pub(crate) fn gap(&mut self) -> Duration {
        let random = &mut self.random;
        Duration::from_secs_f64(match self.gaps {
            Gaps::Exponential => random.exponential(self.mean),
            Gaps::Pareto { shape } => random.pareto(self.mean, shape),
            Gaps::Constant => self.mean,
        })
    }
}
