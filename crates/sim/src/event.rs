/// What an event is about, packed into 32 bits: three for the kind, the rest an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// A packet comes out of an access link.
    Access(u32),
    /// A packet comes out of a hop; forward and backward hops count through.
    Hop(u32),
    /// A flow's timer.
    Flow(u32),
    /// A UDP source sends.
    Source(u32),
    /// Something on the run's own agenda.
    Agenda(u32),
}

const KIND: u32 = 29;
const INDEX: u32 = (1 << KIND) - 1;

impl Event {
    #[inline]
    pub(crate) fn pack(self) -> u32 {
        let (kind, index) = match self {
            Event::Access(i) => (0, i),
            Event::Hop(i) => (1, i),
            Event::Flow(i) => (2, i),
            Event::Source(i) => (3, i),
            Event::Agenda(i) => (4, i),
        };
        debug_assert!(index <= INDEX);
        kind << KIND | index
    }

    #[inline]
    pub(crate) fn unpack(packed: u32) -> Event {
        let index = packed & INDEX;
        match packed >> KIND {
            0 => Event::Access(index),
            1 => Event::Hop(index),
            2 => Event::Flow(index),
            3 => Event::Source(index),
            _ => Event::Agenda(index),
        }
    }
}
