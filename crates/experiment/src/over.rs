use sweetspot_units::{Bytes, Duration, Rate, Significant};
use thiserror::Error;

/// A key of a scenario and its values, as written: `KEY=VALUES`.
///
/// VALUES is a list with commas. An entry is a value in the scenario's notation, or a range
/// `FIRST..LAST:log:COUNT` or `FIRST..LAST:lin:COUNT`. A range includes both ends, has one unit
/// (`50pkt..2000pkt:log:12`), and may have words before the numbers (`fixed:50pkt..fixed:2000pkt:log:12`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Over {
    /// The key, in the form that [`Scenario::parse_with`](sweetspot_scenario::Scenario::parse_with) accepts.
    pub key: String,
    /// The distinct values, in the order written.
    pub values: Vec<String>,
}

/// The reason why the keys to sweep are invalid, separately or together.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SweepError {
    /// The text is not of the form `KEY=VALUES`.
    #[error("{0}: write it like path.buffer=313pkt,625pkt or path.buffer=50pkt..2000pkt:log:12")]
    Shape(String),
    /// An invalid range.
    #[error("{key}={range}: {reason}; write a range like 50pkt..2000pkt:log:12")]
    Range {
        /// The key.
        key: String,
        /// The range as written.
        range: String,
        /// The fault.
        reason: String,
    },
    /// A value occurs twice.
    #[error("{key}: {value} is given twice; keep one")]
    Twice {
        /// The key.
        key: String,
        /// The value.
        value: String,
    },
    /// A key is swept twice.
    #[error("{0} is swept twice; leave one of the two out")]
    SweptTwice(String),
    /// A key is both swept and set.
    #[error("{0} is given to both --over and --set; leave one of the two out")]
    SweptAndSet(String),
    /// The seed cannot be swept.
    #[error("seed: give the number of seeds instead, so that every variant meets the same seeds")]
    Seed,
}

/// Maximum number of values of one key.
const MAX_VALUES: usize = 1_000_000;

impl Over {
    /// Parses `KEY=VALUES`.
    pub fn parse(text: &str) -> Result<Over, SweepError> {
        let shape = || SweepError::Shape(text.to_owned());
        let (key, list) = text.split_once('=').ok_or_else(shape)?;
        let key = key.trim().to_owned();
        if key == "seed" {
            return Err(SweepError::Seed);
        }
        let mut values: Vec<String> = Vec::new();
        for entry in split(list) {
            let entry = entry.trim();
            if key.is_empty() || entry.is_empty() {
                return Err(shape());
            }
            let more = if entry.contains("..") { range(&key, entry)? } else { vec![entry.into()] };
            for value in more {
                if values.contains(&value) {
                    return Err(SweepError::Twice { key, value });
                }
                values.push(value);
            }
        }
        Ok(Over { key, values })
    }
}

/// Splits at commas, except within brackets: `[80ms, 120ms]` is one value.
fn split(list: &str) -> Vec<&str> {
    let (mut depth, mut start) = (0_i32, 0);
    let mut parts = Vec::new();
    for (at, letter) in list.char_indices() {
        match letter {
            '[' => depth += 1,
            ']' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&list[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&list[start..]);
    parts
}

/// The values of a range, rounded if the quantity is a whole number.
fn range(key: &str, text: &str) -> Result<Vec<String>, SweepError> {
    let wrong = |reason: &str| SweepError::Range {
        key: key.to_owned(),
        range: text.to_owned(),
        reason: reason.to_owned(),
    };
    let (first, rest) = text.split_once("..").unwrap_or((text, ""));
    let mut parts = rest.rsplitn(3, ':');
    let (Some(count), Some(scale), Some(last)) = (parts.next(), parts.next(), parts.next()) else {
        return Err(wrong("it needs a scale and a count"));
    };
    let count: usize = count.parse().map_err(|_| wrong("its count must be a whole number"))?;
    if !(2..=MAX_VALUES).contains(&count) {
        return Err(wrong("its count must be from 2 to 1000000"));
    }
    let (first, last) = (NumberWithUnit::read(first), NumberWithUnit::read(last));
    let (Some(first), Some(last)) = (first, last) else {
        return Err(wrong("both ends must be numbers with a unit"));
    };
    // The last end may omit the words before the number.
    if !(last.words.is_empty() || last.words == first.words) {
        return Err(wrong("its ends differ in the words before the number"));
    }
    let last = last.in_unit(first.unit).ok_or_else(|| {
        wrong("its ends differ in their units; give both the same, such as 0%..1%")
    })?;
    if first.number >= last.number {
        return Err(wrong("its first end must be below its last"));
    }
    let step = |i: usize| i as f64 / (count - 1) as f64;
    let at = |i: usize| match scale {
        "lin" => Ok(first.number + (last.number - first.number) * step(i)),
        "log" if first.number > 0.0 => {
            Ok(first.number * libm::pow(last.number / first.number, step(i)))
        }
        "log" => Err(wrong("a logarithmic range must begin above zero")),
        _ => Err(wrong("its scale must be log or lin")),
    };
    let whole = first.unit == "pkt" || first.unit == "B" || first.unit.is_empty();
    let mut values = Vec::with_capacity(count);
    for i in 0..count {
        let number = at(i)?;
        let is_inside = i > 0 && i + 1 < count;
        let number = if whole && first.number.fract() == 0.0 {
            Significant::<6>(number.round()).to_string()
        } else if scale == "log" && is_inside {
            // A logarithmic range needs no more digits to be even.
            Significant::<3>(number).to_string()
        } else {
            Significant::<6>(number).to_string()
        };
        let value = format!("{}{number}{}", first.words, first.unit);
        // After rounding, close values may be equal.
        if values.last() != Some(&value) {
            values.push(value);
        }
    }
    Ok(values)
}

/// Words, a number and a unit: `fixed:`, 50, `pkt`.
struct NumberWithUnit<'a> {
    words: &'a str,
    number: f64,
    unit: &'a str,
}

impl NumberWithUnit<'_> {
    fn read(text: &str) -> Option<NumberWithUnit<'_>> {
        let start = text.rfind(':').map_or(0, |colon| colon + 1);
        let (words, quantity) = text.split_at(start);
        let letter = |c: char| !(c.is_ascii_digit() || "+-._eE".contains(c));
        let end = quantity.find(letter).unwrap_or(quantity.len());
        let number: f64 = quantity[..end].replace('_', "").parse().ok()?;
        number.is_finite().then_some(NumberWithUnit { words, number, unit: &quantity[end..] })
    }

    /// The same quantity in another unit of bytes, rate or time; `None` if that unit measures something
    /// else.
    fn in_unit<'a>(&self, unit: &'a str) -> Option<NumberWithUnit<'a>> {
        let number = match self.unit == unit {
            true => self.number,
            false => self.number * ratio(self.unit, unit)?,
        };
        Some(NumberWithUnit { words: "", number, unit })
    }
}

