use std::collections::VecDeque;

use sweetspot_units::{Bytes, Time, Volume};

use super::Queue;

/// First in, first out; an arrival that does not fit is dropped.
///
/// The limit is the size of the router's buffer. The packet in service occupies the buffer until
/// its last bit has left, as in ns-2: a limit of B packets holds B - 1 waiting and one in service.
#[derive(Debug, Clone)]
pub struct DropTail<P> {
    limit: Volume,
    waiting: VecDeque<(P, Bytes)>,
    bytes: Bytes,
}

impl<P> DropTail<P> {
    /// An empty queue with the capacity `limit`.
    pub fn new(limit: Volume) -> DropTail<P> {
        DropTail { limit, waiting: VecDeque::new(), bytes: Bytes::ZERO }
    }
}

impl<P> Queue<P> for DropTail<P> {
    fn enqueue(&mut self, _now: Time, packet: P, size: Bytes, in_service: Bytes) -> Result<(), P> {
        let fits = match self.limit {
            Volume::Bytes(room) => self.bytes + in_service + size <= room,
            Volume::Packets(room) => {
                self.waiting.len() as u64 + u64::from(in_service > Bytes::ZERO) < room
            }
        };
        if !fits {
            return Err(packet);
        }
        self.bytes += size;
        self.waiting.push_back((packet, size));
        Ok(())
    }

    fn dequeue(&mut self, _now: Time, _dropped: &mut dyn FnMut(P)) -> Option<(P, Bytes)> {
        let head = self.waiting.pop_front()?;
        self.bytes -= head.1;
        Some(head)
    }

    fn packets(&self) -> u64 {
        self.waiting.len() as u64
    }

    fn bytes(&self) -> Bytes {
        self.bytes
    }
}
