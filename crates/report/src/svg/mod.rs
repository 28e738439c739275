//! Line charts as SVG text, so that the page needs no script to show them.

mod axis;
mod panel;
mod scale;
mod thin;

pub use axis::{far_value, number, tick_words, time_axis};
pub use panel::{Band, LineRun, Panel, ReferenceLine};
pub use scale::LinearScale;
pub use thin::thin_by;

/// Escapes text for SVG and HTML. Characters that XML forbids, and bidirectional controls, are replaced, because names in
/// results may come from anyone.
pub fn escape(text: &str) -> String {
    let text = text.replace(is_harmful, "\u{fffd}");
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Whether `c` is a control character (XML 1.0, section 2.2) or a bidirectional one (UAX 9, section 2).
fn is_harmful(c: char) -> bool {
    c.is_control() && !matches!(c, '\n' | '\t' | '\r')
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Replaces the subscripts in `text` (`T_m`: a letter, `_`, letters or digits) by the output of `typeset`.
pub fn subscripts(text: &str, typeset: impl Fn(char, &str) -> String) -> String {
    let mut out = String::new();
    let mut rest = text;
    let mut before = ' ';
    while let Some(base) = rest.chars().next() {
        let after = &rest[base.len_utf8()..];
        let below = after.strip_prefix('_').map_or("", |below| {
            let end = below.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(below.len());
            &below[..end]
        });
        if base.is_ascii_alphabetic() && !before.is_alphanumeric() && !below.is_empty() {
            out += &typeset(base, below);
            rest = &after[1 + below.len()..];
        } else {
            out.push(base);
            rest = after;
        }
        before = base;
    }
    out
}

/// `text` for an SVG text element, with its symbols typeset.
pub fn typeset(text: &str) -> String {
    // A shift lasts until the element ends, so an empty shift in the opposite direction follows.
    let below = |base: char, below: &str| {
        format!(
            r#"{base}<tspan dy="2.5" font-size="80%">{below}</tspan><tspan dy="-2.5">&#8203;</tspan>"#
        )
    };
    subscripts(&escape(text), below)
}

#[cfg(test)]
mod subscript_tests {
    use super::*;

    #[test]
    fn subscripts_are_set_in_symbols_but_not_in_names() {
        let set = |text| subscripts(text, |base, below| format!("{base}[{below}]"));
        assert_eq!(set("C T_m + B, W_c"), "C T[m] + B, W[c]");
        assert_eq!(set("tcp_rmem goodput_bps a_"), "tcp_rmem goodput_bps a_");
        assert_eq!(set("2T_m (A T_e)"), "2T_m (A T[e])");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaping_neutralises_markup_control_characters_and_bidi_overrides() {
        let name = "<b>\u{1b}[2J\u{202e}\"&\n";
        assert_eq!(escape(name), "&lt;b&gt;\u{fffd}[2J\u{fffd}&quot;&amp;\n");
    }
}
