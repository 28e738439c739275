//! One colour per variant, told apart by colour-blind eyes too: Okabe and Ito, "Color
//! Universal Design" (2008). Their yellow is left out (too pale on white); the blue and the
//! grey are lighter on a dark page.

/// On a light page, on a dark page.
const PALETTE: [(&str, &str); 7] = [
    ("#009e73", "#17b890"), // bluish green
    ("#cc79a7", "#d992b8"), // reddish purple
    ("#56b4e9", "#56b4e9"), // sky blue
    ("#e69f00", "#e69f00"), // orange
    ("#d55e00", "#f0742a"), // vermilion
    ("#0072b2", "#4a9fd8"), // blue
    ("#6b6b6b", "#a3a3a3"), // black, softened
];

/// The CSS class that colours the n-th variant; after seven they repeat.
pub fn class(variant: usize) -> String {
    format!("c{}", variant % PALETTE.len())
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
