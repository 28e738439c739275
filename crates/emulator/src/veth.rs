//! The veth links: two namespaces, each connected to this process's own by a veth pair.

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU32, Ordering};

use sweetspot_linux::ethtool;
use sweetspot_linux::namespace::NetworkNamespace;
use sweetspot_linux::packet::PacketPort;
use sweetspot_linux::route::{HostRoute, Mac, RouteNetlink, VethEnd};
use sweetspot_units::Bytes;

use crate::error::{NetworkContext, Result};
use crate::host_pair::{self, FAR_PAIR_PREFIX, HostPair, NEAR_PAIR_PREFIX};
use crate::steering;

/// The device's name inside the near and far namespaces.
const DEVICE_NAME: &str = "path0";
/// Length of the Ethernet header: two addresses and a type.
pub(crate) const ETHERNET_HEADER: usize = 14;
/// Ring slots per side: enough for a stall of 0.1 s at 1 Gbit/s of full packets.
const RING_SLOTS: usize = 8192;

/// The configuration of one end of the path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SideConfig {
    pub name: &'static str,
    pub address: Ipv4Addr,
    /// The first two bytes of its host pairs' addresses.
    host_pairs: [u8; 2],
    mac: Mac,
}

impl SideConfig {
    /// The address of host pair number `host_pair`.
    pub fn host_pair(self, host_pair: usize) -> Ipv4Addr {
        let [high, low] = host_pair::tag(host_pair).to_be_bytes();
        Ipv4Addr::new(self.host_pairs[0], self.host_pairs[1], high, low)
    }
}

/// The end at which commands run.
pub(crate) const NEAR: SideConfig = SideConfig {
    name: "near",
    address: Ipv4Addr::new(10, 77, 0, 1),
    host_pairs: NEAR_PAIR_PREFIX,
    mac: [2, 0, 0, 0, 0, 1],
};
pub(crate) const FAR: SideConfig = SideConfig {
    name: "far",
    address: Ipv4Addr::new(10, 77, 0, 2),
    host_pairs: FAR_PAIR_PREFIX,
    mac: [2, 0, 0, 0, 0, 2],
};

/// A namespace connected by a veth pair; this process holds the other end.
pub(crate) struct NamespaceLink {
    pub namespace: NetworkNamespace,
    middle: VethDevice,
    inside: VethDevice,
    offload: bool,
}

/// A device's index, and the netlink socket of its namespace.
struct VethDevice {
    netlink: RouteNetlink,
    index: u32,
}

impl VethDevice {
    /// Packets that it sent and its other end dropped.
    fn dropped(&mut self) -> io::Result<u64> {
        self.netlink.dropped(self.index)
    }
}

/// Packets that a veth pair lost although no queue of the path was full: the machine's fault.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LinkDrops {
    /// Packets from the namespace to this process.
    pub inbound: u64,
    /// Packets from this process to the namespace.
    pub outbound: u64,
}

impl NamespaceLink {
    /// Creates the namespace of `end` with its hosts of `host_pairs`, which can reach `peer`, and its veth pair.
    pub fn lay(
        end: SideConfig,
        peer: SideConfig,
        mtu: Bytes,
        host_pairs: &[HostPair],
        offload: bool,
    ) -> Result<NamespaceLink> {
        // Each emulation of a process uses its own device names.
        static LAID: AtomicU32 = AtomicU32::new(0);
        let outside = format!("{}{}", end.name, LAID.fetch_add(1, Ordering::Relaxed));
        let mtu = mtu.get() as u32;

        let namespace = NetworkNamespace::new().doing("make a network namespace")?;
        switch_ipv6_off().doing("switch IPv6 off")?;
        namespace.run(switch_ipv6_off).and_then(|done| done).doing("switch IPv6 off")?;
        let steer = namespace.run(steering::receive_elsewhere);
        steer.and_then(|done| done).doing("choose the processors that receive")?;
        let mut netlink = RouteNetlink::new().doing("open a netlink socket")?;
        let here = VethEnd { name: &outside, mac: middle_mac(end), mtu };
        let peer_end = VethEnd { name: DEVICE_NAME, mac: end.mac, mtu };
        netlink.add_veth(&here, &peer_end, namespace.as_fd()).doing("make a veth pair")?;
        let index = netlink.index_of(&outside).doing("find the veth pair")?;
        set_offloads(&outside, offload).doing("choose offloads")?;
        let inside = namespace
            .run(|| furnish(end, peer, host_pairs, offload))
            .and_then(|done| done)
            .doing("set up the network of a namespace")?;
        netlink.set_up(index).doing("set a veth up")?;
        Ok(NamespaceLink { namespace, middle: VethDevice { netlink, index }, inside, offload })
    }

