use std::collections::VecDeque;
use std::net::IpAddr;

use super::Segment;
use super::ip::{Packet, Part};

/// The maximum number of fragmented packets at once. TCP avoids fragments, so few packets are in flight in pieces.
const MAX: usize = 16;

/// Segments with a first fragment that has arrived. Only their lengths are kept: the last fragment gives the total
/// length.
#[derive(Debug, Default)]
pub struct Fragments {
    begun: VecDeque<(DatagramKey, Segment)>,
}

type DatagramKey = (IpAddr, IpAddr, u32);

impl Fragments {
    /// Keeps a segment until its last fragment arrives.
    pub fn begin(&mut self, ip: &Packet<'_>, segment: Segment) {
        let Part::First { id } = ip.part else { return };
        if self.begun.len() == MAX {
            self.begun.pop_front();
        }
        // `end` subtracts the TCP header from the total length.
        self.begun.push_back(((ip.source, ip.destination, id), segment));
    }

    /// The segment that the fragment `ip` completes, with its full length.
    pub fn end(&mut self, ip: &Packet<'_>) -> Option<Segment> {
        let Part::Later { id, offset, last: true } = ip.part else { return None };
        let key = (ip.source, ip.destination, id);
        let index = self.begun.iter().position(|(k, _)| *k == key)?;
        let (_, segment) = self.begun.remove(index)?;
        let payload = (offset + ip.length).checked_sub(segment.header.into())?;
        Some(Segment { payload: u32::try_from(payload).ok()?, ..segment })
    }
}
