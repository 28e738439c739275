//! Prose and tables of a chosen width.

use sweetspot_units::{Percent, Rate, parts_unit, rounded};

/// Wraps `text` into lines of at most `width` characters, each with a newline; lines after the first are indented. A number stays
/// on the line of its unit.
pub(crate) fn wrap(text: &str, width: usize, indent: usize) -> String {
    let lead = text.len() - text.trim_start().len();
    let mut out = String::new();
    let mut line = " ".repeat(lead);
    let mut empty = true;
    for part in unbroken(text) {
        if !empty && line.chars().count() + 1 + part.chars().count() > width {
            out.push_str(&line);
            out.push('\n');
            line = " ".repeat(indent);
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line.push_str(&part);
        empty = false;
    }
    out.push_str(&line);
    out.push('\n');
    out
}

/// `words` after a label of `columns`; further lines are indented by the same width.
pub(crate) fn labelled(columns: usize, name: &str, words: &str, width: usize) -> String {
    let folded = wrap(words, width.saturating_sub(columns), 0);
    let names = core::iter::once(name).chain(core::iter::repeat(""));
    names.zip(folded.lines()).map(|(name, line)| format!("{name:<columns$}{line}\n")).collect()
}

/// The words of `text`, with a number and its unit as one word.
fn unbroken(text: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match parts.last_mut() {
            Some(last) if parts_unit(last, word) => {
                last.push(' ');
                last.push_str(word);
            }
            _ => parts.push(word.to_owned()),
        }
    }
    parts
}

/// A table: `left` columns of words, then columns of numbers, each as wide as its widest cell.
pub(crate) fn table(left: usize, rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |c: usize| {
        rows.iter().filter_map(|r| r.get(c)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut out = String::new();
    for row in rows {
        let mut line = String::from(" ");
        for (c, cell) in row.iter().enumerate() {
            let pad = " ".repeat(widths[c] - cell.chars().count());
            let gap = if c == 0 { " " } else { "  " };
            let (before, after) = if c < left { ("", pad.as_str()) } else { (pad.as_str(), "") };
            line.push_str(&format!("{gap}{before}{cell}{after}"));
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// A row of a table.
pub(crate) fn row<const N: usize>(cells: [&dyn core::fmt::Display; N]) -> Vec<String> {
    cells.iter().map(|cell| cell.to_string()).collect()
}

/// A list of remarks under a heading; empty if there are none.
pub(crate) fn list(heading: &str, items: &[String], width: usize) -> String {
    if items.is_empty() {
        return String::new();
    }
    let lines: String = items.iter().map(|i| wrap(&format!("  - {i}"), width, 4)).collect();
    format!("\n{heading}:\n{lines}")
}

/// `rate` with its standard error, rounded to the significant digit of this error.
pub(crate) fn with_error(rate: Rate, error: Rate) -> String {
    let scales = [("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3), ("bit/s", 1.0)];
    let [number, error] = [rate, error].map(Rate::as_f64);
    let of = scales.into_iter().find(|(_, scale)| number >= *scale);
    let (unit, scale) = of.unwrap_or(("bit/s", 1.0));
    if error <= 0.0 {
        return rate.to_string();
    }
    let decimals = (-libm::floor(libm::log10(error / scale))).clamp(0.0, 3.0) as usize;
    format!("{:.decimals$} +- {:.decimals$} {unit}", number / scale, error / scale)
}

/// `number` to two significant digits, the precision of a few simulation runs.
pub(crate) fn two_digits(number: f64) -> f64 {
    rounded(number, 2)
}

/// `number` to three significant digits.
pub(crate) fn three_digits(number: f64) -> f64 {
    rounded(number, 3)
}

/// A share with few digits, in percent; a small one as a power of ten.
pub(crate) fn percent(p: Option<f64>) -> String {
    match p {
        None => "-".to_owned(),
        Some(0.0) => "0 %".to_owned(),
        Some(p) if p >= 1e-3 => format!("{:.2}", Percent(p)),
        Some(p) => format!("{:.1e}", p),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_breaks_between_words() {
        assert_eq!(wrap("one two three", 7, 2), "one two\n  three\n");
        assert_eq!(wrap("  - a bc", 6, 4), "  - a\n    bc\n");
        assert_eq!(wrap("unbreakable", 4, 0), "unbreakable\n");
    }

    #[test]
    fn a_number_and_its_unit_are_not_separated() {
        // "with 7.5 MB" has 11 characters.
        assert_eq!(wrap("with 7.5 MB of 60 ms", 10, 0), "with\n7.5 MB of\n60 ms\n");
        assert_eq!(wrap("with 7.5 MB of 60 ms", 11, 0), "with 7.5 MB\nof 60 ms\n");
    }

    #[test]
    fn labelled_text_wraps_beside_its_label() {
        assert_eq!(labelled(5, "use", "one two three", 12), "use  one two\n     three\n");
    }

    #[test]
    fn tables_right_align_numbers() {
        let rows = [row([&"a", &1]), row([&"bcd", &100])];
        assert_eq!(table(1, &rows), "  a      1\n  bcd  100\n");
    }

    #[test]
    fn a_zero_share_is_printed_without_an_exponent() {
        let shares = [None, Some(0.0), Some(1e-4), Some(0.0123)].map(percent);
        assert_eq!(shares, ["-", "0 %", "1.0e-4", "1.23 %"]);
    }

    #[test]
    fn the_standard_error_sets_the_number_of_digits() {
        let with = |bits: u64, error: u64| {
            with_error(Rate::from_bits_per_second(bits), Rate::from_bits_per_second(error))
        };
        assert_eq!(with(6_188_000, 143_000), "6.2 +- 0.1 Mbit/s");
        assert_eq!(with(541_300, 12_400), "541 +- 12 kbit/s");
        assert_eq!(with(541_300, 0), "541.3 kbit/s");
        assert_eq!([1214.0, 0.016_53, 0.0].map(two_digits), [1200.0, 0.017, 0.0]);
    }

    #[test]
    fn an_empty_list_prints_no_heading() {
        assert_eq!(list("Notes", &[], 80), "");
    }
}
