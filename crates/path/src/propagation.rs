use sweetspot_units::{Duration, Probability, Time};

use crate::{DirectionSpec, Jitter, Random};

/// These make jitter and reordering independent of losses with the same seed. The bytes spell their names.
const JITTER_SEED: u64 = 0x6a69_7474_6572;
const REORDER_SEED: u64 = 0x0072_656f_7264_6572;

/// The delay after a link: the line's propagation delay, and its variation. By itself, jitter stretches gaps and never
/// reorders: packets behind a late one wait for it. On a line that reorders, they overtake it.
#[derive(Debug, Clone)]
pub struct Propagation {
    delay: Duration,
    variation: Option<Box<DelayVariation>>,
}

#[derive(Debug, Clone)]
struct DelayVariation {
    jitter: Jitter,
    jitter_reorders: bool,
    reordering: Reordering,
    /// Packets leave at multiples of this; zero: at once.
    aggregation: Duration,
    /// Exit time of the last packet among those that keep their order.
    latest: Time,
}

/// Holds back single packets, so that later packets overtake them.
#[derive(Debug, Clone)]
struct Reordering {
    probability: Probability,
    by: Duration,
    random: Random,
}

impl Propagation {
    /// The line described by `spec`. The same seed gives the same delays.
    pub fn new(spec: &DirectionSpec, seed: u64) -> Propagation {
        let varies = spec.jitter > Duration::ZERO
            || spec.reorder > Probability::ZERO
            || spec.aggregation > Duration::ZERO;
        let variation = varies.then(|| {
            Box::new(DelayVariation {
                jitter: Jitter::new(spec.jitter, seed ^ JITTER_SEED),
                jitter_reorders: spec.jitter_reorders,
                reordering: Reordering {
                    probability: spec.reorder,
                    by: spec.reorder_by,
                    random: Random::new(seed ^ REORDER_SEED),
                },
                aggregation: spec.aggregation,
                latest: Time::ZERO,
            })
        });
        Propagation { delay: spec.delay, variation }
    }

    /// The propagation delay without its variation.
    pub fn delay(&self) -> Duration {
        self.delay
    }

    /// Whether a packet may come out before an earlier one.
    pub fn reorders(&self) -> bool {
        self.variation.as_ref().is_some_and(|variation| variation.reorders())
    }

    /// Changes the propagation delay, like a new route. The caller ensures that no packet overtakes an earlier one on a shorter
    /// route.
    pub fn set_delay(&mut self, delay: Duration) {
        self.delay = delay;
    }

    /// A packet leaves the link at `left`, no earlier than the previous one. Returns its exit time.
    #[inline(always)]
    pub fn handle_departure(&mut self, left: Time) -> Time {
        match &mut self.variation {
            None => left + self.delay,
            Some(variation) => variation.handle_departure(left, self.delay),
        }
    }
}

impl DelayVariation {
    fn reorders(&self) -> bool {
        self.jitter_reorders || self.reordering.probability > Probability::ZERO
    }

    fn handle_departure(&mut self, left: Time, delay: Duration) -> Time {
        let out = next_multiple(left, self.aggregation) + delay + self.jitter.next_delay();
        if self.reordering.takes_next() {
            return out + self.reordering.by;
        }
        if self.jitter_reorders {
            return out;
        }
        self.latest = self.latest.max(out);
        self.latest
    }
}

impl Reordering {
    fn takes_next(&mut self) -> bool {
        self.probability > Probability::ZERO && self.random.unit() < self.probability.get()
    }
}

/// The first multiple of `period` at or after `time`.
fn next_multiple(time: Time, period: Duration) -> Time {
    if period == Duration::ZERO {
        return time;
    }
    Time::ZERO + period * time.as_nanos().div_ceil(period.as_nanos())
}

impl From<Duration> for Propagation {
    /// A line that does not vary.
    fn from(delay: Duration) -> Propagation {
        Propagation { delay, variation: None }
    }
}
