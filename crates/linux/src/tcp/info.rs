use std::io;
use std::os::fd::AsFd;

use sweetspot_units::{Bytes, Duration, Rate};

use crate::sockopt;

/// The fields of `TCP_INFO` used here, as of Linux 6.18 (include/uapi/linux/tcp.h). Older kernels return a shorter
/// structure; fields added after Linux 4.15 are then `None`.
///
/// Counters start at zero with the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Info {
    /// Connection state (`TCP_ESTABLISHED` is 1).
    pub state: u8,
    /// Congestion avoidance state: 0 open, 1 disorder, 2 CWR, 3 recovery, 4 loss.
    pub ca_state: u8,
    /// Consecutive unanswered window probes.
    pub probes: u8,
    /// Exponent of the RTO backoff.
    pub backoff: u8,
    /// Bits of negotiated options (`TCPI_OPT_*`).
    pub options: u8,
    /// Window scale that the peer advertised.
    pub snd_wscale: u8,
    /// Window scale that this end advertised.
    pub rcv_wscale: u8,
    /// Whether `delivery_rate` was measured while the application had too little to send.
    pub delivery_rate_app_limited: bool,
    /// Payload of a full segment sent.
    pub snd_mss: Bytes,
    /// Payload of a full segment received, as observed.
    pub rcv_mss: Bytes,
    /// Segments sent and not acknowledged.
    pub unacked: u32,
    /// Segments acknowledged selectively.
    pub sacked: u32,
    /// Segments considered lost.
    pub lost: u32,
    /// Retransmitted segments in flight.
    pub retrans: u32,
    /// Time since data was last received.
    pub last_data_recv: Duration,
    /// Path MTU.
    pub pmtu: Bytes,
    /// Smoothed round-trip time (RFC 6298).
    pub rtt: Duration,
    /// Mean deviation of the round-trip time.
    pub rttvar: Duration,
    /// Slow-start threshold in segments.
    pub snd_ssthresh: u32,
    /// Congestion window in segments.
    pub snd_cwnd: u32,
    /// MSS that this end advertised.
    pub advmss: Bytes,
    /// Packets of reordering tolerated before loss is inferred.
    pub reordering: u32,
    /// Round-trip time as the receiver estimates it; zero if it has no estimate.
    pub rcv_rtt: Duration,
    /// Segments retransmitted.
    pub total_retrans: u32,
    /// Rate at which TCP paces.
    pub pacing_rate: Rate,
    /// SO_MAX_PACING_RATE; `Rate::MAX` if unlimited.
    pub max_pacing_rate: Rate,
    /// Payload acknowledged.
    pub bytes_acked: Bytes,
    /// Payload received.
    pub bytes_received: Bytes,
    /// Bytes in the send buffer that were never sent.
    pub notsent: Bytes,
    /// Minimum round-trip time within the kernel's window (5 min); zero if it has none.
    pub min_rtt: Duration,
    /// Segments sent that carried payload, retransmissions included.
    pub data_segs_out: u32,
    /// Latest measured delivery rate.
    pub delivery_rate: Rate,
    /// Time with data outstanding.
    pub busy_time: Duration,
    /// Part of `busy_time` in which the peer's receive window was the limit.
    pub rwnd_limited: Duration,
    /// Part of `busy_time` in which the send buffer was the limit.
    pub sndbuf_limited: Duration,
    /// Segments delivered (Linux 4.18).
    pub delivered: Option<u32>,
    /// Segments delivered with a congestion mark (4.18).
    pub delivered_ce: Option<u32>,
    /// Payload sent, retransmissions included (4.19).
    pub bytes_sent: Option<Bytes>,
    /// Payload retransmitted (4.19).
    pub bytes_retrans: Option<Bytes>,
    /// Duplicates the receiver reported: spurious retransmissions (4.19).
    pub dsack_dups: Option<u32>,
    /// Segments received out of order (5.4).
    pub rcv_ooopack: Option<u32>,
    /// The peer's advertised window (5.4).
    pub snd_wnd: Option<Bytes>,
    /// The window this end advertised last (6.2).
    pub rcv_wnd: Option<Bytes>,
    /// Retransmission timeouts (6.7).
    pub total_rto: Option<u16>,
}

