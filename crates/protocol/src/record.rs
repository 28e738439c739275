//! Records about files, sent by both ends, as compact binary frames in postcard's specified format.
//!
//! The sender lists entries; an entry's number is its position in the list, counted from 0. The receiver answers each
//! entry in order. Hashes are BLAKE3's, see [`crate::hash_tree`].

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use thiserror::Error;

use crate::frame;
use crate::hash_tree::PieceHash;
use crate::peer_text::PeerText;
use crate::relative_path::RelativePath;

/// The maximum number of entries, answers or results in one record.
pub const MAX_BATCH: usize = 512;
/// The maximum number of extended attributes of one entry. Only with very short names could Linux list more in its 64
/// KiB of names.
pub const MAX_ATTRIBUTES: usize = 1024;
/// The maximum number of hashes in one record: 32 KiB of hashes, for 256 MiB of content.
pub const MAX_HASHES: usize = 1024;

/// A record about files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Record {
    /// Sender: its next entries.
    Entries(#[serde(deserialize_with = "at_most::<MAX_BATCH, _, _>")] Vec<Entry>),
    /// Sender: all entries were listed.
    Listed {
        /// Number of entries of all kinds.
        entries: u32,
        /// Number of files and links. Older peers count files with content.
        files: u32,
        /// Bytes of all files together.
        bytes: u64,
        /// Number of files, directories and links that the sender has and could not list.
        left_out: u32,
    },
    /// Receiver: its answers to the next entries, in the order of the list.
    Answers(#[serde(deserialize_with = "at_most::<MAX_BATCH, _, _>")] Vec<Answer>),
    /// Receiver: hashes of pieces that it has of an entry, in order.
    Hashes {
        /// The entry's number.
        entry: u32,
        /// The number of the first piece.
        first: u32,
        /// The hashes of the pieces.
        hashes: Vec<PieceHash>,
    },
    /// Sender: these pieces are holes.
    Holes {
        /// The entry's number.
        entry: u32,
        /// The number of the first piece.
        first: u32,
        /// Number of pieces.
        pieces: u32,
    },
    /// Sender: all pieces of these entries that the receiver lacked were sent.
    Ends(Vec<FileEnd>),
    /// Sender: an entry cannot be delivered.
    Gone {
        /// The entry's number.
        entry: u32,
        /// The reason, in one line.
        reason: PeerText,
    },
    /// Receiver: these entries are complete, or failed.
    Results(#[serde(deserialize_with = "at_most::<MAX_BATCH, _, _>")] Vec<FileResult>),
    /// Packets of a measuring stream that arrived, in the order of arrival, at most [`MAX_ARRIVALS`].
    Arrivals(Vec<StreamArrival>),
    /// Sender: the start of an entry's content, before the receiver has answered. Only if the receiver accepts it.
    Early {
        /// The entry's number.
        entry: u32,
        /// The first bytes of the entry's first piece, without the piece's last byte.
        content: Vec<u8>,
    },
    /// Receiver: names that it deleted, or in a dry run would delete.
    Deleted {
        /// Names below its directory.
        #[serde(deserialize_with = "at_most::<MAX_BATCH, _, _>")]
        names: Vec<PeerText>,
        /// Reasons for failed deletions, one line each.
        #[serde(deserialize_with = "at_most::<MAX_BATCH, _, _>")]
        failures: Vec<PeerText>,
    },
}

/// The maximum number of arrivals in one record; each takes at most 25 bytes.
pub const MAX_ARRIVALS: usize = 32 << 10;

/// The arrival of a packet of a measuring stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamArrival {
    /// The packet's position in the stream, from 0.
    pub index: u32,
    /// Sending time, nanoseconds on the sender's clock.
    pub sent_ns: u64,
    /// Time of reception by the kernel, nanoseconds on the receiver's clock.
    pub received_ns: u64,
}

/// An item that the sender transfers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its target path, below the receiver's directory.
    pub path: RelativePath,
    /// Its kind.
    pub kind: EntryKind,
    /// Permission, set-user-ID, set-group-ID and sticky bits (0o7777). A receiver sets only the permissions.
    pub mode: u32,
    /// Modification time: seconds since 1970, and nanoseconds of the second.
    pub modified: (i64, u32),
    /// Its owner, if owners were requested.
    pub owner: Option<Box<Owner>>,
    /// Extended attributes: names and values.
    #[serde(deserialize_with = "at_most::<MAX_ATTRIBUTES, _, _>")]
    pub attributes: Vec<(Vec<u8>, Vec<u8>)>,
}

/// Whether `entry` has a set-user-ID, set-group-ID or sticky bit. A hard link adds none.
pub fn has_special_bits(entry: &Entry) -> bool {
    entry.mode & 0o7000 != 0 && !matches!(entry.kind, EntryKind::HardLink { .. })
}

/// The user and the group that own an entry at the sender.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// The user ID.
    pub user: u32,
    /// The group ID.
    pub group: u32,
    /// The user's name; empty if the sender does not know it.
    pub user_name: PeerText,
    /// The group's name; empty if the sender does not know it.
    pub group_name: PeerText,
}

/// The kinds of entries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum EntryKind {
    /// A file of this many bytes.
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
        /// The link's target.
        target: Vec<u8>,
    },
    /// A hard link to a file that was listed before.
    HardLink {
        /// That file's number.
        to: u32,
    },
    /// A pipe, a socket or a device, which is not transferred; the receiver leaves that name alone.
    Special,
}

