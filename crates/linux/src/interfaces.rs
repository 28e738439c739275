//! The addresses of this host.

use std::collections::HashSet;
use std::io;
use std::net::IpAddr;

use netlink_packet_core::NLM_F_DUMP;
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{LinkFlags, LinkMessage};

use crate::ethtool::takes_unsplit_datagrams;
use crate::route::RouteNetlink;

/// The addresses of all network devices that are up, in the kernel's order, without loopback and link-local addresses.
pub fn addresses() -> io::Result<Vec<IpAddr>> {
    let mut netlink = RouteNetlink::new()?;
    let mut up = HashSet::new();
    let links = RouteNetlinkMessage::GetLink(LinkMessage::default());
    netlink.query(links, NLM_F_DUMP, &mut |answer| {
        if let RouteNetlinkMessage::NewLink(link) = answer
            && link.header.flags.contains(LinkFlags::Up)
        {
            up.insert(link.header.index);
        }
    })?;
    let mut addresses = Vec::new();
    let all = RouteNetlinkMessage::GetAddress(AddressMessage::default());
    netlink.query(all, NLM_F_DUMP, &mut |answer| {
        if let RouteNetlinkMessage::NewAddress(message) = answer
            && up.contains(&message.header.index)
        {
            addresses.extend(own_address(&message).filter(is_reachable));
        }
    })?;
    Ok(addresses)
}

/// Whether this kernel splits a buffer of datagrams (`UDP_SEGMENT`, udp(7)) sent from `local`. A device that accepts it unsplit
/// may be virtual, as in a guest, and pass it on unsplit. All of its datagrams then arrive at the same time, whatever the path's
/// rate.
pub(crate) fn splits_datagrams(local: IpAddr) -> io::Result<bool> {
    let mut netlink = RouteNetlink::new()?;
    let mut device = None;
    let all = RouteNetlinkMessage::GetAddress(AddressMessage::default());
    netlink.query(all, NLM_F_DUMP, &mut |answer| {
        if let RouteNetlinkMessage::NewAddress(message) = answer
            && own_address(&message) == Some(local)
        {
            device = Some(message.header.index);
        }
    })?;
    let Some(device) = device else { return Ok(false) };
    Ok(!takes_unsplit_datagrams(&netlink.name_of(device)?)?)
}

/// The address of this end. On a point-to-point device, `IFA_ADDRESS` has the peer's address, so `IFA_LOCAL` comes first
/// (linux/if_addr.h).
fn own_address(message: &AddressMessage) -> Option<IpAddr> {
    let local = message.attributes.iter().find_map(|attribute| match attribute {
        AddressAttribute::Local(address) => Some(*address),
        _ => None,
    });
    local.or_else(|| {
        message.attributes.iter().find_map(|attribute| match attribute {
            AddressAttribute::Address(address) => Some(*address),
            _ => None,
        })
    })
}

fn is_reachable(address: &IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => !v4.is_loopback() && !v4.is_link_local(),
        // fe80::/10 addresses need a device name, which is meaningless on other hosts.
        IpAddr::V6(v6) => !v6.is_loopback() && (v6.segments()[0] & 0xffc0) != 0xfe80,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_loopback_nor_a_foreign_address_splits_datagrams() {
        assert!(!splits_datagrams(std::net::Ipv4Addr::LOCALHOST.into()).unwrap());
        // An address reserved for documentation (RFC 5737).
        assert!(!splits_datagrams([192, 0, 2, 1].into()).unwrap());
    }

    #[test]
    fn loopback_is_not_among_the_addresses() {
        assert!(addresses().unwrap().iter().all(|address| !address.is_loopback()));
    }
}
