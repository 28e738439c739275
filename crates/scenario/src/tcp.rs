use sweetspot_units::{Bytes, Duration, Probability, Volume};

use crate::error::Result;
use crate::reader::Reader;
use crate::tree::Value;

/// Congestion control and loss recovery, as in the key `congestion`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Congestion {
    /// Reno as in ns-2: fast retransmit, fast recovery, no partial-ACK handling.
    Reno,
    /// NewReno (RFC 6582).
    NewReno,
    /// Reno's window with SACK recovery (RFC 6675).
    Sack,
    /// Reno's window with FACK recovery (Mathis and Mahdavi 1996).
    Fack,
    /// Reno's window with the recovery of ns-2's `Sack1`, which counts lost packets as in flight.
    Sack1,
    /// CUBIC (RFC 9438) with HyStart++ (RFC 9406), on SACK recovery.
    Cubic,
    /// Vegas, on SACK recovery.
    Vegas,
    /// BBR version 1, on SACK recovery.
    Bbr,
    /// TCP-LP, on SACK recovery.
    Lp,
}

impl Congestion {
    /// All congestion controls with their names in a scenario.
    pub const CHOICES: [(&'static str, Congestion); 9] = [
        ("reno", Congestion::Reno),
        ("newreno", Congestion::NewReno),
        ("sack", Congestion::Sack),
        ("fack", Congestion::Fack),
        ("sack1", Congestion::Sack1),
        ("cubic", Congestion::Cubic),
        ("vegas", Congestion::Vegas),
        ("bbr", Congestion::Bbr),
        ("lp", Congestion::Lp),
    ];

    /// The congestion control with this name in a scenario.
    pub fn named(name: &str) -> Option<Congestion> {
        Congestion::CHOICES.iter().find(|(known, _)| *known == name).map(|(_, found)| *found)
    }

    /// The name in a scenario.
    pub fn name(self) -> &'static str {
        Congestion::CHOICES.iter().find(|(_, c)| *c == self).map_or("", |(name, _)| name)
    }
}

/// The implementation that a TCP follows if the RFCs leave a choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flavour {
    /// ns-2.35's agents.
    Ns2,
    /// Linux: windows grow by acknowledged packets, SACK recovery uses proportional rate reduction and detects lost
    /// retransmissions. Quick ACKs at the start, delayed ACKs after 40 ms, a one-millisecond clock, 52 bytes of headers,
    /// buffers that grow to the sysctls' limits.
    Linux,
}

/// `[tcp]`: the TCP parameters of every flow, unless its own entry overrides them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tcp {
    /// The implementation followed.
    pub flavour: Flavour,
    /// Whether every second packet is acknowledged, instead of every packet.
    pub delayed_ack: bool,
    /// The maximum delay of an ACK.
    pub ack_delay: Duration,
    /// Initial congestion window in packets.
    pub initial_window: u64,
    /// Share of the window that Reno keeps after a loss, with any recovery.
    pub backoff: Probability,
    /// Minimum retransmission timeout.
    pub min_rto: Duration,
    /// Retransmission timeout before the first RTT sample.
    pub initial_rto: Duration,
    /// Granularity of the clock for RTT measurement: G of RFC 6298.
    pub clock: Duration,
    /// Whether every ACK gives an RTT sample (RFC 7323), or one packet per window.
    pub timestamps: bool,
    /// Limited transmit (RFC 3042).
    pub limited_transmit: bool,
    /// Slow-start restart after idle (RFC 5681 section 4.1).
    pub slow_start_restart: bool,
    /// Whether the sender paces its packets over the round trip.
    pub pacing: bool,
    /// ECN (RFC 3168).
    pub ecn: bool,
    /// Header bytes of each packet, which do not count as goodput.
    pub header: Bytes,
    /// Window scale: the advertised window is a multiple of 2 to this power and at most 65,535 times that (RFC 7323 section
    /// 2.2). 0: unrestricted, as in ns-2.
    pub window_scale: u64,
    /// The sender's buffer; `None`: never the limit.
    pub send_buffer: Option<Volume>,
    /// Memory of a segment in the sender's buffer in addition to its payload. Zero: a buffer in bytes holds that much
    /// payload, and the application fills it at once. Otherwise the application sleeps until a third of the buffer is free,
    /// as in Linux.
    pub segment_overhead: Bytes,
    /// The largest window that a host lets a connection advertise.
    pub max_window: Volume,
}

impl Tcp {
    /// Bytes of an ACK on the wire, without SACK blocks: 20 of IP, 20 of TCP, and the options that data packets also carry.
    pub fn ack_size(&self) -> Bytes {
        self.header.max(Bytes::new(40))
    }

    /// ns-2.35's defaults.
    pub const NS2: Tcp = Tcp {
        flavour: Flavour::Ns2,
        delayed_ack: false,
        ack_delay: Duration::from_millis(100),
        initial_window: 2,
        backoff: Probability::HALF,
        min_rto: Duration::from_millis(200),
        initial_rto: Duration::from_secs(3),
        clock: Duration::from_millis(10),
        timestamps: false,
        limited_transmit: true,
        slow_start_restart: false,
        pacing: false,
        ecn: false,
        header: Bytes::ZERO,
        window_scale: 0,
        send_buffer: None,
        segment_overhead: Bytes::ZERO,
        max_window: Volume::Packets(1_000_000),
    };

