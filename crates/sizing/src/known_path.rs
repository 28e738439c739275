use sweetspot_units::{Bytes, Duration, Rate};

/// What a static scheme must be told of the path, because it cannot find it out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownPath {
    /// Bottleneck rate on the wire: C.
    pub rate: Rate,
    /// Round-trip propagation: T_m.
    pub rtt: Duration,
    /// Available bandwidth before the transfer starts: A.
    pub available: Option<Rate>,
    /// Average round trip before the transfer starts, queues of others included: T_e.
    pub exogenous_rtt: Option<Duration>,
    /// Bulk transfer capacity, what a transfer limited by congestion alone gets: BTC.
    pub bulk_capacity: Option<Rate>,
    /// Average round trip with that transfer on the path: T_a.
    pub loaded_rtt: Option<Duration>,
}

impl KnownPath {
    /// A path of which only its structure is known.
    pub fn new(rate: Rate, rtt: Duration) -> KnownPath {
        KnownPath {
            rate,
            rtt,
            available: None,
            exogenous_rtt: None,
            bulk_capacity: None,
            loaded_rtt: None,
        }
    }

    /// C x T_m (BDP_1 of the SOBAS paper, section II).
    pub fn bdp(&self) -> Bytes {
        self.rate * self.rtt
    }
}
