use std::array;
use std::io::{self, IoSlice};

use rustix::net::{MMsgHdr, SendAncillaryBuffer, SendFlags, sendmmsg};

use super::PacketPort;
use super::offload::{Offload, VNET_HEADER_BYTES};

/// The maximum number of frames that one call of [`PacketPort::send`] sends.
pub const MAX_BATCH_FRAMES: usize = 32;

/// Whole Ethernet frames to be sent in one call, each in one or more parts.
#[derive(Debug, Default)]
pub struct FrameBatch<'a> {
    parts: Vec<&'a [u8]>,
    /// The index of each frame's first part, and the work that the frame leaves to the card.
    frames: Vec<(usize, Offload)>,
}

impl<'a> FrameBatch<'a> {
    /// Adds a frame, which begins with `part`. Only a port with offload passes `offload` on to the card.
    pub fn push(&mut self, part: &'a [u8], offload: Offload) {
        self.frames.push((self.parts.len(), offload));
        self.parts.push(part);
    }

    /// Appends `part` to the last frame.
    pub fn extend(&mut self, part: &'a [u8]) {
        self.parts.push(part);
    }
}

impl PacketPort {
    /// Sends the first [`MAX_BATCH_FRAMES`] of `batch` in one system call. Returns how many the kernel accepted. An
    /// error concerns the first frame.
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
                vectors.push(IoSlice::new(header));
            }
            vectors.extend(batch.parts[first..end].iter().map(|part| IoSlice::new(part)));
            begins[number + 1] = vectors.len();
        }
        let mut controls: [_; MAX_BATCH_FRAMES] =
            array::from_fn(|_| SendAncillaryBuffer::default());
        let frames = begins.windows(2).map(|ends| &vectors[ends[0]..ends[1]]).take(count);
        let messages = frames.zip(&mut controls).map(|(parts, none)| MMsgHdr::new(parts, none));
        let mut messages: Vec<_> = messages.collect();
        Ok(sendmmsg(self, &mut messages, SendFlags::DONTWAIT)?)
    }
}
