use std::io::Write;
use std::sync::mpsc::{self, Receiver, Sender, SyncSender};
use std::thread::{self, JoinHandle};

use sweetspot_linux::file;

use super::temp_file::TempFile;
use crate::TransferError;

/// Buffers between the socket and the disk: with 256 KiB each, 8 MiB, which is a tenth of a
/// second at 670 Mbit/s.
const WRITE_BEHIND_BUFFERS: usize = 32;

/// What is written is sent to the disk in portions, so that little is left for the final fsync.
const WRITEBACK_BYTES: u64 = 8 << 20;

/// Hashes and writes on a thread of its own, so that the socket is drained whatever the disk does.
pub(crate) struct Sink {
    full: Option<SyncSender<Vec<u8>>>,
    empty: Receiver<Vec<u8>>,
    worker: Option<JoinHandle<Result<WrittenFile, TransferError>>>,
}

/// What was written, and its hash.
pub(crate) struct WrittenFile {
    pub temp_file: TempFile,
    pub hash: blake3::Hash,
}

impl Sink {
    /// A sink into `temp_file`.
    pub fn new(temp_file: TempFile) -> Result<Sink, TransferError> {
        let (full, incoming) = mpsc::sync_channel(WRITE_BEHIND_BUFFERS);
        let (spent, empty) = mpsc::channel();
        let worker = thread::Builder::new()
            .name("sink".into())
            .spawn(move || drain(temp_file, &incoming, &spent))
            .map_err(TransferError::system("starting a thread"))?;
        Ok(Sink { full: Some(full), empty, worker: Some(worker) })
    }

    /// An empty buffer, a used one where there is one.
    pub fn buffer(&self) -> Vec<u8> {
        self.empty.try_recv().unwrap_or_default()
    }

    /// Hands over what is to be written next, waiting while the disk is behind.
    pub fn write(&mut self, bytes: Vec<u8>) -> Result<(), TransferError> {
        match &self.full {
            Some(full) if full.send(bytes).is_ok() => Ok(()),
            // The worker ended early: it says why.
            _ => Err(match self.join() {
                Err(error) => error,
                Ok(_) => TransferError::Interrupted,
            }),
        }
    }

    /// Waits until all is written.
    pub fn finish(mut self) -> Result<WrittenFile, TransferError> {
        self.join()
    }

    fn join(&mut self) -> Result<WrittenFile, TransferError> {
        self.full = None;
        match self.worker.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            _ => Err(TransferError::Interrupted),
        }
    }
}

fn drain(
    mut temp_file: TempFile,
    incoming: &Receiver<Vec<u8>>,
    spent: &Sender<Vec<u8>>,
) -> Result<WrittenFile, TransferError> {
    let (mut hasher, mut written, mut flushed) = (blake3::Hasher::new(), 0u64, 0u64);
    while let Ok(mut bytes) = incoming.recv() {
        hasher.update(&bytes);
        if let Err(source) = temp_file.file().write_all(&bytes) {
            return Err(TransferError::write(temp_file.path().to_owned(), source));
        }
        written += bytes.len() as u64;
        if written - flushed >= WRITEBACK_BYTES {
            file::start_writeback(temp_file.file(), flushed, written - flushed);
            flushed = written;
        }
        bytes.clear();
        let _ = spent.send(bytes);
    }
    Ok(WrittenFile { temp_file, hash: hasher.finalize() })
}
