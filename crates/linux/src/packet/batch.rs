use std::io;
use std::os::fd::{AsFd, AsRawFd};

use super::PacketPort;
use crate::check;

/// The most frames that one call of [`PacketPort::send`] sends.
pub const MAX_BATCH_FRAMES: usize = 32;

impl PacketPort {
    /// Sends the first [`MAX_BATCH_FRAMES`] of `frames`, which are whole Ethernet frames, in one system call. Returns
    /// how many the kernel took. An error concerns the first frame.
    pub fn send(&self, frames: &[&[u8]]) -> io::Result<usize> {
        let count = frames.len().min(MAX_BATCH_FRAMES);
        // SAFETY: both are plain data for which zeros are a value.
        let (mut parts, mut messages): (
            [libc::iovec; MAX_BATCH_FRAMES],
            [libc::mmsghdr; MAX_BATCH_FRAMES],
        ) = unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
        for ((frame, part), message) in frames.iter().zip(&mut parts).zip(&mut messages) {
            // sendmmsg only reads through this pointer.
            part.iov_base = frame.as_ptr().cast_mut().cast();
            part.iov_len = frame.len();
            message.msg_hdr.msg_iov = part;
            message.msg_hdr.msg_iovlen = 1;
        }
        // SAFETY: the first `count` messages point at parts, and these at frames, that outlive
        // the call.
        let sent = check(unsafe {
            libc::sendmmsg(
                self.as_fd().as_raw_fd(),
                messages.as_mut_ptr(),
                count as u32,
                libc::MSG_DONTWAIT as _,
            )
        })?;
        Ok(sent as usize)
    }
}
