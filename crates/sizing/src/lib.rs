//! Window-sizing controllers as sans-IO state machines (law 1 of the house).
//!
//! A [`Controller`] sits at the receiver of a bulk transfer. What was received and measured goes
//! in with its time (`handle_*`), what is to be done comes out ([`Controller::poll_output`]).
//! The very same code drives simulated receivers and real sockets; which of the two acts on an
//! [`Output`] the controller never knows.
//!
//! **Contract.** `now` never goes backwards. After every `handle_*` call the caller polls outputs
//! until there are none and asks [`Controller::poll_timeout`] when to call
//! [`Controller::handle_timeout`] next. What the actuator really did is read back into
//! [`Controller::handle_window`].

mod advertised;
mod bdp;
mod choice;
mod heffner;
mod known_path;
mod linux_autotuning;
mod reception;
mod right_sizing;
mod rledbat;
mod simple;
pub mod sobas;

pub use bdp::BdpDefinition;
pub use choice::{Setting, Sizing, SizingError};
pub use heffner::Heffner;
pub use known_path::KnownPath;
pub use linux_autotuning::{LinuxAutotuning, LinuxRule};
pub use right_sizing::RightSizing;
pub use rledbat::Rledbat;

use sweetspot_units::{Bytes, Duration, Rate, Time};

/// A receiver-side sizing controller.
pub trait Controller {
    /// The application took `bytes` of payload out of the connection. `unread` is what still
    /// waited in the receive buffer after that: with the application keeping up it is about
    /// zero, and where it is not, the window was not the limit.
    fn handle_data(&mut self, now: Time, bytes: Bytes, unread: Bytes);

    /// A periodic probe's answer arrived (section VII-A of the SOBAS paper).
    fn handle_probe(&mut self, now: Time, probe: &Probe);

    /// The kernel's own receiver-side RTT estimate, for paths on which probes do not pass.
    fn handle_kernel_rtt(&mut self, now: Time, rtt: Duration);

    /// The least round trip that the kernel saw of what this end sent: the handshake, requests.
    /// It knows no queue of the transfer's own.
    fn handle_minimum_rtt(&mut self, _now: Time, _rtt: Duration) {}

    /// So many segments arrived ahead of one that is missing, since the last call.
    fn handle_out_of_order(&mut self, _now: Time, _segments: u64) {}

    /// A packet train asked for by [`Output::Train`] arrived.
    fn handle_train(&mut self, now: Time, train: &Train);

    /// The window that is really advertised now, read back from the actuator.
    fn handle_window(&mut self, now: Time, advertised: Bytes);

    /// The time that [`Controller::poll_timeout`] named has come.
    fn handle_timeout(&mut self, now: Time);

    /// When the controller next wants to be called, if nothing arrives before.
    fn poll_timeout(&self) -> Option<Time>;

    /// The next thing to do or to record, until `None`.
    fn poll_output(&mut self) -> Option<Output>;

    /// Where the controller stands, for people.
    fn phase(&self) -> Phase;
}

/// What a periodic probe brought back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probe {
    /// Round trip of this probe: out of band, so without the sender's and receiver's buffers.
    pub rtt: Duration,
    /// Answers that are now known to be lost on the forward path (the one the data takes)
    /// between the answer before this one and this one.
    pub forward_lost: u64,
    /// What the sender said of itself in the answer, where it speaks our protocol.
    pub sender: Option<SenderReport>,
}

/// The sender's own view, carried in probe answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SenderReport {
    /// Segments retransmitted since the connection began.
    pub retransmitted: u64,
    /// Congestion window.
    pub cwnd: Bytes,
    /// Whether the sender had nothing to send at some time since its last report: what was
    /// received then says nothing about the path.
    pub starved: bool,
}

/// Dispersion of a packet train at the receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Train {
    /// Packets sent.
    pub sent: u32,
    /// Packets that arrived.
    pub received: u32,
    /// Bytes of those that arrived after the first one, on the wire.
    pub bytes_after_first: Bytes,
    /// Time from the arrival of the first to that of the last.
    pub dispersion: Duration,
}

impl Train {
    /// The rate at which the train came out of the path; `None` where it cannot be told.
    pub fn rate(&self) -> Option<Rate> {
        (self.received >= 2 && self.dispersion > Duration::ZERO)
            .then(|| self.bytes_after_first / self.dispersion)
    }
}

/// What a controller wants done or recorded.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Output {
    /// Limit the window that the receiver advertises. `None`: the largest the host allows.
    Window(Option<Bytes>),
    /// Ask the sender to pace its payload at this rate. `None`: as it likes.
    Pacing(Option<Rate>),
    /// Ask the sender for one train of back-to-back packets on the forward path.
    Train(TrainRequest),
    /// Something worth recording.
    Event(Event),
}

/// A train as the controller wants it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrainRequest {
    /// Number of packets.
    pub packets: u32,
    /// Size of each on the wire, IP header included.
    pub size: Bytes,
}

/// Why a controller did what it did: the test oracle and the plot's annotations.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Event {
    /// When.
    pub at: Time,
    /// What.
    pub kind: EventKind,
}

/// The kinds of [`Event`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum EventKind {
    /// The trains are in: the path's rate by dispersion, and the RTT that goes with it.
    CapacityEstimated {
        /// C~ of the paper.
        rate: Rate,
        /// T~ of the paper.
        rtt: Duration,
    },
    /// The window limit was set.
    Limited {
        /// To what.
        window: Bytes,
    },
    /// The window limit was lifted.
    Lifted,
    /// Receive throughput no longer grows with the window.
    Saturated {
        /// R_rs of the paper.
        rate: Rate,
        /// T_rs of the paper.
        rtt: Duration,
    },
    /// The path loses packets whatever this transfer does: the window is left to congestion
    /// control.
    Congested,
    /// Random losses cost more without a queue than with one: the window is left to congestion
    /// control.
    Lossy,
    /// A loss that this transfer's own queue caused.
    Overflowed {
        /// The rate that was too much.
        rate: Rate,
    },
    /// A standing queue was found and the window tightened.
    Tightened {
        /// To what.
        window: Bytes,
    },
    /// The path may have more to give: looking for it.
    Reopened,
}

/// Where a controller stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The controller does not steer.
    HandsOff,
    /// Estimating the path before the first limit.
    Measuring,
    /// Growing towards the path's capacity.
    Ramping,
    /// At the sweet spot.
    Holding,
    /// On a congested path, leaving the window to congestion control.
    Congested,
}

impl core::fmt::Display for Phase {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.pad(match self {
            Phase::HandsOff => "hands off",
            Phase::Measuring => "measuring",
            Phase::Ramping => "ramping",
            Phase::Holding => "holding",
            Phase::Congested => "congested",
        })
    }
}