/// Number of `to` units in one `from` unit.
fn ratio(from: &str, to: &str) -> Option<f64> {
    // The units' own parsers know them. Uses 1000 of each, because the smallest quantity is a whole number.
    let [from, to] = [from, to].map(|unit| format!("1000{unit}"));
    let bytes = |text: &str| text.parse::<Bytes>().ok().map(Bytes::as_f64);
    let rate = |text: &str| text.parse::<Rate>().ok().map(Rate::as_f64);
    let time = |text: &str| text.parse::<Duration>().ok().map(Duration::as_secs_f64);
    let of = |read: &dyn Fn(&str) -> Option<f64>| Some(read(&from)? / read(&to)?);
    of(&bytes).or_else(|| of(&rate)).or_else(|| of(&time))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Vec<String> {
        Over::parse(text).expect("it is well formed").values
    }

    #[test]
    fn a_list_splits_at_commas_outside_brackets() {
        assert_eq!(
            values("transfer.sizing=fixed:250pkt,sobas,drs"),
            ["fixed:250pkt", "sobas", "drs"]
        );
        assert_eq!(values("cross.rtt=[80ms, 120ms],100ms"), ["[80ms, 120ms]", "100ms"]);
    }

    #[test]
    fn ranges_include_both_ends_and_keep_their_unit() {
        // The ratio between steps is 10.
        assert_eq!(
            values("path.rate=1Mbit/s..1000Mbit/s:log:4"),
            ["1Mbit/s", "10Mbit/s", "100Mbit/s", "1000Mbit/s"]
        );
        assert_eq!(values("path.rtt=10ms..40ms:lin:4"), ["10ms", "20ms", "30ms", "40ms"]);
        assert_eq!(values("path.loss=0.1..0.3:lin:3"), ["0.1", "0.2", "0.3"]);
        // 50 x 40^(i/4): 125.7, 316.2, 795.3.
        assert_eq!(
            values("path.buffer=50pkt..2000pkt:log:5"),
            ["50pkt", "126pkt", "316pkt", "795pkt", "2000pkt"]
        );
        assert_eq!(
            values("transfer.sizing=sobas,fixed:10pkt..30pkt:lin:3"),
            ["sobas", "fixed:10pkt", "fixed:20pkt", "fixed:30pkt"]
        );
    }

    /// 50 kB x 40^(i/2) up to 2 MB = 2000 kB: 316.2 kB in the middle.
    #[test]
    fn range_ends_may_use_different_units_of_one_quantity() {
        let windows = "transfer.sizing=fixed:50kB..2MB:log:3";
        assert_eq!(values(windows), ["fixed:50kB", "fixed:316kB", "fixed:2000kB"]);
        assert_eq!(values("path.rate=500kbit/s..1Gbit/s:lin:2"), ["500kbit/s", "1000000kbit/s"]);
        assert_eq!(values("path.rtt=100us..1ms:lin:2"), ["100us", "1000us"]);
        assert!(Over::parse("path.rtt=1ms..1MB:log:3").is_err());
    }

    #[test]
    fn steps_that_round_to_the_same_number_appear_once() {
        assert_eq!(values("path.buffer=1pkt..3pkt:lin:9"), ["1pkt", "2pkt", "3pkt"]);
    }

    #[test]
    fn an_invalid_range_or_list_is_rejected_with_a_hint() {
        let error = |text: &str| Over::parse(text).expect_err(text).to_string();
        assert!(error("path.buffer").contains("write it like"));
        assert!(error("path.buffer=").contains("write it like"));
        assert!(error("path.buffer=2000pkt..50pkt:log:12").contains("first end must be below"));
        assert!(error("path.buffer=50pkt..2000B:log:12").contains("units"));
        assert!(error("path.buffer=0pkt..2000pkt:log:12").contains("above zero"));
        assert!(error("path.buffer=50pkt..2000pkt").contains("a scale and a count"));
        assert!(error("path.buffer=50pkt..2000pkt:log:1").contains("from 2 to 1000000"));
        assert!(error("path.buffer=50pkt..2000pkt:cubic:3").contains("log or lin"));
        assert!(error("path.buffer=5pkt,5pkt").contains("twice"));
        assert!(error("seed=1,2,3").contains("number of seeds"));
    }
}
