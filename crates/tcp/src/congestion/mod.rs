//! Congestion controls: how many packets a sender may have in flight, and how fast.
//!
//! They work in packets, as ns-2 does, with fractions between them. A control decides on the
//! window alone; which packets to retransmit, and what may be sent while recovery lasts (Reno's
//! inflation, NewReno's partial ACKs, [`Prr`]), is the sender's business.
//!
//! **Contract.** `now` never goes backwards. Every ACK goes to [`CongestionControl::handle_ack`],
//! those of a recovery too ([`Ack::recovering`]). A recovery is one
//! [`CongestionControl::handle_recovery`], then, unless a timeout ends it,
//! [`CongestionControl::handle_recovered`], which comes before the `handle_ack` of the ACK that
//! ended it. [`Congestion`] holds any of the controls, the small one inline and the others boxed, so
//! that a flow is compact and a call is a jump.

mod bbr;
mod cubic;
mod delivery_rate;
mod hystart;
mod lp;
mod pacing;
mod prr;
mod reno;
mod vegas;

pub use bbr::Bbr;
pub use cubic::Cubic;
pub use delivery_rate::{DeliveryRate, RateSample, SentStamp};
pub use hystart::{HyStart, SlowStart};
pub use lp::Lp;
pub use pacing::window_pacing_rate;
pub use prr::Prr;
pub use reno::Reno;
pub use vegas::Vegas;

use sweetspot_units::{Bytes, Duration, Rate, Time};

/// What a congestion control does.
pub trait CongestionControl {
    /// An ACK arrived.
    fn handle_ack(&mut self, ack: &Ack);

    /// Fast recovery begins: a loss was found without a timeout.
    fn handle_recovery(&mut self, event: &CongestionEvent);

    /// Fast recovery is over, all that was in flight when it began is acknowledged.
    fn handle_recovered(&mut self, now: Time);

    /// The retransmission timer expired with data in flight.
    fn handle_timeout(&mut self, event: &CongestionEvent);

    /// An ACK echoed congestion marks (RFC 3168); at most once per window of data.
    fn handle_ecn(&mut self, event: &CongestionEvent);

    /// Sending starts again after an idle time longer than the retransmission timeout
    /// (slow-start restart, RFC 5681 section 4.1).
    fn handle_restart(&mut self, now: Time);

    /// The congestion window in packets, 1 or more.
    fn cwnd(&self) -> f64;

    /// The slow-start threshold in packets.
    fn ssthresh(&self) -> f64;

    /// The rate at which packets of [`Setting::packet`] bytes must leave, for controls that pace
    /// by themselves. `None`: the control leaves pacing to the sender.
    fn pacing_rate(&self) -> Option<Rate>;
}

/// What one ACK told the sender, after its scoreboard was brought up to date.
#[derive(Debug, Clone, Copy)]
pub struct Ack {
    /// When it arrived.
    pub now: Time,
    /// Packets that the cumulative ACK newly covers: zero on a duplicate.
    pub acked: u32,
    /// Packets newly known to have arrived, cumulatively or selectively.
    pub delivered: u32,
    /// Round-trip time of a packet newly acknowledged that was sent once only.
    pub rtt: Option<Duration>,
    /// Packets newly found to be lost.
    pub lost: u32,
    /// Packets acknowledged cumulatively since the connection began: SND.UNA.
    pub una: u64,
    /// Packets sent for the first time since the connection began: SND.NXT.
    pub nxt: u64,
    /// Packets in flight after this ACK.
    pub in_flight: u32,
    /// Whether the congestion window was what limited the sender when this ACK arrived, and
    /// neither the application nor the receiver's window (RFC 9438 section 5.8).
    pub cwnd_limited: bool,
    /// Whether a recovery goes on, so that the window is not to grow.
    pub recovering: bool,
    /// How fast the path delivered, where [`Algorithm::needs_delivery_rate`].
    pub rate: Option<RateSample>,
}

