use std::fmt;

/// Why a controller changed its state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// Packet trains agree on the path's capacity.
    CapacityKnown,
    /// The previous transfer on this path held a window to its end.
    PathRemembered,
    /// Packet trains disagree, because of jitter or cross traffic between their packets.
    CapacityUnclear,
    /// No packet train arrived in time.
    CapacityUnknown,
    /// The round trip is too short to be timed, or to be worth a limit.
    ShortPath,
    /// The transfer is too small for packet trains.
    ShortTransfer,
    /// The rate fell below the capacity under a limit that binds.
    RateFell,
    /// A packet was lost while this transfer had no queue.
    RandomLoss,
    /// There is a standing queue of other traffic.
    CrossTrafficQueue,
    /// The path's capacity is above the estimate.
    PathFaster,
    /// The path's capacity is below the estimate: the queue did not drain although the sender slowed down.
    PathSlower,
    /// The transfer's own queue overflowed the bottleneck's buffer.
    Overflow,
    /// The rate does not follow the window: a smaller window is tried.
    RateInelastic,
    /// The path may carry more than congestion control sends.
    TryingMore,
    /// A higher pacing rate did not raise the rate.
    NoMore,
    /// The trial cost no rate.
    TrialSucceeded,
    /// The trial cost rate.
    TrialFailed,
    /// The transfer is over.
    Ended,
    /// The queue of other traffic is gone.
    QueueGone,
    /// A less-than-best-effort transfer: the queueing delay is below the target.
    QueueBelowTarget,
    /// A less-than-best-effort transfer: the queueing delay is above the target.
    QueueAboveTarget,
    /// A less-than-best-effort transfer: a packet was lost.
    PacketLost,
    /// A less-than-best-effort transfer: the periodic slowdown has begun.
    Slowdown,
    /// A less-than-best-effort transfer: the periodic slowdown is over.
    SlowdownOver,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Reason::CapacityKnown => "the path's capacity is known",
            Reason::PathRemembered => "the path is remembered from the last transfer",
            Reason::CapacityUnclear => "measurements of the capacity disagree",
            Reason::CapacityUnknown => "the capacity could not be measured",
            Reason::ShortPath => "the round trip is too short for a limit to matter",
            Reason::ShortTransfer => "the transfer is too short to be worth measuring",
            Reason::RateFell => "the rate fell while the limit was in force",
            Reason::RandomLoss => "a packet was lost while this transfer had no queue",
            Reason::CrossTrafficQueue => "cross traffic keeps a queue",
            Reason::PathFaster => "the path is faster than measured before",
            Reason::PathSlower => "the path is slower than measured before",
            Reason::Overflow => "the bottleneck's buffer overflowed",
            Reason::RateInelastic => "a queue persists, and the rate does not depend on the window",
            Reason::TryingMore => "the path may carry more than congestion control sends",
            Reason::NoMore => "the path has no unused capacity",
            Reason::TrialSucceeded => "a smaller window did not lower the rate",
            Reason::TrialFailed => "a smaller window lowered the rate",
            Reason::Ended => "the transfer is over",
            Reason::QueueGone => "the queue of cross traffic is gone",
            Reason::QueueBelowTarget => "the queueing delay is below the target",
            Reason::QueueAboveTarget => "the queueing delay is above the target",
            Reason::PacketLost => "a packet was lost",
            Reason::Slowdown => "a periodic slowdown to measure the base RTT",
            Reason::SlowdownOver => "growing back after the periodic slowdown",
        })
    }
}
