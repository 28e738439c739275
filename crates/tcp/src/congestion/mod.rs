//! Congestion controls: the number of packets that a sender may have in flight, and its sending rate.
//!
//! They count in packets and fractions of packets, as ns-2 does. A congestion control decides only the window. The
//! sender decides which packets to retransmit, and which packets it may send during recovery (Reno's inflation,
//! NewReno's partial ACKs, [`Prr`]).
//!
//! **Contract.** `now` never goes backwards. Every ACK goes to [`CongestionControl::handle_ack`], even during recovery
//! ([`AckSample::recovering`]). A recovery is one call of [`CongestionControl::handle_recovery`], then, unless a
//! timeout ends it, one of [`CongestionControl::handle_recovered`], before the `handle_ack` of the ACK that ended it.
//! [`Congestion`] holds any of the congestion controls, the small one inline and the others boxed, so a flow is compact
//! and a call is a jump.

mod bbr;
mod cubic;
mod delivery_rate;
mod hystart;
mod linux_cubic;
mod lp;
mod prr;
mod reno;
mod vegas;

pub use bbr::Bbr;
pub use cubic::Cubic;
pub use delivery_rate::{DeliveryRate, RateSample, SentStamp};
pub use hystart::{HyStart, SlowStart};
pub use linux_cubic::LinuxCubic;
pub use lp::Lp;
pub use prr::Prr;
pub use reno::Reno;
pub use vegas::Vegas;

use sweetspot_units::{Bytes, Duration, Rate, Time};

/// A congestion control. The module's documentation has its contract.
pub trait CongestionControl {
    /// Handles an ACK that arrived.
    fn handle_ack(&mut self, ack: &AckSample);

    /// Fast recovery begins: a loss was detected without a timeout.
    fn handle_recovery(&mut self, event: &CongestionEvent);

    /// Fast recovery is over: all that was in flight when it began is acknowledged.
    fn handle_recovered(&mut self, now: Time);

    /// The retransmission timer expired with data in flight.
    fn handle_timeout(&mut self, event: &CongestionEvent);

    /// An ACK echoed congestion marks (RFC 3168). Called at most once per window of data.
    fn handle_ecn(&mut self, event: &CongestionEvent);

    /// Sending starts again after an idle time longer than the retransmission timeout
    /// (slow-start restart, RFC 5681 section 4.1).
    fn handle_restart(&mut self, now: Time);

    /// The congestion window in packets, 1 or more.
    fn cwnd(&self) -> f64;

    /// The slow-start threshold in packets.
    fn ssthresh(&self) -> f64;

    /// The rate at which packets of [`CongestionConfig::packet`] bytes leave, if the congestion control paces; `None` if
    /// it leaves pacing to the sender.
    fn pacing_rate(&self) -> Option<Rate>;
}

/// A sender's sample from one ACK, including its scoreboard (Linux: `struct ack_sample`).
#[derive(Debug, Clone, Copy, Default)]
pub struct AckSample {
    /// When it arrived.
    pub now: Time,
    /// Packets that the cumulative ACK newly covers; zero for a duplicate ACK.
    pub acked: u32,
    /// Packets newly known to have arrived, cumulatively or selectively.
    pub delivered: u32,
    /// Round-trip time of a newly acknowledged packet that was sent once.
    pub rtt: Option<Duration>,
    /// Packets newly detected as lost.
    pub lost: u32,
    /// SND.UNA: packets acknowledged cumulatively since the connection began.
    pub una: u64,
    /// SND.NXT: packets sent for the first time since the connection began.
    pub nxt: u64,
    /// Packets in flight after this ACK.
    pub in_flight: u32,
    /// Whether the congestion window limited the sender when this ACK arrived, rather than the
    /// application or the receiver's window (RFC 9438 section 5.8).
    pub cwnd_limited: bool,
    /// Whether a recovery is in progress, during which the window must not grow.
    pub recovering: bool,
    /// Whether the sender paces its packets.
    pub paced: bool,
    /// The delivery rate, if [`Algorithm::needs_delivery_rate`].
    pub rate: Option<RateSample>,
}

impl AckSample {
    /// The sample of an ACK at `now`, without further data.
    pub fn at(now: Time) -> AckSample {
        AckSample { now, ..AckSample::default() }
    }
}

/// A congestion signal. There is at most one per window of data.
#[derive(Debug, Clone, Copy)]
pub struct CongestionEvent {
    /// When it was detected.
    pub now: Time,
    /// The other bound of the window, in packets: the smaller of the receiver's window and the send buffer. ns-2 calls it
    /// `wnd_`.
    pub window: f64,
    /// Packets in flight.
    pub in_flight: u32,
    /// SND.NXT: packets sent for the first time since the connection began.
    pub nxt: u64,
    /// Whether the window was already reduced for this window of data. Linux lowers the threshold only once
    /// (`tcp_enter_loss`).
    pub reduced: bool,
}

