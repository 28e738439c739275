use std::ffi::OsStr;
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use sweetspot_control::TransferSummary;
use sweetspot_control::series::SeriesRecord;
use sweetspot_protocol::{PeerText, RelativePath, Role};
use sweetspot_sizing::Sizing;
use sweetspot_units::{Bytes, Duration, Time};

use crate::{Result, TransferError};

/// Watches one transfer, which prints nothing itself.
///
/// The transfer's own threads make the calls, one at a time. A slow call delays the controller.
pub trait TransferObserver: Send {
    /// Both ends agreed, and content follows.
    fn opened(&mut self, opened: &Agreed) {
        let _ = opened;
    }
    /// Receives the next line of the time series.
    fn line(&mut self, line: &SeriesRecord) {
        let _ = line;
    }
    /// So much has been moved.
    fn progress(&mut self, progress: &Progress) {
        let _ = progress;
    }
    /// The path broke: nothing has arrived from the peer since then.
    fn lost(&mut self, since: Time) {
        let _ = since;
    }
    /// The path broke, or a new connection failed by `error`; the next one is tried after `pause`.
    fn interrupted(&mut self, error: &TransferError, pause: Duration) {
        let _ = (error, pause);
    }
    /// Returns a log of the files, beside one that a server keeps.
    fn file_log(&self) -> Option<Arc<dyn FileLog>> {
        None
    }
    /// A remark for users that asked for detail.
    fn note(&mut self, note: &str) {
        let _ = note;
    }
}

/// A transfer of a peer that a server admitted.
#[derive(Debug, Clone, Copy)]
pub struct AdmittedTransfer<'a> {
    /// Its number, from 1.
    pub number: u64,
    /// The peer's address.
    pub peer: SocketAddr,
    /// The client's name; the holder of a ticket has none.
    pub client: Option<&'a str>,
}

/// Watches a server.
pub trait ServerObserver: Sync {
    /// A peer was admitted. Returns the observer of its transfer.
    fn admitted(&self, transfer: AdmittedTransfer<'_>) -> Box<dyn TransferObserver>;
    /// Returns the log of the files of a transfer. `role` is this end's.
    fn file_log(&self, transfer: AdmittedTransfer<'_>, role: Role) -> Option<Arc<dyn FileLog>> {
        let _ = (transfer, role);
        None
    }
    /// Transfer `number` ended.
    fn ended(&self, number: u64, result: &Result<TransferSummary>);
    /// The path of transfer `number` broke; it may go on over a new connection.
    fn interrupted(&self, number: u64, error: &TransferError) {
        let _ = (number, error);
    }
    /// Transfer `number` ended with `error`, but the server's one ticket can be used
    /// again ([`EndsAfter::FirstNotRefused`](crate::EndsAfter::FirstNotRefused)).
    fn refused(&self, number: u64, error: &TransferError) {
        self.interrupted(number, error);
    }
    /// Transfer `number` ended with `result`, and did not count: the server's one ticket can be used again.
    fn tried(&self, number: u64, result: &Result<TransferSummary>) {
        self.ended(number, result);
    }
    /// A peer measured the path, over one of its connections.
    fn measured(&self, peer: SocketAddr, client: Option<&str>, result: &Result<()>) {
        let _ = (peer, client, result);
    }
    /// A connection of this peer was refused.
    fn rejected(&self, peer: SocketAddr, client: Option<&str>, error: &TransferError);
    /// Something is wrong with the file of clients, or with a code. It is reported once.
    fn warned(&self, warning: &str) {
        let _ = warning;
    }
}

/// Learns of each file of a transfer when it is done, from several threads.
pub trait FileLog: Send + Sync {
    /// A file was moved, was there already, or failed.
    fn file(&self, record: &FileRecord<'_>);
}

/// One log, of those that there are.
pub(crate) fn joined(logs: [Option<Arc<dyn FileLog>>; 2]) -> Option<Arc<dyn FileLog>> {
    match logs {
        [Some(first), Some(second)] => Some(Arc::new(BothLogs(first, second))),
        [first, second] => first.or(second),
    }
}

struct BothLogs(Arc<dyn FileLog>, Arc<dyn FileLog>);

impl FileLog for BothLogs {
    fn file(&self, record: &FileRecord<'_>) {
        self.0.file(record);
        self.1.file(record);
    }
}

/// The result for one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileRecord<'a> {
    /// Its path below the directory that this end shares: the target, or a client's directory.
    pub path: &'a Path,
    /// Its length, if that is known.
    pub size: Option<Bytes>,
    /// Its hash and whether it was written, or why it was not moved.
    pub outcome: Result<(blake3::Hash, bool), &'a str>,
}

impl<'a> FileRecord<'a> {
    pub(crate) fn new(
        path: &'a RelativePath,
        size: Option<u64>,
        outcome: Result<(blake3::Hash, bool), &'a str>,
    ) -> FileRecord<'a> {
        let path = Path::new(OsStr::from_bytes(path.as_bytes()));
        FileRecord { path, size: size.map(Bytes::new), outcome }
    }
}

/// The parameters that both ends agreed on before the content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agreed {
    /// The peer's address.
    pub peer: SocketAddr,
    /// The name of the file or directory, or the number of entries.
    pub name: PeerText,
    /// The length, if it is one file.
    pub size: Option<Bytes>,
    /// The sizing that is used.
    pub sizing: Sizing,
}

/// How far a transfer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Content that was moved.
    pub bytes: Bytes,
    /// Content that was at the receiver already, and belongs to these files.
    pub present: Bytes,
    /// Files that are whole at the receiver.
    pub files: u64,
    /// Files there are, and the content of all of them, once the list of them is whole.
    pub totals: Option<(u64, Bytes)>,
}

/// An observer that ignores everything.
#[derive(Debug, Clone, Copy, Default)]
pub struct NullObserver;

impl TransferObserver for NullObserver {}
