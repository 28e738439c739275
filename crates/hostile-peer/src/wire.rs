use serde::Serialize;
use sweetspot_protocol::frame::PieceHeader;
use sweetspot_protocol::hash_tree::PieceHash;
use sweetspot_protocol::record::{EntryKind, Owner};

/// The kind byte of a record's frame.
pub(crate) const RECORD: u8 = 2;
/// The kind byte of a message's frame.
pub(crate) const MESSAGE: u8 = 1;

/// An entry with arbitrary bytes as its path: absolute, `..`, empty, or with escape sequences.
#[derive(Debug, Clone, Serialize)]
pub struct RawEntry {
    /// The path, unchecked.
    pub path: Vec<u8>,
    /// The claimed kind.
    pub kind: EntryKind,
    /// The mode, with arbitrary bits.
    pub mode: u32,
    /// Time of the last change: seconds since 1970, and nanoseconds.
    pub modified: (i64, u32),
    /// Its owner.
    pub owner: Option<Owner>,
    /// Extended attributes.
    pub attributes: Vec<(Vec<u8>, Vec<u8>)>,
}

impl RawEntry {
    /// An entry of any kind with harmless metadata.
    pub fn new(path: impl AsRef<[u8]>, kind: EntryKind) -> RawEntry {
        let (path, modified) = (path.as_ref().to_vec(), (1_700_000_000, 0));
        RawEntry { path, kind, mode: 0o644, modified, owner: None, attributes: vec![] }
    }

    /// A file of `size` bytes.
    pub fn file(path: impl AsRef<[u8]>, size: u64) -> RawEntry {
        RawEntry::new(path, EntryKind::File { size, sparse: false })
    }

    /// A file of `size` bytes with holes.
    pub fn sparse(path: impl AsRef<[u8]>, size: u64) -> RawEntry {
        RawEntry::new(path, EntryKind::File { size, sparse: true })
    }

    /// A directory.
    pub fn directory(path: impl AsRef<[u8]>) -> RawEntry {
        RawEntry { mode: 0o755, ..RawEntry::new(path, EntryKind::Directory) }
    }

    /// A symbolic link.
    pub fn symlink(path: impl AsRef<[u8]>, target: impl AsRef<[u8]>) -> RawEntry {
        RawEntry::new(path, EntryKind::Symlink { target: target.as_ref().to_vec() })
    }

    /// A hard link to entry number `to`.
    pub fn hard_link(path: impl AsRef<[u8]>, to: u32) -> RawEntry {
        RawEntry::new(path, EntryKind::HardLink { to })
    }
}

/// A frame of arbitrary kind, body and length.
pub fn frame(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).expect("a frame's length has four bytes");
    [&[kind][..], &length.to_be_bytes(), body].concat()
}

/// The frame of a record with these entries.
pub fn entries(list: &[RawEntry]) -> Vec<u8> {
    // The first variant of `Record`, with unchecked paths.
    #[derive(Serialize)]
    enum RawRecord<'a> {
        Entries(&'a [RawEntry]),
    }
    frame(RECORD, &postcard::to_stdvec(&RawRecord::Entries(list)).expect("entries can be written"))
}

/// The frame of a piece, with an arbitrary hash.
pub fn piece(entry: u32, piece: u32, hash: PieceHash, content: &[u8]) -> Vec<u8> {
    let header = PieceHeader { entry, piece, hash, length: content.len() as u32 };
    [&header.to_bytes()[..], content].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use sweetspot_protocol::RelativePath;
    use sweetspot_protocol::frame::FRAME_HEADER_BYTES;
    use sweetspot_protocol::record::{Entry, Record};

    #[test]
    fn a_raw_entry_decodes_to_the_entry_it_imitates() {
        let raw = RawEntry { attributes: vec![(b"a".to_vec(), vec![0])], ..RawEntry::file("f", 7) };
        let entry = Entry {
            path: RelativePath::new("f").unwrap(),
            kind: raw.kind.clone(),
            mode: raw.mode,
            modified: raw.modified,
            owner: None,
            attributes: raw.attributes.clone(),
        };
        let frame = entries(&[raw]);
        assert_eq!(Record::read(&frame[FRAME_HEADER_BYTES..]), Ok(Record::Entries(vec![entry])));
    }
}
