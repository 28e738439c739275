use std::fmt::Write;

use super::LinearScale;

/// The time axis below a stack of panels: ticks in seconds from `y` down.
pub fn time_axis(x: &LinearScale, y: f64) -> String {
    let mut svg = String::new();
    let ticks = x.ticks(6);
    let last = ticks.len().saturating_sub(1);
    for (i, &t) in ticks.iter().enumerate() {
        let at = x.at(t);
        let unit = if i == last { " s" } else { "" };
        let _ = write!(
            svg,
            r#"<path class="tick" d="M{at:.1} {y:.1}v4"/><text class="num" x="{at:.1}" y="{:.1}" text-anchor="middle">{}{unit}</text>"#,
            y + 15.0,
            number(t),
        );
    }
    svg
}

/// A tick's value without trailing zeros.
pub fn number(value: f64) -> String {
    let text = format!("{value:.3}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}
