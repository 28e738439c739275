//! Quantities in the form that sentences use.

use sweetspot_units::{Bytes, Duration, Rate, grouped};

/// `n` followed by the noun, `one` in the singular and `more` in the plural.
pub fn counted(n: u64, one: &str, more: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { more })
}

/// The number of times in words, after `what`; empty for zero.
pub(crate) fn times(what: &str, n: u64) -> String {
    match n {
        0 => String::new(),
        1 => format!("{what} once"),
        2 => format!("{what} twice"),
        n => format!("{what} {n} times"),
    }
}

/// Exact bytes with thousands separators below 100,000, larger units from there on. Every unscaled
/// window is exact.
pub(crate) fn in_bytes(bytes: Bytes) -> String {
    const MAX_EXACT_BYTES: Bytes = Bytes::new(100_000);
    match bytes.get() {
        1 => "1 byte".to_owned(),
        n if bytes < MAX_EXACT_BYTES => format!("{} bytes", grouped(n)),
        _ => bytes.to_string(),
    }
}

/// A rate as in sentences.
pub fn in_rate(rate: Rate) -> String {
    let mbit = rate.as_f64() / 1e6;
    match mbit {
        m if m >= 100.0 => format!("{m:.0} Mbit/s"),
        m if m >= 1.0 => format!("{m:.1} Mbit/s"),
        m if m >= 0.001 => format!("{:.0} kbit/s", m * 1000.0),
        m => format!("{:.0} bit/s", m * 1e6),
    }
}

/// A time in milliseconds, or microseconds below one.
pub(crate) fn ms(time: Duration) -> String {
    match time.as_secs_f64() * 1e3 {
        m if m >= 10.0 => format!("{m:.0} ms"),
        m if m >= 1.0 => format!("{m:.1} ms"),
        m => format!("{:.0} us", m * 1000.0),
    }
}

/// A time in seconds, or milliseconds below one.
pub(crate) fn seconds(s: f64) -> String {
    match s {
        s if s >= 100.0 => format!("{s:.0} s"),
        s if s >= 1.0 => format!("{s:.1} s"),
        s => format!("{:.0} ms", s * 1e3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_up_to_65535_bytes_are_printed_exactly() {
        let printed = [1, 627, 65_535, 100_000, 1_097_216].map(|n| in_bytes(Bytes::new(n)));
        assert_eq!(printed, ["1 byte", "627 bytes", "65,535 bytes", "100 kB", "1.097 MB"]);
    }
}
