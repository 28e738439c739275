//! The interface between a controller and its caller.

use core::fmt;

use sweetspot_units::{Bytes, Duration, Rate, Time};

use crate::Reason;

/// A sizing controller, at the receiver or (pacing alone) at the sender: a sans-IO state machine.
///
/// **Contract.** `now` never goes backwards. After every [`Controller::handle`] the caller polls
/// outputs until there are none and asks [`Controller::poll_timeout`] when [`Input::Timeout`] is
/// due.
/// Inputs that the controller does not need (see [`Controller::needs`]) may be left out. The same
/// inputs give the same outputs. [`crate::Driver`] keeps this contract for every engine.
pub trait Controller {
    /// Handles an input at the time `now`.
    fn handle(&mut self, now: Time, input: &Input);

    /// The time of the next [`Input::Timeout`], if any.
    fn poll_timeout(&self) -> Option<Time>;

    /// The next output; `None` if there are no more.
    fn poll_output(&mut self) -> Option<Output>;

    /// The inputs that the controller needs now. Whether it ever needs probes or trains is fixed at the beginning.
    fn needs(&self) -> Needs;

    /// The controller's phase, for display.
    fn phase(&self) -> SizingPhase;

    /// Why the latest window was set; `None` if there is no more to say than that the path was measured.
    fn window_reason(&self) -> Option<Reason> {
        None
    }
}

/// Input of a controller.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Input {
    /// The application read payload; at the sender: payload was delivered.
    Data {
        /// Payload read, or delivered since the last call.
        bytes: Bytes,
        /// Bytes still unread in the receive buffer: about zero if the application keeps up. If it
        /// does not, the window was not the limit.
        unread: Bytes,
    },
    /// A periodic probe's answer arrived (section VII-A of the SOBAS paper).
    Probe(Probe),
    /// The sender's own view, if it speaks our protocol or is this host.
    Sender(SenderReport),
    /// The kernel's RTT estimate: at the receiver `tcpi_rcv_rtt`, at the sender `tcpi_rtt`.
    KernelRtt(Duration),
    /// The min RTT of this end's own segments, mostly from the handshake (`tcpi_min_rtt`). It does not include the transfer's
    /// own queueing delay.
    MinimumRtt(Duration),
    /// Segments that arrived ahead of a missing one since the last call (`tcpi_rcv_ooopack`).
    OutOfOrder {
        /// Number of segments.
        segments: u64,
    },
    /// The result of a packet train requested by [`Output::Train`].
    Train(Train),
    /// The window that the kernel advertises now.
    Window {
        /// The window, bytes.
        advertised: Bytes,
    },
    /// The time that [`Controller::poll_timeout`] returned has come.
    Timeout,
    /// All connections of this path have ended. Later ones may find the path unchanged.
    End,
}

/// Result of a periodic probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probe {
    /// RTT of this probe. Probes are out of band, so it does not include the sender's and receiver's buffers.
    pub rtt: Duration,
    /// Answers newly found lost on the forward path (the direction of the data), between the previous answer and this one.
    pub forward_lost: u64,
}

/// The sender's view (Linux: `TCP_INFO`), carried in the answers to probes or read on this host.
/// Counters start with the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SenderReport {
    /// Segments retransmitted (`tcpi_total_retrans`).
    pub retransmitted: u64,
    /// Congestion window (`tcpi_snd_cwnd`).
    pub cwnd: Bytes,
    /// Slow-start threshold; `None`: not set yet (`tcpi_snd_ssthresh`).
    pub ssthresh: Option<Bytes>,
    /// Unacknowledged data (`tcpi_unacked`).
    pub in_flight: Bytes,
    /// Latest delivery rate (`tcpi_delivery_rate`); zero if unknown.
    pub delivery_rate: Rate,
    /// Whether that rate was limited by the application (`tcpi_delivery_rate_app_limited`).
    pub app_limited: bool,
    /// Time with data in flight (`tcpi_busy_time`).
    pub busy: Duration,
    /// The part of `busy` in which the receiver's window was the limit (`tcpi_rwnd_limited`).
    pub window_limited: Duration,
    /// Minimum RTT (`tcpi_min_rtt`); zero if unknown.
    pub minimum_rtt: Duration,
    /// The congestion state machine (`tcpi_ca_state`).
    pub state: CongestionState,
    /// Reordering seen, segments (`tcpi_reordering`).
    pub reordering: u32,
    /// Duplicate SACKs: retransmissions that were not needed (`tcpi_dsack_dups`).
    pub dsacks: u32,
    /// Segments delivered with congestion marks (`tcpi_delivered_ce`).
    pub marked: u32,
    /// Whether the sender had nothing to send at some time since its last report. If so, the rate
    /// received since says nothing about the path.
    pub starved: bool,
}

