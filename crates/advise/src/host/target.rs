//! The path that a host should fill.

use sweetspot_theory::host::send_buffer::{self, SendBuffer};
use sweetspot_units::{Bytes, Duration, Rate};

use crate::window::WindowQuestion;

/// The path that the host should fill, and the number of connections.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct PathTarget {
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
    pub(super) fn rate(&self) -> Rate {
        self.question.rate
    }

    /// The total rate of the connections that share the path.
    pub(super) fn path_rate(&self) -> Rate {
        self.rate().scaled(self.connections as f64)
    }

    /// The part of `rate` that each connection has.
    pub(super) fn each(&self, rate: Rate) -> Rate {
        rate.scaled(1.0 / self.connections as f64)
    }

    pub(super) fn rtt(&self) -> Duration {
        self.question.rtt
    }

    /// The smallest window that carries this rate, also after the advised change of the MTU.
    pub(super) fn filled(&self) -> Bytes {
        let raised = WindowQuestion { mtu: self.raised_mtu, ..self.question };
        raised.payload(self.rate() * self.rtt())
    }

    /// A send buffer of `memory` on the path.
    pub(super) fn send_buffer(&self, memory: Bytes) -> SendBuffer {
        SendBuffer { memory, mss: self.question.mss(), rtt: self.rtt() }
    }

    /// The send buffer needed for the target window.
    pub(super) fn send_memory(&self) -> Bytes {
        send_buffer::memory_for(self.window, self.question.mss())
    }

    /// The rate on the path with a payload of `window` per RTT, if nothing else limits it.
    pub(super) fn carried(&self, window: Bytes) -> Rate {
        (window / self.rtt()).scaled(1.0 / self.question.payload_share())
    }

    /// The rate that a flow gains if `window` no longer limits it; `None` without a gain.
    pub(super) fn gain_over(&self, window: Bytes) -> Option<Rate> {
        let gain = self.rate().saturating_sub(self.carried(window));
        (gain > Rate::ZERO && window < self.filled()).then_some(gain)
    }
}
