//! Checks of a host's settings, one file per kind of mistake.

mod buffers;
mod device;
pub(super) mod memory;
mod options;
mod programs;

pub(super) use programs::IN_PROGRAM;

use sweetspot_theory::host::send_buffer::{self, SendBuffer};
use sweetspot_units::{Bytes, Duration, Rate};

use crate::window::WindowQuestion;

use super::{Finding, PathEnd, Snapshot};

/// The path that the host should fill, and the number of connections.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::host) struct PathTarget {
    /// The path, as each of `connections` has it.
    pub question: WindowQuestion,
    /// The MTU after the advised changes, for which settings are sized; the present one is the question's.
    pub raised_mtu: Bytes,
    /// Connections that share the path, at least `shares`.
    pub connections: u64,
    /// The target window, in payload; [`crate::window::advise`] recommends it.
    pub window: Bytes,
    /// The number of connections needed to fill the path.
    pub shares: u64,
}

impl PathTarget {
    /// The rate of one connection if no setting limits it.
    pub(in crate::host) fn rate(&self) -> Rate {
        self.question.rate
    }

    /// The total rate of the connections that share the path.
    pub(in crate::host) fn path_rate(&self) -> Rate {
        self.rate().scaled(self.connections as f64)
    }

    /// The part of `rate` that each connection has.
    pub(in crate::host) fn each(&self, rate: Rate) -> Rate {
        rate.scaled(1.0 / self.connections as f64)
    }

    pub(in crate::host) fn rtt(&self) -> Duration {
        self.question.rtt
    }

    /// The smallest window that carries this rate, also after the advised change of the MTU.
    pub(in crate::host) fn filled(&self) -> Bytes {
        let raised = WindowQuestion { mtu: self.raised_mtu, ..self.question };
        raised.payload(self.rate() * self.rtt())
    }

    /// A send buffer of `memory` on the path.
    pub(in crate::host) fn send_buffer(&self, memory: Bytes) -> SendBuffer {
        SendBuffer { memory, mss: self.question.mss(), rtt: self.rtt() }
    }

    /// The send buffer needed for the target window.
    pub(in crate::host) fn send_memory(&self) -> Bytes {
        send_buffer::memory_for(self.window, self.question.mss())
    }

    /// The rate on the path with a payload of `window` per RTT, if nothing else limits it.
    pub(in crate::host) fn carried(&self, window: Bytes) -> Rate {
        (window / self.rtt()).scaled(1.0 / self.question.payload_share())
    }

    /// The rate that a flow gains if `window` no longer limits it; `None` without a gain.
    pub(in crate::host) fn gain_over(&self, window: Bytes) -> Option<Rate> {
        let gain = self.rate().saturating_sub(self.carried(window));
        (gain > Rate::ZERO && window < self.filled()).then_some(gain)
    }
}

/// All findings about `host`. Without a `target`, buffers cannot be judged.
pub(super) fn all(host: &Snapshot, end: PathEnd, target: Option<&PathTarget>) -> Vec<Finding> {
    let mut found = Vec::new();
    if let Some(target) = target {
        buffers::check(host, end, target, &mut found);
        if let Some(lost) = memory::lost(host, end, target) {
            // Larger buffers gain no more than the memory allows.
            found.retain_mut(|finding| {
                let gain = finding.gain.unwrap_or_default().saturating_sub(lost);
                finding.gain = Some(gain);
                gain > Rate::ZERO
            });
        }
    }
    options::check(host, end, target, &mut found);
    programs::check(host, end, target, &mut found);
    memory::check(host, end, target, &mut found);
    device::check(host, end, target, &mut found);
    found
}
