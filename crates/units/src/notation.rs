//! The notation that all quantities share: a decimal number followed by a unit.

use crate::{Significant, UnitError};

/// The units of one quantity in text.
pub(crate) struct Notation {
    pub quantity: &'static str,
    pub examples: &'static str,
    /// The spelling of each unit, and its size in the quantity's base unit.
    pub units: &'static [(&'static str, f64)],
}

impl Notation {
    pub(crate) fn error(&self, given: &str, reason: impl Into<String>) -> UnitError {
        UnitError {
            quantity: self.quantity,
            given: given.trim().to_owned(),
            reason: reason.into(),
            examples: self.examples,
        }
    }

    /// Splits `text` into its number and its unit; the number is finite and not negative.
    pub(crate) fn split<'a>(&self, text: &'a str) -> Result<(f64, &'a str), UnitError> {
        let trimmed = text.trim();
        let unit_at = unit_start(trimmed);
        let (number, unit) = trimmed.split_at(unit_at);
        let number = number.trim_end();
        if number.is_empty() {
            return Err(self.error(text, "it does not start with a number"));
        }
        let value: f64 = number
            .parse()
            .map_err(|_| self.error(text, format!("\"{number}\" is not a number")))?;
        if !value.is_finite() || value < 0.0 {
            return Err(self.error(text, "it must be a finite number, zero or more"));
        }
        Ok((value, unit.trim_start()))
    }

    /// Parses `text` in this notation and returns its value in base units.
    pub(crate) fn read(&self, text: &str) -> Result<f64, UnitError> {
        let (value, unit) = self.split(text)?;
        // Zero needs no unit.
        if unit.is_empty() && value == 0.0 {
            return Ok(value);
        }
        if unit.is_empty() {
            return Err(self.error(text, "it has no unit"));
        }
        match self.scale(unit) {
            Some(scale) => Ok(value * scale),
            None => Err(self.error(text, self.unknown(unit))),
        }
    }

    /// The size of `unit` in base units. Upper and lower case are equivalent if "bit" is written out; otherwise
    /// case distinguishes bits from bytes.
    fn scale(&self, unit: &str) -> Option<f64> {
        let exact = self.units.iter().find(|(name, _)| *name == unit);
        let written_out = || {
            let is_bit = unit.to_ascii_lowercase().contains("bit");
            self.units.iter().find(|(name, _)| is_bit && name.eq_ignore_ascii_case(unit))
        };
        exact.or_else(written_out).map(|(_, scale)| *scale)
    }

    /// The message that `unit` is unknown, with the units that were probably meant.
    pub(crate) fn unknown(&self, unit: &str) -> String {
        let lower = unit.to_ascii_lowercase();
        let alike = |name: &str| {
            let name = name.to_ascii_lowercase();
            // A single letter is the start of too many units.
            !lower.is_empty()
                && (name.starts_with(&lower) || (name.len() > 1 && lower.starts_with(&name)))
        };
        let mut meant: Vec<&str> = Vec::new();
        // Of several spellings with the same size, use the first, which is the preferred one.
        let mut sizes: Vec<f64> = Vec::new();
        for (name, size) in self.units {
            if alike(name) && !sizes.contains(size) {
                meant.push(name);
                sizes.push(*size);
            }
        }
        // A prefix of many units suggests nothing.
        const MAX: usize = 3;
        if meant.is_empty() || meant.len() > MAX {
            return format!("unknown unit \"{unit}\"");
        }
        format!("unknown unit \"{unit}\" (did you mean {}?)", meant.join(" or "))
    }

    /// Parses `text` and rounds it to an integer in base units, which must fit 64 bits.
    pub(crate) fn read_whole(&self, text: &str) -> Result<u64, UnitError> {
        let value = self.read(text)?.round();
        // With this limit (about 2^63), the sum of two such values fits into a u64.
        if value >= 9.2e18 {
            return Err(self.error(text, "it is too large"));
        }
        Ok(value as u64)
    }
}

/// The position at which the unit begins. An `e` belongs to the number only if digits follow it (1e-5), so that
/// a unit may begin with any letter.
fn unit_start(text: &str) -> usize {
    let b = text.as_bytes();
    let mut i = 0;
    while i < b.len() {
        let exponent_digit = |at: usize| b.get(at).is_some_and(u8::is_ascii_digit);
        match b[i] {
            b'0'..=b'9' | b'.' => i += 1,
            b'+' | b'-' if i == 0 => i += 1,
            b'e' | b'E' if i > 0 && exponent_digit(i + 1) => i += 2,
            b'e' | b'E'
                if i > 0 && matches!(b.get(i + 1), Some(b'+' | b'-')) && exponent_digit(i + 2) =>
            {
                i += 3;
            }
            _ => break,
        }
    }
    i
}

/// Prints `value` with the largest of `units` (largest first) that leaves at least 1 before the
/// decimal point, with up to four significant digits and no trailing zeros.
pub(crate) fn print(
    f: &mut core::fmt::Formatter<'_>,
    value: f64,
    units: &[(&str, f64)],
) -> core::fmt::Result {
    let (name, scale) = units
        .iter()
        .find(|(_, scale)| value >= *scale)
        .or(units.last())
        .copied()
        .unwrap_or(("", 1.0));
    f.pad(&format!("{} {name}", Significant::<4>(value / scale)))
}