    /// The port on which this process receives and sends over the veth pair.
    pub fn port(&self, mtu: Bytes) -> Result<PacketPort> {
        let open = if self.offload { PacketPort::open_with_offload } else { PacketPort::open };
        open(self.middle.index, frame_size(mtu), RING_SLOTS).doing("open a packet ring")
    }

    /// A port on the device inside the namespace for incoming packets; its ring holds `slots` frames.
    pub fn port_inside(&self, mtu: Bytes, slots: usize) -> Result<PacketPort> {
        let open = || PacketPort::open(self.inside.index, frame_size(mtu), slots);
        self.namespace.run(open).and_then(|opened| opened).doing("open a packet ring")
    }

    /// A port on the device inside the namespace for both directions, with frames truncated to `snap` bytes.
    pub fn watch_inside(&self, snap: usize, slots: usize) -> io::Result<PacketPort> {
        self.namespace.run(|| PacketPort::watch(self.inside.index, snap, slots))?
    }

    /// Packets that the veth pair has lost so far.
    pub fn losses(&mut self) -> Result<LinkDrops> {
        let mut read = || -> io::Result<LinkDrops> {
            Ok(LinkDrops { inbound: self.inside.dropped()?, outbound: self.middle.dropped()? })
        };
        read().doing("read a device's counters")
    }
}

impl Drop for NamespaceLink {
    fn drop(&mut self) {
        // Removing one end removes the other. The namespace ends with its last user.
        let _ = self.middle.netlink.remove(self.middle.index);
    }
}

/// The features that devices keep with offload: TCP and UDP super-frames over IPv4, with checksums left to the card. Other
/// super-frames are split by the kernel first, because this code cannot split them.
const OFFLOADS: [&str; 4] =
    ["tx-scatter-gather", "tx-checksum-ip-generic", "tx-tcp-segmentation", "tx-udp-segmentation"];

fn set_offloads(device: &str, offload: bool) -> io::Result<()> {
    if offload { ethtool::keep_only(device, &OFFLOADS) } else { ethtool::turn_offloads_off(device) }
}

/// The maximum frame length: the MTU and the Ethernet header.
pub(crate) fn frame_size(mtu: Bytes) -> usize {
    mtu.get() as usize + ETHERNET_HEADER
}

/// The MAC address of this process's end of a veth pair, to which nothing is sent.
fn middle_mac(end: SideConfig) -> Mac {
    let mut mac = end.mac;
    mac[4] = 1;
    mac
}

/// Sets up a namespace: loopback, addresses, neighbour entry, and the route to each host's partner.
fn furnish(
    end: SideConfig,
    peer: SideConfig,
    host_pairs: &[HostPair],
    offload: bool,
) -> io::Result<VethDevice> {
    let mut netlink = RouteNetlink::new()?;
    let loopback = netlink.index_of("lo")?;
    netlink.set_up(loopback)?;
    let index = netlink.index_of(DEVICE_NAME)?;
    set_offloads(DEVICE_NAME, offload)?;
    netlink.set_up(index)?;
    netlink.add_address(index, end.address, 24)?;
    netlink.add_neighbour(index, peer.address, peer.mac)?;
    for (number, host_pair) in host_pairs.iter().enumerate() {
        let own = end.host_pair(number);
        netlink.add_address(index, own, 32)?;
        let to = peer.host_pair(number);
        let HostPair { initial_window, quick_acks, .. } = *host_pair;
        let (from, via) = (own, peer.address);
        netlink.add_route(&HostRoute { to, from, via, index, initial_window, quick_acks })?;
    }
    Ok(VethDevice { netlink, index })
}

/// Disables IPv6 in the calling thread's namespace: router solicitations and the like are not the user's traffic, and must
/// not cross the path.
fn switch_ipv6_off() -> io::Result<()> {
    for which in ["all", "default"] {
        match std::fs::write(format!("/proc/sys/net/ipv6/conf/{which}/disable_ipv6"), "1") {
            // A kernel without IPv6 has nothing to disable.
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}
