//! One colour per variant, distinguishable for colour-blind readers, too: Okabe and Ito, "Color
//! Universal Design" (2008). Their yellow is left out, because it is too pale on white. Orange and sky
//! blue are darker on a light page, and blue and grey are lighter on a dark one. Each line thus has a
//! contrast of 3:1 to its background (WCAG 2.2, 1.4.11). The first two colours, the most frequent
//! pair, differ most in lightness.

/// Each colour for a light page and for a dark page.
const PALETTE: [(&str, &str); 7] = [
    ("#005f9e", "#4a9fd8"), // blue
    ("#c28500", "#ffc04d"), // orange
    ("#009e73", "#17b890"), // bluish green
    ("#d55e00", "#f0742a"), // vermilion
    ("#c975a4", "#d992b8"), // reddish purple
    ("#2996d0", "#56b4e9"), // sky blue
    ("#6b6b6b", "#a3a3a3"), // black, softened
];

/// The CSS class for the colour of the n-th variant; colours repeat after seven.
pub fn class(variant: usize) -> String {
    format!("c{}", variant % PALETTE.len())
}

/// Whether a sizing is Sweetspot's own controller, which every picture draws boldest.
pub fn is_own(sizing: &str) -> bool {
    matches!(sizing, "sobas" | "sobas:live")
}

/// The colours on a light or a dark page, in the order of their classes.
pub fn tones(dark: bool) -> impl Iterator<Item = &'static str> {
    PALETTE.iter().map(move |(light, on_dark)| if dark { *on_dark } else { *light })
}

/// The CSS custom properties that the classes use.
pub fn style() -> String {
    let properties = |pick: fn(&(&'static str, &'static str)) -> &'static str| -> String {
        let one = |(i, both)| format!("--c{i}:{};", pick(both));
        PALETTE.iter().enumerate().map(one).collect()
    };
    let classes: String =
        (0..PALETTE.len()).map(|i| format!(".c{i}{{--own:var(--c{i})}}")).collect();
    format!(
        ":root{{{}}}@media(prefers-color-scheme:dark){{:root{{{}}}}}{classes}",
        properties(|c| c.0),
        properties(|c| c.1),
    )
}

#[cfg(test)]
mod tests {
    use super::PALETTE;

    /// Relative luminance (WCAG 2.2).
    fn luminance(tone: &str) -> f64 {
        let part = |at: usize| {
            let value = u8::from_str_radix(&tone[at..at + 2], 16).expect("two digits");
            let value = f64::from(value) / 255.0;
            if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5)
    }

    fn contrast(one: &str, other: &str) -> f64 {
        let (one, other) = (luminance(one), luminance(other));
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    #[test]
    fn black_on_white_has_the_wcag_contrast() {
        assert!((contrast("#000000", "#ffffff") - 21.0).abs() < 1e-9);
    }

    #[test]
    fn every_line_colour_contrasts_with_its_background() {
        for (light, dark) in PALETTE {
            // The darkest light background, and the lightest dark one.
            assert!(contrast(light, "#fafaf8") >= 3.0, "{light}: {}", contrast(light, "#fafaf8"));
            assert!(contrast(dark, "#1d1f23") >= 3.0, "{dark}");
        }
    }

    #[test]
    fn the_first_two_colours_differ_in_greyscale() {
        let [(light, dark), (other_light, other_dark), ..] = PALETTE;
        assert!(contrast(light, other_light) >= 1.6, "{}", contrast(light, other_light));
        assert!(contrast(dark, other_dark) >= 1.6, "{}", contrast(dark, other_dark));
    }
}
