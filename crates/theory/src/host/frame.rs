//! The share of an Ethernet's rate that is payload: S. Gordon, "Impact of Bandwidth Delay Product
//! on TCP Throughput" (2012), generalised for IEEE 802.3 and 802.1Q.

use sweetspot_units::{Bytes, Rate};

use crate::Result;
use crate::error::require;

/// Bytes of a frame in addition to its content: preamble and start delimiter, addresses and type,
/// check sequence, gap (IEEE 802.3).
const ETHERNET_OVERHEAD_BYTES: u64 = 8 + 14 + 4 + 12;
/// Smallest content of a frame, bytes; shorter content is padded (IEEE 802.3).
const MIN_CONTENT_BYTES: u64 = 46;
/// One tag (IEEE 802.1Q).
const VLAN_TAG_BYTES: u64 = 4;
/// A TCP header without options (RFC 9293 §3.1).
const TCP_HEADER_BYTES: u64 = 20;

/// The version of the Internet Protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ip {
    /// A header of 20 B (RFC 791).
    V4,
    /// A header of 40 B (RFC 8200).
    V6,
}

impl Ip {
    const fn header(self) -> u64 {
        match self {
            Ip::V4 => 20,
            Ip::V6 => 40,
        }
    }
}

/// The headers of a TCP segment on Ethernet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Framing {
    /// The version of IP.
    pub ip: Ip,
    /// TCP options: 12 B with timestamps (RFC 7323 appendix A).
    pub tcp_options: Bytes,
    /// VLAN tags: 0, 1, or 2 with stacked VLANs.
    pub vlan_tags: u8,
}

impl Framing {
    /// IPv4 with timestamps and no VLAN, as in most transfers and in the blog.
    pub const COMMON: Framing = Framing { ip: Ip::V4, tcp_options: Bytes::new(12), vlan_tags: 0 };

    fn headers(&self) -> Result<u64> {
        let options = self.tcp_options;
        let whole = options.get() <= 40 && options.get().is_multiple_of(4);
        require(whole, "TCP options", options, "a multiple of 4 B, 40 B at most (RFC 9293)")?;
        require(self.vlan_tags <= 2, "VLAN tags", self.vlan_tags, "two at most")?;
        Ok(self.ip.header() + TCP_HEADER_BYTES + options.get())
    }

    /// The largest payload of one packet of `mtu` bytes.
    ///
    /// # Errors
    /// If `mtu` leaves no space for payload, or the options are impossible.
    pub fn payload(&self, mtu: Bytes) -> Result<Bytes> {
        let headers = Bytes::new(self.headers()?);
        require(mtu > headers, "MTU", mtu, "larger than the headers")?;
        Ok(mtu - headers)
    }

    // Blog, update of 2013-01-23: 8 + 14 + 20 + 32 + 1432 + 4 + 12 = 1522.
    /// Bytes on the wire of a segment with `payload` bytes, including the gap.
    ///
    /// # Errors
    /// If the options are impossible.
    pub fn on_the_wire(&self, payload: Bytes) -> Result<Bytes> {
        let content = (self.headers()? + payload.get()).max(MIN_CONTENT_BYTES);
        Ok(Bytes::new(
            content + ETHERNET_OVERHEAD_BYTES + VLAN_TAG_BYTES * u64::from(self.vlan_tags),
        ))
    }

    /// The share of the wire's bits that is payload, from 0 to 1.
    ///
    /// # Errors
    /// If the options are impossible.
    pub fn efficiency(&self, payload: Bytes) -> Result<f64> {
        Ok(payload.as_f64() / self.on_the_wire(payload)?.as_f64())
    }

    /// The payload rate of a link of `rate` full of packets of `mtu` bytes.
    ///
    /// # Errors
    /// If `mtu` leaves no space for payload, or the options are impossible.
    pub fn goodput(&self, rate: Rate, mtu: Bytes) -> Result<Rate> {
        Ok(rate.scaled(self.efficiency(self.payload(mtu)?)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_packet_matches_a_hand_calculation() {
        // 1500 - 20 - 20 - 12 = 1448 payload; 1500 + 38 = 1538 on the wire; 94.149 %.
        let f = Framing::COMMON;
        assert_eq!(f.payload(Bytes::new(1500)), Ok(Bytes::new(1448)));
        assert_eq!(f.on_the_wire(Bytes::new(1448)), Ok(Bytes::new(1538)));
        let goodput = f.goodput(Rate::from_mbit_per_second(100), Bytes::new(1500)).unwrap();
        assert!((goodput.as_f64() - 94.1482e6).abs() < 1e2, "{goodput}");
    }

    #[test]
    fn jumbo_frames_vlans_and_ipv6_match_a_hand_calculation() {
        // Jumbo: 8948 / 9038 = 99.004 %. IPv6, one VLAN: 1428 / (1538 + 4) = 92.607 %.
        let jumbo = Framing::COMMON.efficiency(Bytes::new(8948)).unwrap();
        assert!((jumbo - 0.990_042).abs() < 1e-6);
        let six = Framing { ip: Ip::V6, tcp_options: Bytes::new(12), vlan_tags: 1 };
        assert_eq!(six.payload(Bytes::new(1500)), Ok(Bytes::new(1428)));
        assert!((six.efficiency(Bytes::new(1428)).unwrap() - 1428.0 / 1542.0).abs() < 1e-12);
    }

    #[test]
    fn a_bare_ack_is_padded() {
        // 40 B without options is padded to 46: 84 B on the wire, the smallest frame.
        let bare = Framing { tcp_options: Bytes::ZERO, ..Framing::COMMON };
        assert_eq!(bare.on_the_wire(Bytes::ZERO), Ok(Bytes::new(84)));
    }

    #[test]
    fn larger_packets_are_never_less_efficient() {
        let at = |payload| Framing::COMMON.efficiency(Bytes::new(payload)).unwrap();
        assert!((1..9000).all(|n| at(n) < at(n + 1)));
    }

    #[test]
    fn impossible_headers_are_rejected() {
        let odd = Framing { tcp_options: Bytes::new(10), ..Framing::COMMON };
        assert!(odd.payload(Bytes::new(1500)).is_err());
        let stacked = Framing { vlan_tags: 3, ..Framing::COMMON };
        assert!(stacked.on_the_wire(Bytes::new(1)).is_err());
        assert!(Framing::COMMON.payload(Bytes::new(52)).is_err());
    }
}
