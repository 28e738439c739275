//! The sending half of a connection.

mod ack;
mod memory;
mod offload;
mod pacing;
mod recovery;
mod repair;
mod timer;
mod transmit;
mod usage;

use core::hint::black_box;

use sweetspot_units::{Deadline, Duration, Time};

use crate::config::{RecoveryStyle, SenderConfig};
use crate::congestion::{
    Algorithm, Congestion, CongestionConfig, CongestionControl, CongestionEvent, DeliveryRate,
    Growth, SentStamp,
};
use crate::rtt::RttEstimator;
use memory::MemoryLimit;
use pacing::Pacer;
use repair::Repair;
use usage::WindowUsage;

/// The sending half of a connection: decides when to send each packet.
///
/// **Contract.** `now` never goes backwards. After every `handle_*` call and every
/// [`Sender::offer`], [`Sender::poll_transmit`] is called until it returns `None`; after
/// that [`Sender::poll_timeout`] is the latest time for [`Sender::handle_timeout`].
/// Numbers count packets: 0 is the SYN, data starts at 1.
///
/// Fields are in the order in which ACKs touch them: most ACKs need only the first cache lines.
#[derive(Debug, Clone)]
#[repr(C)]
pub struct Sender {
    /// SND.UNA: the oldest number not acknowledged.
    una: u64,
    /// The number to send next. A timeout takes it back to `una`.
    next: u64,
    /// SND.NXT: one past the highest number ever sent.
    highest: u64,
    /// One past the last number that may be sent now, while no loss is being repaired.
    limit: u64,
    /// One past the last number that the receiver's window allows.
    right_edge: u64,
    /// One past the last number that the application has offered.
    end: u64,
    /// When the retransmission timer expires.
    retransmission: Deadline,
    dupacks: u32,
    state: RecoveryState,
    style: RecoveryStyle,
    /// Whether limited transmit allows one new packet for the latest duplicate ACK.
    limited_credit: bool,
    /// Whether NewReno's timer was restarted by a partial ACK of this recovery.
    partial_seen: bool,
    /// The packet that is being timed, and its sending time.
    timed: Option<(u64, Time)>,
    congestion: Congestion,
    /// The congestion window in whole packets.
    cwnd: u64,
    /// Packets by which Reno's and NewReno's recovery widens the window: duplicate ACKs, each
    /// a packet that has left the network. NewReno's partial ACKs can make it negative.
    inflation: i64,
    options: Options,
    /// The state of SACK recovery.
    repair: Option<Box<Repair>>,
    stamps: Option<Box<Stamps>>,
    statistics: Statistics,
    last_sent: Time,
    /// Whether the next data packet carries CWR.
    window_reduced: bool,
    usage: WindowUsage,
    rtt: RttEstimator,
    /// SND.NXT when the last recovery or timeout began. Losses below it are already known.
    recover: u64,
    /// A packet to retransmit now, regardless of the window.
    resend: Option<u64>,
    /// SND.NXT at the last reaction to a congestion echo.
    ecn_recover: u64,
    /// The send buffer as Linux counts it.
    memory: Option<Box<MemoryLimit>>,
    /// Packets of the current segment that have not left yet.
    burst: u32,
    pacer: Pacer,
}

/// The sender's recovery state. The names are those in RFC 9293 (SYN-SENT) and in Linux's `enum tcp_ca_state`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RecoveryState {
    /// The SYN is not acknowledged yet.
    SynSent,
    /// Nothing is known to be lost.
    Open,
    /// Fast recovery.
    Recovery,
    /// Going back after a timeout, until everything sent before it is acknowledged.
    Loss,
}

/// The configuration that the sender reads for every packet.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct Options {
    send_buffer: u64,
    /// Packets that fit into the kernel's memory in any case.
    sure_packets: u64,
    growth: Growth,
    timestamps: bool,
    limited_transmit: bool,
    slow_start_restart: bool,
    /// Whether packets leave in segments of several packets, which the kernel or a device splits.
    offload: bool,
    pacing: bool,
    /// Whether packets are paced, by the congestion control, the sender or the receiver.
    paced: bool,
    packet: sweetspot_units::Bytes,
    backoff: f32,
}

/// Delivery rates, and the stamps of all packets from SND.UNA on.
#[derive(Debug, Clone, Default)]
struct Stamps {
    rate: DeliveryRate,
    /// The min RTT so far. A shorter interval gives no rate sample.
    min_rtt: Option<Duration>,
    sent: std::collections::VecDeque<Option<SentStamp>>,
}

