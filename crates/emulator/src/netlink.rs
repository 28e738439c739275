//! Just enough rtnetlink: veth pairs, addresses, neighbours, without the ip(8) program.

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::{AsRawFd, BorrowedFd};

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage,
    NetlinkPayload,
};
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage, Stats64,
};
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourMessage, NeighbourState,
};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteMetric, RouteProtocol,
    RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};

use crate::host_pair::HostPair;

/// A hardware address.
pub(crate) type Mac = [u8; 6];

/// One end of a veth pair to be made.
pub(crate) struct VethEnd<'a> {
    pub name: &'a str,
    pub mac: Mac,
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

/// The way to one host.
pub(crate) struct HostRoute {
    pub to: Ipv4Addr,
    /// The address to send from.
    pub from: Ipv4Addr,
    pub via: Ipv4Addr,
    /// The device's number.
    pub index: u32,
}

/// A netlink socket in the network namespace of the thread that made it.
pub(crate) struct RouteNetlink {
    socket: Socket,
    sequence: u32,
}

impl RouteNetlink {
    pub fn new() -> io::Result<RouteNetlink> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(RouteNetlink { socket, sequence: 0 })
    }

    /// Makes a veth pair, one end here and the other, `peer`, in `namespace`.
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

    /// Sets the device up.
    pub fn set_up(&mut self, index: u32) -> io::Result<()> {
        let mut link = LinkMessage::default();
        link.header.index = index;
        link.header.flags = LinkFlags::Up;
        link.header.change_mask = LinkFlags::Up;
        self.acknowledged(RouteNetlinkMessage::SetLink(link), 0)
    }

    /// Removes the device, and with a veth its other end.
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

    /// Says for good which hardware address a neighbour has, so that no ARP crosses the path.
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

    /// Adds a route, on which TCP has the habits of `host_pair`.
    pub fn add_route(&mut self, route: &HostRoute, host_pair: &HostPair) -> io::Result<()> {
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
        habits.extend(host_pair.initial_window.map(RouteMetric::InitCwnd));
        habits.extend(host_pair.quick_acks.then_some(RouteMetric::QuickAck(1)));
        if !habits.is_empty() {
            message.attributes.push(RouteAttribute::Metrics(habits));
        }
        self.create(RouteNetlinkMessage::NewRoute(message))
    }

    /// The number of the device called `name`.
    pub fn index_of(&mut self, name: &str) -> io::Result<u32> {
        let mut link = LinkMessage::default();
        link.attributes = vec![LinkAttribute::IfName(name.to_owned())];
        Ok(self.link(link)?.header.index)
    }

    /// The device's counters.
    pub fn statistics(&mut self, index: u32) -> io::Result<Stats64> {
        let mut link = LinkMessage::default();
        link.header.index = index;
        let counters = self.link(link)?.attributes.into_iter().find_map(|attribute| {
            if let LinkAttribute::Stats64(counters) = attribute { Some(counters) } else { None }
        });
        counters.ok_or_else(|| io::Error::other("the device has no counters"))
    }

    fn link(&mut self, asked: LinkMessage) -> io::Result<LinkMessage> {
        self.send(RouteNetlinkMessage::GetLink(asked), NLM_F_REQUEST)?;
        match self.receive()? {
            NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewLink(link)) => Ok(link),
            NetlinkPayload::Error(error) => Err(error.to_io()),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    fn create(&mut self, message: RouteNetlinkMessage) -> io::Result<()> {
        self.acknowledged(message, NLM_F_CREATE | NLM_F_EXCL)
    }

    fn acknowledged(&mut self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        self.send(message, NLM_F_REQUEST | NLM_F_ACK | flags)?;
        match self.receive()? {
            // An error without a code is the acknowledgement.
            NetlinkPayload::Error(error) if error.code.is_none() => Ok(()),
            NetlinkPayload::Error(error) => Err(error.to_io()),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    fn send(&mut self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        self.sequence += 1;
        let mut header = NetlinkHeader::default();
        header.flags = flags;
        header.sequence_number = self.sequence;
        let mut packet = NetlinkMessage::new(header, NetlinkPayload::from(message));
        packet.finalize();
        let mut bytes = vec![0; packet.buffer_len()];
        packet.serialize(&mut bytes);
        self.socket.send(&bytes, 0)?;
        Ok(())
    }

    fn receive(&mut self) -> io::Result<NetlinkPayload<RouteNetlinkMessage>> {
        let (bytes, _) = self.socket.recv_from_full()?;
        let message = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&bytes)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))?;
        Ok(message.payload)
    }
}
