use sweetspot_units::Time;

use super::Link;

/// A packet as it was captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// When, since 1970.
    pub time: Time,
    /// The link layer of the first header.
    pub link: Link,
    /// The captured bytes.
    pub bytes: &'a [u8],
    /// Its length on the wire.
    pub length: usize,
}
