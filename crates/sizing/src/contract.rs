//! The interface between a controller and whatever runs it.

use core::fmt;

use sweetspot_units::{Bytes, Duration, Rate, Time};

/// A sizing controller, at the receiver or (pacing alone) at the sender: a sans-IO state machine.
///
/// **Contract.** `now` never goes backwards. After every [`Controller::handle`] the caller polls
/// outputs until there are none and asks [`Controller::poll_timeout`] when [`Input::Timeout`] is due.
/// Inputs that the controller does not need (see [`Controller::needs`]) may be left out. The same
/// inputs give the same outputs. [`crate::Driver`] keeps this contract for every engine.
pub trait Controller {
    /// Something was received, measured or is due.
    fn handle(&mut self, now: Time, input: &Input);

    /// When the controller next wants [`Input::Timeout`], if nothing arrives before.
    fn poll_timeout(&self) -> Option<Time>;

    /// The next thing to do or to record, until `None`.
    fn poll_output(&mut self) -> Option<Output>;

    /// The inputs that it lives on now; whether it needs probes or trains at all is decided at the
    /// beginning.
    fn needs(&self) -> Needs;

    /// Where the controller stands, for people.
    fn phase(&self) -> Phase;
}

/// What a controller hears.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Input {
    /// The application took payload out of the connection; at the sender: payload was delivered.
    Data {
        /// Payload taken, or delivered since the last call.
        bytes: Bytes,
        /// What still waited in the receive buffer after that: about zero where the application
        /// keeps up; where it does not, the window was not the limit.
        unread: Bytes,
    },
    /// A periodic probe's answer arrived (section VII-A of the SOBAS paper).
    Probe(Probe),
    /// The sender's own view, where it speaks our protocol or is this host.
    Sender(SenderReport),
    /// The kernel's estimate of the round trip: the receiver's (`tcpi_rcv_rtt`), at the sender its
    /// own (`tcpi_rtt`).
    KernelRtt(Duration),
    /// The least round trip of what this end sent, the handshake's mostly (`tcpi_min_rtt`): it
    /// holds no queue of the transfer's own.
    MinimumRtt(Duration),
    /// Segments that arrived ahead of a missing one since the last call (`tcpi_rcv_ooopack`).
    OutOfOrder {
        /// How many.
        segments: u64,
    },
    /// A packet train asked for by [`Output::Train`] arrived, or did not.
    Train(Train),
    /// The window that is really advertised now, read back from the actuator.
    Window {
        /// Its size.
        advertised: Bytes,
    },
    /// The time that [`Controller::poll_timeout`] named has come.
    Timeout,
    /// All connections of this path are over; those that come may find it as they left it.
    End,
}

/// What a periodic probe brought back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probe {
    /// Round trip of this probe: out of band, so without the sender's and receiver's buffers.
    pub rtt: Duration,
    /// Probes now known to be lost on the forward path (the one that data takes) between the answer
    /// before this one and this one.
    pub forward_lost: u64,
}

/// The sender's own view (Linux: `TCP_INFO`), carried in probes' answers or read here. Counters run
/// from the beginning of the connection.
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
    /// Latest delivery rate (`tcpi_delivery_rate`); zero where it is not known.
    pub delivery_rate: Rate,
    /// Whether that rate was limited by the application (`tcpi_delivery_rate_app_limited`).
    pub app_limited: bool,
    /// Time in which data was under way (`tcpi_busy_time`).
    pub busy: Duration,
    /// Of that, the time in which the receiver's window was the limit (`tcpi_rwnd_limited`).
    pub window_limited: Duration,
    /// Least round trip (`tcpi_min_rtt`); zero where it is not known.
    pub minimum_rtt: Duration,
    /// The congestion state machine (`tcpi_ca_state`).
    pub state: CongestionState,
    /// Reordering seen, segments (`tcpi_reordering`).
    pub reordering: u32,
    /// Duplicate SACKs: retransmissions that were not needed (`tcpi_dsack_dups`).
    pub dsacks: u32,
    /// Segments delivered with congestion marks (`tcpi_delivered_ce`).
    pub marked: u32,
    /// Whether the sender had nothing to send at some time since its last report: what was
    /// received then says nothing about the path.
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
    /// Time from the arrival of the first to that of the last.
    pub dispersion: Duration,
}

impl Train {
    /// The rate at which the train came out of the path; `None` where it cannot be told.
    pub fn rate(&self) -> Option<Rate> {
        (self.received >= 2 && self.dispersion > Duration::ZERO)
            .then(|| self.bytes_after_first / self.dispersion)
    }

    /// A train that could not even be asked for.
    pub fn lost(request: &TrainRequest) -> Train {
        let (bytes_after_first, dispersion) = (Bytes::ZERO, Duration::ZERO);
        Train { sent: request.packets, received: 0, bytes_after_first, dispersion }
    }
}

/// A train as the controller wants it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrainRequest {
    /// Number of packets.
    pub packets: u32,
    /// Size of each on the wire, IP header included.
    pub size: Bytes,
}

/// The inputs that a controller lives on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Needs {
    /// [`Input::Probe`] and, with them, [`Input::Sender`], which a caller at the sender always has.
    pub probes: Probing,
    /// [`Input::Train`].
    pub trains: bool,
    /// [`Input::Data`].
    pub data: bool,
    /// [`Input::KernelRtt`], always; a controller of probes hears it where none pass.
    pub kernel_rtt: bool,
    /// [`Input::MinimumRtt`].
    pub minimum_rtt: bool,
    /// [`Input::OutOfOrder`].
    pub out_of_order: bool,
    /// [`Input::Window`].
    pub window: bool,
}

