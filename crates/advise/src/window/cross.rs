use core::fmt;
use core::str::FromStr;

use sweetspot_units::{Probability, Rate};

use crate::AdviceError;

/// The cross traffic on a path, as written on the command line: `udp:30%`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CrossShare {
    /// The kind of cross traffic.
    pub kind: CrossKind,
    /// The share of the capacity that it uses before the transfer starts.
    pub share: Probability,
}

/// Cross traffic, by how it reacts to queues and loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrossKind {
    /// Constant rate, without a reaction.
    Udp,
    /// Persistent transfers limited by their windows.
    Elephants,
    /// Many short transfers.
    Mice,
}

impl CrossShare {
    /// The available bandwidth that this cross traffic leaves on a link of `capacity`.
    pub fn available(&self, capacity: Rate) -> Rate {
        capacity.saturating_sub(capacity.scaled(self.share.get()))
    }
}

impl FromStr for CrossShare {
    type Err = AdviceError;

    fn from_str(text: &str) -> Result<CrossShare, AdviceError> {
        let wrong = || AdviceError::NotThat {
            given: text.to_owned(),
            wanted: "cross traffic",
            example: "udp:30%, elephants:30% or mice:30%",
        };
        let (kind, share) = text.split_once(':').ok_or_else(wrong)?;
        let kind = match kind.trim() {
            "udp" => CrossKind::Udp,
            "elephants" => CrossKind::Elephants,
            "mice" => CrossKind::Mice,
            _ => return Err(wrong()),
        };
        let share: Probability = share.parse().map_err(|_| AdviceError::NotThat {
            given: share.to_owned(),
            wanted: "a share of the rate",
            example: "30% or 0.3",
        })?;
        if share.get() >= 1.0 {
            return Err(AdviceError::Impossible {
                what: "cross traffic",
                given: text.to_owned(),
                why: "it leaves nothing; describe a path that is full already by its loss",
            });
        }
        Ok(CrossShare { kind, share })
    }
}

impl fmt::Display for CrossShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            CrossKind::Udp => "unresponsive (UDP)",
            CrossKind::Elephants => "elephant",
            CrossKind::Mice => "mice",
        };
        write!(f, "{:.0} % of {kind} cross traffic", self.share.get() * 100.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cross_traffic_parses_as_kind_and_share() {
        let cross: CrossShare = "elephants:70%".parse().unwrap();
        assert_eq!(cross.kind, CrossKind::Elephants);
        // 50 Mbit/s less 70 %: 15 Mbit/s.
        assert_eq!(cross.available(Rate::from_mbit_per_second(50)), Rate::from_mbit_per_second(15));
    }

    #[test]
    fn unknown_kinds_and_shares_of_100_percent_are_rejected() {
        for wrong in ["", "udp", "udp:", "cats:10%", "udp:100%", "udp:-1%", "mice:x"] {
            assert!(wrong.parse::<CrossShare>().is_err(), "{wrong}");
        }
        let share = "udp:30".parse::<CrossShare>().unwrap_err().to_string();
        assert_eq!(share, "\"30\" is not a share of the rate; write it like 30% or 0.3");
    }
}
