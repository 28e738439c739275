use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::peer_text::PeerText;
use crate::printable::{MAX_SHOWN, TEMP_FILE_PREFIX, write_bytes};

/// A path below a directory, as bytes: names separated by `/`. No name may be empty, `.`, `..`, longer than 255
/// bytes, contain a NUL, or belong to an unfinished file. Such a path cannot leave the directory in which it is
/// used.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "Vec<u8>", into = "Vec<u8>")]
pub struct RelativePath(Vec<u8>);

/// Why a path is rejected: the path and the reason.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the name \"{}\" is refused: {reason}; send it under another name", .path)]
pub struct PathError {
    path: PeerText,
    reason: &'static str,
}

/// NAME_MAX of every common file system, bytes.
const MAX_NAME_BYTES: usize = 255;
/// PATH_MAX of Linux, bytes.
const MAX_PATH_BYTES: usize = 4095;

impl RelativePath {
    /// Checks a path.
    pub fn new(path: impl Into<Vec<u8>>) -> Result<RelativePath, PathError> {
        let path = path.into();
        let refuse = |reason| {
            Err(PathError { path: String::from_utf8_lossy(&path).into_owned().into(), reason })
        };
        if path.len() > MAX_PATH_BYTES {
            return refuse("it is longer than 4095 bytes");
        }
        if path.contains(&0) {
            return refuse("it contains a NUL byte");
        }
        for name in path.split(|byte| *byte == b'/') {
            match name {
                b"" if path.is_empty() => return refuse("it is empty"),
                b"" => return refuse("it would leave the receiver's directory"),
                b"." | b".." => return refuse("it would leave the receiver's directory"),
                _ if name.len() > MAX_NAME_BYTES => return refuse("it is longer than 255 bytes"),
                _ if name.starts_with(TEMP_FILE_PREFIX.as_bytes()) => {
                    return refuse("such names are kept for unfinished transfers");
                }
                _ => {}
            }
        }
        Ok(RelativePath(path))
    }

    /// The path of `name` below `self`.
    pub fn join(&self, name: &[u8]) -> Result<RelativePath, PathError> {
        RelativePath::new([&self.0, &b"/"[..], name].concat())
    }

    /// The path's bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The directory (`None` at the top level) and the last name.
    pub fn split(&self) -> (Option<&[u8]>, &[u8]) {
        match self.0.iter().rposition(|byte| *byte == b'/') {
            Some(slash) => (Some(&self.0[..slash]), &self.0[slash + 1..]),
            None => (None, &self.0),
        }
    }

    /// The number of directories above the last name.
    pub fn depth(&self) -> usize {
        self.0.iter().filter(|byte| **byte == b'/').count()
    }
}

impl TryFrom<Vec<u8>> for RelativePath {
    type Error = PathError;

    fn try_from(path: Vec<u8>) -> Result<RelativePath, PathError> {
        RelativePath::new(path)
    }
}

impl From<RelativePath> for Vec<u8> {
    fn from(path: RelativePath) -> Vec<u8> {
        path.0
    }
}

impl fmt::Display for RelativePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_bytes(&self.0, MAX_SHOWN, f)
    }
}

impl fmt::Debug for RelativePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    use std::path::{Component, Path};

    #[test]
    fn escaping_malformed_and_reserved_paths_are_rejected() {
        for path in [
            "",
            ".",
            "..",
            "/",
            "/etc/passwd",
            "../x",
            "a/../b",
            "a/./b",
            "a//b",
            "a/",
            "a\0b",
            ".sweetspot-00.part",
            "a/.sweetspot-x",
            "a/..",
        ] {
            assert!(RelativePath::new(path).is_err(), "{path:?}");
        }
        assert!(RelativePath::new("x".repeat(256)).is_err());
        assert!(RelativePath::new("a/".repeat(2100) + "b").is_err());
    }

    #[test]
    fn names_in_any_encoding_are_accepted() {
        for path in [&b"a"[..], b"a/b c", b"...", b".hidden/x", b"\xff\xfe", b"a\nb", b"a\\b"] {
            assert_eq!(RelativePath::new(path).unwrap().as_bytes(), path);
        }
    }

    #[test]
    fn a_printed_path_cannot_control_the_terminal() {
        let path = RelativePath::new(&b"a\x1b[2J\xff\xe2\x80\xae"[..]).unwrap();
        assert!(!path.to_string().contains(|c: char| c.is_control() || c == '\u{202e}'));
    }

    proptest! {
        #[test]
        fn an_accepted_path_stays_below_the_directory(path in "[./a\\\\\0 -~]{0,12}") {
            if let Ok(path) = RelativePath::new(path) {
                for part in Path::new(OsStr::from_bytes(path.as_bytes())).components() {
                    prop_assert!(matches!(part, Component::Normal(_)));
                }
            }
        }
    }
}
