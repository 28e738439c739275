//! Patterns of names, as in a shell.

use crate::{Result, TransferError};

/// Names to leave out. A pattern without a slash matches a name at any depth, one with a slash a path from the top.
#[derive(Debug, Default)]
pub(crate) struct Patterns(Vec<String>);

impl Patterns {
    /// Checks the patterns; an error names the first bad one and its fault.
    pub(crate) fn new(patterns: &[String]) -> Result<Patterns> {
        let globs = patterns.iter().map(|pattern| {
            let glob = glob_of(pattern);
            match fast_glob::validate(&glob) {
                Ok(()) => Ok(glob),
                // Its position counts what `glob_of` added.
                Err(error) => Err(TransferError::Pattern {
                    pattern: pattern.clone(),
                    reason: fault(&error).to_owned(),
                }),
            }
        });
        globs.collect::<Result<_, _>>().map(Patterns)
    }

    /// Whether a path from the top, with slashes, matches one of them. Names need not be UTF-8.
    pub(crate) fn is_match(&self, path: &[u8]) -> bool {
        self.0.iter().any(|glob| fast_glob::glob_match(glob, path))
    }
}

/// The pattern for whole paths. `!` negates a glob, but no name.
fn glob_of(pattern: &str) -> String {
    let bare = pattern.trim_end_matches('/');
    let from_top = match bare.strip_prefix('/') {
        Some(rest) => rest,
        None if bare.contains('/') => bare,
        None => return format!("**/{bare}"),
    };
    if from_top.starts_with('!') { format!("\\{from_top}") } else { from_top.to_owned() }
}

fn fault(error: &fast_glob::Error) -> &'static str {
    use fast_glob::ErrorKind;
    match error.kind {
        ErrorKind::UnclosedBrace => "`{` has no `}`; for the character itself, write `\\{`",
        ErrorKind::UnclosedBracket => "`[` has no `]`; for the character itself, write `\\[`",
        ErrorKind::TrailingBackslash => "nothing follows the last `\\`",
        _ => "its braces are too many, or too deeply nested; split it into several patterns",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, path: &[u8]) -> bool {
        Patterns::new(&[pattern.to_owned()]).unwrap().is_match(path)
    }

    #[test]
    fn a_pattern_without_a_slash_matches_at_any_depth_and_one_with_a_slash_from_the_top() {
        for path in ["core", "a/core", "a/b/core"] {
            assert!(matches("core", path.as_bytes()), "{path}");
            assert_eq!(matches("/core", path.as_bytes()), path == "core", "{path}");
            assert_eq!(matches("a/core/", path.as_bytes()), path == "a/core", "{path}");
        }
    }

    #[test]
    fn only_two_stars_cross_a_slash() {
        assert!(matches("a/*/c", b"a/b/c"));
        assert!(!matches("a/*/c", b"a/b/b/c"));
        assert!(!matches("a/?c", b"a//c"));
        assert!(matches("a/**/c", b"a/c"));
        assert!(matches("a/**/c", b"a/b/b/c"));
    }

    #[test]
    fn classes_alternatives_and_escapes_match_as_in_a_shell() {
        assert!(matches("*.{log,tmp}", b"x/y.tmp"));
        assert!(matches("[!a-c]x", b"dx"));
        assert!(!matches("[!a-c]x", b"bx"));
        assert!(matches("\\*x", b"*x"));
        assert!(!matches("\\*x", b"ax"));
    }

    #[test]
    fn a_bang_at_the_beginning_is_a_character_of_the_name() {
        assert!(matches("!a", b"!a"));
        assert!(!matches("!a", b"b"));
        assert!(matches("/!a/b", b"!a/b"));
        assert!(!matches("/!a/b", b"c/d"));
    }

    #[test]
    fn a_name_that_is_not_utf_8_matches_by_its_bytes() {
        assert!(matches("*.log", b"\xff\xfe.log"));
        assert!(!matches("*.log", b"\xff\xfe.txt"));
    }

    #[test]
    fn a_bad_pattern_is_named_with_its_fault() {
        for (pattern, fault) in
            [("a[", "`[` has no `]`"), ("a{b", "`{` has no `}`"), ("a\\", "nothing follows")]
        {
            let error = Patterns::new(&["*.ok".into(), pattern.into()]).err().unwrap().to_string();
            assert!(error.contains(pattern) && error.contains(fault), "{error}");
        }
    }
}
