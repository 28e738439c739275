//! Patterns of names to exclude, by the rules of rsync(1), "PATTERN MATCHING RULES". In addition, `{a,b}` means either, as
//! in a shell.

mod program;

use crate::{Result, TransferError};
use program::Program;

/// The patterns of excluded names.
#[derive(Debug, Default)]
pub(crate) struct Patterns(Vec<Pattern>);

#[derive(Debug)]
struct Pattern {
    program: Program,
    /// Whether the pattern is matched against the path from the top, with a leading slash, and not only against the last
    /// component.
    whole_path: bool,
    directories_only: bool,
}

/// Checks a pattern. An error is the reason why it is invalid.
pub(super) fn check(pattern: &str) -> Result<(), &'static str> {
    Pattern::new(pattern).map(|_| ())
}

impl Patterns {
    /// Parses the patterns. An error names the first invalid one and its fault.
    pub(crate) fn new(patterns: &[String]) -> Result<Patterns> {
        let parsed = patterns.iter().map(|pattern| {
            Pattern::new(pattern).map_err(|reason| TransferError::Pattern {
                pattern: pattern.clone(),
                reason: reason.to_owned(),
            })
        });
        parsed.collect::<Result<_>>().map(Patterns)
    }

    /// Whether a path from the top matches one of the patterns. Names need not be UTF-8.
    pub(crate) fn is_match(&self, path: &[u8], is_directory: bool) -> bool {
        self.0.iter().any(|pattern| pattern.is_match(path, is_directory))
    }

    /// Whether `path` or one of its parent directories matches, so that the contents of a matching directory are excluded,
    /// too.
    pub(crate) fn is_match_or_below(&self, path: &[u8], is_directory: bool) -> bool {
        let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        self.is_match(path, is_directory)
            || slashes.map(|(at, _)| &path[..at]).any(|above| self.is_match(above, true))
    }
}

