use sweetspot_units::{Duration, Rate, Volume};

/// The numbers in the values of a swept key, all in one unit.
#[derive(Debug, Clone, PartialEq)]
pub struct KeyNumbers {
    /// Their unit.
    pub unit: KeyUnit,
    /// One number per value; `None` for words such as `sobas`.
    pub numbers: Vec<Option<f64>>,
}

/// The unit of [`KeyNumbers`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyUnit {
    /// Packets.
    Packets,
    /// Bytes.
    Bytes,
    /// Bits per second.
    BitsPerSecond,
    /// Seconds.
    Seconds,
    /// None: counts and shares.
    Plain,
}

impl KeyNumbers {
    /// The numbers of `values` in a scenario's notation: 450 packets for `fixed:450pkt`. `None` if no value has a number, or if
    /// units have no common measure (packets and bytes).
    pub fn of<'a>(values: impl IntoIterator<Item = &'a str>) -> Option<KeyNumbers> {
        let read: Vec<Option<(KeyUnit, f64)>> = values.into_iter().map(quantity).collect();
        let known = || read.iter().flatten();
        // Zero needs no unit.
        let mut units =
            known().filter(|found| **found != (KeyUnit::Plain, 0.0)).map(|found| found.0);
        let unit = units.next().or(known().next().map(|found| found.0))?;
        if units.any(|other| other != unit) {
            return None;
        }
        Some(KeyNumbers { unit, numbers: read.iter().map(|read| read.map(|(_, n)| n)).collect() })
    }
}

fn quantity(value: &str) -> Option<(KeyUnit, f64)> {
    let (words, text) = value.rsplit_once(':').unwrap_or(("", value));
    if let Ok(number) = text.trim().parse::<f64>() {
        // After words the number is a version, as in `linux:6.15`.
        let is_plain = words.is_empty() && number.is_finite();
        return is_plain.then_some((KeyUnit::Plain, number));
    }
    if let Ok(volume) = text.parse::<Volume>() {
        return Some(match volume {
            Volume::Packets(count) => (KeyUnit::Packets, count as f64),
            Volume::Bytes(bytes) => (KeyUnit::Bytes, bytes.as_f64()),
        });
    }
    if let Ok(rate) = text.parse::<Rate>() {
        return Some((KeyUnit::BitsPerSecond, rate.as_f64()));
    }
    if let Ok(time) = text.parse::<Duration>() {
        return Some((KeyUnit::Seconds, time.as_secs_f64()));
    }
    let percent = text.strip_suffix('%').filter(|_| words.is_empty())?;
    let number: f64 = percent.trim().parse().ok()?;
    number.is_finite().then_some((KeyUnit::Plain, number * 0.01))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(values: &[&str]) -> Option<(KeyUnit, Vec<Option<f64>>)> {
        let found = KeyNumbers::of(values.iter().copied())?;
        Some((found.unit, found.numbers))
    }

    #[test]
    fn values_in_mixed_units_convert_to_one_unit() {
        use KeyUnit::{BitsPerSecond, Bytes, Packets, Plain, Seconds};
        let some = |values: &[f64]| values.iter().copied().map(Some).collect::<Vec<_>>();
        let all: [(&[&str], KeyUnit, &[f64]); 6] = [
            (&["50pkt", "2000pkt"], Packets, &[50.0, 2000.0]),
            (&["100kB", "1MB", "64KiB"], Bytes, &[1e5, 1e6, 65_536.0]),
            (&["500kbit/s", "1Gbit/s"], BitsPerSecond, &[5e5, 1e9]),
            (&["20ms", "1.5s"], Seconds, &[0.02, 1.5]),
            (&["0", "20ms"], Seconds, &[0.0, 0.02]),
            (&["0", "1e-5", "2%", "4"], Plain, &[0.0, 1e-5, 0.02, 4.0]),
        ];
        for (values, unit, expected) in all {
            assert_eq!(numbers(values), Some((unit, some(expected))), "{values:?}");
        }
    }

    #[test]
    fn words_have_no_number_and_packets_do_not_mix_with_bytes() {
        assert_eq!(
            numbers(&["sobas", "fixed:450pkt"]),
            Some((KeyUnit::Packets, vec![None, Some(450.0)]))
        );
        for none in [&["max", "linux:6.15", "[80ms, 120ms]", "inf"][..], &["10pkt", "15kB"]] {
            assert_eq!(numbers(none), None, "{none:?}");
        }
    }
}
