/// The position of a packet in [`crate::network::Transit`]: the index of its block and, in the lowest bits, of its
/// slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Place(u32);

impl Place {
    #[inline(always)]
    pub(crate) fn new(bits: u32) -> Place {
        Place(bits)
    }

    #[inline(always)]
    pub(crate) fn get(self) -> u32 {
        self.0
    }
}

/// An event in the queue, packed into 32 bits: three for the kind, the rest an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// The packet at this position arrives at its router.
    Arrival(Place),
    /// A timer of this flow expires.
    Flow(u32),
    /// This traffic source sends.
    Source(u32),
    /// The observation with this number is due.
    Observe(u32),
}

const KIND_SHIFT: u32 = 29;
const INDEX: u32 = (1 << KIND_SHIFT) - 1;

/// The kinds of an event's subject. The numbers decide the order of simultaneous events.
pub(crate) mod kind {
    pub(crate) const HOP: u32 = 0;
    pub(crate) const SOURCE_UPLINK: u32 = 1;
    pub(crate) const SINK_UPLINK: u32 = 2;
    pub(super) const FLOW: u32 = 3;
    pub(super) const SOURCE: u32 = 4;
    pub(super) const OBSERVE: u32 = 5;
    pub(crate) const INPUT_LINK: u32 = 6;
    pub(super) const ARRIVAL: u32 = 7;
}

#[inline]
pub(crate) fn pack(kind: u32, index: u32) -> u32 {
    debug_assert!(index <= INDEX);
    kind << KIND_SHIFT | index
}

#[inline]
pub(crate) fn unpack(packed: u32) -> (u32, u32) {
    (packed >> KIND_SHIFT, packed & INDEX)
}

impl Event {
    #[inline]
    pub(crate) fn pack(self) -> u32 {
        match self {
            Event::Arrival(place) => pack(kind::ARRIVAL, place.get()),
            Event::Flow(index) => pack(kind::FLOW, index),
            Event::Source(index) => pack(kind::SOURCE, index),
            Event::Observe(index) => pack(kind::OBSERVE, index),
        }
    }

    #[inline]
    pub(crate) fn unpack(packed: u32) -> Event {
        match unpack(packed) {
            (kind::FLOW, index) => Event::Flow(index),
            (kind::SOURCE, index) => Event::Source(index),
            (kind::OBSERVE, index) => Event::Observe(index),
            (_, place) => Event::Arrival(Place::new(place)),
        }
    }
}
