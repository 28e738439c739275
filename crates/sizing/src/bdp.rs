use core::fmt;

use sweetspot_units::{Bytes, Duration, Rate};

use crate::{KnownPath, SizingError};

/// The six readings of "bandwidth-delay product" (section II of the SOBAS paper).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BdpDefinition {
    /// `bdp1`: C x T_m.
    Bdp1,
    /// `bdp2`: C x T_e.
    Bdp2,
    /// `bdp3`: A x T_m.
    Bdp3,
    /// `bdp4`: A x T_e.
    Bdp4,
    /// `bdp5`: BTC x T_a.
    Bdp5,
    /// `bdp6`: larger than the largest congestion window, so never the limit.
    Bdp6,
}

const PATH_PROPERTIES: &str = "the path's rate and round-trip time describe it";
const MEASURED_BEFORE: &str = "it is measured on the path before the transfer starts";
const FIRST_PASS: &str = "it is measured in a first pass with sizing bdp6";

impl BdpDefinition {
    /// All six readings, in the paper's order.
    pub const ALL: [BdpDefinition; 6] = [
        BdpDefinition::Bdp1,
        BdpDefinition::Bdp2,
        BdpDefinition::Bdp3,
        BdpDefinition::Bdp4,
        BdpDefinition::Bdp5,
        BdpDefinition::Bdp6,
    ];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            BdpDefinition::Bdp1 => "bdp1",
            BdpDefinition::Bdp2 => "bdp2",
            BdpDefinition::Bdp3 => "bdp3",
            BdpDefinition::Bdp4 => "bdp4",
            BdpDefinition::Bdp5 => "bdp5",
            BdpDefinition::Bdp6 => "bdp6",
        }
    }

    /// The window on `path`; `None` for no limit. An error names the quantity that is missing
    /// and where it comes from.
    pub fn window(self, path: Option<&KnownPath>) -> Result<Option<Bytes>, SizingError> {
        let missing =
            |quantity, origin| SizingError::Missing { sizing: self.name(), quantity, origin };
        let capacity = || path.map(|p| p.rate).ok_or(missing("the capacity C", PATH_PROPERTIES));
        let minimum_rtt = || {
            path.map(|p| p.rtt).ok_or(missing("the minimum round-trip time T_m", PATH_PROPERTIES))
        };
        let available = || {
            path.and_then(|p| p.available)
                .ok_or(missing("the available bandwidth A", MEASURED_BEFORE))
        };
        let exogenous_rtt = || {
            path.and_then(|p| p.exogenous_rtt)
                .ok_or(missing("the exogenous round-trip time T_e", MEASURED_BEFORE))
        };
        let bulk_capacity = || {
            path.and_then(|p| p.bulk_capacity)
                .ok_or(missing("the bulk transfer capacity BTC", FIRST_PASS))
        };
        let loaded_rtt = || {
            path.and_then(|p| p.loaded_rtt)
                .ok_or(missing("the loaded round-trip time T_a", FIRST_PASS))
        };
        let product = |rate: Rate, rtt: Duration| Ok(Some(rate * rtt));
        match self {
            BdpDefinition::Bdp1 => product(capacity()?, minimum_rtt()?),
            BdpDefinition::Bdp2 => product(capacity()?, exogenous_rtt()?),
            BdpDefinition::Bdp3 => product(available()?, minimum_rtt()?),
            BdpDefinition::Bdp4 => product(available()?, exogenous_rtt()?),
            BdpDefinition::Bdp5 => product(bulk_capacity()?, loaded_rtt()?),
            BdpDefinition::Bdp6 => Ok(None),
        }
    }
}

impl fmt::Display for BdpDefinition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