/// A sender's counters since it began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Packets sent, retransmissions included.
    pub sent: u64,
    /// Packets retransmitted.
    pub retransmitted: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Fast recoveries.
    pub recoveries: u64,
}

impl Sender {
    /// A sender before the SYN, for an application that has `packets` to send, or data without end.
    pub fn new(config: &SenderConfig, packets: Option<u64>) -> Sender {
        let congestion = CongestionConfig {
            initial_window: config.initial_window as f64,
            initial_ssthresh: f64::INFINITY,
            growth: config.growth,
            backoff: config.backoff,
            packet: config.packet,
            seed: config.seed,
        };
        let rtt =
            RttEstimator::new(config.clock, config.clock_phase, config.min_rto, config.initial_rto);
        let rtt = match config.recovery {
            RecoveryStyle::Linux => rtt.with_min_variance(config.min_rto),
            _ => rtt,
        };
        let repair = Repair::new(config.recovery, config.algorithm);
        Sender {
            una: 0,
            next: 0,
            highest: 0,
            end: packets.map_or(u64::MAX, |n| n + 1),
            // Until it advertises a window, a receiver accepts only the SYN.
            right_edge: 1,
            recover: 0,
            limit: 1,
            cwnd: config.initial_window,
            congestion: Congestion::new(config.algorithm, &congestion),
            rtt,
            timed: None,
            retransmission: Deadline::NEVER,
            dupacks: 0,
            inflation: 0,
            state: RecoveryState::SynSent,
            style: config.recovery,
            resend: None,
            limited_credit: false,
            partial_seen: false,
            options: Options {
                growth: config.growth,
                timestamps: config.timestamps,
                limited_transmit: config.limited_transmit,
                slow_start_restart: config.slow_start_restart,
                offload: config.offload,
                pacing: config.pacing,
                paced: config.pacing || config.algorithm == Algorithm::Bbr,
                send_buffer: config.send_buffer,
                sure_packets: config.send_memory.map_or(u64::MAX, MemoryLimit::sure_packets),
                packet: config.packet,
                backoff: config.backoff,
            },
            statistics: Statistics::default(),
            pacer: Pacer::default(),
            last_sent: Time::ZERO,
            repair: repair.map(Box::new),
            stamps: config.algorithm.needs_delivery_rate().then(Box::default),
            ecn_recover: 0,
            memory: config.send_memory.map(MemoryLimit::new).map(Box::new),
            burst: 0,
            window_reduced: false,
            usage: WindowUsage::default(),
        }
    }

    /// The application offers `packets` more to send.
    pub fn offer(&mut self, packets: u64) {
        self.note_starvation();
        self.end = self.end.saturating_add(packets);
        self.refresh();
    }

    /// Called before the application offers more. The application was the limit if everything it had offered was sent, no
    /// retransmission was pending, and the congestion window was not full (draft-cheng-iccrg-delivery-rate-estimation-02,
    /// section 3.4; `tcp_rate_check_app_limited`).
    fn note_starvation(&mut self) {
        if self.stamps.is_none() || self.next < self.end || self.resend.is_some() {
            return;
        }
        let in_flight = self.packets_in_flight();
        if let Some(stamps) = &mut self.stamps
            && u64::from(in_flight) < self.cwnd
        {
            stamps.rate.handle_starved(in_flight);
        }
    }

    /// Sets the send buffer: limits unacknowledged data to `packets`.
    pub fn set_send_buffer(&mut self, packets: u64) {
        self.options.send_buffer = packets;
        self.refresh();
    }

    /// The application has offered `packets` since the connection began; `None`: without end. Sent packets are not taken back.
    pub fn offer_up_to(&mut self, packets: Option<u64>) {
        let end = packets.map_or(u64::MAX, |packets| packets.saturating_add(1));
        if end > self.end {
            self.note_starvation();
        }
        self.end = end.max(self.highest).max(1);
        self.refresh();
    }

    /// A window update without data: the receiver accepts `window` packets from number `next` on.
    pub fn handle_window_update(&mut self, next: u64, window: u32) {
        if (self.una..=self.highest).contains(&next) {
            self.right_edge = self.right_edge.max(next + u64::from(window));
            self.refresh();
        }
    }

