//! Follows files line by line while programs write them.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// A followed file. It need not exist yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchedFile {
    path: PathBuf,
}

/// Consecutive lines of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileLines {
    /// Whole lines, including line ends.
    pub text: Vec<u8>,
    /// Offset of the next line.
    pub next: u64,
    /// Whether the file was truncated or replaced since the last read, so that these are its first
    /// lines.
    pub is_reset: bool,
}

/// Maximum read size, so that the page stays responsive; longer lines are skipped.
const MAX_READ_BYTES: u64 = 1 << 20;

impl WatchedFile {
    /// Follows the file at `path`.
    pub fn new(path: impl Into<PathBuf>) -> WatchedFile {
        WatchedFile { path: path.into() }
    }

    /// The file's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The complete lines from byte `from` on; empty if the file does not exist yet.
    pub fn lines(&self, from: u64) -> io::Result<FileLines> {
        let none = |next| Ok(FileLines { text: Vec::new(), next, is_reset: false });
        let mut file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return none(0),
            Err(error) => return Err(error),
        };
        let size = file.metadata()?.len();
        let is_reset = size < from;
        let from = if is_reset { 0 } else { from };
        file.seek(SeekFrom::Start(from))?;
        let mut text = Vec::new();
        file.take(MAX_READ_BYTES).read_to_end(&mut text)?;
        match text.iter().rposition(|byte| *byte == b'\n') {
            Some(last) => text.truncate(last + 1),
            None if text.len() as u64 == MAX_READ_BYTES => return none(from + MAX_READ_BYTES),
            None => text.clear(),
        }
        let next = from + text.len() as u64;
        Ok(FileLines { text, next, is_reset })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn complete_lines_are_read_once_and_again_after_truncation() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("series.jsonl");
        let watched = WatchedFile::new(&path);
        assert_eq!(watched.lines(0).unwrap().next, 0);
        fs::write(&path, "{\"t_s\":1}\n{\"t_s\"").unwrap();
        let first = watched.lines(0).unwrap();
        assert_eq!((&first.text[..], first.next), (&b"{\"t_s\":1}\n"[..], 10));
        fs::write(&path, "{\"t_s\":1}\n{\"t_s\":2}\n").unwrap();
        assert_eq!(watched.lines(10).unwrap().text, b"{\"t_s\":2}\n");
        assert_eq!(watched.lines(20).unwrap().text, b"");
        fs::write(&path, "{\"t_s\":9}\n").unwrap();
        let is_reset = watched.lines(20).unwrap();
        assert!(is_reset.is_reset && is_reset.text == b"{\"t_s\":9}\n");
    }

    #[test]
    fn an_endless_line_is_skipped() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("endless");
        fs::write(&path, vec![b'x'; MAX_READ_BYTES as usize + 5]).unwrap();
        let lines = WatchedFile::new(&path).lines(0).unwrap();
        assert_eq!((lines.text.len(), lines.next), (0, MAX_READ_BYTES));
    }
}
