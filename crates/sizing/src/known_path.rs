use sweetspot_units::{Bytes, Duration, Rate};

/// What a static scheme must be told of the path, because it cannot find it out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownPath {
    /// Bottleneck rate on the wire: C.
    pub rate: Rate,
    /// Round-trip propagation: T_m.
    pub rtt: Duration,
}

impl KnownPath {
    /// C x T_m (BDP_1 of the SOBAS paper, section II).
    pub fn bdp(&self) -> Bytes {
        self.rate * self.rtt
    }
}
