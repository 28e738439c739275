use core::hint::black_box;

use sweetspot_tcp::Sender;
use sweetspot_units::{Duration, Time};

use crate::uplink::{Downlink, Uplink};

/// A TCP connection or a stream of datagrams: where it goes, what it is part of, and all that
/// its source needs at hand when an ACK arrives.
///
/// The first line of the cache is all that a packet needs on its way to the first router and at
/// its sink.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Flow {
    /// What its source has sent and its router has not received yet.
    pub uplink: Uplink,
    /// Propagation between its source and the first router.
    pub delay: Duration,
    /// The input link that its data takes; [`DIRECT`]: none.
    pub input: u32,
    /// The lowest and the highest hop on its way.
    pub hops: (u16, u16),
    /// Which of its connections this is, counted from 0.
    pub round: u32,
    /// What its data packets carry in [`crate::packet::Packet::extra`].
    pub marks: u32,
    /// Which way its data goes.
    pub direction: Direction,
    /// Which group it belongs to.
    pub group: u32,
    pub downlink: Downlink,
    /// When its pending event comes; [`Time::MAX`]: none is pending.
    pub pending: Time,
    /// When its application wants to act; [`Time::MAX`]: it does not.
    pub wake: Time,
    pub sender: Sender,
    /// When its current transfer began; [`Time::MAX`]: none is under way.
    pub began: Time,
    /// Packets of its data that routers dropped.
    pub dropped: u64,
}

/// A flow whose source is at the router by a link of its own.
pub(crate) const DIRECT: u32 = u32::MAX;

/// Which way a packet crosses the hops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    /// As the target's data goes.
    Forward = 0,
    /// As the target's ACKs go.
    Backward = 1,
}

impl Flow {
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
            input: DIRECT,
            pending: Time::MAX,
            wake: Time::MAX,
            began: Time::MAX,
            dropped: 0,
            marks: 0,
        }
    }

    /// The round as packets carry it.
    #[inline]
    pub(crate) fn epoch(&self) -> u8 {
        self.round as u8
    }

    /// When something is due at its source.
    #[inline]
    pub(crate) fn source_due(&self) -> Time {
        self.sender.due().min(self.wake)
    }

    /// Reads from memory what an ACK will need.
    #[inline]
    pub(crate) fn read_ahead(&self) {
        black_box((self.delay, self.pending));
        self.sender.read_ahead();
    }

    /// The hop at which a packet that goes `direction` enters.
    #[inline]
    pub(crate) fn entry(&self, direction: Direction) -> u16 {
        match direction {
            Direction::Forward => self.hops.0,
            Direction::Backward => self.hops.1,
        }
    }

    /// The hop after `hop`, or `None` where it leaves the routers.
    #[inline]
    pub(crate) fn after(&self, direction: Direction, hop: u16) -> Option<u16> {
        match direction {
            Direction::Forward if hop < self.hops.1 => Some(hop + 1),
            Direction::Backward if hop > self.hops.0 => Some(hop - 1),
            _ => None,
        }
    }
}
