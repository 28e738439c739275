//! A transfer and its path: Jain, Prasad and Dovrolis, "The TCP Bandwidth-Delay Product
//! revisited" (called SOBAS below, after its mechanism).

pub mod elephants;
pub mod mice;
pub mod saturation;
pub mod sawtooth;
pub mod six_bdps;
pub mod unresponsive;
pub mod window;

use sweetspot_units::{Bytes, Duration, Rate};

use crate::Result;
use crate::error::require;

/// A path's structural characteristics (SOBAS §II): capacity C, minimum RTT T_m, and the
/// drop-tail buffer B_t of its tight link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Path {
    capacity: Rate,
    minimum_rtt: Duration,
    buffer: Bytes,
}

impl Path {
    /// A path with `capacity` C, `minimum_rtt` T_m and tight-link `buffer` B_t, which may be zero.
    ///
    /// # Errors
    /// If the capacity or the RTT is zero.
    pub fn new(capacity: Rate, minimum_rtt: Duration, buffer: Bytes) -> Result<Path> {
        require(capacity > Rate::ZERO, "capacity", capacity, "it must be above zero")?;
        require(minimum_rtt > Duration::ZERO, "RTT", minimum_rtt, "it must be above zero")?;
        Ok(Path { capacity, minimum_rtt, buffer })
    }

    /// The capacity C.
    pub fn capacity(&self) -> Rate {
        self.capacity
    }

    /// The minimum RTT T_m.
    pub fn minimum_rtt(&self) -> Duration {
        self.minimum_rtt
    }

    /// The drop-tail buffer B_t of the tight link.
    pub fn buffer(&self) -> Bytes {
        self.buffer
    }

    // SOBAS §II, BDP_1.
    /// The bandwidth-delay product, C T_m.
    pub fn bdp(&self) -> Bytes {
        self.capacity * self.minimum_rtt
    }

    // SOBAS §IV.
    /// Whether B_t < C T_m: then a loss-driven sawtooth sometimes leaves the link idle.
    pub fn is_under_buffered(&self) -> bool {
        self.buffer < self.bdp()
    }
}
