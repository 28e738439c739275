//! Sizes the send buffer for the receiver's advertised window.

use std::sync::{Arc, Mutex};

use sweetspot_control::send_buffer_share;
use sweetspot_linux::sysctl;
use sweetspot_linux::tcp::{Info, options};
use sweetspot_units::Bytes;

use crate::lock::lock;
use crate::wire::channel::Channel;
use crate::{Result, TransferError};

/// Share of a send buffer that is payload in the worst case: each segment of 1448 bytes may occupy 2304 bytes of
/// kernel memory (SKB_TRUESIZE, include/linux/skbuff.h), although most segments share larger buffers.
const PAYLOAD_SHARE: f64 = 1448.0 / 2304.0;

/// Raises SO_SNDBUF if autotuning cannot reach the size that a window needs, and names the sysctl that limits it.
pub(crate) struct SendBuffer {
    channel: Arc<Channel>,
    /// Whether the user set the size, so that it never changes.
    kept: bool,
    /// The last size that this end set; `None` before the first.
    made: Mutex<Option<Bytes>>,
}

/// The policy for the send buffer, given a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BufferPolicy {
    /// Leave the buffer to autotuning: it reaches the needed size, or at least as much as SO_SNDBUF could.
    Leave,
    /// Set SO_SNDBUF to this size, which the kernel doubles.
    Ask(Bytes),
}

/// Chooses the policy. `tcp_wmem[2]` limits autotuning; twice `wmem_max` limits an explicit size.
fn plan(window: Bytes, tcp_wmem_max: Bytes, wmem_max: Bytes) -> BufferPolicy {
    let needed = Bytes::from_f64(window.as_f64() / PAYLOAD_SHARE);
    let by_hand = needed.get().min(wmem_max.get().saturating_mul(2));
    if needed <= tcp_wmem_max || by_hand <= tcp_wmem_max.get() {
        return BufferPolicy::Leave;
    }
    BufferPolicy::Ask(Bytes::new(by_hand.div_ceil(2)))
}

impl SendBuffer {
    /// The send buffer of `channel`, fixed at `size` if one is given.
    pub fn new(channel: Arc<Channel>, size: Option<Bytes>) -> Result<SendBuffer> {
        let set = |size| options::set_send_buffer(channel.socket(), size);
        let failed = TransferError::system("setting the send buffer");
        let made = size.map(set).transpose().map_err(failed)?;
        Ok(SendBuffer { channel, kept: size.is_some(), made: Mutex::new(made) })
    }

    /// Enlarges the buffer for `window`, if autotuning cannot.
    pub fn make(&self, window: Bytes) -> Result<()> {
        if self.kept {
            return Ok(());
        }
        let failed = || TransferError::system("growing the send buffer");
        let tcp_wmem = sysctl::tcp_wmem().map_err(failed())?;
        let wmem_max = sysctl::wmem_max().map_err(failed())?;
        let BufferPolicy::Ask(size) = plan(window, tcp_wmem.max, wmem_max) else { return Ok(()) };
        let mut made = lock(&self.made);
        // Never shrink it: a smaller buffer would block new data behind the data already queued.
        if made.is_none_or(|made| made < size * 2) {
            let got = options::set_send_buffer(self.channel.socket(), size).map_err(failed())?;
            *made = Some(got);
        }
        Ok(())
    }

    /// Whether the buffer is as large as this host allows.
    pub fn is_at_its_limit(&self) -> bool {
        let limits = || -> std::io::Result<bool> {
            let max = match *lock(&self.made) {
                Some(_) => sysctl::wmem_max()? * 2,
                None => sysctl::tcp_wmem()?.max,
            };
            Ok(options::send_buffer(self.channel.socket())? >= max.scaled(0.9))
        };
        !self.kept && limits().unwrap_or(false)
    }

    /// The limits of this host that slowed the connection down, by the kernel's counters.
    pub fn limits(&self) -> Vec<String> {
        self.limit().ok().flatten().into_iter().collect()
    }

    fn limit(&self) -> std::io::Result<Option<String>> {
        let info = Info::read(self.channel.socket())?;
        let Some(share) = send_buffer_share(info.sndbuf_limited, info.busy_time) else {
            return Ok(None);
        };
        let (sysctl, now, max) = match *lock(&self.made) {
            Some(_) => {
                let now = sysctl::wmem_max()?;
                ("net.core.wmem_max", now, now * 2)
            }
            None => {
                let now = sysctl::tcp_wmem()?.max;
                ("net.ipv4.tcp_wmem (its third number)", now, now)
            }
        };
        // If the buffer could still have grown, this sysctl was not the limit.
        let grown = options::send_buffer(self.channel.socket())? >= max.scaled(0.9);
        Ok(grown.then(|| {
            format!(
                "the send buffer held the connection back {:.0} % of the time: raise {sysctl}, now {}, on the sending host",
                100.0 * share,
                now.get()
            )
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: fn(u64) -> Bytes = |n| Bytes::new(n * 1_000_000);

    #[test]
    fn a_window_within_autotunings_reach_is_left_to_autotuning() {
        // 2 MB of payload need 2 x 2304/1448 = 3.2 MB.
        assert_eq!(plan(MB(2), MB(4), MB(100)), BufferPolicy::Leave);
    }

    #[test]
    fn a_window_beyond_autotuning_is_requested_up_to_the_limit() {
        // 400 Mbit/s x 100 ms: 5 MB of payload need a buffer of 7.96 MB; the call asks for half of that.
        let BufferPolicy::Ask(size) = plan(MB(5), MB(4), MB(100)) else { panic!() };
        assert_eq!(size.get() / 10_000, 397);
        assert_eq!(plan(MB(50), MB(4), MB(4)), BufferPolicy::Ask(MB(4)));
    }

    #[test]
    fn the_buffer_is_not_set_below_the_autotuning_limit() {
        assert_eq!(plan(MB(5), MB(4), MB(2)), BufferPolicy::Leave);
    }
}
