use core::hint::black_box;

use sweetspot_tcp::Sender;
use sweetspot_units::{Deadline, Duration, Time};

use crate::network::{Direction, Downlink, Ecn, Uplink};

/// A TCP connection or a stream of datagrams: its route, its group, and the state that its source needs when an ACK arrives.
///
/// The first cache line holds everything that a packet needs on its way to the first router and at its sink.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Flow {
    /// The link from its source to the first router.
    pub uplink: Uplink,
    /// Propagation delay between its source and the first router.
    pub delay: Duration,
    /// The input link that its data takes, if there is one.
    pub input: Option<u32>,
    /// The lowest and the highest hop on its route.
    pub hops: (u16, u16),
    /// Number of earlier connections.
    pub round: u32,
    /// The ECN field of its data packets.
    pub ecn: Ecn,
    pub direction: Direction,
    pub group: u32,
    pub downlink: Downlink,
    /// Time of its pending event.
    pub pending: Deadline,
    /// Time at which its application wants to act.
    pub wake: Deadline,
    pub sender: Sender,
    /// Start of its current transfer, if there is one.
    pub began: Option<Time>,
}

impl Flow {
    /// A flow of `group` that has not started.
    pub(crate) fn new(
        sender: Sender,
        group: u32,
        direction: Direction,
        hops: (u16, u16),
        delay: Duration,
    ) -> Flow {
        Flow {
            sender,
            uplink: Uplink::default(),
            downlink: Downlink::default(),
            group,
            round: 0,
            hops,
            direction,
            delay,
            input: None,
            pending: Deadline::NEVER,
            wake: Deadline::NEVER,
            began: None,
            ecn: Ecn::NotCapable,
        }
    }

    /// `round` modulo 256, as packets carry it.
    #[inline]
    pub(crate) fn epoch(&self) -> u8 {
        self.round as u8
    }

    #[inline]
    pub(crate) fn source_due(&self) -> Deadline {
        self.sender.deadline().min(self.wake)
    }

    /// Prefetches the fields that an ACK needs.
    #[inline]
    pub(crate) fn read_ahead(&self) {
        black_box((self.delay, self.pending));
        self.sender.read_ahead();
    }

    /// The hop at which a packet in this direction enters.
    #[inline]
    pub(crate) fn entry(&self, direction: Direction) -> u16 {
        match direction {
            Direction::Forward => self.hops.0,
            Direction::Backward => self.hops.1,
        }
    }

    /// The hop after `hop`; `None` if the packet leaves the routers there.
    #[inline]
    pub(crate) fn after(&self, direction: Direction, hop: u16) -> Option<u16> {
        match direction {
            Direction::Forward if hop < self.hops.1 => Some(hop + 1),
            Direction::Backward if hop > self.hops.0 => Some(hop - 1),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hot_fields_of_a_flow_fit_one_cache_line() {
        assert_eq!(core::mem::offset_of!(Flow, pending), 64);
    }
}
