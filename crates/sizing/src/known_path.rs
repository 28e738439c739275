use sweetspot_units::{Bytes, Duration, Rate};

/// How long a path's parameters are kept (RFC 9040, "temporal sharing"). Routes last longer, cross traffic does not. (Linux
/// keeps its metrics for an hour.)
pub const PATH_LIFETIME: Duration = Duration::from_secs(300);

/// The properties of a path that a static scheme needs as input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownPath {
    /// Bottleneck rate on the wire: C.
    pub rate: Rate,
    /// Round-trip propagation: T_m.
    pub rtt: Duration,
    /// Available bandwidth before the transfer starts: A.
    pub available: Option<Rate>,
    /// Mean RTT before the transfer starts, with the queues of cross traffic: T_e.
    pub exogenous_rtt: Option<Duration>,
    /// Bulk transfer capacity, the throughput of a transfer limited only by congestion: BTC.
    pub bulk_capacity: Option<Rate>,
    /// Mean RTT during that transfer: T_a.
    pub loaded_rtt: Option<Duration>,
}

impl KnownPath {
    /// A path with only C and T_m known.
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
