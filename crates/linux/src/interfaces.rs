//! The addresses of this host.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ptr;

use crate::check;

/// The addresses of all network devices that are up, in the kernel's order, without loopback and link-local ones.
pub fn addresses() -> io::Result<Vec<IpAddr>> {
    let mut list = ptr::null_mut();
    // SAFETY: on success `list` points to a list that stays until freeifaddrs.
    check(unsafe { libc::getifaddrs(&mut list) })?;
    let (mut addresses, mut next) = (Vec::new(), list);
    // SAFETY: the list is walked by its own pointers, before it is freed.
    while let Some(entry) = unsafe { next.as_ref() } {
        next = entry.ifa_next;
        if entry.ifa_flags & libc::IFF_UP as u32 == 0 {
            continue;
        }
        // SAFETY: an entry's address is null or points to a whole sockaddr.
        addresses.extend(unsafe { address(entry.ifa_addr) }.filter(is_reachable));
    }
    // SAFETY: the list came from getifaddrs and is not used any more.
    unsafe { libc::freeifaddrs(list) };
    Ok(addresses)
}

/// # Safety
/// `socket` is null or points to a socket address of the length that its family has.
unsafe fn address(socket: *const libc::sockaddr) -> Option<IpAddr> {
    // SAFETY: promised by the caller.
    let family = unsafe { socket.as_ref() }?.sa_family;
    match i32::from(family) {
        libc::AF_INET => {
            // SAFETY: of this family and so of this type; read without regard to alignment.
            let v4 = unsafe { socket.cast::<libc::sockaddr_in>().read_unaligned() };
            Some(Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr)).into())
        }
        libc::AF_INET6 => {
            // SAFETY: as above.
            let v6 = unsafe { socket.cast::<libc::sockaddr_in6>().read_unaligned() };
            Some(Ipv6Addr::from(v6.sin6_addr.s6_addr).into())
        }
        _ => None,
    }
}

fn is_reachable(address: &IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => !v4.is_loopback() && !v4.is_link_local(),
        // fe80::/10 needs the name of a device that means nothing elsewhere.
        IpAddr::V6(v6) => !v6.is_loopback() && (v6.segments()[0] & 0xffc0) != 0xfe80,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_not_among_the_addresses() {
        assert!(addresses().unwrap().iter().all(|address| !address.is_loopback()));
    }
}
