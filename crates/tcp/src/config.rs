use sweetspot_units::{Bytes, Duration};

use crate::congestion::{Algorithm, Growth};

/// The configuration of a sender.
#[derive(Debug, Clone, Copy)]
pub struct SenderConfig {
    /// Congestion control.
    pub algorithm: Algorithm,
    /// Loss recovery.
    pub recovery: RecoveryStyle,
    /// How ACKs make the window grow.
    pub growth: Growth,
    /// Initial window, packets.
    pub initial_window: u64,
    /// Bytes of a data packet on the wire.
    pub packet: Bytes,
    /// Share of the window that Reno keeps after a loss: 0.5 in RFC 5681.
    pub backoff: f32,
    /// The minimum retransmission timeout.
    pub min_rto: Duration,
    /// Retransmission timeout before the first sample.
    pub initial_rto: Duration,
    /// Granularity of the clock: G of RFC 6298.
    pub clock: Duration,
    /// The clock's position within a tick at time 0.
    pub clock_phase: Duration,
    /// Whether every ACK is an RTT sample.
    pub timestamps: bool,
    /// Limited transmit (RFC 3042).
    pub limited_transmit: bool,
    /// Slow-start restart (RFC 5681 section 4.1).
    pub slow_start_restart: bool,
    /// Whether the sender passes packets down in segments of several packets, as Linux does (`tcp_tso_autosize`). The send
    /// buffer then counts segments, and pacing releases one segment at a time.
    pub offload: bool,
    /// Whether packets are paced: spread over the round trip.
    pub pacing: bool,
    /// The send buffer, packets.
    pub send_buffer: u64,
    /// The send buffer as Linux counts it; `None`: counted in packets only.
    pub send_memory: Option<SendMemory>,
    /// Seeds the congestion control's random draws.
    pub seed: u64,
}

/// A send buffer that counts segments' kernel memory (`sk_wmem_queued`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SendMemory {
    /// The buffer's largest size: tcp_wmem\[2\]. A smaller buffer is never the limit, because it grows to twice the window in
    /// segments of one packet each (`tcp_sndbuf_expand`).
    pub limit: Bytes,
    /// Bytes of a packet without headers.
    pub payload: Bytes,
    /// Memory of a segment besides its payload.
    pub overhead: Bytes,
}

/// How a sender repairs losses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecoveryStyle {
    /// As in ns-2: one retransmission per recovery, which the first new ACK ends.
    Reno,
    /// A partial ACK retransmits the next hole (RFC 6582).
    NewReno,
    /// A scoreboard of selectively acknowledged packets (RFC 6675).
    Sack,
    /// Forward acknowledgement (Mathis and Mahdavi, SIGCOMM 1996): packets below the highest SACKed one have left the network,
    /// even if they are not SACKed themselves.
    Fack,
    /// As ns-2's `Sack1` (Fall and Floyd, "Simulation-based comparisons of Tahoe, Reno, and SACK TCP", 1996): packets in flight
    /// are counted by ACKs, so the count keeps lost packets.
    Sack1,
    /// As in Linux. The scoreboard outlives a timeout, and RACK detects lost retransmissions by time (RFC 8985). Proportional
    /// rate reduction (RFC 6937) reduces the window, unless the congestion control does that itself.
    Linux,
}

impl RecoveryStyle {
    /// Whether receivers must report out-of-order data.
    pub fn needs_sack(self) -> bool {
        !matches!(self, RecoveryStyle::Reno | RecoveryStyle::NewReno)
    }
}

/// The configuration of a receiver.
#[derive(Debug, Clone, Copy)]
pub struct ReceiverConfig {
    /// Delayed ACKs; `None`: every packet is acknowledged at once.
    pub delayed_ack: Option<DelayedAck>,
    /// Whether ACKs carry SACK blocks.
    pub sack: bool,
    /// The window to advertise, packets.
    pub window: u64,
    /// The first window to advertise, packets. It grows with the arrivals, as in Linux. `None` advertises the whole window at
    /// once. The advertised edge never moves back, so a receiver with a controlled window must not begin with all of it.
    pub first_window: Option<u64>,
}

/// Delayed ACKs (RFC 5681 section 4.2): one for every second packet, or after a delay.
#[derive(Debug, Clone, Copy)]
pub struct DelayedAck {
    /// The longest delay.
    pub delay: Duration,
    /// Packets acknowledged at once before the first delayed ACK: Linux's quick ACKs.
    pub quick_start: u32,
}