/// How often a controller wants the path probed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Probing {
    /// Not at all.
    Never,
    /// Every 20 ms (section VII-A of the SOBAS paper).
    Periodic,
    /// No more often, and for no more than a two-hundredth of the transfer's own rate.
    Budgeted,
    /// Once a second, so that the sender is heard of.
    Sparse,
}

impl Needs {
    /// Nothing: it has decided before the first byte.
    pub const NOTHING: Needs = Needs {
        probes: Probing::Never,
        trains: false,
        data: false,
        kernel_rtt: false,
        minimum_rtt: false,
        out_of_order: false,
        window: false,
    };

    /// What the receiving kernel measures of the data.
    pub const KERNEL: Needs = Needs { data: true, kernel_rtt: true, ..Needs::NOTHING };

    /// Whether it looks at anything.
    pub fn any(&self) -> bool {
        *self != Needs::NOTHING
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
    /// Ask the sender for a congestion control, where it is ours and its kernel has it.
    Congestion(CongestionChoice),
    /// Something worth recording.
    Event(Event),
}

/// A sender's congestion control, as far as a receiver has a say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CongestionChoice {
    /// The one the transfer was begun with.
    #[default]
    Own,
    /// Reno's: its slow start is not ended early by round trips that vary, as by HyStart
    /// (RFC 9406) of CUBIC.
    Reno,
    /// BBR: random losses do not hold it down.
    Bbr,
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
    /// The path's capacity is known, and the round trip that goes with it.
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
    /// control (section VI of the paper).
    Congested,
    /// The controller is in another state.
    Entered {
        /// Which.
        phase: Phase,
        /// Why.
        reason: Reason,
    },
    /// The sender was asked for a congestion control.
    Switched {
        /// Which.
        to: CongestionChoice,
    },
}

impl EventKind {
    /// What it is called in outcomes and series.
    pub fn name(&self) -> &'static str {
        match self {
            EventKind::CapacityEstimated { .. } => "capacity-estimated",
            EventKind::Limited { .. } => "limited",
            EventKind::Lifted => "lifted",
            EventKind::Saturated { .. } => "saturated",
            EventKind::Congested => "congested",
            EventKind::Entered { phase, .. } => match phase {
                Phase::HandsOff => "hands-off",
                Phase::Measuring => "measuring",
                Phase::Ramping => "ramping",
                Phase::Holding => "holding",
                Phase::Trying => "trying",
                Phase::Open => "opened",
                Phase::Congested => "congested",
            },
            EventKind::Switched { .. } => "switched",
        }
    }

    /// Why, where the controller changed its state.
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

    /// Rate, round trip and window that belong to it.
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

/// Why a controller changed its state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// Packet trains agree on the path's capacity.
    CapacityKnown,
    /// They differ: others' packets lie between them, or jitter.
    CapacityUnclear,
    /// None came in time.
    CapacityUnknown,
    /// The round trip is too short to be timed, or to be worth a limit.
    ShortPath,
    /// The transfer moves too little for packet trains to be worth their bytes.
    ShortTransfer,
    /// The rate fell below the capacity under a limit that binds.
    RateFell,
    /// A packet was lost that no queue of ours can have dropped.
    RandomLoss,
    /// A queue stands that others keep.
    OthersQueue,
    /// The path carries more than was known.
    PathFaster,
    /// The path carries less than was known: a queue stands though less was sent.
    PathSlower,
    /// Our own queue overflowed the bottleneck's buffer.
    Overflow,
    /// The rate does not follow the window: a smaller one is tried.
    RateInelastic,
    /// The trial cost no rate.
    TrialPaid,
    /// The trial cost rate.
    TrialFailed,
    /// The transfer is over.
    Ended,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Reason::CapacityKnown => "the path's capacity is known",
            Reason::CapacityUnclear => "measurements of the capacity differ",
            Reason::CapacityUnknown => "the capacity could not be measured",
            Reason::ShortPath => "the round trip is too short for a limit to matter",
            Reason::ShortTransfer => "the transfer is too short for measurements to pay",
            Reason::RateFell => "the rate fell under the limit",
            Reason::RandomLoss => "a packet was lost without a queue of our own",
            Reason::OthersQueue => "others keep a queue",
            Reason::PathFaster => "the path carries more than was known",
            Reason::PathSlower => "the path carries less than was known",
            Reason::Overflow => "the bottleneck's buffer overflowed",
            Reason::RateInelastic => "a queue stands, and the rate does not follow the window",
            Reason::TrialPaid => "a smaller window cost no rate",
            Reason::TrialFailed => "a smaller window cost rate",
            Reason::Ended => "the transfer is over",
        })
    }
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
    /// Trying whether a smaller window, or a lower pace, costs rate.
    Trying,
    /// The window is left to congestion control.
    Open,
    /// On a congested path (section VI of the paper), the window is left to congestion control.
    Congested,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Phase::HandsOff => "hands off",
            Phase::Measuring => "measuring",
            Phase::Ramping => "ramping",
            Phase::Holding => "holding",
            Phase::Trying => "trying",
            Phase::Open => "open",
            Phase::Congested => "congested",
        })
    }
}
