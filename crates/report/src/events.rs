//! The events of a controller in words, for a terminal and for pictures.

use sweetspot_units::Bytes;

/// The rise of a window, step by step through `windows`, the last of them at `end_s`; if it never rises, how often it was set.
pub fn rise_in_words(windows: &[f64], end_s: f64) -> String {
    let [from, to] = [windows.first(), windows.last()]
        .map(|window| Bytes::from_f64(window.copied().unwrap_or_default()));
    match windows.windows(2).filter(|pair| pair[0] < pair[1]).count() {
        0 => format!("{to}, {} times until {end_s:.3} s", windows.len()),
        1 => format!("from {from} to {to} at {end_s:.3} s"),
        steps => format!("from {from} to {to} in {steps} steps, until {end_s:.3} s"),
    }
}

/// The first of the events at one place, a line each, and the number of the others.
pub fn first_in_words(events: &[impl AsRef<str>]) -> String {
    /// The largest number of events in the text of one mark.
    const NAMED: usize = 4;
    let mut lines: Vec<&str> = events.iter().take(NAMED).map(AsRef::as_ref).collect();
    let others = match events.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!("and {more} more"),
    };
    lines.extend(Some(others.as_str()).filter(|words| !words.is_empty()));
    lines.join("\n")
}
