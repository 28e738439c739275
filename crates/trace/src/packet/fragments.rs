use std::collections::VecDeque;
use std::net::IpAddr;

use super::Segment;
use super::ip::{Packet, Part};

/// TCP avoids fragments; where they are, few packets are under way in pieces at once.
const MAX: usize = 16;

/// Segments with a first fragment seen. Only lengths are kept: the last fragment gives the total length.
#[derive(Debug, Default)]
pub struct Fragments {
    begun: VecDeque<(DatagramKey, Segment)>,
}

type DatagramKey = (IpAddr, IpAddr, u32);

impl Fragments {
    /// Remembers a segment until its last fragment comes.
    pub fn begin(&mut self, ip: &Packet<'_>, segment: Segment) {
        let Part::First { id } = ip.part else { return };
        if self.begun.len() == MAX {
            self.begun.pop_front();
        }
        // The header is what the fragment holds more than payload.
        self.begun.push_back(((ip.source, ip.destination, id), segment));
    }

    /// The segment that the fragment `ip` ends, in its full length.
    pub fn end(&mut self, ip: &Packet<'_>) -> Option<Segment> {
        let Part::Later { id, offset, last: true } = ip.part else { return None };
        let key = (ip.source, ip.destination, id);
        let index = self.begun.iter().position(|(k, _)| *k == key)?;
        let (_, segment) = self.begun.remove(index)?;
        let payload = (offset + ip.length).checked_sub(segment.header.into())?;
        Some(Segment { payload: u32::try_from(payload).ok()?, ..segment })
    }
}
