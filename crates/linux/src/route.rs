//! Devices, addresses, neighbours and routes of a network namespace (rtnetlink(7)), without the ip(8) program.

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::{AsRawFd, BorrowedFd};

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NetlinkDeserializable, NetlinkHeader, NetlinkSerializable,
};
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
};
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourMessage, NeighbourState,
};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteMetric, RouteProtocol,
    RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use crate::netlink::Netlink;

/// A hardware address.
pub type Mac = [u8; 6];

/// One end of a veth pair to be created.
#[derive(Debug, Clone, Copy)]
pub struct VethEnd<'a> {
    /// The device's name.
    pub name: &'a str,
    /// Its hardware address.
    pub mac: Mac,
    /// Its MTU, in bytes.
    pub mtu: u32,
}

impl VethEnd<'_> {
    fn attributes(&self) -> Vec<LinkAttribute> {
        vec![
            LinkAttribute::IfName(self.name.to_owned()),
            LinkAttribute::Address(self.mac.to_vec()),
            LinkAttribute::Mtu(self.mtu),
        ]
    }
}

/// A route to one host.
#[derive(Debug, Clone, Copy)]
pub struct HostRoute {
    /// The destination host.
    pub to: Ipv4Addr,
    /// The source address.
    pub from: Ipv4Addr,
    /// The next hop.
    pub via: Ipv4Addr,
    /// The device's index.
    pub index: u32,
    /// TCP's initial congestion window on this route, in packets; `None` keeps the kernel's default.
    pub initial_window: Option<u32>,
    /// Whether TCP acknowledges every segment immediately.
    pub quick_acks: bool,
}

/// An rtnetlink socket in the network namespace of the thread that opened it.
#[derive(Debug)]
pub struct RouteNetlink(Netlink);

impl RouteNetlink {
    /// Opens a socket in the namespace of the calling thread.
    pub fn new() -> io::Result<RouteNetlink> {
        Netlink::open(None).map(RouteNetlink)
    }