/// Linux's `enum tcp_ca_state`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CongestionState {
    /// Nothing unusual.
    #[default]
    Open,
    /// Duplicate ACKs, or SACKs.
    Disorder,
    /// The window was reduced for congestion marks or local drops.
    Reduced,
    /// Fast recovery.
    Recovery,
    /// A retransmission timeout.
    Loss,
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
    /// Time from the first arrival to the last.
    pub dispersion: Duration,
}

impl Train {
    /// The rate at which the train left the path; `None` if it cannot be computed.
    pub fn rate(&self) -> Option<Rate> {
        (self.received >= 2 && self.dispersion > Duration::ZERO)
            .then(|| self.bytes_after_first / self.dispersion)
    }

    /// A train without arrivals.
    pub fn lost(request: &TrainRequest) -> Train {
        let (bytes_after_first, dispersion) = (Bytes::ZERO, Duration::ZERO);
        Train { sent: request.packets, received: 0, bytes_after_first, dispersion }
    }
}

/// A request for a packet train.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrainRequest {
    /// Number of packets.
    pub packets: u32,
    /// Size of each on the wire, IP header included.
    pub size: Bytes,
}

/// The inputs that a controller needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Needs {
    /// [`Input::Probe`] and [`Input::Sender`]. A caller at the sender always has the latter.
    pub probes: Probing,
    /// [`Input::Train`].
    pub trains: bool,
    /// [`Input::Data`].
    pub data: bool,
    /// [`Input::KernelRtt`], always. A controller that needs probes also gets it where probes do
    /// not pass.
    pub kernel_rtt: bool,
    /// [`Input::MinimumRtt`].
    pub minimum_rtt: bool,
    /// [`Input::OutOfOrder`].
    pub out_of_order: bool,
    /// [`Input::Window`].
    pub window: bool,
}

/// How often a controller requests probes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Probing {
    /// Not at all.
    Never,
    /// Every 20 ms (section VII-A of the SOBAS paper).
    Periodic,
    /// At most as often as `Periodic`, and for at most 1/200 of the transfer's own bytes.
    Budgeted,
    /// Once a second, for the sender's reports.
    Sparse,
}

impl Needs {
    /// No inputs: the controller decides before the first byte.
    pub const NOTHING: Needs = Needs {
        probes: Probing::Never,
        trains: false,
        data: false,
        kernel_rtt: false,
        minimum_rtt: false,
        out_of_order: false,
        window: false,
    };

    /// The receiving kernel's measurements.
    pub const KERNEL: Needs = Needs { data: true, kernel_rtt: true, ..Needs::NOTHING };

    /// Whether any input is needed.
    pub fn any(&self) -> bool {
        *self != Needs::NOTHING
    }
}

/// Output of a controller.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Output {
    /// Limit the window that the receiver advertises. `None`: the largest the host allows.
    Window(Option<Bytes>),
    /// Ask the sender to pace its payload at this rate. `None`: no pacing.
    Pacing(Option<Rate>),
    /// Ask the sender for one train of back-to-back packets on the forward path.
    Train(TrainRequest),
    /// Ask the sender for a congestion control. It has an effect if the sender is Sweetspot and its
    /// kernel has that congestion control.
    Congestion(CongestionChoice),
    /// The transfer is over. The next transfer over the same path may begin with this window; `None`: the path is unknown.
    Saved(Option<SavedWindow>),
    /// Record this event.
    Event(SizingEvent),
}

/// The capacity of a path without a significant queue (RFC 9959's saved parameters).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SavedWindow {
    /// The window of all connections together.
    pub window: Bytes,
    /// RTT without queueing delay.
    pub minimum_rtt: Duration,
}

/// The congestion control that a receiver may request of the sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CongestionChoice {
    /// The congestion control with which the transfer began.
    #[default]
    Own,
    /// Reno: varying round trips do not end its slow start early, as they do with CUBIC's HyStart (RFC 9406).
    Reno,
    /// BBR: random losses do not reduce its rate.
    Bbr,
}

