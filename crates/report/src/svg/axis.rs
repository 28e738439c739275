use std::fmt::Write;

use sweetspot_units::{Significant, grouped};

use super::LinearScale;

/// The time axis below a stack of panels: ticks in seconds, starting at the height `y`.
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

/// A value without trailing zeros.
pub fn number(value: f64) -> String {
    rounded(value, 3)
}

/// A value beyond a frame with its `unit`: short, because only its size matters.
pub fn far_value(value: f64, unit: &str) -> String {
    let (value, unit) = match unit {
        "kB" if value >= 1e6 => (value / 1e6, "GB"),
        "kB" if value >= 1e3 => (value / 1e3, "MB"),
        "MB" if value >= 1e3 => (value / 1e3, "GB"),
        unit => (value, unit),
    };
    let number = match value {
        1e3.. => grouped(value.round() as u64),
        _ => Significant::<2>(value).to_string(),
    };
    format!("{number} {unit}").trim_end().to_owned()
}

/// The labels of ticks, with as many decimals as needed to distinguish them.
pub fn tick_words(ticks: &[f64]) -> Vec<String> {
    let steps = ticks.windows(2).map(|pair| (pair[1] - pair[0]).abs());
    let min = steps.fold(f64::INFINITY, f64::min);
    let decimals = if min > 0.0 && min.is_finite() { -min.log10().floor() } else { 0.0 };
    let decimals = (decimals as i64).clamp(3, 12) as usize;
    // An axis has room for labels of five digits.
    let long = ticks.iter().any(|tick| tick.abs() >= 1e5);
    let words = |tick: &f64| match tick.abs() {
        great if long && great >= 1e6 => format!("{}M", rounded(tick / 1e6, 3)),
        great if long && great >= 1e3 => format!("{}k", rounded(tick / 1e3, 3)),
        _ => rounded(*tick, decimals),
    };
    ticks.iter().map(words).collect()
}

fn rounded(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_beyond_a_frame_are_short_and_have_a_unit() {
        assert_eq!(far_value(1798.14, "kB"), "1.8 MB");
        assert_eq!(far_value(756.74, "kB"), "757 kB");
        assert_eq!(far_value(615_066.0, "packets"), "615,066 packets");
        assert_eq!(far_value(-3.21, "ms"), "-3.2 ms");
        assert_eq!(far_value(1.5, ""), "1.5");
    }

    #[test]
    fn tick_labels_are_short_and_distinct() {
        assert_eq!(tick_words(&[0.0, 20.0, 40.0]), ["0", "20", "40"]);
        assert_eq!(tick_words(&[19.305, 19.3055, 19.306]), ["19.305", "19.3055", "19.306"]);
        assert_eq!(tick_words(&[-0.0]), ["0"]);
        assert_eq!(tick_words(&[0.0, 1e5, 2e5]), ["0", "100k", "200k"]);
        assert_eq!(tick_words(&[10.0, 1e4, 2.5e6]), ["10", "10k", "2.5M"]);
        assert_eq!(tick_words(&[5e4, 6e4]), ["50000", "60000"]);
    }
}