/// The content that the receiver requests for an entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// No content: the file exists with the same length and time, or the entry has no content.
    Nothing,
    /// All content. In a dry run, also for an entry without content: it would be created.
    All,
    /// The pieces that differ from those with the hashes that follow.
    Different {
        /// Number of hashes that follow.
        pieces: u32,
    },
    /// Only a comparison with the hashes that follow: the existing file may not be replaced.
    Compare {
        /// Number of hashes that follow.
        pieces: u32,
    },
    /// No content: the entry is rejected.
    Refused {
        /// The reason, in one line.
        reason: PeerText,
    },
    /// No content, in a dry run: only the entry's mode, owner or extended attributes would change.
    Attributes,
}

/// The end of a file's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEnd {
    /// The entry's number.
    pub entry: u32,
    /// The length, bytes.
    pub size: u64,
    /// Number of pieces that were sent, including holes.
    pub pieces_sent: u32,
    /// BLAKE3 of the whole content.
    pub hash: [u8; 32],
}

/// The result for an entry with content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileResult {
    /// The entry's number.
    pub entry: u32,
    /// BLAKE3 of the written content, or the reason for the failure.
    pub outcome: Result<[u8; 32], PeerText>,
}

/// The body of a frame is not a record. Holds the parser's reason.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("an invalid record ({0})")]
pub struct RecordError(PeerText);

impl Record {
    /// The frame that carries this record.
    pub fn to_frame(&self) -> Vec<u8> {
        // All lengths are known, so serialisation cannot fail.
        frame::record(&postcard::to_stdvec(self).unwrap_or_default())
    }

    /// Parses a record from the body of its frame. The whole body must be used.
    pub fn read(body: &[u8]) -> Result<Record, RecordError> {
        match postcard::take_from_bytes(body) {
            Ok((record, [])) => Ok(record),
            Ok(_) => Err(RecordError("bytes after its end".into())),
            Err(error) => Err(RecordError(error.to_string().into())),
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
            Record::Early { .. } => "early content",
            Record::Deleted { .. } => "names of deleted files",
        }
    }
}

/// Parses a list of at most `MAX` items. A longer list is rejected before memory is allocated: an item may be much
/// shorter in a record than in memory.
fn at_most<'de, const MAX: usize, T, D>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    struct Items<const MAX: usize, T>(PhantomData<T>);

    impl<'de, const MAX: usize, T: Deserialize<'de>> Visitor<'de> for Items<MAX, T> {
        type Value = Vec<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "a list of at most {MAX} items")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Vec<T>, A::Error> {
            let mut list = Vec::new();
            while let Some(item) = items.next_element()? {
                if list.len() == MAX {
                    return Err(A::Error::custom("a list is too long"));
                }
                list.push(item);
            }
            Ok(list)
        }
    }

    deserializer.deserialize_seq(Items::<MAX, T>(PhantomData))
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
            owner: None,
            attributes: vec![(b"user.a".to_vec(), vec![0, 255])],
        }
    }

    #[test]
    fn a_record_decodes_as_sent() {
        for record in [
            Record::Entries(vec![entry("a/b", 7)]),
            Record::Answers(vec![
                Answer::All,
                Answer::Refused { reason: "no".into() },
                Answer::Attributes,
            ]),
            Record::Hashes { entry: 3, first: 1, hashes: vec![[9; 32]; 2] },
            Record::Results(vec![FileResult { entry: 1, outcome: Err("why".into()) }]),
            Record::Early { entry: 1, content: vec![7; 300] },
        ] {
            let frame = record.to_frame();
            assert_eq!(Record::read(&frame[FRAME_HEADER_BYTES..]), Ok(record));
        }
    }

    #[test]
    fn a_record_with_an_overlong_list_is_rejected() {
        let lists = |n: usize| {
            let attributes = |count| vec![(Vec::new(), Vec::new()); count];
            let many = Entry { attributes: attributes(MAX_ATTRIBUTES - 1 + n), ..entry("a", 7) };
            let result = FileResult { entry: 1, outcome: Ok([0; 32]) };
            [
                Record::Entries(vec![entry("a", 7); MAX_BATCH - 1 + n]),
                Record::Entries(vec![many]),
                Record::Answers(vec![Answer::All; MAX_BATCH - 1 + n]),
                Record::Results(vec![result; MAX_BATCH - 1 + n]),
                Record::Deleted { names: vec!["f".into(); MAX_BATCH - 1 + n], failures: vec![] },
                Record::Deleted { names: vec![], failures: vec!["f".into(); MAX_BATCH - 1 + n] },
            ]
        };
        for (longest, too_long) in lists(1).into_iter().zip(lists(2)) {
            let read = |record: &Record| Record::read(&record.to_frame()[FRAME_HEADER_BYTES..]);
            assert_eq!(read(&longest), Ok(longest.clone()));
            assert!(read(&too_long).is_err());
        }
    }

    #[test]
    fn a_record_with_a_path_outside_the_directory_is_rejected() {
        let mut body = postcard::to_stdvec(&Record::Entries(vec![entry("aa/b", 7)])).unwrap();
        let at = body.windows(4).position(|bytes| bytes == b"aa/b").unwrap();
        body[at..at + 2].copy_from_slice(b"..");
        assert!(Record::read(&body).is_err());
    }

    proptest! {
        #[test]
        fn garbage_causes_no_panic(body in proptest::collection::vec(any::<u8>(), 0..500)) {
            let _ = Record::read(&body);
        }
    }
}
