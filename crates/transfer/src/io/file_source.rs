use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, Sender, SyncSender};
use std::thread::{self, JoinHandle};

use sweetspot_units::Bytes;

use crate::TransferError;

/// Content per frame, and so per buffer.
pub(crate) const CONTENT_BLOCK_BYTES: usize = 256 << 10;
/// Buffers read ahead: 4 MiB.
const READ_AHEAD_BLOCKS: usize = 16;

/// A file to be sent, opened and measured.
pub(crate) struct FileSource {
    file: File,
    path: PathBuf,
    at_first: Metadata,
}

impl FileSource {
    /// Opens a regular file.
    pub fn open(path: &Path) -> Result<FileSource, TransferError> {
        let unreadable = |source| TransferError::Unreadable { path: path.to_owned(), source };
        // Asked before opening, because opening a pipe would wait for its writer.
        let kind = std::fs::metadata(path).map_err(unreadable)?.file_type();
        if !kind.is_file() {
            return Err(TransferError::NotAFile(path.to_owned()));
        }
        let file = File::open(path).map_err(unreadable)?;
        let at_first = file.metadata().map_err(unreadable)?;
        Ok(FileSource { file, path: path.to_owned(), at_first })
    }

    /// Its length when it was opened, which is what will be sent.
    pub fn size(&self) -> Bytes {
        Bytes::new(self.at_first.len())
    }

    /// Reads and hashes it ahead on a thread of its own.
    pub fn read_ahead(self) -> Result<ReadAhead, TransferError> {
        let (full, incoming) = mpsc::sync_channel(READ_AHEAD_BLOCKS);
        let (spent, empty) = mpsc::channel();
        let worker = thread::Builder::new()
            .name("read-ahead".into())
            .spawn(move || self.run(&full, &empty))
            .map_err(TransferError::system("starting a thread"))?;
        Ok(ReadAhead { incoming, spent, worker })
    }

    fn run(
        mut self,
        full: &SyncSender<Vec<u8>>,
        empty: &Receiver<Vec<u8>>,
    ) -> Result<blake3::Hash, TransferError> {
        let (mut hasher, mut left) = (blake3::Hasher::new(), self.at_first.len());
        while left > 0 {
            let mut block = empty.try_recv().unwrap_or_default();
            block.resize(left.min(CONTENT_BLOCK_BYTES as u64) as usize, 0);
            match self.file.read_exact(&mut block) {
                Ok(()) => {}
                Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => {
                    return Err(self.changed("shrank"));
                }
                Err(source) => return Err(TransferError::Unreadable { path: self.path, source }),
            }
            hasher.update(&block);
            left -= block.len() as u64;
            if full.send(block).is_err() {
                // The transfer ended early and says why itself.
                return Err(TransferError::Interrupted);
            }
        }
        let now = self
            .file
            .metadata()
            .map_err(|source| TransferError::Unreadable { path: self.path.clone(), source })?;
        let written = |m: &Metadata| (m.mtime(), m.mtime_nsec());
        match now.len() {
            len if len > self.at_first.len() => Err(self.changed("grew")),
            len if len < self.at_first.len() => Err(self.changed("shrank")),
            _ if written(&now) != written(&self.at_first) => Err(self.changed("was written to")),
            _ => Ok(hasher.finalize()),
        }
    }

    fn changed(self, what: &'static str) -> TransferError {
        TransferError::SourceChanged { path: self.path, what }
    }
}

/// Blocks of a file, in order.
pub(crate) struct ReadAhead {
    incoming: Receiver<Vec<u8>>,
    spent: Sender<Vec<u8>>,
    worker: JoinHandle<Result<blake3::Hash, TransferError>>,
}

impl ReadAhead {
    /// The next block, waiting for the disk if need be; `None` after the last.
    pub fn next(&self) -> Option<Vec<u8>> {
        self.incoming.recv().ok()
    }

    /// Gives a block back for reuse.
    pub fn reuse(&self, block: Vec<u8>) {
        let _ = self.spent.send(block);
    }

    /// The hash of the whole, if the file stayed as it was.
    pub fn finish(self) -> Result<blake3::Hash, TransferError> {
        drop(self.incoming);
        self.worker.join().unwrap_or(Err(TransferError::Interrupted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::OpenOptions;
    use std::io::Write;

    fn file(content: &[u8]) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(content).unwrap();
        file
    }

    #[test]
    fn blocks_make_up_the_file_and_its_hash() {
        let content: Vec<u8> = (0..CONTENT_BLOCK_BYTES * 2 + 5).map(|i| (i % 251) as u8).collect();
        let file = file(&content);
        let ahead = FileSource::open(file.path()).unwrap().read_ahead().unwrap();
        let mut read = Vec::new();
        while let Some(block) = ahead.next() {
            read.extend_from_slice(&block);
            ahead.reuse(block);
        }
        assert_eq!(read, content);
        assert_eq!(ahead.finish().unwrap(), blake3::hash(&content));
    }

    #[test]
    fn a_file_that_changes_length_after_opening_is_noticed() {
        let file = file(&[1; 1000]);
        for (length, word) in [(500, "shrank"), (2000, "grew")] {
            let handle = OpenOptions::new().write(true).open(file.path()).unwrap();
            handle.set_len(1000).unwrap();
            let source = FileSource::open(file.path()).unwrap();
            handle.set_len(length).unwrap();
            let ahead = source.read_ahead().unwrap();
            while ahead.next().is_some() {}
            let error = ahead.finish().unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
    }

    #[test]
    fn only_regular_files_are_sent() {
        let dir = tempfile::tempdir().unwrap();
        assert!(matches!(FileSource::open(dir.path()), Err(TransferError::NotAFile(_))));
        assert!(matches!(
            FileSource::open(&dir.path().join("none")),
            Err(TransferError::Unreadable { .. })
        ));
    }
}
