//! The ports of a server, and the address at which peers reach them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket};

use sweetspot_linux::interfaces;

use crate::control::udp_demux::UdpDemux;

/// The kernel's codes for a host without IPv6 (asm-generic/errno.h).
const EAFNOSUPPORT: i32 = 97;
const EADDRNOTAVAIL: i32 = 99;

/// Binds TCP and UDP to the same port. Port 0 selects a port that is free for both.
pub(crate) fn bind_both(address: SocketAddr) -> std::io::Result<(TcpListener, UdpDemux)> {
    match bind_both_to(address) {
        // A host without IPv6.
        Err(error)
            if address.ip() == IpAddr::V6(Ipv6Addr::UNSPECIFIED)
                && matches!(error.raw_os_error(), Some(EAFNOSUPPORT | EADDRNOTAVAIL)) =>
        {
            bind_both_to((Ipv4Addr::UNSPECIFIED, address.port()).into())
        }
        other => other,
    }
}

fn bind_both_to(address: SocketAddr) -> std::io::Result<(TcpListener, UdpDemux)> {
    const MAX_ATTEMPTS: usize = 20;
    let mut attempt = 1;
    loop {
        let listener = TcpListener::bind(address)?;
        match UdpDemux::new(listener.local_addr()?) {
            Ok(udp_demux) => return Ok((listener, udp_demux)),
            Err(_) if address.port() == 0 && attempt < MAX_ATTEMPTS => attempt += 1,
            Err(error) => return Err(error),
        }
    }
}

/// The address at which peers reach a socket bound to `ip`: `ip` itself, or for a wildcard the source address of
/// the default route (IPv4 first), or else this host's first address.
pub(crate) fn reachable(ip: IpAddr) -> IpAddr {
    if !ip.is_unspecified() {
        return ip;
    }
    // Connecting a UDP socket sends nothing; it only looks up the route. The addresses are from the documentation
    // ranges (RFC 5737, RFC 3849), so only the default route matches.
    let v4: (SocketAddr, SocketAddr) =
        ((Ipv4Addr::UNSPECIFIED, 0).into(), (Ipv4Addr::new(192, 0, 2, 1), 9).into());
    let documentation = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
    let v6 = ((Ipv6Addr::UNSPECIFIED, 0).into(), (documentation, 9).into());
    let routed = |(from, to): (SocketAddr, SocketAddr)| {
        let socket = UdpSocket::bind(from).ok()?;
        socket.connect(to).ok()?;
        socket.local_addr().ok().map(|own| own.ip()).filter(|own| !own.is_unspecified())
    };
    let routes = if ip.is_ipv6() { &[v4, v6][..] } else { &[v4] };
    routes.iter().copied().find_map(routed).unwrap_or_else(|| {
        let own = interfaces::addresses().unwrap_or_default();
        let usable = |own: &IpAddr| own.is_ipv4() || ip.is_ipv6();
        own.into_iter().find(usable).unwrap_or(Ipv4Addr::LOCALHOST.into())
    })
}