    /// Creates a veth pair, one end here and the other, `peer`, in `namespace`.
    pub fn add_veth(
        &mut self,
        here: &VethEnd<'_>,
        peer: &VethEnd<'_>,
        namespace: BorrowedFd<'_>,
    ) -> io::Result<()> {
        let mut other = LinkMessage::default();
        other.attributes = peer.attributes();
        other.attributes.push(LinkAttribute::NetNsFd(namespace.as_raw_fd()));
        let mut pair = LinkMessage::default();
        pair.attributes = here.attributes();
        pair.attributes.push(LinkAttribute::LinkInfo(vec![
            LinkInfo::Kind(InfoKind::Veth),
            LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(other))),
        ]));
        self.create(RouteNetlinkMessage::NewLink(pair))
    }

    /// Brings the device up.
    pub fn set_up(&mut self, index: u32) -> io::Result<()> {
        let mut link = LinkMessage::default();
        link.header.index = index;
        link.header.flags = LinkFlags::Up;
        link.header.change_mask = LinkFlags::Up;
        self.acknowledged(RouteNetlinkMessage::SetLink(link), 0)
    }

    /// Removes the device and, for a veth, its peer.
    pub fn remove(&mut self, index: u32) -> io::Result<()> {
        let mut link = LinkMessage::default();
        link.header.index = index;
        self.acknowledged(RouteNetlinkMessage::DelLink(link), 0)
    }

    /// Gives the device an address.
    pub fn add_address(&mut self, index: u32, address: Ipv4Addr, prefix: u8) -> io::Result<()> {
        let mut message = AddressMessage::default();
        message.header.family = AddressFamily::Inet;
        message.header.prefix_len = prefix;
        message.header.index = index;
        message.attributes = vec![
            AddressAttribute::Local(IpAddr::V4(address)),
            AddressAttribute::Address(IpAddr::V4(address)),
        ];
        self.create(RouteNetlinkMessage::NewAddress(message))
    }

    /// Adds a permanent neighbour entry, so that no ARP crosses the path.
    pub fn add_neighbour(&mut self, index: u32, address: Ipv4Addr, mac: Mac) -> io::Result<()> {
        let mut message = NeighbourMessage::default();
        message.header.family = AddressFamily::Inet;
        message.header.ifindex = index;
        message.header.state = NeighbourState::Permanent;
        message.attributes = vec![
            NeighbourAttribute::Destination(NeighbourAddress::Inet(address)),
            NeighbourAttribute::LinkLayerAddress(mac.to_vec()),
        ];
        self.create(RouteNetlinkMessage::NewNeighbour(message))
    }

    /// Adds a route with its TCP settings.
    pub fn add_route(&mut self, route: &HostRoute) -> io::Result<()> {
        let mut message = RouteMessage::default();
        message.header = RouteHeader {
            address_family: AddressFamily::Inet,
            destination_prefix_length: 32,
            table: RouteHeader::RT_TABLE_MAIN,
            protocol: RouteProtocol::Static,
            scope: RouteScope::Universe,
            kind: RouteType::Unicast,
            ..RouteHeader::default()
        };
        message.attributes = vec![
            RouteAttribute::Destination(RouteAddress::Inet(route.to)),
            RouteAttribute::Gateway(RouteAddress::Inet(route.via)),
            RouteAttribute::PrefSource(RouteAddress::Inet(route.from)),
            RouteAttribute::Oif(route.index),
        ];
        let mut habits = Vec::new();
        habits.extend(route.initial_window.map(RouteMetric::InitCwnd));
        habits.extend(route.quick_acks.then_some(RouteMetric::QuickAck(1)));
        if !habits.is_empty() {
            message.attributes.push(RouteAttribute::Metrics(habits));
        }
        self.create(RouteNetlinkMessage::NewRoute(message))
    }

    /// The index of the device called `name`.
    pub fn index_of(&mut self, name: &str) -> io::Result<u32> {
        let mut link = LinkMessage::default();
        link.attributes = vec![LinkAttribute::IfName(name.to_owned())];
        Ok(self.link(link)?.header.index)
    }

    /// The name of the device through which packets to `host` leave now. Sends nothing on the network.
    pub fn device_to(&mut self, host: IpAddr) -> io::Result<String> {
        let mut route = RouteMessage::default();
        let (family, bits, destination) = match host {
            IpAddr::V4(address) => (AddressFamily::Inet, 32, RouteAddress::Inet(address)),
            IpAddr::V6(address) => (AddressFamily::Inet6, 128, RouteAddress::Inet6(address)),
        };
        route.header.address_family = family;
        route.header.destination_prefix_length = bits;
        route.attributes = vec![RouteAttribute::Destination(destination)];
        let mut found = None;
        self.query(RouteNetlinkMessage::GetRoute(route), 0, &mut |answer| {
            if let RouteNetlinkMessage::NewRoute(route) = answer {
                found = route.attributes.into_iter().find_map(|attribute| match attribute {
                    RouteAttribute::Oif(index) => Some(index),
                    _ => None,
                });
            }
        })?;
        self.name_of(found.ok_or(io::ErrorKind::InvalidData)?)
    }

    /// The name of the device with this index.
    pub fn name_of(&mut self, index: u32) -> io::Result<String> {
        let mut link = LinkMessage::default();
        link.header.index = index;
        let name = self.link(link)?.attributes.into_iter().find_map(|attribute| match attribute {
            LinkAttribute::IfName(name) => Some(name),
            _ => None,
        });
        name.ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// The number of outgoing packets that the device dropped.
    pub fn dropped(&mut self, index: u32) -> io::Result<u64> {
        let mut link = LinkMessage::default();
        link.header.index = index;
        let dropped = self.link(link)?.attributes.into_iter().find_map(|attribute| {
            if let LinkAttribute::Stats64(counters) = attribute {
                Some(counters.tx_dropped)
            } else {
                None
            }
        });
        dropped.ok_or_else(|| io::Error::other("the device has no counters"))
    }

    fn link(&mut self, request: LinkMessage) -> io::Result<LinkMessage> {
        let mut found = None;
        self.query(RouteNetlinkMessage::GetLink(request), 0, &mut |answer| {
            if let RouteNetlinkMessage::NewLink(link) = answer {
                found = Some(link);
            }
        })?;
        found.ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    fn create(&mut self, message: RouteNetlinkMessage) -> io::Result<()> {
        self.acknowledged(message, NLM_F_CREATE | NLM_F_EXCL)
    }

    fn acknowledged(&mut self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        self.query(message, NLM_F_ACK | flags, &mut |_| {})
    }

    /// Sends a request and passes each message of the reply that can be parsed to `visit`.
    pub(crate) fn query(
        &mut self,
        message: RouteNetlinkMessage,
        flags: u16,
        visit: &mut dyn FnMut(RouteNetlinkMessage),
    ) -> io::Result<()> {
        let mut body = vec![0; message.buffer_len()];
        message.serialize(&mut body);
        self.0.query(message.message_type(), flags, &body, &mut |kind, content| {
            let mut header = NetlinkHeader::default();
            header.message_type = kind;
            if let Ok(answer) = RouteNetlinkMessage::deserialize(&header, content) {
                visit(answer);
            }
        })
    }
}