    /// The current congestion control.
    pub fn algorithm(&self) -> Algorithm {
        self.congestion.algorithm()
    }

    /// Switches to another congestion control and keeps the window (Linux's TCP_CONGESTION on a live socket,
    /// `tcp_reinit_congestion_control`).
    pub fn switch(&mut self, algorithm: Algorithm) {
        let config = CongestionConfig {
            initial_window: self.congestion.cwnd(),
            initial_ssthresh: self.congestion.ssthresh(),
            growth: self.options.growth,
            backoff: self.options.backoff,
            packet: self.options.packet,
            seed: self.highest,
        };
        self.congestion = Congestion::new(algorithm, &config);
        if let Some(repair) = &mut self.repair {
            repair.switch(self.style, algorithm);
        }
        self.stamps = algorithm.needs_delivery_rate().then(|| {
            // Packets in flight were sent without a stamp.
            let unstamped = self.highest.saturating_sub(self.una);
            let sent = (0..unstamped).map(|_| None).collect();
            Box::new(Stamps { sent, ..Stamps::default() })
        });
        self.options.paced |= algorithm == Algorithm::Bbr;
        self.refresh();
    }

    /// Recomputes the sending limit.
    #[inline]
    fn refresh(&mut self) {
        self.cwnd = self.congestion.cwnd() as u64;
        // ns-2 `RenoTcpAgent::window`: int(cwnd_) + dupwnd_, no more than wnd_.
        let window = (self.cwnd as i64 + self.inflation).max(1) as u64;
        let window = window.min(self.options.send_buffer);
        self.limit = (self.una + window).min(self.right_edge).min(self.end);
        if self.limit - self.una > self.options.sure_packets {
            self.limit_by_memory();
        }
    }

    /// Prefetches the fields that an ACK needs.
    #[inline]
    pub fn read_ahead(&self) {
        black_box((self.una, self.retransmission, self.cwnd, self.statistics.sent));
        self.rtt.read_ahead();
    }

    /// Packets acknowledged, without the SYN.
    pub fn acknowledged(&self) -> u64 {
        self.una.saturating_sub(1)
    }

    /// Whether all of the application's data is acknowledged.
    pub fn is_done(&self) -> bool {
        self.una >= self.end
    }

    /// The congestion window in packets.
    pub fn cwnd(&self) -> f64 {
        self.congestion.cwnd()
    }

    /// The slow-start threshold in packets.
    pub fn ssthresh(&self) -> f64 {
        self.congestion.ssthresh()
    }

    /// Packets sent and not acknowledged.
    pub fn outstanding(&self) -> u64 {
        self.highest.saturating_sub(self.una)
    }

    /// The recovery state.
    pub fn state(&self) -> RecoveryState {
        self.state
    }

    /// This sender's counters so far.
    pub fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// The window without congestion control: the smaller of the receiver's window and the send
    /// buffer, packets.
    fn other_limit(&self) -> u64 {
        self.right_edge.saturating_sub(self.una).min(self.options.send_buffer)
    }

    fn congestion_event(&self, now: Time) -> CongestionEvent {
        CongestionEvent {
            now,
            window: self.other_limit() as f64,
            in_flight: self.packets_in_flight(),
            nxt: self.highest,
            reduced: self.is_reduced(),
        }
    }

    /// Whether the losses of the current window of data have lowered the threshold already: Linux `tcp_enter_loss`. A timeout
    /// in recovery does not lower it again, nor does a timeout that follows another without any progress.
    fn is_reduced(&self) -> bool {
        self.style == RecoveryStyle::Linux
            && match self.state {
                RecoveryState::Recovery => self.una < self.recover,
                RecoveryState::Loss => self.rtt.is_backed_off(),
                RecoveryState::SynSent | RecoveryState::Open => false,
            }
    }

    /// Packets sent and not known to be received or lost.
    fn in_flight(&self) -> u64 {
        match &self.repair {
            Some(repair) if self.repairs_by_pipe() || !repair.board.is_empty() => {
                repair.board.pipe(self.una, self.highest)
            }
            _ => self.next.saturating_sub(self.una),
        }
    }

    /// [`Sender::in_flight`] as the integer type of the congestion controls.
    fn packets_in_flight(&self) -> u32 {
        u32::try_from(self.in_flight()).unwrap_or(u32::MAX)
    }
}