impl Pattern {
    fn new(pattern: &str) -> Result<Pattern, &'static str> {
        let mut bare = pattern.trim_end_matches('/');
        let mut directories_only = bare.len() < pattern.len();
        let mut whole_path = bare.contains('/') || bare.contains("**");
        if let Some(directory) = bare.strip_suffix("/***") {
            // A directory and all of its contents: excluding the directory excludes its contents.
            (bare, directories_only, whole_path) = (directory, true, true);
        }
        // Unless it is anchored at the top, the pattern may begin after any slash.
        let any_depth = whole_path && !bare.starts_with('/') && !bare.starts_with("**");
        let program = Program::new(bare, any_depth)?;
        Ok(Pattern { program, whole_path, directories_only })
    }

    fn is_match(&self, path: &[u8], is_directory: bool) -> bool {
        if self.directories_only && !is_directory {
            return false;
        }
        if self.whole_path {
            return self.program.is_match([&b"/"[..], path]);
        }
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        self.program.is_match([&b""[..], name])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the pattern matches a file with this path, or a directory if the path ends with a slash.
    fn matches(pattern: &str, path: &[u8]) -> bool {
        let (name, is_directory) = match path.strip_suffix(b"/") {
            Some(directory) => (directory, true),
            None => (path, false),
        };
        Patterns::new(&[pattern.to_owned()]).unwrap().is_match(name, is_directory)
    }

    /// The rules and examples of rsync(1), in order: a pattern, paths that match, and paths that do not match.
    #[test]
    fn patterns_match_as_documented_by_rsync() {
        let rules: [(&str, &[&str], &[&str]); 19] = [
            // "foo means that the final path component must be foo"
            ("foo", &["foo", "a/foo", "a/b/foo/"], &["foo/a", "afoo", "fooa"]),
            // "while foo/bar would match the last 2 elements of the path"
            ("foo/bar", &["foo/bar", "a/foo/bar"], &["bar", "foo/a/bar", "afoo/bar", "foo/bar/a"]),
            // "A pattern that ends with a / only matches a directory"
            ("foo/", &["foo/", "a/foo/"], &["foo", "a/foo"]),
            // "A pattern that starts with a / is anchored to the start of the transfer path"
            ("/foo", &["foo", "foo/"], &["a/foo"]),
            ("/foo/bar", &["foo/bar"], &["a/foo/bar"]),
            ("/foo/**", &["foo/a", "foo/a/b"], &["foo", "a/foo/b"]),
            // "a ? matches any single character except a slash"
            ("fo?", &["foo", "a/foo"], &["fo", "fooo"]),
            ("a?b", &["axb"], &["a/b"]),
            // "a * matches zero or more non-slash characters"
            ("/f*o", &["fo", "f12o"], &["f/o"]),
            // "a ** matches zero or more characters, including slashes"
            ("/f**o", &["fo", "f12o", "f/o", "fa/b/co"], &["a/fo"]),
            ("f**o", &["fo", "a/fb/co"], &["xfo"]),
            ("**/foo", &["foo", "a/b/foo"], &["xfoo"]),
            // "a [ introduces a character class, such as [a-z] or [[:alpha:]]"
            ("[a-c][[:digit:]]", &["a1", "x/c9"], &["d1", "aa", "a"]),
            // "dir_name/*** will match both the directory and everything in the directory"
            ("dir/***", &["dir/", "a/dir/"], &["dir"]),
            // "the pattern foo\bar matches that single backslash literally, while foo\bar* would need ..."
            ("foo\\bar", &["foo\\bar"], &["foobar"]),
            ("foo\\bar*", &["foobar", "foobar1"], &["foo\\bar"]),
            // The examples at the end.
            ("*.o", &["a.o", "b/c.o", ".o"], &["a.of", "o"]),
            ("foo/*/bar", &["foo/a/bar", "x/foo/a/bar"], &["foo/bar", "foo/a/b/bar"]),
            ("/foo/**/bar", &["foo/a/bar", "foo/a/b/bar"], &["foo/bar", "x/foo/a/bar"]),
        ];
        for (pattern, matching, others) in rules {
            for path in matching {
                assert!(matches(pattern, path.as_bytes()), "{pattern} matches {path}");
            }
            for path in others {
                assert!(!matches(pattern, path.as_bytes()), "{pattern} does not match {path}");
            }
        }
    }

    /// "it is matched against the name of every directory in the descent path"
    #[test]
    fn paths_below_a_match_also_match() {
        let patterns = Patterns::new(&["cache/".into(), "/a/b".into()]).unwrap();
        for (path, is_out) in [
            ("x/cache/y/z", true),
            ("x/cache", false),
            ("a/b", true),
            ("a/b/c", true),
            ("b/a/b/c", false),
        ] {
            assert_eq!(patterns.is_match_or_below(path.as_bytes(), false), is_out, "{path}");
        }
    }

    #[test]
    fn alternatives_and_escapes_match_as_in_a_shell() {
        for (pattern, path, expected) in [
            ("*.{log,tmp}", "x/y.tmp", true),
            ("*.{log,tmp}", "x/y.txt", false),
            ("{a,b{c,d}}e", "bde", true),
            ("{a,b{c,d}}e", "be", false),
            ("{a,}b", "b", true),
            ("a,b}", "a,b}", true),
            ("{a\\,b}", "a,b", true),
            ("[!a-c]x", "dx", true),
            ("[^a-c]x", "bx", false),
            ("[]-]x", "]x", true),
            ("[\\]a]x", "ax", true),
            ("[!a]", "/", false),
            ("\\**x", "*yx", true),
            ("\\**x", "ayx", false),
        ] {
            assert_eq!(matches(pattern, path.as_bytes()), expected, "{pattern} {path}");
        }
    }

    #[test]
    fn a_leading_exclamation_mark_is_literal() {
        assert!(matches("!a", b"!a"));
        assert!(!matches("!a", b"b"));
        assert!(matches("/!a/b", b"!a/b"));
        assert!(!matches("/!a/b", b"c/d"));
    }

    #[test]
    fn a_non_utf_8_name_matches_by_bytes() {
        assert!(matches("*.log", b"\xff\xfe.log"));
        assert!(!matches("*.log", b"\xff\xfe.txt"));
    }

    #[test]
    fn the_error_for_a_bad_pattern_names_the_pattern_and_its_fault() {
        for (pattern, fault) in [
            ("a[", "`[` has no `]`"),
            ("a{b", "`{` has no `}`"),
            ("*a\\", "nothing follows"),
            ("[[:alfa:]]", "expected a class such as `[:alpha:]`"),
        ] {
            let error = Patterns::new(&["*.ok".into(), pattern.into()]).err().unwrap().to_string();
            assert!(error.contains(pattern) && error.contains(fault), "{error}");
        }
    }

    /// A backtracking matcher would take 2^40 steps.
    #[test]
    fn many_stars_do_not_backtrack_exponentially() {
        let pattern = "*a".repeat(40);
        assert!(!matches(&pattern, "a".repeat(39).as_bytes()));
        assert!(!matches(&format!("{pattern}b"), "a".repeat(80).as_bytes()));
    }
}