    /// The settings of `flavour = "linux"` (kernel 6.18).
    pub const LINUX: Tcp = Tcp {
        flavour: Flavour::Linux,
        delayed_ack: true,
        ack_delay: Duration::from_millis(40),
        initial_window: 10,
        initial_rto: Duration::from_secs(1),
        clock: Duration::from_millis(1),
        timestamps: true,
        slow_start_restart: true,
        // 20 IP + 20 TCP + 12 timestamps.
        header: Bytes::new(52),
        window_scale: 10,
        // tcp_wmem[2]. The kernel grows the buffer to twice cwnd (`tcp_sndbuf_expand`), so below this size it is never the
        // limit.
        send_buffer: Some(Volume::Bytes(Bytes::new(4 << 20))),
        // SKB_TRUESIZE with space for headers, on a 64-bit machine: MAX_TCP_HEADER 256, `struct skb_shared_info` 320, `struct
        // sk_buff` 256. The payload is in pages that segments share (`tcp_sendmsg_locked`), and counts with its own size.
        segment_overhead: Bytes::new(832),
        // tcp_rmem[2] of 32 MiB (since 6.16), at a scaling ratio of one half.
        max_window: Volume::Bytes(Bytes::new(16 << 20)),
        ..Tcp::NS2
    };

    /// Parses the keys of `[tcp]`, which may be in several tables, with defaults from `base`.
    pub(crate) fn read(reader: &mut Reader<'_>, base: Tcp, packet: Bytes) -> Result<Tcp> {
        let flavours = [("ns2", Tcp::NS2), ("linux", Tcp::LINUX)];
        let base = reader.choice("flavour", &flavours)?.unwrap_or(base);
        let tcp = Tcp {
            flavour: base.flavour,
            delayed_ack: reader.truth("delayed_ack")?.unwrap_or(base.delayed_ack),
            ack_delay: reader.quantity("ack_delay")?.unwrap_or(base.ack_delay),
            initial_window: packets(reader, "initial_window")?.unwrap_or(base.initial_window),
            backoff: reader.quantity("backoff")?.unwrap_or(base.backoff),
            min_rto: reader.quantity("min_rto")?.unwrap_or(base.min_rto),
            initial_rto: reader.quantity("initial_rto")?.unwrap_or(base.initial_rto),
            clock: reader.quantity("clock")?.unwrap_or(base.clock),
            timestamps: reader.truth("timestamps")?.unwrap_or(base.timestamps),
            limited_transmit: reader.truth("limited_transmit")?.unwrap_or(base.limited_transmit),
            slow_start_restart: reader
                .truth("slow_start_restart")?
                .unwrap_or(base.slow_start_restart),
            pacing: reader.truth("pacing")?.unwrap_or(base.pacing),
            ecn: reader.truth("ecn")?.unwrap_or(base.ecn),
            header: reader.quantity("header")?.unwrap_or(base.header),
            window_scale: reader.whole_number("window_scale", 0, 14)?.unwrap_or(base.window_scale),
            send_buffer: send_buffer(reader, base.send_buffer)?,
            segment_overhead: reader.quantity("segment_overhead")?.unwrap_or(base.segment_overhead),
            max_window: room(reader, "max_window")?.unwrap_or(base.max_window),
        };
        if tcp.clock == Duration::ZERO {
            return Err(reader.impossible("clock", "it must be above zero, e.g. \"10ms\""));
        }
        if tcp.min_rto == Duration::ZERO {
            return Err(reader.impossible("min_rto", "it must be above zero, e.g. \"200ms\""));
        }
        if tcp.backoff == Probability::ZERO || tcp.backoff.get() >= 1.0 {
            return Err(reader.impossible("backoff", "it must be between 0 and 1, e.g. \"0.5\""));
        }
        if tcp.header >= packet {
            return Err(reader.impossible("header", "it must be smaller than path.packet"));
        }
        Ok(tcp)
    }
}

/// Parses `"unlimited"` or a size; `usual` if the key is absent.
fn send_buffer(reader: &mut Reader<'_>, usual: Option<Volume>) -> Result<Option<Volume>> {
    match reader.node("send_buffer").map(|node| &node.value) {
        None => Ok(usual),
        Some(Value::Text(word)) if word == "unlimited" => Ok(None),
        Some(_) => room(reader, "send_buffer"),
    }
}

/// Parses a window or a buffer, above zero.
pub(crate) fn room(reader: &mut Reader<'_>, key: &'static str) -> Result<Option<Volume>> {
    match reader.quantity(key)? {
        Some(Volume::Packets(0) | Volume::Bytes(Bytes::ZERO)) => {
            Err(reader.impossible(key, "nothing would move; give at least one packet"))
        }
        room => Ok(room),
    }
}

/// Parses a whole number of packets, at least one.
pub(crate) fn packets(reader: &mut Reader<'_>, key: &'static str) -> Result<Option<u64>> {
    match reader.quantity::<Volume>(key)? {
        None => Ok(None),
        Some(Volume::Packets(n)) if n > 0 => Ok(Some(n)),
        Some(_) => Err(reader.impossible(key, "it must be in packets, 1pkt or more")),
    }
}
