use core::fmt;
use core::str::FromStr;

use crate::UnitError;
use crate::notation::Notation;

/// A probability, from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct Probability(f64);

const NOTATION: Notation = Notation {
    quantity: "probability",
    examples: "0, 1e-5, 0.02, 2%",
    units: &[("", 1.0), ("%", 0.01)],
};

impl Probability {
    /// Probability zero.
    pub const ZERO: Probability = Probability(0.0);

    /// Probability one half.
    pub const HALF: Probability = Probability(0.5);

    /// The probability `p`; `None` unless it is between 0 and 1.
    pub fn new(p: f64) -> Option<Probability> {
        (0.0..=1.0).contains(&p).then_some(Probability(p))
    }

    /// The probability as a number between 0 and 1.
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl FromStr for Probability {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Probability, UnitError> {
        let (value, unit) = NOTATION.split(text)?;
        let Some((_, scale)) = NOTATION.units.iter().find(|(name, _)| *name == unit) else {
            return Err(NOTATION.error(text, NOTATION.unknown(unit)));
        };
        Probability::new(value * scale)
            .ok_or_else(|| NOTATION.error(text, "it must be between 0 and 1"))
    }
}

impl fmt::Display for Probability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Moves the decimal point by two places, because 0.07 times 100 is 7.000000000000001.
        let percent: f64 = format!("{:e}", self.0)
            .split_once('e')
            .and_then(|(digits, power)| {
                format!("{digits}e{}", power.parse::<i32>().ok()? + 2).parse().ok()
            })
            .unwrap_or(self.0 * 100.0);
        f.pad(&format!("{percent} %"))
    }
}
