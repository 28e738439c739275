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
