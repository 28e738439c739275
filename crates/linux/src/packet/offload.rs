//! The work that a frame leaves to a network card, as given by the header that the kernel puts before the frame (`struct
//! virtio_net_hdr`, Virtual I/O Device 1.2, section 5.1.6).

use std::net::UdpSocket;

use super::LARGE_BUFFER_BYTES;
use crate::{host, sockopt};

/// The header's size without the fields of later versions.
pub(super) const VNET_HEADER_BYTES: usize = 10;

/// The first kernel that also reports and accepts UDP segmentation.
const FIRST_KERNEL: (u32, u32) = (6, 2);

/// Whether a port with offload can be opened and sees all super-frames of a device ([`PacketPort::open_with_offload`]). The
/// kernel must be recent enough, and the process must be allowed to exceed the socket buffer limits (CAP_NET_ADMIN outside
/// user namespaces).
///
/// [`PacketPort::open_with_offload`]: super::PacketPort::open_with_offload
pub fn knows_offload() -> bool {
    let version = host::kernel_release().and_then(|release| host::version_of(&release));
    version.is_some_and(|version| version >= FIRST_KERNEL) && may_have_room()
}

fn may_have_room() -> bool {
    UdpSocket::bind(("0.0.0.0", 0)).is_ok_and(|socket| {
        let force = libc::SO_RCVBUFFORCE;
        sockopt::set(&socket, libc::SOL_SOCKET, force, LARGE_BUFFER_BYTES).is_ok()
    })
}

const NEEDS_CHECKSUM: u8 = 1;
const GSO_TCP_IPV4: u8 = 1;
const GSO_UDP: u8 = 5;

/// The work that a frame leaves to a network card.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Offload {
    /// A checksum yet to be computed. Until then its field holds the sum of the pseudo-header.
    pub checksum: Option<PartialChecksum>,
    /// How the frame is to be split into packets.
    pub segmentation: Option<Segmentation>,
}

/// The position of a checksum yet to be computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartialChecksum {
    /// The first byte that the checksum covers.
    pub start: u16,
    /// The offset of the checksum field from `start`.
    pub offset: u16,
}

/// How a super-frame, a frame that holds several packets, is split: generic segmentation offload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segmentation {
    /// The transport protocol, over IPv4.
    pub transport: Transport,
    /// The payload of each packet except the last (`gso_size`), in bytes.
    pub size: u16,
    /// The length of all headers, in bytes.
    pub headers: u16,
}

/// A transport protocol with packets that can share a super-frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// TCP.
    Tcp,
    /// UDP: each piece becomes a separate datagram.
    Udp,
}

impl Offload {
    /// From the kernel's header. An unknown kind of segmentation counts as none: the frame is just long.
    pub(super) fn from_vnet_header(header: [u8; VNET_HEADER_BYTES]) -> Offload {
        let word = |at: usize| u16::from_ne_bytes([header[at], header[at + 1]]);
        let partial = header[0] & NEEDS_CHECKSUM != 0;
        let checksum = partial.then(|| PartialChecksum { start: word(6), offset: word(8) });
        let transport = match header[1] {
            GSO_TCP_IPV4 => Some(Transport::Tcp),
            GSO_UDP => Some(Transport::Udp),
            _ => None,
        };
        let segmentation =
            transport.map(|transport| Segmentation { transport, size: word(4), headers: word(2) });
        Offload { checksum, segmentation }
    }

    /// The kernel's header for this work.
    pub(super) fn to_vnet_header(self) -> [u8; VNET_HEADER_BYTES] {
        let mut header = [0; VNET_HEADER_BYTES];
        let mut put =
            |at: usize, word: u16| header[at..at + 2].copy_from_slice(&word.to_ne_bytes());
        if let Some(PartialChecksum { start, offset }) = self.checksum {
            put(6, start);
            put(8, offset);
        }
        if let Some(Segmentation { size, headers, .. }) = self.segmentation {
            put(2, headers);
            put(4, size);
        }
        header[0] = if self.checksum.is_some() { NEEDS_CHECKSUM } else { 0 };
        header[1] = match self.segmentation.map(|segmentation| segmentation.transport) {
            Some(Transport::Tcp) => GSO_TCP_IPV4,
            Some(Transport::Udp) => GSO_UDP,
            None => 0,
        };
        header
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offloads_round_trip_through_the_vnet_header() {
        let checksum = Some(PartialChecksum { start: 34, offset: 16 });
        let tcp = Segmentation { transport: Transport::Tcp, size: 1448, headers: 66 };
        let udp = Segmentation { transport: Transport::Udp, ..tcp };
        for segmentation in [None, Some(tcp), Some(udp)] {
            let offload = Offload { checksum, segmentation };
            assert_eq!(Offload::from_vnet_header(offload.to_vnet_header()), offload);
        }
        assert_eq!(Offload::default().to_vnet_header(), [0; VNET_HEADER_BYTES]);
    }

    #[test]
    fn an_unsupported_gso_type_has_no_segmentation() {
        // VIRTIO_NET_HDR_GSO_TCPV6
        let header = [1, 4, 86, 0, 0, 0, 54, 0, 16, 0];
        assert_eq!(Offload::from_vnet_header(header).segmentation, None);
    }
}