impl Ack {
    /// An ACK at `now` of which nothing else is known.
    pub fn at(now: Time) -> Ack {
        Ack {
            now,
            acked: 0,
            delivered: 0,
            rtt: None,
            lost: 0,
            una: 0,
            nxt: 0,
            in_flight: 0,
            cwnd_limited: false,
            recovering: false,
            rate: None,
        }
    }
}

/// A sign of congestion, seen at most once per window of data.
#[derive(Debug, Clone, Copy)]
pub struct CongestionEvent {
    /// When it was seen.
    pub now: Time,
    /// What bounds the window besides the congestion window, in packets: the smaller of the
    /// receiver's window and the send buffer. ns-2 calls it `wnd_`.
    pub window: f64,
    /// Packets in flight.
    pub in_flight: u32,
    /// Packets sent for the first time since the connection began: SND.NXT.
    pub nxt: u64,
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

/// What a control is built from.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// Initial window in packets, 1 or more.
    pub initial_window: f64,
    /// Where the first slow start ends, in packets. ns-2 takes the window limit (`wnd_`);
    /// infinity where nothing is known.
    pub initial_ssthresh: f64,
    /// How ACKs make the window grow.
    pub growth: Growth,
    /// Bytes of a full packet, the unit of [`CongestionControl::pacing_rate`].
    pub packet: Bytes,
    /// Decides what a control draws by lot (the phase in which BBR starts to probe).
    pub seed: u64,
}

/// The congestion controls there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// Jacobson's, the window of Reno, NewReno and SACK TCP alike.
    Reno,
    /// RFC 9438, with HyStart++.
    Cubic,
    /// Brakmo and Peterson's.
    Vegas,
    /// Version 1.
    Bbr,
    /// Kuzmanovic and Knightly's, of low priority.
    Lp,
}

impl Algorithm {
    /// Whether its control looks at [`Ack::rate`], so that the sender must keep a
    /// [`DeliveryRate`].
    pub fn needs_delivery_rate(self) -> bool {
        self == Algorithm::Bbr
    }
}

/// Any congestion control.
#[derive(Debug, Clone)]
pub enum Congestion {
    /// See [`Reno`].
    Reno(Reno),
    /// See [`Cubic`].
    Cubic(Box<Cubic>),
    /// See [`Vegas`].
    Vegas(Box<Vegas>),
    /// See [`Bbr`].
    Bbr(Box<Bbr>),
    /// See [`Lp`].
    Lp(Box<Lp>),
}

impl Congestion {
    /// The control `algorithm` at the start of a connection.
    pub fn new(algorithm: Algorithm, setting: &Setting) -> Congestion {
        match algorithm {
            Algorithm::Reno => Congestion::Reno(Reno::new(setting)),
            Algorithm::Cubic => Congestion::Cubic(Box::new(Cubic::new(setting))),
            Algorithm::Vegas => Congestion::Vegas(Box::new(Vegas::new(setting))),
            Algorithm::Bbr => Congestion::Bbr(Box::new(Bbr::new(setting))),
            Algorithm::Lp => Congestion::Lp(Box::new(Lp::new(setting))),
        }
    }

    /// Which it is.
    pub fn algorithm(&self) -> Algorithm {
        match self {
            Congestion::Reno(_) => Algorithm::Reno,
            Congestion::Cubic(_) => Algorithm::Cubic,
            Congestion::Vegas(_) => Algorithm::Vegas,
            Congestion::Bbr(_) => Algorithm::Bbr,
            Congestion::Lp(_) => Algorithm::Lp,
        }
    }
}

/// Calls a method of whichever control it is.
macro_rules! dispatch {
    ($self:ident, $control:ident => $call:expr) => {
        match $self {
            Congestion::Reno($control) => $call,
            Congestion::Cubic($control) => $call,
            Congestion::Vegas($control) => $call,
            Congestion::Bbr($control) => $call,
            Congestion::Lp($control) => $call,
        }
    };
}

impl CongestionControl for Congestion {
    #[inline]
    fn handle_ack(&mut self, ack: &Ack) {
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
