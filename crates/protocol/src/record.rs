//! Records: what both ends say about files, as compact binary frames (postcard's format, which is specified).
//!
//! The sender lists entries; each gets its number by its place in the list, from 0. The receiver answers each,
//! in order. Hashes are BLAKE3's, see [`crate::hash_tree`].

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::frame;
use crate::hash_tree::PieceHash;
use crate::relative_path::RelativePath;

/// The most entries, answers or results in one record.
pub const MAX_BATCH: usize = 512;
/// The most hashes in one record: 32 KiB of them, for 256 MiB of content.
pub const MAX_HASHES: usize = 1024;

/// A record about files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Record {
    /// Sender: the next entries of what it brings.
    Entries(Vec<Entry>),
    /// Sender: all entries were listed.
    Listed {
        /// How many entries, of all kinds.
        entries: u32,
        /// How many of them are files with content.
        files: u32,
        /// Bytes of all files together.
        bytes: u64,
    },
    /// Receiver: what it wants of the next entries, in the order of the list.
    Answers(Vec<Answer>),
    /// Receiver: hashes of pieces that it has of an entry, in order.
    Hashes {
        /// The entry's number.
        entry: u32,
        /// The number of the first piece.
        first: u32,
        /// Their hashes.
        hashes: Vec<PieceHash>,
    },
    /// Sender: these pieces are holes.
    Holes {
        /// The entry's number.
        entry: u32,
        /// The number of the first piece.
        first: u32,
        /// How many.
        pieces: u32,
    },
    /// Sender: all pieces that the receiver lacked of these entries were sent.
    Ends(Vec<FileEnd>),
    /// Sender: an entry cannot be delivered.
    Gone {
        /// The entry's number.
        entry: u32,
        /// Why, in one line.
        reason: String,
    },
    /// Receiver: these entries are whole, or failed.
    Results(Vec<FileResult>),
    /// Packets of a measuring stream that arrived, in the order in which they did, at most [`MAX_ARRIVALS`].
    Arrivals(Vec<StreamArrival>),
}

/// The most arrivals in one record: none takes more than 25 bytes.
pub const MAX_ARRIVALS: usize = 32 << 10;

/// A packet of a measuring stream that arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamArrival {
    /// Its place in the stream, from 0.
    pub index: u32,
    /// When it was sent, nanoseconds on the sender's clock.
    pub sent_ns: u64,
    /// When the kernel received it, nanoseconds on the receiver's clock.
    pub received_ns: u64,
}

/// One thing that the sender brings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Where it goes, below the receiver's directory.
    pub path: RelativePath,
    /// What it is.
    pub kind: EntryKind,
    /// The permission bits (0o777).
    pub mode: u32,
    /// Time of the last change: seconds since 1970, and nanoseconds of the second.
    pub modified: (i64, u32),
    /// Extended attributes: names and values.
    pub attributes: Vec<(Vec<u8>, Vec<u8>)>,
}

/// The kinds of entries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum EntryKind {
    /// A file of so many bytes.
    File {
        /// Its length, bytes.
        size: u64,
        /// Whether it has holes.
        sparse: bool,
    },
    /// Content of unknown length, from standard input.
    Stream,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink {
        /// What it holds.
        target: Vec<u8>,
    },
    /// Another name of a file that was listed before.
    HardLink {
        /// That file's number.
        to: u32,
    },
}

/// What the receiver wants of an entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// Nothing: it is there (a file of the same length and time), or needs no content.
    Nothing,
    /// All content.
    All,
    /// The pieces that differ from those whose hashes follow.
    Different {
        /// How many hashes follow.
        pieces: u32,
    },
    /// Only whether the content is that whose hashes follow: what is there may not be replaced.
    Compare {
        /// How many hashes follow.
        pieces: u32,
    },
    /// Nothing: it is refused.
    Refused {
        /// Why, in one line.
        reason: String,
    },
}

/// The end of a file's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEnd {
    /// The entry's number.
    pub entry: u32,
    /// The length, bytes.
    pub size: u64,
    /// How many pieces were sent, holes included.
    pub pieces_sent: u32,
    /// BLAKE3 of the whole content.
    pub hash: [u8; 32],
}

/// What became of an entry with content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileResult {
    /// The entry's number.
    pub entry: u32,
    /// BLAKE3 of what was written, or the reason why it is not there.
    pub outcome: Result<[u8; 32], String>,
}

/// The body of a frame is not a record. Holds the reader's reason.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("a record that makes no sense ({0})")]
pub struct RecordError(String);

impl Record {
    /// The frame that carries this record.
    pub fn to_frame(&self) -> Vec<u8> {
        // Lengths are all known, so none can fail to be written.
        frame::record(&postcard::to_stdvec(self).unwrap_or_default())
    }

    /// Reads a record from the body of its frame. All of the body must be used.
    pub fn read(body: &[u8]) -> Result<Record, RecordError> {
        match postcard::take_from_bytes(body) {
            Ok((record, [])) => Ok(record),
            Ok(_) => Err(RecordError("bytes after its end".into())),
            Err(error) => Err(RecordError(error.to_string())),
        }
    }

    /// The kind of record in one word, for errors.
    pub fn kind(&self) -> &'static str {
        match self {
            Record::Entries(_) => "entries",
            Record::Listed { .. } => "the end of the list",
            Record::Answers(_) => "answers",
            Record::Hashes { .. } => "hashes",
            Record::Holes { .. } => "holes",
            Record::Ends(_) => "ends of files",
            Record::Gone { .. } => "a file that is gone",
            Record::Results(_) => "results",
            Record::Arrivals(_) => "arrivals",
        }
    }
}

impl EntryKind {
    /// Whether content may follow.
    pub fn has_content(&self) -> bool {
        matches!(self, EntryKind::File { .. } | EntryKind::Stream)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::FRAME_HEADER_BYTES;
    use proptest::prelude::*;

    fn entry(path: &str, size: u64) -> Entry {
        Entry {
            path: RelativePath::new(path).unwrap(),
            kind: EntryKind::File { size, sparse: false },
            mode: 0o600,
            modified: (1_700_000_000, 5),
            attributes: vec![(b"user.a".to_vec(), vec![0, 255])],
        }
    }

    #[test]
    fn a_record_is_read_back_as_sent() {
        for record in [
            Record::Entries(vec![entry("a/b", 7)]),
            Record::Answers(vec![Answer::All, Answer::Refused { reason: "no".into() }]),
            Record::Hashes { entry: 3, first: 1, hashes: vec![[9; 32]; 2] },
            Record::Results(vec![FileResult { entry: 1, outcome: Err("why".into()) }]),
        ] {
            let frame = record.to_frame();
            assert_eq!(Record::read(&frame[FRAME_HEADER_BYTES..]), Ok(record));
        }
    }

    #[test]
    fn a_path_that_leaves_the_directory_is_no_record() {
        let mut body = postcard::to_stdvec(&Record::Entries(vec![entry("aa/b", 7)])).unwrap();
        let at = body.windows(4).position(|bytes| bytes == b"aa/b").unwrap();
        body[at..at + 2].copy_from_slice(b"..");
        assert!(Record::read(&body).is_err());
    }

    proptest! {
        #[test]
        fn garbage_is_an_error_and_never_a_panic(body in proptest::collection::vec(any::<u8>(), 0..500)) {
            let _ = Record::read(&body);
        }
    }
}
