use sweetspot_diagnose::live::Sample;
use sweetspot_linux::diag::DiagConnection;
use sweetspot_units::{Bytes, Rate, Time};

/// Congestion avoidance states of the kernel: 3 recovery, 4 loss.
const RECOVERY: u8 = 3;

/// A sample of a connection read by sock_diag at `at`; `None` if it has no TCP_INFO.
pub fn sample(connection: &DiagConnection, at: Time) -> Option<Sample> {
    let info = connection.info.as_ref()?;
    // Linux counts the SYN as a byte acknowledged.
    let acked = info.bytes_acked.saturating_sub(Bytes::new(1));
    Some(Sample {
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
        model_based: connection.congestion.as_deref() == Some("bbr"),
        mss: info.snd_mss,
        rtt: info.rtt,
        rtt_min: info.min_rtt,
        pacing_limit: (info.max_pacing_rate != Rate::MAX).then_some(info.max_pacing_rate),
        starved: info.delivery_rate_app_limited,
        queued: connection.memory.map_or(Bytes::ZERO, |memory| memory.queued),
        // An unknown buffer is never full.
        send_buffer: connection.memory.map_or(Bytes::MAX, |memory| memory.send_buffer),
        peer_window: info.snd_wnd,
        peer_scale: info.snd_wscale,
        scale: info.rcv_wscale,
        segments: info.data_segs_out.into(),
        resent: info.total_retrans.into(),
        timeouts: info.total_rto.unwrap_or(0).into(),
        receiver_rtt: info.rcv_rtt,
        window: info.rcv_wnd,
        unread: connection.unread,
        out_of_order: info.rcv_ooopack.unwrap_or(0).into(),
    })
}
