use sweetspot_units::Time;

use super::Link;

/// A captured packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// The capture time since 1970.
    pub time: Time,
    /// The link layer of the first header.
    pub link: Link,
    /// The captured bytes.
    pub bytes: &'a [u8],
    /// The packet's length on the wire.
    pub length: usize,
}
