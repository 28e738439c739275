use std::fmt;

/// How the names of files that are not yet whole begin. A sender may not use such a name.
pub const TEMP_FILE_PREFIX: &str = ".sweetspot-";

/// Text from the peer, made harmless for a terminal: control characters and those that change the direction of
/// text are replaced, and text beyond 300 characters is cut.
pub struct Printable<'a>(pub &'a str);

impl fmt::Display for Printable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars().take(300) {
            write!(f, "{}", if is_harmless(c) { c } else { '\u{fffd}' })?;
        }
        Ok(())
    }
}

/// Not a control character, nor one of Unicode's bidirectional controls (UAX 9, section 2) or separators.
fn is_harmless(c: char) -> bool {
    !c.is_control()
        && !matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn nothing_the_peer_says_controls_the_terminal(text in any::<String>()) {
            let shown = Printable(&text).to_string();
            prop_assert!(shown.chars().all(is_harmless));
            prop_assert!(!shown.contains(char::is_control));
        }
    }
}