/// How ACKs make a loss-based window grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Growth {
    /// ns-2: every ACK counts once, however many packets it covers, and the window grows even
    /// while something else is the limit (`control_increase_` is 0 by default).
    PerAck,
    /// Linux: every packet counts (RFC 3465 without its limit), and only while the congestion
    /// window is the limit (RFC 7661).
    PerPacket,
}

/// The configuration of a congestion control.
#[derive(Debug, Clone, Copy)]
pub struct CongestionConfig {
    /// Initial window in packets, 1 or more.
    pub initial_window: f64,
    /// Slow-start threshold at the beginning, in packets: in ns-2 the window limit (`wnd_`), otherwise infinity.
    pub initial_ssthresh: f64,
    /// How ACKs make the window grow.
    pub growth: Growth,
    /// Share of the window that Reno keeps after a loss.
    pub backoff: f32,
    /// Bytes of a full packet, the unit of [`CongestionControl::pacing_rate`].
    pub packet: Bytes,
    /// Seeds a control's random draws: the phase in which BBR begins to probe.
    pub seed: u64,
}

/// The names of the congestion controls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// Jacobson's window of Reno, NewReno and SACK TCP (RFC 5681).
    Reno,
    /// CUBIC: Linux's if every packet counts ([`Growth::PerPacket`]), else RFC 9438's with HyStart++ (RFC 9406).
    Cubic,
    /// Brakmo and Peterson's Vegas.
    Vegas,
    /// BBR version 1.
    Bbr,
    /// TCP-LP by Kuzmanovic and Knightly, for low-priority transfers.
    Lp,
}

impl Algorithm {
    /// Whether the congestion control reads [`AckSample::rate`], for which the sender keeps a [`DeliveryRate`].
    pub fn needs_delivery_rate(self) -> bool {
        self == Algorithm::Bbr
    }
}

/// Any congestion control.
#[derive(Debug, Clone)]
pub enum Congestion {
    /// Reno.
    Reno(Reno),
    /// CUBIC.
    Cubic(Box<Cubic>),
    /// See [`LinuxCubic`].
    LinuxCubic(Box<LinuxCubic>),
    /// Vegas.
    Vegas(Box<Vegas>),
    /// BBR.
    Bbr(Box<Bbr>),
    /// See [`Lp`].
    Lp(Box<Lp>),
}

impl Congestion {
    /// The congestion control `algorithm` at the start of a connection.
    pub fn new(algorithm: Algorithm, config: &CongestionConfig) -> Congestion {
        match algorithm {
            Algorithm::Reno => Congestion::Reno(Reno::new(config)),
            Algorithm::Cubic if config.growth == Growth::PerPacket => {
                Congestion::LinuxCubic(Box::new(LinuxCubic::new(config)))
            }
            Algorithm::Cubic => Congestion::Cubic(Box::new(Cubic::new(config))),
            Algorithm::Vegas => Congestion::Vegas(Box::new(Vegas::new(config))),
            Algorithm::Bbr => Congestion::Bbr(Box::new(Bbr::new(config))),
            Algorithm::Lp => Congestion::Lp(Box::new(Lp::new(config))),
        }
    }

    /// The control's name.
    pub fn algorithm(&self) -> Algorithm {
        match self {
            Congestion::Reno(_) => Algorithm::Reno,
            Congestion::Cubic(_) | Congestion::LinuxCubic(_) => Algorithm::Cubic,
            Congestion::Vegas(_) => Algorithm::Vegas,
            Congestion::Bbr(_) => Algorithm::Bbr,
            Congestion::Lp(_) => Algorithm::Lp,
        }
    }
}

/// Calls a method of the selected congestion control.
macro_rules! dispatch {
    ($self:ident, $control:ident => $call:expr) => {
        match $self {
            Congestion::Reno($control) => $call,
            Congestion::Cubic($control) => $call,
            Congestion::LinuxCubic($control) => $call,
            Congestion::Vegas($control) => $call,
            Congestion::Bbr($control) => $call,
            Congestion::Lp($control) => $call,
        }
    };
}

impl CongestionControl for Congestion {
    #[inline]
    fn handle_ack(&mut self, ack: &AckSample) {
        dispatch!(self, c => c.handle_ack(ack));
    }
    fn handle_recovery(&mut self, event: &CongestionEvent) {
        dispatch!(self, c => c.handle_recovery(event));
    }
    fn handle_recovered(&mut self, now: Time) {
        dispatch!(self, c => c.handle_recovered(now));
    }
    fn handle_timeout(&mut self, event: &CongestionEvent) {
        dispatch!(self, c => c.handle_timeout(event));
    }
    fn handle_ecn(&mut self, event: &CongestionEvent) {
        dispatch!(self, c => c.handle_ecn(event));
    }
    fn handle_restart(&mut self, now: Time) {
        dispatch!(self, c => c.handle_restart(now));
    }
    #[inline]
    fn cwnd(&self) -> f64 {
        dispatch!(self, c => c.cwnd())
    }
    #[inline]
    fn ssthresh(&self) -> f64 {
        dispatch!(self, c => c.ssthresh())
    }
    #[inline]
    fn pacing_rate(&self) -> Option<Rate> {
        dispatch!(self, c => c.pacing_rate())
    }
}
