//! Buffers computed from two others.

use sweetspot_theory::{Packets, TheoryError};

/// Interpolates geometrically from `one` (share 0) to `other` (share 1).
pub(super) fn between(other: Packets, one: Packets, share: f64) -> Result<Packets, TheoryError> {
    Packets::new(one.get() * libm::pow(other.get() / one.get(), share))
}

/// The larger of two buffers.
pub(super) fn larger(one: Packets, other: Packets) -> Packets {
    if one > other { one } else { other }
}
