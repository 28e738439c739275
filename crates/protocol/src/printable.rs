use std::ffi::OsStr;
use std::fmt::{self, Write};

/// The prefix of unfinished files' names. A sender may not use such a name.
pub const TEMP_FILE_PREFIX: &str = ".sweetspot-";

/// The max number of characters shown of a peer's text.
pub(crate) const MAX_SHOWN: usize = 300;
/// The maximum number of characters shown of other text: the longest path of Linux.
const MAX_OWN_SHOWN: usize = 4096;

/// Text or a path that is safe for a terminal and a log. Control characters, invisible characters and those that change the
/// direction of text are escaped as in JSON (`\n`, `\u001b`); invalid UTF-8 as `\xff`. Long text is truncated.
///
/// Escapes consist of printable characters, so escaping twice changes nothing.
///
/// ```
/// use sweetspot_protocol::Printable;
/// assert_eq!(Printable("report\u{202e}fdp.exe").to_string(), r"report\u202efdp.exe");
/// ```
pub struct Printable<'a, T: ?Sized>(pub &'a T);

impl<T: ?Sized> Clone for Printable<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: ?Sized> Copy for Printable<'_, T> {}

impl<T: AsRef<OsStr> + ?Sized> fmt::Display for Printable<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_bytes(self.0.as_ref().as_encoded_bytes(), MAX_OWN_SHOWN, f)
    }
}

/// Writes at most `max` characters of text in any encoding, as [`Printable`] shows it.
pub(crate) fn write_bytes(text: &[u8], max: usize, to: &mut dyn Write) -> fmt::Result {
    let mut left = max;
    for chunk in text.utf8_chunks() {
        for c in chunk.valid().chars().take(left) {
            write_escaped(c, to)?;
        }
        left = left.saturating_sub(chunk.valid().chars().count());
        for byte in chunk.invalid().iter().take(left) {
            write!(to, "\\x{byte:02x}")?;
        }
        left = left.saturating_sub(chunk.invalid().len());
    }
    let whole = text.len() <= max || String::from_utf8_lossy(text).chars().count() <= max;
    if whole { Ok(()) } else { to.write_char('…') }
}

/// Writes a character, or its escape.
pub fn write_escaped(c: char, to: &mut dyn Write) -> fmt::Result {
    match c {
        '\n' => to.write_str("\\n"),
        '\r' => to.write_str("\\r"),
        '\t' => to.write_str("\\t"),
        c if is_printable(c) => to.write_char(c),
        c => c.encode_utf16(&mut [0; 2]).iter().try_for_each(|unit| write!(to, "\\u{unit:04x}")),
    }
}

/// Whether a terminal only shows the character: it is no control character, no line separator, and no character without a
/// shape (UAX 44: general category Cf; UAX 9, section 2; the fillers of Hangul; tags).
pub fn is_printable(c: char) -> bool {
    if c.is_ascii() {
        return !c.is_ascii_control();
    }
    !matches!(c,
        '\u{80}'..='\u{9f}' | '\u{ad}' | '\u{34f}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}'
        | '\u{890}' | '\u{891}' | '\u{8e2}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{110bd}' | '\u{110cd}'
        | '\u{13430}'..='\u{1345f}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_kind_of_harmful_character_is_escaped() {
        for (text, shown) in [
            ("\x1b]0;title\x07", r"\u001b]0;title\u0007"),
            ("a\nsweetspot: done", r"a\nsweetspot: done"),
            ("a\rb\tc\0d\x7f", r"a\rb\tc\u0000d\u007f"),
            // C1: a terminal may treat U+009B as ESC [.
            ("\u{9b}2J", r"\u009b2J"),
            ("\u{202e}\u{2066}\u{200e}\u{200f}\u{61c}", r"\u202e\u2066\u200e\u200f\u061c"),
            (
                "\u{200b}\u{200d}\u{feff}\u{2028}\u{2029}\u{ad}",
                r"\u200b\u200d\ufeff\u2028\u2029\u00ad",
            ),
            // Tags, outside of the Basic Multilingual Plane, are two UTF-16 units in JSON. 0xe0001 - 0x10000 = 0xd0001:
            // d800 + 0x340, dc00 + 1.
            ("\u{e0001}", r"\udb40\udc01"),
            ("Grüße 日本 🦀 \\", "Grüße 日本 🦀 \\"),
        ] {
            assert_eq!(Printable(text).to_string(), shown);
        }
    }

    #[test]
    fn invalid_utf8_is_shown_as_byte_escapes() {
        let mut text = String::new();
        write_bytes(b"a\xff\xc3(", 10, &mut text).unwrap();
        assert_eq!(text, r"a\xff\xc3(");
    }

    #[test]
    fn truncated_text_ends_with_an_ellipsis() {
        let mut text = String::new();
        write_bytes("äöüß".as_bytes(), 3, &mut text).unwrap();
        write_bytes("äöü".as_bytes(), 3, &mut text).unwrap();
        assert_eq!(text, "äöü…äöü");
    }

    proptest! {
        #[test]
        fn escaped_text_is_printable_and_escaping_is_idempotent(text in any::<String>()) {
            let once = Printable(&text).to_string();
            prop_assert!(once.chars().all(is_printable));
            prop_assert_eq!(Printable(&once).to_string(), once);
        }
    }
}
