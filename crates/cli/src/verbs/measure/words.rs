//! Numbers as words.

use std::fmt::Display;

/// A value rounded to about three digits; zero has no unit.
pub fn short(value: impl Display) -> String {
    let text = value.to_string();
    let (number, unit) = text.split_at(text.find(' ').unwrap_or(text.len()));
    let Ok(number) = number.parse::<f64>() else { return text };
    if number == 0.0 {
        return "0".to_owned();
    }
    let digits = match number {
        n if n >= 100.0 => 0,
        n if n >= 10.0 => 1,
        _ => 2,
    };
    format!("{number:.digits$}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_three_digits_with_and_without_a_unit() {
        for (value, words) in
            [("989088.38", "989088"), ("12.345 ms", "12.3 ms"), ("1.5 MB", "1.50 MB")]
        {
            assert_eq!(short(value), words);
        }
        assert_eq!(short("drop-tail"), "drop-tail");
    }
}
