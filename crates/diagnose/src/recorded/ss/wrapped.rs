//! Joins lines that a terminal or `watch` broke at its width.

use std::borrow::Cow;

use super::{connection, is_account, looks_like_connection, stamp};

/// The lines of `text`, with the parts of each broken account joined.
pub fn lines(text: &str) -> impl Iterator<Item = Cow<'_, str>> {
    let mut rest = text.lines().peekable();
    std::iter::from_fn(move || {
        let mut parts = vec![rest.next()?];
        if is_account(parts[0]) {
            while let Some(part) = rest.next_if(|line| continues(line)) {
                parts.push(part);
            }
        }
        Some(if parts.len() == 1 { Cow::Borrowed(parts[0]) } else { Cow::Owned(joined(&parts)) })
    })
}

/// Whether `line` continues an account. ss begins an account with a tab. A single space may separate two words
/// at the break.
fn continues(line: &str) -> bool {
    let indented = line.starts_with('\t') || line.starts_with("  ");
    let is_value = |word: &str| {
        let value = word.split_once(':').filter(|(name, _)| {
            name.chars().all(|c| c.is_ascii_lowercase() || c == '_' || c.is_ascii_digit())
        });
        value.is_some_and(|(_, value)| value.starts_with(|c: char| c.is_ascii_digit() || c == '('))
    };
    !indented
        && line.split_whitespace().any(is_value)
        && stamp::strip(line).0.is_none()
        && connection(line).is_none()
        && !looks_like_connection(line)
}

/// The parts of a line, without the breaks. A part shorter than the width lost the space at its end.
fn joined(parts: &[&str]) -> String {
    let columns = |part: &str| part.chars().map(|c| if c == '\t' { 8 } else { 1 }).sum::<usize>();
    let width = parts.iter().map(|part| columns(part)).max().unwrap_or(0);
    let mut line = String::new();
    for part in parts {
        line += part;
        if columns(part) < width {
            line.push(' ');
        }
    }
    line
}
