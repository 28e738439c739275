//! A sender's performance under one congestion control and pacing rate, and whether another one is worse.

use sweetspot_units::{Duration, Rate};

use crate::model::{Epoch, Samples, Share};

/// RTT growth that is a queue and neither jitter nor chance: an eighth of the base RTT within these bounds (RFC 9406, section 4.2).
const QUEUE_RTTS: f64 = 0.125;
const QUEUE_BOUNDS: [Duration; 2] = [Duration::from_millis(4), Duration::from_millis(16)];

/// The epochs of a sender under one congestion control and pace.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Performance {
    /// Payload, bit/s.
    pub(super) rates: Samples,
    /// The lowest RTT of each epoch, seconds.
    rtts: Samples,
    pub(super) lost: Share,
}

/// Segments of one epoch.
#[derive(Debug, Clone, Copy)]
pub(super) struct Traffic {
    pub(super) retransmitted: u64,
    pub(super) delivered: u64,
}

impl Performance {
    /// Adds an epoch.
    pub(super) fn handle_epoch(&mut self, epoch: &Epoch, traffic: Traffic) {
        self.rates.add(epoch.rate.as_f64());
        self.rtts.add(epoch.rtt.as_secs_f64());
        self.lost.add(traffic.retransmitted, traffic.delivered);
    }

    /// The mean rate.
    pub(super) fn rate(&self) -> Rate {
        Rate::from_f64(self.rates.mean())
    }

    /// Whether more packets were lost than `before`, or a queue grew, on a path of this base RTT: the path is full.
    pub(super) fn is_worse(&self, before: &Performance, base: Duration) -> bool {
        let queue = base.scaled(QUEUE_RTTS).clamp(QUEUE_BOUNDS[0], QUEUE_BOUNDS[1]);
        let grew = self.rtts.mean() - before.rtts.mean() > queue.as_secs_f64();
        self.lost.exceeds(before.lost) || grew && self.rtts.exceed(before.rtts)
    }

    /// Adds the RTTs and losses of epochs at another rate at which the path was not full either.
    pub(super) fn extend(&mut self, more: &Performance) {
        self.rtts.extend(more.rtts);
        self.lost.extend(more.lost);
    }
}
