//! Splits a super-frame into its packets.

use sweetspot_linux::packet::{Offload, Segmentation, Transport};

use super::headers::{CWR, FIN, IP_ID, Layout, PSH, TCP_FLAGS, TCP_SEQUENCE, put, sequence, word};
use crate::veth::ETHERNET_HEADER;

/// The Ethernet header, and the longest IPv4 and TCP headers.
pub(super) const MAX_HEADERS: usize = ETHERNET_HEADER + 60 + 60;

/// The packets of a super-frame.
#[derive(Debug, Clone)]
pub(crate) struct Segments<'a> {
    frame: &'a [u8],
    layout: Layout,
    size: usize,
    /// Payload bytes to split, and the number of packets.
    cut: usize,
    count: u16,
}

/// A packet of a super-frame.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Segment<'a> {
    headers: [u8; MAX_HEADERS],
    length: usize,
    pub payload: &'a [u8],
}

impl Segment<'_> {
    /// The headers, including Ethernet's.
    pub fn headers(&self) -> &[u8] {
        &self.headers[..self.length]
    }
}

impl<'a> Segments<'a> {
    /// Splits `frame` into packets. `None` if it cannot be split into frames of up to `largest`
    /// bytes.
    pub fn of(frame: &'a [u8], offload: Offload, largest: usize) -> Option<Segments<'a>> {
        let Segmentation { transport, size, .. } = offload.segmentation?;
        let layout = Layout::of(frame, offload.checksum)?;
        let size = usize::from(size);
        let possible = layout.transport == transport && size > 0;
        (possible && layout.payload + size <= largest).then_some(Segments {
            frame,
            layout,
            size,
            cut: 0,
            count: 0,
        })
    }
}

impl<'a> Iterator for Segments<'a> {
    type Item = Segment<'a>;

    fn next(&mut self) -> Option<Segment<'a>> {
        let (all, payload) = self.frame.split_at(self.layout.payload);
        let rest = &payload[self.cut..];
        if rest.is_empty() {
            return None;
        }
        let payload = &rest[..rest.len().min(self.size)];
        let mut headers = [0; MAX_HEADERS];
        let own = &mut headers[..all.len()];
        own.copy_from_slice(all);
        // Each packet has its own identification, as in the kernel (inet_gso_segment).
        let id = word(own, IP_ID).unwrap_or_default().wrapping_add(self.count);
        put(own, IP_ID, id.into());
        if self.layout.transport == Transport::Tcp {
            let at = sequence(own, self.layout).wrapping_add(self.cut as u32);
            own[self.layout.begin + TCP_SEQUENCE..][..4].copy_from_slice(&at.to_be_bytes());
            let flags = &mut own[self.layout.begin + TCP_FLAGS];
            // As in tcp_gso_segment.
            if payload.len() < rest.len() {
                *flags &= !(FIN | PSH);
            }
            if self.cut > 0 {
                *flags &= !CWR;
            }
        }
        self.layout.write_lengths(own, payload.len());
        self.cut += payload.len();
        self.count = self.count.wrapping_add(1);
        Some(Segment { headers, length: all.len(), payload })
    }
}
