//! A connection that carries content, at its sender.

use std::io;
use std::sync::Arc;

use sweetspot_linux::tcp::{Info, SenderCongestion, options};
use sweetspot_units::{Bytes, Duration};

use crate::Result;
use crate::control::send_buffer::SendBuffer;
use crate::wire::channel::Channel;

/// A bounded connection drains its unsent data in this time, if the bound then exceeds [`MIN_UNSENT`].
const UNSENT_TIME: Duration = Duration::from_millis(100);
const MIN_UNSENT: Bytes = Bytes::new(128 << 10);
/// The bound until the rate of a connection is known: 10 Gbit/s for 0.8 ms.
const FIRST_UNSENT: Bytes = Bytes::new(1 << 20);

/// One connection that carries content.
pub(crate) struct SenderLink {
    pub channel: Arc<Channel>,
    pub congestion: SenderCongestion,
    pub send_buffer: SendBuffer,
}

impl SenderLink {
    /// The congestion control stays as it is if a user `named` it.
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

    /// Bounds the unsent data until [`bound_unsent`] knows the rate. Without the bound, less is compressed.
    pub fn bound_first_unsent(&self) {
        let _ = options::set_notsent_low_water(self.channel.socket(), FIRST_UNSENT);
    }
}

/// A connection with the kernel's present account of it.
pub(crate) struct LinkState<'a> {
    pub link: &'a SenderLink,
    pub info: Info,
}

impl LinkState<'_> {
    pub fn read(link: &SenderLink) -> io::Result<LinkState<'_>> {
        Ok(LinkState { link, info: Info::read(link.channel.socket())? })
    }
}

/// Bounds the unsent data of connections. At the end of several, the others do not wait for the slowest; and pieces that wait
/// for a slow path wait where they can still be compressed, not in the kernel.
pub(crate) fn bound_unsent(states: &[LinkState<'_>]) {
    for LinkState { link, info } in states {
        let soon = info.delivery_rate * UNSENT_TIME;
        // Without the bound the end comes later, and is the same.
        let _ = options::set_notsent_low_water(link.channel.socket(), soon.max(MIN_UNSENT));
    }
}
