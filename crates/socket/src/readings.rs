//! Converts `TCP_INFO` to the inputs of the controllers and the diagnosis.

use sweetspot_control::{ConnectionSample, SendBufferSample};
use sweetspot_diagnose::live::Sample;
use sweetspot_linux::clock;
use sweetspot_linux::tcp::Info;
use sweetspot_linux::tcp::options::SendMemory;
use sweetspot_sizing::SenderReport;
use sweetspot_units::{Bytes, Rate, Time};

/// A sample of a connection's receiving half; `unread` is the number of bytes not yet read by the application.
pub fn download(info: &Info, unread: Bytes) -> ConnectionSample {
    ConnectionSample {
        received: info.bytes_received,
        unread,
        rtt: info.rcv_rtt.nonzero(),
        minimum_rtt: info.min_rtt.nonzero(),
        out_of_order: info.rcv_ooopack.unwrap_or(0).into(),
        advertised: info.rcv_wnd,
    }
}

/// Payload that reached the peer. Selectively acknowledged segments count, so that it keeps growing after a loss.
pub fn delivered(info: &Info) -> Bytes {
    info.delivered.map_or(info.bytes_acked, |n| info.snd_mss * u64::from(n))
}

/// The input of the upload controller.
pub fn sender_report(info: &Info) -> SenderReport {
    SenderReport {
        retransmitted: info.total_retrans.into(),
        in_flight: info.snd_mss * u64::from(packets_in_flight(info)),
        minimum_rtt: info.min_rtt,
        starved: info.delivery_rate_app_limited,
        ..SenderReport::default()
    }
}

/// The kernel's flight size, tcp_packets_in_flight(): includes retransmitted segments, but not lost or selectively acknowledged
/// ones.
fn packets_in_flight(info: &Info) -> u32 {
    (info.unacked + info.retrans).saturating_sub(info.sacked + info.lost)
}

/// A sample of a connection's send buffer.
pub fn send_buffer(info: &Info) -> SendBufferSample {
    SendBufferSample {
        acked: info.bytes_acked,
        delivery_rate: info.delivery_rate,
        app_limited: info.delivery_rate_app_limited,
        sndbuf_limited: info.sndbuf_limited,
        busy: info.busy_time,
        minimum_rtt: info.min_rtt.nonzero(),
    }
}

/// Congestion avoidance states of the kernel: 3 recovery, 4 loss.
const RECOVERY: u8 = 3;
/// TCPI_OPT_TIMESTAMPS.
const TIMESTAMPS: u8 = 1;

/// Properties of a connection that `TCP_INFO` lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExtraInfo {
    /// Whether the congestion control follows a model of the path (BBR).
    pub model_based: bool,
    /// The send buffer; `None` if unknown.
    pub memory: Option<SendMemory>,
    /// Bytes received that the application has not read.
    pub unread: Bytes,
}

/// A sample at time `at` for the rules of `sweetspot diagnose`.
pub fn diagnosis(info: &Info, extra_info: &ExtraInfo, at: Time) -> Sample {
    let ExtraInfo { model_based, memory, unread } = *extra_info;
    // Linux counts the SYN as an acknowledged byte.
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
        segments_in_flight: packets_in_flight(info),
        outstanding: info.bytes_sent.zip(info.bytes_retrans).map(|(sent, again)| {
            Sample::outstanding([sent, again, acked], info.unacked, info.snd_mss)
        }),
        not_sent: info.notsent,
        recovering: info.ca_state >= RECOVERY,
        model_based,
        mss: info.snd_mss,
        rtt: info.rtt,
        rtt_min: info.min_rtt,
        pacing_limit: (info.max_pacing_rate != Rate::MAX).then_some(info.max_pacing_rate),
        starved: info.delivery_rate_app_limited,
        delivery_rate: Some(info.delivery_rate),
        queued: memory.map_or(Bytes::ZERO, |memory| memory.queued),
        in_device: memory.map_or(Bytes::ZERO, |memory| memory.in_device),
        // An unknown buffer counts as never full.
        send_buffer: memory.map_or(Bytes::MAX, |memory| memory.send_buffer),
        peer_window: info.snd_wnd,
        peer_scale: info.snd_wscale,
        scale: info.rcv_wscale,
        segments: info.data_segs_out.into(),
        retransmitted: info.total_retrans.into(),
        timeouts: info.total_rto.unwrap_or(0).into(),
        backoff: info.backoff.into(),
        receiver_rtt: info.rcv_rtt,
        timestamps: info.options & TIMESTAMPS != 0,
        last_arrival: Some(info.last_data_recv),
        tick: clock::tick(),
        window: info.rcv_wnd,
        unread,
        out_of_order: info.rcv_ooopack.unwrap_or(0).into(),
    }
}
