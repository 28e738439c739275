use std::io;
use std::os::fd::{AsFd, AsRawFd};

use super::PacketPort;
use super::offload::{Offload, VNET_HEADER_BYTES};
use crate::check;

/// The most frames that one call of [`PacketPort::send`] sends.
pub const MAX_BATCH_FRAMES: usize = 32;

/// Whole Ethernet frames to be sent in one call, each in one or several parts.
#[derive(Debug, Default)]
pub struct FrameBatch<'a> {
    parts: Vec<&'a [u8]>,
    /// Each frame's first part, and the work that it leaves to the card.
    frames: Vec<(usize, Offload)>,
}

impl<'a> FrameBatch<'a> {
    /// Another frame, which begins with `part`. Only a port with offload passes on the work that it leaves to the card.
    pub fn push(&mut self, part: &'a [u8], offload: Offload) {
        self.frames.push((self.parts.len(), offload));
        self.parts.push(part);
    }

    /// The last frame goes on with `part`.
    pub fn extend(&mut self, part: &'a [u8]) {
        self.parts.push(part);
    }
}

impl PacketPort {
    /// Sends the first [`MAX_BATCH_FRAMES`] of `batch` in one system call. Returns how many the kernel took. An error
    /// concerns the first frame.
    pub fn send(&self, batch: &FrameBatch<'_>) -> io::Result<usize> {
        let count = batch.frames.len().min(MAX_BATCH_FRAMES);
        let mut headers = [[0; VNET_HEADER_BYTES]; MAX_BATCH_FRAMES];
        let mut vectors = Vec::with_capacity(batch.parts.len() + count);
        let mut begins = [0; MAX_BATCH_FRAMES + 1];
        for (number, header) in headers.iter_mut().enumerate().take(count) {
            let (first, offload) = batch.frames[number];
            let end = batch.frames.get(number + 1).map_or(batch.parts.len(), |next| next.0);
            if self.offloads() {
                *header = offload.to_vnet_header();
                vectors.push(vector(header));
            }
            vectors.extend(batch.parts[first..end].iter().map(|part| vector(part)));
            begins[number + 1] = vectors.len();
        }
        // SAFETY: mmsghdr is plain data for which zeros are a value.
        let mut messages: [libc::mmsghdr; MAX_BATCH_FRAMES] = unsafe { std::mem::zeroed() };
        let first = vectors.as_mut_ptr();
        for (message, ends) in messages.iter_mut().zip(begins.windows(2)).take(count) {
            message.msg_hdr.msg_iov = first.wrapping_add(ends[0]);
            message.msg_hdr.msg_iovlen = (ends[1] - ends[0]) as _;
        }
        // SAFETY: the first `count` messages point at vectors, and these at headers and parts, that outlive the call.
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

/// sendmmsg only reads through this pointer.
fn vector(bytes: &[u8]) -> libc::iovec {
    libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() }
}
