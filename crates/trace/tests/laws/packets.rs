//! Builds packets and capture files byte by byte.

use std::net::{Ipv4Addr, Ipv6Addr};

pub const CLIENT: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
pub const SERVER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
pub const ACK: u8 = 0x10;
pub const SYN: u8 = 0x02;

/// A TCP segment from port 1000 to port 80.
pub fn tcp(seq: u32, flags: u8, options: &[u8], payload: usize) -> Vec<u8> {
    assert_eq!(options.len() % 4, 0);
    let mut t = Vec::new();
    t.extend(1000_u16.to_be_bytes());
    t.extend(80_u16.to_be_bytes());
    t.extend(seq.to_be_bytes());
    t.extend(7_u32.to_be_bytes());
    t.push((((20 + options.len()) / 4) << 4) as u8);
    t.push(flags);
    t.extend(512_u16.to_be_bytes());
    t.extend([0; 4]);
    t.extend(options);
    t.extend(vec![0; payload]);
    t
}

/// An IPv4 packet around `content`; `fragment` is the field of flags and fragment offset.
pub fn ipv4(protocol: u8, fragment: u16, options: &[u8], content: &[u8]) -> Vec<u8> {
    let header = 20 + options.len();
    let mut p = vec![0x40 | (header / 4) as u8, 0];
    p.extend(((header + content.len()) as u16).to_be_bytes());
    p.extend([0, 9]);
    p.extend(fragment.to_be_bytes());
    p.extend([64, protocol, 0, 0]);
    p.extend(CLIENT.octets());
    p.extend(SERVER.octets());
    p.extend(options);
    p.extend(content);
    p
}

/// An IPv6 packet with `kind` as its next header.
pub fn ipv6(kind: u8, content: &[u8]) -> Vec<u8> {
    let mut p = vec![0x60, 0, 0, 0];
    p.extend((content.len() as u16).to_be_bytes());
    p.extend([kind, 64]);
    p.extend(Ipv6Addr::LOCALHOST.octets());
    p.extend(Ipv6Addr::LOCALHOST.octets());
    p.extend(content);
    p
}

/// An Ethernet frame with `tags` (the EtherTypes of two-byte tags) before `kind`.
pub fn ethernet(tags: &[u16], kind: u16, packet: &[u8]) -> Vec<u8> {
    let mut f = vec![2; 12];
    for tag in tags {
        f.extend(tag.to_be_bytes());
        f.extend([0, 5]);
    }
    f.extend(kind.to_be_bytes());
    f.extend(packet);
    f
}

/// A complete, plain packet with `payload` bytes.
pub fn plain(payload: usize) -> Vec<u8> {
    ethernet(&[], 0x0800, &ipv4(6, 0, &[], &tcp(1, ACK, &[], payload)))
}

/// Numbers in the byte order of the machine that wrote the file.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Order {
    Little,
    Big,
}

impl Order {
    pub fn u16(self, n: u16) -> [u8; 2] {
        if self == Order::Little { n.to_le_bytes() } else { n.to_be_bytes() }
    }
    pub fn u32(self, n: u32) -> [u8; 4] {
        if self == Order::Little { n.to_le_bytes() } else { n.to_be_bytes() }
    }
}

/// A pcap file of `frames` captured at 1 s, 2 s and so on, each plus `fraction`.
pub fn pcap(order: Order, magic: u32, link: u32, fraction: u32, frames: &[&[u8]]) -> Vec<u8> {
    let mut f = Vec::new();
    f.extend(order.u32(magic));
    f.extend(order.u16(2));
    f.extend(order.u16(4));
    for field in [0, 0, 65_535, link] {
        f.extend(order.u32(field));
    }
    for (second, frame) in (1..).zip(frames) {
        for field in [second, fraction, frame.len() as u32, frame.len() as u32] {
            f.extend(order.u32(field));
        }
        f.extend(*frame);
    }
    f
}

/// A pcapng block.
pub fn block(order: Order, kind: u32, body: &[u8]) -> Vec<u8> {
    let padded = body.len().next_multiple_of(4);
    let length = order.u32(padded as u32 + 12);
    let mut b = Vec::new();
    b.extend(order.u32(kind));
    b.extend(length);
    b.extend(body);
    b.extend(vec![0; padded - body.len()]);
    b.extend(length);
    b
}

/// A section header and an Ethernet interface with `options`.
pub fn section(order: Order, options: &[u8]) -> Vec<u8> {
    let mut header = Vec::new();
    header.extend(order.u32(0x1a2b_3c4d));
    header.extend(order.u16(1));
    header.extend(order.u16(0));
    header.extend([0xff; 8]);
    let mut interface = Vec::new();
    interface.extend(order.u16(1));
    interface.extend([0; 2]);
    interface.extend(order.u32(0));
    interface.extend(options);
    [block(order, 0x0a0d_0d0a, &header), block(order, 1, &interface)].concat()
}

/// An enhanced packet block of interface 0 at `ticks`.
pub fn enhanced(order: Order, ticks: u64, frame: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    let length = frame.len() as u32;
    for field in [0, (ticks >> 32) as u32, ticks as u32, length, length] {
        body.extend(order.u32(field));
    }
    body.extend(frame);
    block(order, 6, &body)
}
