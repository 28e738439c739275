//! `TCP_INFO` as the inputs of controllers.

use sweetspot_groups::{ConnectionSample, SendBufferSample};
use sweetspot_linux::tcp::Info;
use sweetspot_sizing::SenderReport;
use sweetspot_units::Bytes;

/// A sample of a connection's receiving half; `unread` bytes wait for the application.
pub fn download(info: &Info, unread: Bytes) -> ConnectionSample {
    ConnectionSample {
        received: info.bytes_received,
        unread,
        rtt: info.rcv_rtt,
        minimum_rtt: info.min_rtt,
        out_of_order: info.rcv_ooopack.unwrap_or(0).into(),
        advertised: info.rcv_wnd,
    }
}

/// Payload that reached the peer. Segments acknowledged selectively count, so that it goes on growing after a loss.
pub fn delivered(info: &Info) -> Bytes {
    info.delivered.map_or(info.bytes_acked, |n| info.snd_mss * u64::from(n))
}

/// The input of an upload's controller.
pub fn sender_report(info: &Info) -> SenderReport {
    SenderReport {
        // Neither what arrived out of order nor what is lost is on its way; what was sent again is.
        in_flight: info.snd_mss
            * u64::from((info.unacked + info.retrans).saturating_sub(info.sacked + info.lost)),
        minimum_rtt: info.min_rtt,
        starved: info.delivery_rate_app_limited,
        ..SenderReport::default()
    }
}

/// A sample of a connection's send buffer.
pub fn send_buffer(info: &Info) -> SendBufferSample {
    SendBufferSample {
        acked: info.bytes_acked,
        delivery_rate: info.delivery_rate,
        app_limited: info.delivery_rate_app_limited,
        sndbuf_limited: info.sndbuf_limited,
        busy: info.busy_time,
        minimum_rtt: info.min_rtt,
    }
}
