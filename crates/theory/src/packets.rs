use core::fmt;

use sweetspot_units::Bytes;

use crate::Result;
use crate::error::require;

/// An amount of data in packets, finite and not negative. It need not be an integer: fluid models
/// use averages.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct Packets(f64);

impl Packets {
    /// No packets.
    pub const ZERO: Packets = Packets(0.0);

    /// `n` packets.
    ///
    /// # Errors
    /// If `n` is negative or not finite.
    pub fn new(n: f64) -> Result<Packets> {
        require(n.is_finite() && n >= 0.0, "packets", n, "a finite number, zero or more")?;
        Ok(Packets(n))
    }

    /// The number of packets of `packet` bytes in `amount`.
    ///
    /// # Errors
    /// If `packet` is empty.
    pub fn of(amount: Bytes, packet: Bytes) -> Result<Packets> {
        require(packet > Bytes::ZERO, "packet size", packet, "it must be 1 B or more")?;
        Ok(Packets(amount.as_f64() / packet.as_f64()))
    }

    /// The number of packets.
    pub const fn get(self) -> f64 {
        self.0
    }

    /// The amount in bytes, for packets of `packet` bytes.
    pub fn in_bytes(self, packet: Bytes) -> Bytes {
        packet.scaled(self.0)
    }
}

impl fmt::Display for Packets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = if self.0 < 100.0 { 1 } else { 0 };
        f.pad(&format!("{:.digits$} pkt", self.0))
    }
}
