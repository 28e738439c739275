use core::ops::Range;

use sweetspot_scenario::{Congestion, Flavour, Tcp};
use sweetspot_tcp::congestion::{Algorithm, Growth};
use sweetspot_tcp::{DelayedAck, ReceiverConfig, RecoveryStyle, SendMemory, SenderConfig};
use sweetspot_units::{Bytes, Duration, Volume};

/// Flows with the same parameters: an entry of cross traffic, or one transfer.
#[derive(Debug, Clone)]
pub(crate) struct Group {
    pub sender: SenderConfig,
    pub receiver: ReceiverConfig,
    /// Payload bytes of a full packet.
    pub payload: Bytes,
    /// Bytes of an ACK on the wire.
    pub ack_size: u16,
    pub application: Application,
    /// Whether routers can mark its data (ECN).
    pub ecn: bool,
    /// Whether its hosts behave as Linux does.
    pub linux: bool,
    /// The exponent of the window scale option ([`Tcp::window_scale`]).
    window_scale: u64,
    /// Flows with a finished connection, free for reuse.
    pub idle: Vec<u32>,
    /// The servers from which a connection's server is drawn: of flows with data going forward, and with data
    /// going backward.
    pub servers: [Range<u32>; 2],
}

/// The application's use of its connection.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Application {
    /// Sends this number of packets, or data without end.
    Bulk(Option<u64>),
    /// Sends a few packets, sleeps, opens a new connection.
    Mice { packets: (u64, u64), sleep: (Duration, Duration) },
    /// Sends a Pareto-sized transfer, pauses to think, opens a new connection.
    ClosedLoop { size_mean: f64, size_shape: f64, think_mean: f64 },
    /// Sends a single Pareto-sized transfer.
    Arrival { size_mean: f64, size_shape: f64 },
    /// Sends datagrams.
    Datagrams,
}

/// The window in bytes that a window field scaled by 2 to the power `scale` can express. It is rounded up as in
/// Linux, and at most what fits into 16 bits (RFC 7323 section 2.2).
fn advertised(window: Bytes, scale: u64) -> u64 {
    match scale {
        0 => window.get(),
        _ => window.get().min(1 << 60).next_multiple_of(1 << scale).min(65_535 << scale),
    }
}

/// The congestion control and the loss recovery for a name in a scenario.
fn style(congestion: Congestion, linux: bool) -> (Algorithm, RecoveryStyle) {
    let sack = if linux { RecoveryStyle::Linux } else { RecoveryStyle::Sack };
    match congestion {
        // Linux's `reno` is a congestion control; SACK is on.
        Congestion::Reno if linux => (Algorithm::Reno, sack),
        Congestion::Reno => (Algorithm::Reno, RecoveryStyle::Reno),
        Congestion::NewReno => (Algorithm::Reno, RecoveryStyle::NewReno),
        Congestion::Sack => (Algorithm::Reno, sack),
        Congestion::Fack => (Algorithm::Reno, RecoveryStyle::Fack),
        Congestion::Sack1 => (Algorithm::Reno, RecoveryStyle::Sack1),
        Congestion::Cubic => (Algorithm::Cubic, sack),
        Congestion::Vegas => (Algorithm::Vegas, sack),
        Congestion::Lp => (Algorithm::Lp, sack),
        // BBR sends into full queues, where retransmissions are lost as often as other packets.
        Congestion::Bbr => (Algorithm::Bbr, RecoveryStyle::Linux),
    }
}

/// A window without effect, in packets.
pub(crate) const UNLIMITED: u64 = u32::MAX as u64;

impl Group {
    pub(crate) fn new(
        tcp: &Tcp,
        congestion: Congestion,
        packet: Bytes,
        window: Option<Volume>,
        application: Application,
    ) -> Group {
        let linux = tcp.flavour == Flavour::Linux;
        let (algorithm, recovery) = style(congestion, linux);
        let payload = packet.saturating_sub(tcp.header);
        let counts_memory = tcp.segment_overhead > Bytes::ZERO;
        let packets = |volume: Volume| volume.in_packets(payload).clamp(1, UNLIMITED);
        Group {
            ack_size: tcp.ack_size().get() as u16,
            sender: SenderConfig {
                algorithm,
                recovery,
                growth: if linux { Growth::PerPacket } else { Growth::PerAck },
                initial_window: tcp.initial_window,
                packet,
                backoff: tcp.backoff.get() as f32,
                min_rto: tcp.min_rto,
                initial_rto: tcp.initial_rto,
                clock: tcp.clock,
                clock_phase: Duration::ZERO,
                timestamps: tcp.timestamps,
                limited_transmit: tcp.limited_transmit,
                slow_start_restart: tcp.slow_start_restart,
                offload: linux,
                pacing: tcp.pacing,
                send_buffer: match tcp.send_buffer {
                    Some(Volume::Bytes(_)) if counts_memory => UNLIMITED,
                    size => size.map_or(UNLIMITED, packets),
                },
                send_memory: match tcp.send_buffer {
                    Some(Volume::Bytes(limit)) if counts_memory => {
                        Some(SendMemory { limit, payload, overhead: tcp.segment_overhead })
                    }
                    _ => None,
                },
                seed: 0,
            },
            receiver: ReceiverConfig {
                // Linux: 16 quick ACKs at the start (TCP_MAX_QUICKACKS).
                delayed_ack: tcp.delayed_ack.then_some(DelayedAck {
                    delay: tcp.ack_delay,
                    quick_start: if linux { 16 } else { 0 },
                }),
                sack: recovery.needs_sack(),
                window: match window.unwrap_or(tcp.max_window) {
                    Volume::Packets(n) if tcp.window_scale == 0 => n.clamp(1, UNLIMITED),
                    volume => {
                        let bytes = advertised(volume.in_bytes(payload), tcp.window_scale);
                        (bytes / payload.get().max(1)).clamp(1, UNLIMITED)
                    }
                },
                first_window: None,
            },
            payload,
            application,
            ecn: tcp.ecn,
            linux,
            window_scale: tcp.window_scale,
            idle: Vec::new(),
            servers: [0..0, 0..0],
        }
    }

    /// A window in whole packets, after rounding by the window scale.
    pub(crate) fn window_in_packets(&self, window: Bytes) -> u64 {
        advertised(window, self.window_scale) / self.payload.get().max(1)
    }

    /// Draws the number of packets of a connection; `None`: unlimited data.
    pub(crate) fn size(&self, random: &mut sweetspot_path::Random) -> Option<u64> {
        match self.application {
            Application::Bulk(packets) => packets,
            Application::Mice { packets, .. } => Some(random.whole(packets)),
            Application::ClosedLoop { size_mean, size_shape, .. }
            | Application::Arrival { size_mean, size_shape } => {
                let bytes = random.pareto(size_mean, size_shape);
                Some(((bytes / self.payload.as_f64()).ceil() as u64).clamp(1, 1 << 40))
            }
            Application::Datagrams => Some(0),
        }
    }

    /// Draws a user's pause after a connection; `None` if there is no next connection.
    pub(crate) fn pause(&self, random: &mut sweetspot_path::Random) -> Option<Duration> {
        match self.application {
            Application::Bulk(_) | Application::Datagrams | Application::Arrival { .. } => None,
            Application::Mice { sleep, .. } => Some(random.between(sleep)),
            Application::ClosedLoop { think_mean, .. } => {
                Some(Duration::from_secs_f64(random.exponential(think_mean)))
            }
        }
    }
}
