//! A sender's performance under one congestion control and pacing rate, and the capacity that it reveals.

use sweetspot_units::{Duration, Rate};

use super::limits::is_idle;
use crate::model::{Epoch, Samples, Share};

/// Epochs of a sender under one congestion control and pacing rate.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Performance {
    /// Payload rate, bit/s.
    pub(super) rates: Samples,
    pub(super) lost: Share,
    /// Share of probes that found the path idle.
    pub(super) idle: Share,
}

/// Segments of one epoch.
#[derive(Debug, Clone, Copy)]
pub(super) struct Traffic {
    pub(super) retransmitted: u64,
    pub(super) delivered: u64,
}

impl Performance {
    pub(super) fn handle_epoch(&mut self, epoch: &Epoch, traffic: Traffic) {
        self.rates.add(epoch.rate.as_f64());
        self.lost.add(traffic.retransmitted, traffic.delivered);
    }

    /// A probe was answered on a path of this base RTT.
    pub(super) fn handle_probe(&mut self, rtt: Duration, base: Duration) {
        self.idle.add(u64::from(is_idle(rtt, base)), 1);
    }

    pub(super) fn rate(&self) -> Rate {
        Rate::from_f64(self.rates.mean())
    }

    /// The capacity if no other flow uses the path: probes find it idle for the share of time that our rate leaves (PASTA;
    /// Wolff, Operations Research 30, 1982).
    pub(super) fn lone_capacity(&self) -> Rate {
        self.rate().scaled(1.0 / (1.0 - self.idle.share()))
    }

    /// The lower bound of that capacity, from the error of the share. A path that is full below this bound is shared.
    pub(super) fn min_lone_capacity(&self) -> Rate {
        self.rate().scaled(1.0 / (1.0 - self.idle.min()))
    }

    /// The upper bound of that capacity, from the error of the share. If the rate exceeds this bound, the path is shared.
    pub(super) fn max_lone_capacity(&self) -> Rate {
        self.rate().scaled(1.0 / (1.0 - self.idle.max()))
    }
}
