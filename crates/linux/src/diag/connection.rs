use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use sweetspot_units::Bytes;

use super::canonical;
use crate::netlink;
use crate::tcp::Info;

/// `struct inet_diag_sockid`.
pub(super) const SOCKID_BYTES: usize = 48;
/// `struct inet_diag_msg`.
const INET_DIAG_MSG_BYTES: usize = 4 + SOCKID_BYTES + 20;

/// The attributes read here (include/uapi/linux/inet_diag.h).
pub(super) const INET_DIAG_INFO: u16 = 2;
pub(super) const INET_DIAG_CONG: u16 = 4;
pub(super) const INET_DIAG_SKMEMINFO: u16 = 7;
const INET_DIAG_CGROUP_ID: u16 = 21;

/// The state of a TCP connection, with the kernel's numbers (include/net/tcp_states.h).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum TcpState {
    /// Data may flow both ways.
    Established = 1,
    /// This end has sent a SYN.
    SynSent = 2,
    /// The peer has sent a SYN.
    SynReceived = 3,
    /// This end closed, and its FIN is not acknowledged; the peer may still send.
    FinWait1 = 4,
    /// This end closed; the peer may still send.
    FinWait2 = 5,
    /// The connection is over; stray packets may still arrive.
    TimeWait = 6,
    /// The connection is over.
    Close = 7,
    /// The peer closed; this end may still send.
    CloseWait = 8,
    /// Both closed, and this end's FIN is not acknowledged.
    LastAck = 9,
    /// Waits for connections.
    Listen = 10,
    /// Both closed at the same time.
    Closing = 11,
    /// The peer requested the connection, and it has not been accepted yet.
    NewSynReceived = 12,
}

impl TcpState {
    /// The states in which data may flow in at least one direction.
    pub const WITH_DATA: [TcpState; 4] =
        [TcpState::Established, TcpState::FinWait1, TcpState::FinWait2, TcpState::CloseWait];

    pub(super) fn bit(self) -> u32 {
        1 << (self as u32)
    }

    /// The state with the kernel's number `n`; `None` if there is no such state.
    pub fn from_number(n: u8) -> Option<TcpState> {
        use TcpState::*;
        const ALL_STATES: [TcpState; 12] = [
            Established,
            SynSent,
            SynReceived,
            FinWait1,
            FinWait2,
            TimeWait,
            Close,
            CloseWait,
            LastAck,
            Listen,
            Closing,
            NewSynReceived,
        ];
        ALL_STATES.into_iter().find(|state| *state as u8 == n)
    }
}

/// The memory of a socket's buffers, bookkeeping included: ss(8)'s `skmem` (`INET_DIAG_SKMEMINFO`,
/// include/uapi/linux/sock_diag.h).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SocketMemory {
    /// Packets received and not read.
    pub received: Bytes,
    /// The limit of `received`: `SO_RCVBUF`.
    pub receive_buffer: Bytes,
    /// Packets in this host's queues below TCP: of the queueing discipline and the device.
    pub in_device: Bytes,
    /// The limit of `queued`: `SO_SNDBUF`.
    pub send_buffer: Bytes,
    /// Packets waiting to be sent or acknowledged.
    pub queued: Bytes,
    /// Packets that arrived while the application held the socket.
    pub backlog: Bytes,
    /// The number of packets dropped at this socket.
    pub drops: u32,
}

/// A TCP connection as sock_diag reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiagConnection {
    /// Its state.
    pub state: TcpState,
    /// The address of this end.
    pub local: SocketAddr,
    /// The address of the other end.
    pub remote: SocketAddr,
    /// The socket's cookie, unique until the next boot.
    pub cookie: u64,
    /// The inode of the socket in `/proc/PID/fd`; zero if no process holds it.
    pub inode: u64,
    /// The user that made the socket.
    pub uid: u32,
    /// Payload received in order that the application has not read. For a listener: the number of connections
    /// waiting to be accepted.
    pub unread: Bytes,
    /// The control group in which the socket was made; `None` before Linux 5.9.
    pub cgroup: Option<u64>,
    /// `TCP_INFO`, if requested. A connection that was not accepted yet or is over has none.
    pub info: Option<Info>,
    /// The sender's congestion control, if requested.
    pub congestion: Option<String>,
    /// The contents of its buffers, if requested.
    pub memory: Option<SocketMemory>,
    /// `AF_INET` or `AF_INET6`; an IPv6 address may be an IPv4-mapped one.
    pub(super) family: u8,
    /// The device that the socket is bound to; zero for none.
    pub(super) interface: u32,
}

