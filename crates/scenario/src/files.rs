//! The files named by a scenario.

use std::fmt::{Display, Write};
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::ScenarioError;
use crate::tree::{line_at, syntax_error_of};

/// Replaces each trace's file in `text` by its content: `file = "lte.trace"` becomes `content = "..."` on the same line.
/// `read` returns the content of the file with the given name, or the reason why it cannot.
///
/// # Errors
/// If the text is not TOML, or a file cannot be read.
pub fn with_files<E: Display>(
    text: &str,
    read: impl Fn(&str) -> Result<String, E>,
) -> Result<String, ScenarioError> {
    let document = DeTable::parse(text).map_err(|error| syntax_error_of(text, &error))?;
    let path = document.get_ref().get("path").and_then(|path| path.get_ref().as_table());
    let traces = path.and_then(|path| path.get("trace"));
    let mut named: Vec<(Range<usize>, Range<usize>, &str)> = Vec::new();
    let tables: Vec<&DeTable<'_>> = match traces.map(Spanned::get_ref) {
        Some(DeValue::Array(entries)) => {
            entries.iter().filter_map(|entry| entry.get_ref().as_table()).collect()
        }
        Some(DeValue::Table(table)) => vec![table],
        _ => Vec::new(),
    };
    for (key, value) in tables.iter().flat_map(|table| table.iter()) {
        if let (true, DeValue::String(name)) = (key.get_ref() == "file", value.get_ref()) {
            named.push((key.span(), value.span(), name));
        }
    }
    named.sort_by_key(|(key, ..)| key.start);
    let (mut found, mut copied) = (String::with_capacity(text.len()), 0);
    for (key, value, name) in named {
        let content = read(name).map_err(|reason| {
            let (origin, key) = (line_at(text, key.start), "path.trace.file".to_owned());
            let (given, reason) = (format!("\"{name}\""), reason.to_string());
            ScenarioError::Value { origin, key, given, reason }
        })?;
        found.push_str(&text[copied..key.start]);
        found.push_str("content");
        found.push_str(&text[key.end..value.start]);
        // Writing to a String cannot fail. A basic TOML string keeps the content on one line.
        let _ = write!(found, "\"");
        for letter in content.chars() {
            let _ = match letter {
                '"' | '\\' => write!(found, "\\{letter}"),
                '\n' => write!(found, "\\n"),
                letter if letter.is_control() => write!(found, "\\u{:04X}", u32::from(letter)),
                letter => write!(found, "{letter}"),
            };
        }
        found.push('"');
        copied = value.end;
    }
    found.push_str(&text[copied..]);
    Ok(found)
}