impl Info {
    /// Reads a socket's `TCP_INFO`.
    pub fn read(socket: impl AsFd) -> io::Result<Info> {
        // Space for additions by future kernels, which write as much as fits.
        let mut buffer = [0; 512];
        let n = sockopt::get_into(socket, libc::IPPROTO_TCP, libc::TCP_INFO, &mut buffer)?;
        Ok(Info::parse(&buffer[..n]))
    }

    /// The congestion window in bytes of payload.
    pub fn cwnd(&self) -> Bytes {
        self.snd_mss * u64::from(self.snd_cwnd)
    }

    /// Parses the structure, which may be shorter than expected.
    pub(crate) fn parse(structure: &[u8]) -> Info {
        let mut f = Fields { rest: structure };
        let [state, ca_state, _, probes, backoff, options, wscale, flags] =
            std::array::from_fn(|_| f.u8().unwrap_or(0));
        let [snd_wscale, rcv_wscale] = [bit_field(wscale, 0, 4), bit_field(wscale, 4, 4)];
        Info {
            state,
            ca_state,
            probes,
            backoff,
            options,
            snd_wscale,
            rcv_wscale,
            delivery_rate_app_limited: bit_field(flags, 0, 1) == 1,
            // Skips rto, ato.
            snd_mss: f.after(8).bytes32(),
            rcv_mss: f.bytes32(),
            unacked: f.count(),
            sacked: f.count(),
            lost: f.count(),
            retrans: f.count(),
            // Skips fackets, last_data_sent, last_ack_sent.
            last_data_recv: f.after(12).millis(),
            // Skips last_ack_recv.
            pmtu: f.after(4).bytes32(),
            // Skips rcv_ssthresh.
            rtt: f.after(4).micros(),
            rttvar: f.micros(),
            snd_ssthresh: f.count(),
            snd_cwnd: f.count(),
            advmss: f.bytes32(),
            reordering: f.count(),
            rcv_rtt: f.micros(),
            // Skips rcv_space.
            total_retrans: f.after(4).count(),
            pacing_rate: f.rate(),
            max_pacing_rate: f.rate(),
            bytes_acked: f.bytes64(),
            bytes_received: f.bytes64(),
            // Skips segs_out, segs_in.
            notsent: f.after(8).bytes32(),
            min_rtt: f.minimum(),
            // Skips data_segs_in.
            data_segs_out: f.after(4).count(),
            delivery_rate: f.rate(),
            busy_time: f.micros64(),
            rwnd_limited: f.micros64(),
            sndbuf_limited: f.micros64(),
            delivered: f.u32(),
            delivered_ce: f.u32(),
            bytes_sent: f.u64().map(Bytes::new),
            bytes_retrans: f.u64().map(Bytes::new),
            dsack_dups: f.u32(),
            // Skips reord_seen.
            rcv_ooopack: f.after(4).u32(),
            snd_wnd: f.u32().map(|n| Bytes::new(n.into())),
            rcv_wnd: f.u32().map(|n| Bytes::new(n.into())),
            // Skips rehash.
            total_rto: f.after(4).u16(),
        }
    }
}

/// A field of `width` bits after `before` others. Bit fields fill a byte from the low end on little-endian machines and
/// from the high end on big-endian ones.
fn bit_field(byte: u8, before: u32, width: u32) -> u8 {
    let shift = if cfg!(target_endian = "little") { before } else { 8 - before - width };
    (byte >> shift) & ((1 << width) - 1)
}

