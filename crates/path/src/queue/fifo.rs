use std::collections::VecDeque;

use sweetspot_units::{Bytes, Time, Volume};

/// Packets in order of arrival, with the time at which each arrived.
#[derive(Debug, Clone)]
pub(super) struct Fifo<P> {
    waiting: VecDeque<WaitingPacket<P>>,
    bytes: Bytes,
}

#[derive(Debug, Clone)]
pub(super) struct WaitingPacket<P> {
    pub(super) packet: P,
    pub(super) size: Bytes,
    pub(super) arrived: Time,
}

impl<P> Default for Fifo<P> {
    fn default() -> Fifo<P> {
        Fifo { waiting: VecDeque::new(), bytes: Bytes::ZERO }
    }
}

impl<P> Fifo<P> {
    pub(super) fn push(&mut self, arrived: Time, packet: P, size: Bytes) {
        self.bytes += size;
        self.waiting.push_back(WaitingPacket { packet, size, arrived });
    }

    pub(super) fn pop(&mut self) -> Option<WaitingPacket<P>> {
        let head = self.waiting.pop_front()?;
        self.bytes -= head.size;
        Some(head)
    }

    /// Whether a packet of `size` fits into `limit` beside the packet in service.
    pub(super) fn has_room(&self, limit: Volume, size: Bytes, in_service: Bytes) -> bool {
        match limit {
            Volume::Bytes(room) => self.bytes + in_service + size <= room,
            Volume::Packets(room) => self.packets() + u64::from(in_service > Bytes::ZERO) < room,
        }
    }

    pub(super) fn packets(&self) -> u64 {
        self.waiting.len() as u64
    }

    pub(super) fn bytes(&self) -> Bytes {
        self.bytes
    }
}