impl CongestionChoice {
    /// Whether a sender restarts this congestion control when its pacing rate changes from `before` to `after`. BBR mistakes a
    /// pacing rate that limited it for the path's rate. From there it grows by only a quarter in eight round trips.
    pub fn restarts_on_pacing(self, before: Option<Rate>, after: Option<Rate>) -> bool {
        self == CongestionChoice::Bbr
            && before.is_some_and(|before| after.is_some_and(|after| after > before))
    }
}

impl fmt::Display for CongestionChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            CongestionChoice::Own => "own",
            CongestionChoice::Reno => "reno",
            CongestionChoice::Bbr => "bbr",
        })
    }
}

/// An action or finding of a controller, for outcomes, plots and tests.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SizingEvent {
    /// The time.
    pub at: Time,
    /// The event.
    pub kind: EventKind,
}

/// The kinds of [`SizingEvent`].
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum EventKind {
    /// The path's capacity and the RTT at that capacity are known.
    CapacityEstimated {
        /// C~ of the paper.
        rate: Rate,
        /// T~ of the paper.
        rtt: Duration,
    },
    /// The window limit was set.
    Limited {
        /// The limit.
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
    /// The path loses packets independently of this transfer: the window is left to congestion
    /// control (section VI of the paper).
    Congested,
    /// The controller changed its state.
    Entered {
        /// The new phase.
        phase: SizingPhase,
        /// The reason.
        reason: Reason,
    },
    /// The controller asked the sender for a congestion control.
    Switched {
        /// The congestion control requested.
        to: CongestionChoice,
    },
}

impl EventKind {
    /// The name in outcomes and time series.
    pub fn name(&self) -> &'static str {
        match self {
            EventKind::CapacityEstimated { .. } => "capacity-estimated",
            EventKind::Limited { .. } => "limited",
            EventKind::Lifted => "lifted",
            EventKind::Saturated { .. } => "saturated",
            EventKind::Congested => "congested",
            EventKind::Entered { phase, .. } => phase.name(),
            EventKind::Switched { .. } => "switched",
        }
    }

    /// The reason, if the controller changed its state.
    pub fn reason(&self) -> Option<Reason> {
        match *self {
            EventKind::Entered { reason, .. } => Some(reason),
            EventKind::CapacityEstimated { .. }
            | EventKind::Saturated { .. }
            | EventKind::Limited { .. }
            | EventKind::Lifted
            | EventKind::Congested
            | EventKind::Switched { .. } => None,
        }
    }

    /// The congestion control requested of the sender, if the event is such a request.
    pub fn congestion(&self) -> Option<CongestionChoice> {
        match *self {
            EventKind::Switched { to } => Some(to),
            _ => None,
        }
    }

    /// The event's rate, round trip and window, if it has them.
    pub fn quantities(&self) -> (Option<Rate>, Option<Duration>, Option<Bytes>) {
        match *self {
            EventKind::CapacityEstimated { rate, rtt } | EventKind::Saturated { rate, rtt } => {
                (Some(rate), Some(rtt), None)
            }
            EventKind::Limited { window } => (None, None, Some(window)),
            EventKind::Lifted
            | EventKind::Congested
            | EventKind::Entered { .. }
            | EventKind::Switched { .. } => (None, None, None),
        }
    }
}

/// Phase of a controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SizingPhase {
    /// The controller sets no limits.
    HandsOff,
    /// Estimating the path before the first limit.
    Measuring,
    /// Growing towards the path's capacity.
    Ramping,
    /// At the sweet spot.
    Holding,
    /// Testing whether a smaller window, or a lower pacing rate, costs rate.
    Trying,
    /// The window is left to congestion control.
    Open,
    /// On a congested path (section VI of the paper), the window is left to congestion control.
    Congested,
}

impl SizingPhase {
    /// Every phase.
    pub const ALL: [SizingPhase; 7] = [
        SizingPhase::HandsOff,
        SizingPhase::Measuring,
        SizingPhase::Ramping,
        SizingPhase::Holding,
        SizingPhase::Trying,
        SizingPhase::Open,
        SizingPhase::Congested,
    ];

    /// The name in rows, events and Python.
    pub fn name(self) -> &'static str {
        match self {
            SizingPhase::HandsOff => "hands-off",
            SizingPhase::Measuring => "measuring",
            SizingPhase::Ramping => "ramping",
            SizingPhase::Holding => "holding",
            SizingPhase::Trying => "trying",
            SizingPhase::Open => "open",
            SizingPhase::Congested => "congested",
        }
    }
}

impl fmt::Display for SizingPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
