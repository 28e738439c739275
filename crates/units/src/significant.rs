use core::fmt;

/// A number with at most `DIGITS` significant digits and no trailing zeros. It keeps all digits before the decimal
/// point.
///
/// ```
/// use sweetspot_units::Significant;
///
/// let three = |number| Significant::<3>(number).to_string();
/// assert_eq!([12_345.6, 1.2345, 0.012_345, 2.0].map(three), ["12346", "1.23", "0.0123", "2"]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Significant<const DIGITS: usize>(pub f64);

/// For numbers near one, further decimals of an `f64` carry no information.
const MAX_DECIMALS: i32 = 17;

impl<const DIGITS: usize> fmt::Display for Significant<DIGITS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let behind_first = DIGITS.saturating_sub(1);
        // The exponent after rounding: 9.996 with three digits is 10.0.
        let rounded = format!("{:.behind_first$e}", self.0);
        let exponent = rounded.split_once('e').and_then(|(_, exponent)| exponent.parse().ok());
        let decimals = (behind_first as i32 - exponent.unwrap_or(0)).clamp(0, MAX_DECIMALS);
        let mut text = format!("{:.*}", decimals as usize, self.0);
        if text.contains('.') {
            text.truncate(text.trim_end_matches('0').trim_end_matches('.').len());
        }
        f.pad(&text)
    }
}

/// `number` rounded to `digits` significant digits.
///
/// ```
/// assert_eq!([1214.0, 0.016_53, 0.0].map(|n| sweetspot_units::rounded(n, 2)), [1200.0, 0.017, 0.0]);
/// ```
pub fn rounded(number: f64, digits: usize) -> f64 {
    format!("{number:.*e}", digits.saturating_sub(1)).parse().unwrap_or(number)
}

/// A share in per cent, with the number of decimals given by the format's precision, or none.
///
/// ```
/// use sweetspot_units::Percent;
///
/// assert_eq!(format!("{} or {:.1}", Percent(0.123), Percent(0.123)), "12 % or 12.3 %");
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Percent(pub f64);

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.*} %", f.precision().unwrap_or(0), self.0 * 100.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_up_to_a_new_digit_keeps_the_requested_precision() {
        let three = |number| Significant::<3>(number).to_string();
        assert_eq!([9.996, 99.96, 999.6].map(three), ["10", "100", "1000"]);
        assert_eq!([-9.996, -0.5, 0.0].map(three), ["-10", "-0.5", "0"]);
    }

    #[test]
    fn rounding_artefacts_vanish_and_small_numbers_keep_their_digits() {
        let six = |number| Significant::<6>(number).to_string();
        let numbers = [0.300_000_000_000_000_04, 1.234_567_8e-9, 1e-300];
        assert_eq!(numbers.map(six), ["0.3", "0.00000000123457", "0"]);
        assert_eq!([f64::NAN, f64::INFINITY].map(six), ["NaN", "inf"]);
    }
}
