//! The sender's end of a connection that carries content.

use std::io;
use std::sync::Arc;

use sweetspot_linux::tcp::{Info, SenderCongestion, options};
use sweetspot_units::{Bytes, Duration};

use crate::Result;
use crate::control::send_buffer::SendBuffer;
use crate::wire::channel::Channel;

/// The bound on unsent data is what the connection sends in this time, but at least [`MIN_UNSENT`].
const UNSENT_TIME: Duration = Duration::from_millis(100);
const MIN_UNSENT: Bytes = Bytes::new(128 << 10);
/// The bound until the connection's rate is known: 0.8 ms at 10 Gbit/s.
const FIRST_UNSENT: Bytes = Bytes::new(1 << 20);

/// One connection that carries content.
pub(crate) struct SenderLink {
    pub channel: Arc<Channel>,
    pub congestion: SenderCongestion,
    pub send_buffer: SendBuffer,
}

impl SenderLink {
    /// Wraps a connection. If the user `named` a congestion control, it is never switched.
    pub fn new(
        channel: &Arc<Channel>,
        named: bool,
        send_buffer: Option<Bytes>,
    ) -> Result<SenderLink> {
        Ok(SenderLink {
            channel: Arc::clone(channel),
            congestion: SenderCongestion::new(channel.socket(), named),
            send_buffer: SendBuffer::new(Arc::clone(channel), send_buffer)?,
        })
    }

    /// Bounds the unsent data until [`bound_unsent`] knows the rate. Without this bound, fewer pieces are compressed.
    pub fn bound_first_unsent(&self) {
        let _ = options::set_notsent_low_water(self.channel.socket(), FIRST_UNSENT);
    }
}

/// A connection and the kernel's present TCP_INFO for it.
pub(crate) struct LinkState<'a> {
    pub link: &'a SenderLink,
    pub info: Info,
}

impl LinkState<'_> {
    pub fn read(link: &SenderLink) -> io::Result<LinkState<'_>> {
        Ok(LinkState { link, info: Info::read(link.channel.socket())? })
    }
}

/// Bounds the unsent data of connections. Pieces then wait where they can still be compressed, not in the kernel, and at the
/// end of a transfer the other connections need not wait for the slowest.
pub(crate) fn bound_unsent(states: &[LinkState<'_>]) {
    for LinkState { link, info } in states {
        let soon = info.delivery_rate * UNSENT_TIME;
        // If this fails, the transfer ends later but correctly.
        let _ = options::set_notsent_low_water(link.channel.socket(), soon.max(MIN_UNSENT));
    }
}