/// Reads the structure's fields in order; past its end they are absent.
struct Fields<'a> {
    rest: &'a [u8],
}

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let Some((field, rest)) = self.rest.split_first_chunk::<N>() else {
            // A truncated field is absent, as is everything after it.
            self.rest = &[];
            return None;
        };
        self.rest = rest;
        Some(*field)
    }
    /// Skips `bytes`.
    fn after(&mut self, bytes: usize) -> &mut Self {
        self.rest = self.rest.get(bytes..).unwrap_or(&[]);
        self
    }
    fn u8(&mut self) -> Option<u8> {
        self.take::<1>().map(|[byte]| byte)
    }
    fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_ne_bytes)
    }
    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_ne_bytes)
    }
    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_ne_bytes)
    }
    fn count(&mut self) -> u32 {
        self.u32().unwrap_or(0)
    }
    fn bytes32(&mut self) -> Bytes {
        Bytes::new(self.count().into())
    }
    fn bytes64(&mut self) -> Bytes {
        Bytes::new(self.u64().unwrap_or(0))
    }
    fn micros(&mut self) -> Duration {
        Duration::from_micros(self.count().into())
    }
    /// All ones while there is no minimum (`minmax_reset` of `tcp_init_sock`, net/ipv4/tcp.c).
    fn minimum(&mut self) -> Duration {
        match self.count() {
            u32::MAX => Duration::ZERO,
            n => Duration::from_micros(n.into()),
        }
    }
    fn millis(&mut self) -> Duration {
        Duration::from_millis(self.count().into())
    }
    fn micros64(&mut self) -> Duration {
        Duration::from_nanos(self.u64().unwrap_or(0).saturating_mul(1000))
    }
    fn rate(&mut self) -> Rate {
        Rate::from_bits_per_second(self.u64().unwrap_or(0).saturating_mul(8))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn a_live_socket_counts_received_bytes() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut server = listener.accept().unwrap().0;
        client.write_all(&[1; 100_000]).unwrap();
        server.read_exact(&mut vec![0; 100_000]).unwrap();
        let (client, server) = (Info::read(&client).unwrap(), Info::read(&server).unwrap());
        assert_eq!(client.state, 1);
        assert_eq!(client.max_pacing_rate, Rate::MAX);
        assert_eq!(server.bytes_received, Bytes::new(100_000));
        assert_eq!(client.total_retrans, 0);
        if let Some(window) = server.rcv_wnd {
            assert!(window > Bytes::ZERO);
        }
    }

    /// Offsets counted by hand from include/uapi/linux/tcp.h: tcpi_rtt follows 8 bytes of small
    /// fields and 15 words (8 + 60 = 68); tcpi_bytes_acked follows 24 words and 2 double words
    /// (8 + 96 + 16 = 120); tcpi_rcv_wnd ends the 5.x-6.2 part at 228 + 4.
    #[test]
    fn fields_match_the_kernel_layout() {
        let mut s = [0u8; 280];
        s[68..72].copy_from_slice(&37_250u32.to_ne_bytes());
        s[120..128].copy_from_slice(&(1u64 << 40).to_ne_bytes());
        s[228..232].copy_from_slice(&150_528u32.to_ne_bytes());
        s[232..236].copy_from_slice(&7u32.to_ne_bytes());
        let info = Info::parse(&s);
        assert_eq!(info.rtt, Duration::from_micros(37_250));
        assert_eq!(info.bytes_acked, Bytes::new(1 << 40));
        assert_eq!(info.snd_wnd, Some(Bytes::new(150_528)));
        assert_eq!(info.rcv_wnd, Some(Bytes::new(7)));
        assert!(info.total_rto.is_some());
    }

    #[test]
    fn a_shorter_tcp_info_lacks_only_its_trailing_fields() {
        let whole = [1u8; 280];
        for n in 0..whole.len() {
            let info = Info::parse(&whole[..n]);
            assert_eq!(info.rcv_wnd.is_some(), n >= 236, "{n}");
            assert_eq!(info.delivered.is_some(), n >= 196, "{n}");
            assert_eq!(info.total_rto.is_some(), n >= 242, "{n}");
        }
    }
}
