use crate::event::{self, kind};

/// A link that carries packets to a router, encoded by [`event::pack`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AccessLink(u32);

impl AccessLink {
    /// The access link of a flow's source.
    #[inline]
    pub(crate) fn of_source(flow: u32) -> AccessLink {
        AccessLink(event::pack(kind::SOURCE_UPLINK, flow))
    }

    /// The access link of a measured transfer's sink.
    #[inline]
    pub(crate) fn of_sink(flow: u32) -> AccessLink {
        AccessLink(event::pack(kind::SINK_UPLINK, flow))
    }

    #[inline]
    pub(crate) fn input(index: u32) -> AccessLink {
        AccessLink(event::pack(kind::INPUT_LINK, index))
    }

    #[inline]
    pub(crate) fn source(self) -> Option<u32> {
        let (kind, flow) = event::unpack(self.0);
        (kind == kind::SOURCE_UPLINK).then_some(flow)
    }

    /// Its rank among simultaneous events.
    #[inline]
    pub(crate) fn packed(self) -> u32 {
        self.0
    }
}
