/// What an event is about, packed into 32 bits: three for the kind, the rest an index.
///
/// An uplink's event is that of its first packet, which is asked for as [`Event::Arrival`]. It has
/// its place among simultaneous events as that of the uplink.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// A packet comes out of a hop; forward and backward hops count through.
    Hop(u32),
    /// What a flow's source has sent arrives at its router.
    Uplink(u32),
    /// What a target's sink has sent arrives at its router.
    FarFeed(u32),
    /// A flow's timer.
    Flow(u32),
    /// Traffic that nobody answers, or new connections.
    Source(u32),
    /// Everything is to be looked at.
    Observe(u32),
    /// What an input link has carried is at its router.
    Input(u32),
    /// The packet in this place of [`crate::uplink::Transit`] is at its router.
    Arrival(u32),
}

const KIND: u32 = 29;
const INDEX: u32 = (1 << KIND) - 1;

impl Event {
    #[inline]
    pub(crate) fn pack(self) -> u32 {
        let (kind, index) = match self {
            Event::Hop(i) => (0, i),
            Event::Uplink(i) => (1, i),
            Event::FarFeed(i) => (2, i),
            Event::Flow(i) => (3, i),
            Event::Source(i) => (4, i),
            Event::Observe(i) => (5, i),
            Event::Input(i) => (6, i),
            Event::Arrival(i) => (7, i),
        };
        debug_assert!(index <= INDEX);
        kind << KIND | index
    }

    #[inline]
    pub(crate) fn unpack(packed: u32) -> Event {
        let index = packed & INDEX;
        match packed >> KIND {
            0 => Event::Hop(index),
            1 => Event::Uplink(index),
            2 => Event::FarFeed(index),
            3 => Event::Flow(index),
            4 => Event::Source(index),
            5 => Event::Observe(index),
            6 => Event::Input(index),
            _ => Event::Arrival(index),
        }
    }
}
