//! The window scale option: RFC 7323 §2, its choice by Linux, and its granularity.

use sweetspot_units::Bytes;

use crate::error::require;
use crate::{Result, TheoryError};

/// The largest value of the header's window field.
const MAX_FIELD: u64 = 65_535;

/// The shift of a window, 0 to 14 (RFC 7323 §2.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct WindowScale(u8);

impl WindowScale {
    /// No scaling: the largest window is 65,535 B.
    pub const NONE: WindowScale = WindowScale(0);

    // RFC 7323 §2.3: at most 14.
    /// A shift of `bits`.
    ///
    /// # Errors
    /// If `bits` exceeds 14.
    pub fn new(bits: u8) -> Result<WindowScale> {
        require(bits <= 14, "window scale", bits, "0 to 14 (RFC 7323 section 2.3)")?;
        Ok(WindowScale(bits))
    }

    /// The smallest scale that can advertise `window`.
    ///
    /// # Errors
    /// If `window` exceeds 65,535 x 2^14, TCP's largest window.
    pub fn for_window(window: Bytes) -> Result<WindowScale> {
        let fits = |bits: &u8| window.get() <= MAX_FIELD << bits;
        (0..=14).find(fits).map(WindowScale).ok_or_else(|| TheoryError::OutOfDomain {
            quantity: "window",
            given: window.to_string(),
            wanted: "1,073,725,440 B at most (RFC 7323)",
        })
    }

    // Linux net/ipv4/tcp_output.c, tcp_select_initial_window(): the scale that covers
    // max(tcp_rmem[2], rmem_max), limited by the clamp if one is set before the handshake.
    /// The scale that a Linux receiver offers. A clamp set before the handshake lowers it for the
    /// whole connection.
    pub fn of_linux(tcp_rmem_max: Bytes, rmem_max: Bytes, clamp: Option<Bytes>) -> WindowScale {
        let space = tcp_rmem_max.max(rmem_max).min(clamp.unwrap_or(Bytes::MAX));
        // clamp(ilog2(space) - 15, 0, 14)
        let log = space.get().checked_ilog2().unwrap_or(0);
        WindowScale(log.saturating_sub(15).min(14) as u8)
    }

    /// The shift in bits.
    pub const fn bits(self) -> u8 {
        self.0
    }

    // High Bandwidth TCP Queuing §6.3.
    /// The largest window that can be advertised.
    pub const fn largest_window(self) -> Bytes {
        Bytes::new(MAX_FIELD << self.0)
    }

    // High Bandwidth TCP Queuing §6.3.
    /// The step between two windows that can be advertised.
    pub const fn granularity(self) -> Bytes {
        Bytes::new(1 << self.0)
    }

    // Linux __tcp_select_window(): rounded up to a multiple of the step.
    /// The window that a peer sees if a receiver wants to offer `window`.
    pub fn advertised(self, window: Bytes) -> Bytes {
        let step = self.granularity().get();
        let up = window.get().div_ceil(step).saturating_mul(step);
        Bytes::new(up).min(self.largest_window())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_bit_doubles_the_largest_window_and_the_step() {
        for bits in 0..14 {
            let (a, b) = (WindowScale(bits), WindowScale(bits + 1));
            assert_eq!(b.largest_window(), a.largest_window() * 2);
            assert_eq!(b.granularity(), a.granularity() * 2);
        }
    }

    #[test]
    fn the_smallest_scale_that_fits_is_chosen() {
        let scale = |w| WindowScale::for_window(Bytes::new(w)).unwrap().bits();
        assert_eq!([0, 65_535, 65_536, 131_070, 131_071].map(scale), [0, 0, 1, 1, 2]);
        assert_eq!(scale(65_535 << 14), 14);
        assert!(WindowScale::for_window(Bytes::new((65_535 << 14) + 1)).is_err());
    }

    #[test]
    fn linux_covers_its_largest_buffer() {
        // tcp_rmem[2] = 6 MiB = 2^22.58: 22 - 15 = 7, Linux's well-known default scale.
        let rmem = Bytes::new(6_291_456);
        let small = Bytes::new(212_992);
        assert_eq!(WindowScale::of_linux(rmem, small, None).bits(), 7);
        // A clamp of 60,000 before the handshake: no scaling for the whole connection.
        assert_eq!(WindowScale::of_linux(rmem, small, Some(Bytes::new(60_000))).bits(), 0);
        assert_eq!(WindowScale::of_linux(Bytes::MAX, small, None).bits(), 14);
        assert_eq!(WindowScale::of_linux(Bytes::ZERO, Bytes::ZERO, None).bits(), 0);
    }

    #[test]
    fn windows_are_rounded_up_to_the_step() {
        // 150,000 at scale 10: ceil(146.48) = 147 * 1024 = 150,528, as measured on Linux 6.18.
        let scale = WindowScale::new(10).unwrap();
        assert_eq!(scale.advertised(Bytes::new(150_000)), Bytes::new(150_528));
        assert_eq!(WindowScale::NONE.advertised(Bytes::new(70_000)), Bytes::new(65_535));
    }

    #[test]
    fn a_shift_of_fifteen_is_rejected() {
        assert!(WindowScale::new(15).is_err());
    }
}