impl DiagConnection {
    /// Parses one message; `None` if it is truncated or its TCP state is unknown.
    pub(super) fn parse(message: &[u8]) -> Option<DiagConnection> {
        let fixed: &[u8; INET_DIAG_MSG_BYTES] = message.first_chunk()?;
        let word = |at: usize| u32::from_ne_bytes([0, 1, 2, 3].map(|i| fixed[at + i]));
        let port = |at: usize| u16::from_be_bytes([fixed[at], fixed[at + 1]]);
        let family = fixed[0];
        let end = |address: usize, port_at: usize| {
            let octets: [u8; 16] = std::array::from_fn(|i| fixed[address + i]);
            let ip = match i32::from(family) {
                libc::AF_INET => {
                    let [a, b, c, d, ..] = octets;
                    IpAddr::V4(Ipv4Addr::new(a, b, c, d))
                }
                _ => IpAddr::V6(Ipv6Addr::from(octets)),
            };
            canonical(SocketAddr::new(ip, port(port_at)))
        };
        let mut connection = DiagConnection {
            state: TcpState::from_number(fixed[1])?,
            // The socket ID starts at offset 4: two ports, two addresses of 16 bytes, device, cookie.
            local: end(8, 4),
            remote: end(24, 6),
            interface: word(40),
            cookie: u64::from(word(44)) | u64::from(word(48)) << 32,
            // After the ID: timer, receive queue, send queue, user, inode.
            unread: Bytes::new(word(56).into()),
            uid: word(64),
            inode: word(68).into(),
            cgroup: None,
            info: None,
            congestion: None,
            memory: None,
            family,
        };
        for attribute in netlink::attributes(&message[INET_DIAG_MSG_BYTES..]) {
            connection.handle_attribute(attribute.kind(), attribute.value());
        }
        Some(connection)
    }

    fn handle_attribute(&mut self, kind: u16, content: &[u8]) {
        match kind {
            INET_DIAG_INFO => self.info = Some(Info::parse(content)),
            INET_DIAG_CONG => self.congestion = Some(netlink::text(content)),
            INET_DIAG_SKMEMINFO => self.memory = memory(content),
            INET_DIAG_CGROUP_ID => {
                self.cgroup = content.first_chunk().map(|id| u64::from_ne_bytes(*id));
            }
            _ => {}
        }
    }

    /// `struct inet_diag_sockid`, to request this connection only.
    pub(super) fn identity(&self) -> [u8; SOCKID_BYTES] {
        let mut id = [0; SOCKID_BYTES];
        let mut put = |at: usize, bytes: &[u8]| id[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &self.local.port().to_be_bytes());
        put(2, &self.remote.port().to_be_bytes());
        for (at, address) in [(4, self.local.ip()), (20, self.remote.ip())] {
            match (address, i32::from(self.family)) {
                (IpAddr::V4(v4), libc::AF_INET) => put(at, &v4.octets()),
                (IpAddr::V4(v4), _) => put(at, &v4.to_ipv6_mapped().octets()),
                (IpAddr::V6(v6), _) => put(at, &v6.octets()),
            }
        }
        put(36, &self.interface.to_ne_bytes());
        put(40, &(self.cookie as u32).to_ne_bytes());
        put(44, &((self.cookie >> 32) as u32).to_ne_bytes());
        id
    }
}

/// The words of `INET_DIAG_SKMEMINFO`: rmem_alloc, rcvbuf, wmem_alloc, sndbuf, fwd_alloc, wmem_queued,
/// optmem, backlog, drops. Kernels before 4.7 omit the last.
fn memory(content: &[u8]) -> Option<SocketMemory> {
    let word = |n: usize| {
        let bytes = content.get(4 * n..4 * n + 4)?;
        Some(u32::from_ne_bytes(bytes.try_into().ok()?))
    };
    let bytes = |n: usize| word(n).map(|w| Bytes::new(w.into()));
    Some(SocketMemory {
        received: bytes(0)?,
        receive_buffer: bytes(1)?,
        in_device: bytes(2)?,
        send_buffer: bytes(3)?,
        queued: bytes(5)?,
        backlog: bytes(7)?,
        drops: word(8).unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message() -> Vec<u8> {
        let mut m = vec![0; INET_DIAG_MSG_BYTES];
        (m[0], m[1]) = (libc::AF_INET as u8, 1);
        m[4..8].copy_from_slice(&[0x1F, 0x90, 0xC0, 0x00]);
        m[8..12].copy_from_slice(&[10, 77, 0, 1]);
        m[24..28].copy_from_slice(&[10, 77, 0, 2]);
        m[44..48].copy_from_slice(&7_u32.to_ne_bytes());
        m[48..52].copy_from_slice(&1_u32.to_ne_bytes());
        m[68..72].copy_from_slice(&4711_u32.to_ne_bytes());
        m
    }

    /// 0x1F90 = 8080 and 0xC000 = 49152 in network order; the cookie is 2^32 + 7.
    #[test]
    fn fields_match_the_kernel_layout() {
        let c = DiagConnection::parse(&message()).unwrap();
        assert_eq!(c.local, "10.77.0.1:8080".parse().unwrap());
        assert_eq!(c.remote, "10.77.0.2:49152".parse().unwrap());
        assert_eq!((c.cookie, c.inode), ((1 << 32) + 7, 4711));
        assert_eq!(c.identity(), message()[4..4 + SOCKID_BYTES]);
    }

    #[test]
    fn truncated_messages_are_rejected_and_unknown_attributes_are_skipped() {
        let whole = message();
        assert!((0..INET_DIAG_MSG_BYTES).all(|n| DiagConnection::parse(&whole[..n]).is_none()));
        let mut strange = whole.clone();
        strange.extend([6, 0, 0xFF, 0, 1, 2, 0, 0, 200, 0, 1, 0]);
        assert_eq!(DiagConnection::parse(&strange), DiagConnection::parse(&whole));
    }

    #[test]
    fn every_tcp_state_has_its_kernel_number() {
        for n in 0..=255 {
            let state = TcpState::from_number(n);
            assert_eq!(state.map(|s| s as u8), (1..=12).contains(&n).then_some(n));
        }
    }
}
