//! A connection that carries content, at its sender.

use std::io;
use std::sync::Arc;

use sweetspot_linux::tcp::{Info, SenderCongestion, options};
use sweetspot_units::{Bytes, Duration};

use crate::TransferError;
use crate::control::send_buffer::SendBuffer;
use crate::wire::channel::Channel;

/// Each of several connections should drain its unsent data in this time, if that exceeds [`MIN_UNSENT`].
const UNSENT_TIME: Duration = Duration::from_millis(100);
const MIN_UNSENT: Bytes = Bytes::new(128 << 10);

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
    ) -> Result<SenderLink, TransferError> {
        Ok(SenderLink {
            channel: Arc::clone(channel),
            congestion: SenderCongestion::new(channel.socket(), named),
            send_buffer: SendBuffer::new(Arc::clone(channel), send_buffer)?,
        })
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

/// Bounds the unsent data of several connections, so that at the end the others do not wait for the slowest.
pub(crate) fn bound_unsent(states: &[LinkState<'_>]) {
    if states.len() < 2 {
        return;
    }
    for LinkState { link, info } in states {
        let soon = info.delivery_rate * UNSENT_TIME;
        // Without the bound the end comes later, and is the same.
        let _ = options::set_notsent_low_water(link.channel.socket(), soon.max(MIN_UNSENT));
    }
}
