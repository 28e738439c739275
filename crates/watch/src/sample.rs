use sweetspot_diagnose::live::Sample;
use sweetspot_linux::diag::DiagConnection;
use sweetspot_linux::tcp::Info;
use sweetspot_linux::tcp::options::SendMemory;
use sweetspot_units::{Bytes, Rate, Time};

/// Congestion avoidance states of the kernel: 3 recovery, 4 loss.
const RECOVERY: u8 = 3;

/// The state of a connection beside its `TCP_INFO`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Surroundings {
    /// Whether the congestion control keeps to a model of the path (bbr).
    pub model_based: bool,
    /// The send buffer; `None` if unknown.
    pub memory: Option<SendMemory>,
    /// Bytes received that the application has not read.
    pub unread: Bytes,
}

/// A sample of a connection read by sock_diag at `at`; `None` if it has no TCP_INFO.
pub fn sample(connection: &DiagConnection, at: Time) -> Option<Sample> {
    let memory = connection.memory.as_ref();
    let surroundings = Surroundings {
        model_based: connection.congestion.as_deref() == Some("bbr"),
        memory: memory.map(|m| SendMemory { queued: m.queued, send_buffer: m.send_buffer }),
        unread: connection.unread,
    };
    Some(sample_of_info(connection.info.as_ref()?, &surroundings, at))
}

/// A sample of a connection from its `TCP_INFO` at `at`.
pub fn sample_of_info(info: &Info, surroundings: &Surroundings, at: Time) -> Sample {
    let Surroundings { model_based, memory, unread } = *surroundings;
    // Linux counts the SYN as a byte acknowledged.
    let acked = info.bytes_acked.saturating_sub(Bytes::new(1));
    Sample {
        at,
        acked,
        received: info.bytes_received,
        delivered: info.delivered.unwrap_or(0).into(),
        busy: info.busy_time,
        window_limited: info.rwnd_limited,
        buffer_limited: info.sndbuf_limited,
        congestion_window: info.snd_cwnd,
        slow_start_threshold: info.snd_ssthresh,
        // The kernel's flight size: tcp_packets_in_flight().
        under_way: (info.unacked + info.retrans).saturating_sub(info.sacked + info.lost),
        not_sent: info.notsent,
        recovering: info.ca_state >= RECOVERY,
        model_based,
        mss: info.snd_mss,
        rtt: info.rtt,
        rtt_min: info.min_rtt,
        pacing_limit: (info.max_pacing_rate != Rate::MAX).then_some(info.max_pacing_rate),
        starved: info.delivery_rate_app_limited,
        queued: memory.map_or(Bytes::ZERO, |memory| memory.queued),
        // An unknown buffer is never full.
        send_buffer: memory.map_or(Bytes::MAX, |memory| memory.send_buffer),
        peer_window: info.snd_wnd,
        peer_scale: info.snd_wscale,
        scale: info.rcv_wscale,
        segments: info.data_segs_out.into(),
        resent: info.total_retrans.into(),
        timeouts: info.total_rto.unwrap_or(0).into(),
        receiver_rtt: info.rcv_rtt,
        window: info.rcv_wnd,
        unread,
        out_of_order: info.rcv_ooopack.unwrap_or(0).into(),
    }
}
