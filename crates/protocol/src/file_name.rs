use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// A file name of one path component, so that it stays inside the directory it is used in: not empty, at most
/// 255 bytes, without `/` and control characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileName(String);

/// Why a file name is refused: the name and the reason.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the name \"{}\" is refused: {reason}; send it under another with --name NAME", Printable(.name))]
pub struct NameError {
    name: String,
    reason: &'static str,
}

/// How the names of files that are not yet whole begin. A sender may not use such a name.
pub const TEMP_FILE_PREFIX: &str = ".sweetspot-";
/// NAME_MAX of every common file system, bytes.
const MAX_FILE_NAME_BYTES: usize = 255;

impl FileName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for FileName {
    type Err = NameError;

    fn from_str(name: &str) -> Result<FileName, NameError> {
        let refuse = |reason| Err(NameError { name: name.to_owned(), reason });
        match name {
            "" => refuse("it is empty"),
            "." | ".." => refuse("it is a directory"),
            _ if name.len() > MAX_FILE_NAME_BYTES => refuse("it is longer than 255 bytes"),
            _ if name.contains('/') => refuse("it would leave the receiver's directory"),
            _ if name.contains(char::is_control) => refuse("it holds control characters"),
            _ if name.starts_with(TEMP_FILE_PREFIX) => {
                refuse("such names are kept for unfinished transfers")
            }
            _ => Ok(FileName(name.to_owned())),
        }
    }
}

impl fmt::Display for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// Text from the peer, made harmless for a terminal: control characters are replaced, and text beyond 300
/// characters is cut.
pub struct Printable<'a>(pub &'a str);

impl fmt::Display for Printable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars().take(300) {
            write!(f, "{}", if c.is_control() { '\u{fffd}' } else { c })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::path::{Component, Path};

    #[test]
    fn names_that_leave_the_directory_are_refused() {
        for name in
            ["", ".", "..", "/", "/etc/passwd", "../x", "a/b", "a/", "a\0b", "a\nb", "\u{1b}[2J"]
        {
            assert!(name.parse::<FileName>().is_err(), "{name:?}");
        }
        assert!("x".repeat(256).parse::<FileName>().is_err());
        assert!(".sweetspot-00.part".parse::<FileName>().is_err());
    }

    #[test]
    fn ordinary_names_are_taken() {
        for name in ["a", "a b.tar.gz", "...", ".hidden", "über.iso", "a\\b"] {
            assert_eq!(name.parse::<FileName>().unwrap().as_str(), name);
        }
    }

    proptest! {
        #[test]
        fn a_name_that_is_taken_is_one_component(name in "[./a\\\\\0 -~]{0,12}") {
            if let Ok(name) = name.parse::<FileName>() {
                let parts: Vec<_> = Path::new(name.as_str()).components().collect();
                prop_assert_eq!(parts.len(), 1);
                prop_assert!(matches!(parts[0], Component::Normal(_)));
            }
        }

        #[test]
        fn nothing_the_peer_says_controls_the_terminal(text in any::<String>()) {
            let shown = Printable(&text).to_string();
            prop_assert!(!shown.contains(char::is_control));
        }
    }
}
