//! The names that a transfer must keep until its end.

use sweetspot_protocol::RelativePath;

use crate::limits::MAX_LISTED_BYTES;

/// Names in a chunk: the first is complete, and each further one omits the prefix that it shares with its predecessor.
const CHUNK: usize = 64;

/// The paths of entries by number. Hard links refer to them, and directories get their times at the end. Names in one directory
/// share most of their paths, so a million names take about 20 MB.
#[derive(Default)]
pub(super) struct NameList {
    chunks: Vec<Box<[u8]>>,
    /// The chunk that is being filled.
    open: Vec<u8>,
    last: Vec<u8>,
    count: usize,
    bytes: usize,
    /// Whether the limit is reached, so that nothing more is added.
    full: bool,
}

impl NameList {
    /// Adds the path of entry `number`, which must be larger than all before it. With it go the announced properties of a file;
    /// `extra` is the size of data kept elsewhere for this entry, bytes. Returns false if the list is full.
    pub fn push(
        &mut self,
        number: u32,
        path: &RelativePath,
        file: Option<Announced>,
        extra: usize,
    ) -> bool {
        // Skipped numbers belong to entries without a usable name.
        while self.count < number as usize && self.add(b"", None, 0) {}
        self.add(path.as_bytes(), file, extra)
    }

    fn add(&mut self, path: &[u8], file: Option<Announced>, extra: usize) -> bool {
        let shared = if self.count.is_multiple_of(CHUNK) { 0 } else { common(&self.last, path) };
        // Two lengths of two bytes each, and a flag for the file properties.
        let bytes = path.len() - shared + 5 + file.map_or(0, |_| ANNOUNCED_BYTES);
        self.full |= self.bytes + bytes + extra > MAX_LISTED_BYTES;
        if self.full {
            return false;
        }
        let lengths = [shared, path.len() - shared].map(|length| (length as u16).to_le_bytes());
        self.open.extend(lengths.as_flattened());
        self.open.extend(&path[shared..]);
        self.open.push(file.is_some().into());
        if let Some(Announced { size, modified }) = file {
            self.open.extend(size.unwrap_or(u64::MAX).to_le_bytes());
            self.open.extend(modified.to_le_bytes());
        }
        self.last.clear();
        self.last.extend(path);
        self.bytes += bytes + extra;
        self.count += 1;
        if self.count.is_multiple_of(CHUNK) {
            // Copy the chunk at its exact size, and reuse the buffer.
            self.chunks.push(self.open.as_slice().into());
            self.open.clear();
        }
        true
    }

    /// The path of an entry, and the announced properties if it is a file; `None` if it was not added.
    pub fn get(&self, number: u32) -> Option<(RelativePath, Option<Announced>)> {
        let number = number as usize;
        if number >= self.count {
            return None;
        }
        let mut rest = self.chunks.get(number / CHUNK).map_or(&self.open[..], |chunk| chunk);
        let (mut path, mut file) = (Vec::new(), None);
        for _ in 0..=number % CHUNK {
            let (shared, after) = length(rest)?;
            let (added, after) = length(after)?;
            path.truncate(shared);
            path.extend(after.get(..added)?);
            let (is_file, after) = after[added..].split_first()?;
            (file, rest) = if *is_file == 0 { (None, after) } else { announced(after)? };
        }
        Some((RelativePath::new(path).ok()?, file))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Announced {
    /// `None` for a stream.
    pub size: Option<u64>,
    /// Time of the last change, seconds since 1970.
    pub modified: i64,
}

const ANNOUNCED_BYTES: usize = 16;

fn announced(bytes: &[u8]) -> Option<(Option<Announced>, &[u8])> {
    let (size, rest) = bytes.split_first_chunk::<8>()?;
    let (modified, rest) = rest.split_first_chunk::<8>()?;
    let size = Some(u64::from_le_bytes(*size)).filter(|size| *size < u64::MAX);
    Some((Some(Announced { size, modified: i64::from_le_bytes(*modified) }), rest))
}

fn length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<2>()?;
    Some((u16::from_le_bytes(*length).into(), rest))
}

/// Length of the common prefix.
fn common(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> RelativePath {
        RelativePath::new(text).unwrap()
    }

    #[test]
    fn names_are_retrieved_by_number() {
        let text = |n: usize| match n % 3 {
            0 => format!("a/directory{}/file{n}", n / 7),
            1 => format!("{n}"),
            _ => "x/".repeat(n % 90) + "y",
        };
        let file = |n: usize| {
            let size = (n % 4 != 1).then_some(n as u64);
            (!n.is_multiple_of(4)).then_some(Announced { size, modified: -(n as i64) })
        };
        let mut names = NameList::default();
        // Every fifth entry was rejected, and has no name.
        for n in (0..1000).filter(|n| n % 5 > 0) {
            assert!(names.push(n as u32, &path(&text(n)), file(n), 0));
        }
        for n in 0..1000 {
            let expected = (n % 5 > 0).then(|| (path(&text(n)), file(n)));
            assert_eq!(names.get(n as u32), expected);
        }
        assert_eq!(names.get(1000), None);
    }

    #[test]
    fn the_name_list_stays_within_its_memory_limit() {
        let mut names = NameList::default();
        // No prefixes are shared, so each path takes its 4087 bytes.
        let text = |n: u32| format!("{:08}/", n + 10_000_000 * (n % 9)).repeat(454) + "x";
        let count = (0..).take_while(|n| names.push(*n, &path(&text(*n)), None, 0)).count();
        assert!(count * 4087 <= MAX_LISTED_BYTES && (count + 1) * 4092 > MAX_LISTED_BYTES);
        let held: usize = names.chunks.iter().map(|chunk| chunk.len()).sum();
        assert!(held + names.open.len() <= MAX_LISTED_BYTES);
        assert!(!names.push(u32::MAX, &path("a"), None, 0), "once full it stays full");
        assert!(names.get(0).is_some() && names.get(count as u32).is_none());
    }

    /// A million files, a hundred in each directory, as in a backup.
    #[test]
    fn a_million_names_take_less_than_41_megabytes() {
        let mut names = NameList::default();
        let file = Some(Announced { size: Some(1), modified: 1 });
        for n in 0..1_000_000 {
            let (year, set) = (n / 50_000, n / 100);
            let text = format!("home/user/documents/year{year:02}/set{set:04}/picture-{n:07}.jpg");
            assert!(names.push(n, &path(&text), file, 0));
        }
        // At most 19 bytes differ from the previous name, and usually 5 to 6. Lengths and announced properties take 21.
        assert!(names.bytes < 41_000_000, "{}", names.bytes);
    }
}
