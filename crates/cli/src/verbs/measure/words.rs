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

/// Both ends of an interval; an equal unit stands only at the end.
pub fn range(low: impl Display, high: impl Display) -> String {
    let (low, high) = (short(low), short(high));
    match (low.split_once(' '), high.split_once(' ')) {
        (Some((number, unit)), Some((_, other))) if unit == other => format!("{number} to {high}"),
        _ => format!("{low} to {high}"),
    }
}

/// Reasons, each with the things that it stands for.
#[derive(Debug, Default)]
pub struct Reasons<'a>(pub Vec<(&'a str, Vec<String>)>);

impl<'a> Reasons<'a> {
    pub fn add(&mut self, what: impl Into<String>, why: &'a str) {
        let what = what.into();
        match self.0.iter_mut().find(|(known, _)| *known == why) {
            Some((_, names)) if names.contains(&what) => {}
            Some((_, names)) => names.push(what),
            None => self.0.push((why, vec![what])),
        }
    }

    pub fn has(&self, why: &str) -> bool {
        self.0.iter().any(|(known, _)| *known == why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_names_a_common_unit_once() {
        assert_eq!(range("30 Mbit/s", "40 Mbit/s"), "30.0 to 40.0 Mbit/s");
        assert_eq!(range("950 us", "1.2 ms"), "950 us to 1.20 ms");
        assert_eq!(range("0 s", "1.2 ms"), "0 to 1.20 ms");
        assert_eq!(range(1.0, 2.5), "1.00 to 2.50");
    }

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
