use sweetspot_units::Duration;

/// How finely a variant can see and how boldly it may step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Manner {
    /// The standing queue aimed for, as a share of the base round trip. It keeps the link busy
    /// through the sender's and receiver's hesitations and costs this share of delay.
    pub queue_share: f64,
    /// ... and at least this much: below it, no queue can be seen.
    pub queue_least: Duration,
    /// The shortest epoch.
    pub shortest_epoch: Duration,
    /// The largest step of growth towards a rate that the path is known to have carried.
    pub known_step: f64,
    /// The largest step of growth beyond it. An ack-clocked window that grows by g puts (g - 1) W
    /// into the bottleneck's buffer if the path is full already, so that g is bounded by the
    /// smallest buffer worth serving, not by the BDP.
    pub unknown_step: f64,
    /// Growth of the window in the first trial of a larger one; a trial that paid is followed by a
    /// bolder one, up to `known_step`.
    pub trial_step: f64,
    /// Share of a trial's growth that the rate must follow with for the trial to have paid. On a
    /// path that we fill alone it is nil; where cross traffic yields to our queue (eqs 6-8) about a
    /// half; where the window was too small, all of it.
    pub trial_paid: f64,
    /// Epochs in a row that must show a queue which may be jitter before it is taken away.
    pub short_excess: u32,
}

impl Manner {
    /// With probes every 20 ms, of which three fit into an epoch, so that one late answer is not
    /// taken for a queue; for buffers of a tenth of a BDP.
    pub(super) const PROBED: Manner = Manner {
        queue_share: 0.03,
        queue_least: Duration::from_millis(1),
        shortest_epoch: Duration::from_millis(60),
        known_step: 1.125,
        unknown_step: 1.08,
        trial_step: 1.04,
        trial_paid: 0.3,
        short_excess: 8,
    };

    /// With the kernel's receiver-side estimate, which counts in milliseconds and rounds down; the
    /// sender's pace is its own, so that steps are larger to come back as fast. Nobody sends trains,
    /// and jitter looks like a queue, so that trials tell, and must show above what rates err by.
    pub(super) const LIVE: Manner = Manner {
        queue_share: 0.05,
        queue_least: Duration::from_millis(2),
        shortest_epoch: Duration::from_millis(30),
        known_step: 1.25,
        unknown_step: 1.15,
        trial_step: 1.05,
        trial_paid: 0.4,
        short_excess: 2,
    };

    /// The queue that a path of round trip `base` is to hold, as the time it takes to drain.
    pub(super) fn queue_aim(&self, base: Duration) -> Duration {
        base.scaled(self.queue_share).max(self.queue_least)
    }
}
