//! What a sender brings: the list of it, made as it is walked, and the content.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use rustix::fs::{OFlags, SeekFrom};
use rustix::io::Errno;
use sweetspot_protocol::RelativePath;
use sweetspot_protocol::record::{Entry, EntryKind};
use sweetspot_units::Bytes;

use crate::TransferError;

/// Values of extended attributes are sent up to this length, bytes (XATTR_SIZE_MAX).
const MAX_ATTRIBUTE_BYTES: usize = 64 << 10;

/// What to send.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// Files and directories. `-` is standard input. A directory with `/` at its end stands for what is in it.
    pub paths: Vec<PathBuf>,
    /// Names below the only path, one for each thing to send, in place of all of it.
    pub only: Option<Vec<PathBuf>>,
    /// The name at the receiver of the only path; `None`: its own.
    pub name: Option<String>,
    /// Patterns of what to leave out, as in a shell; those with `/` match from the top.
    pub exclude: Vec<String>,
    /// Whether to send extended attributes.
    pub attributes: bool,
    /// Whether to send holes as content.
    pub dense: bool,
}

impl Sources {
    /// Whether they can be sent, as far as that is known before: they are there, and the names and patterns are good.
    pub fn check(&self) -> Result<(), TransferError> {
        SourceList::new(self).map(|_| ())
    }
}

/// Sources that were looked at, so that they can be listed.
pub(crate) struct SourceList {
    tops: Vec<Top>,
    only: Option<Vec<PathBuf>>,
    exclude: GlobSet,
    attributes: bool,
    dense: bool,
    pub name: String,
    /// The length of the only file.
    pub size: Option<Bytes>,
    pub one_file: bool,
    pub many: bool,
}

/// One of the paths to send.
struct Top {
    path: PathBuf,
    /// Its name at the receiver; `None`: what is in it goes to the top.
    name: Option<Vec<u8>>,
    standard_input: bool,
}

/// Where the content of an entry comes from.
#[derive(Debug, Clone)]
pub(crate) struct SourceFile {
    pub path: PathBuf,
    /// `None`: standard input.
    pub size: Option<u64>,
    pub modified: (i64, u32),
    pub sparse: bool,
}

/// An entry, or the reason why there is none.
pub(crate) enum Listed {
    Entry(Entry, Option<SourceFile>),
    LeftOut(String),
}

impl SourceList {
    /// Looks at what is to be sent.
    pub fn new(sources: &Sources) -> Result<SourceList, TransferError> {
        let [first, rest @ ..] = &sources.paths[..] else {
            return Err(TransferError::NothingToSend("name a file or a directory".into()));
        };
        if sources.name.is_some() && !rest.is_empty() {
            let why = "--name goes with one file or directory; there are several".to_owned();
            return Err(TransferError::NothingToSend(why));
        }
        let tops = sources.paths.iter().map(|path| Top::new(path, sources.name.as_deref()));
        let tops: Vec<Top> = tops.collect::<Result<_, _>>()?;
        let metadata = (!tops[0].standard_input)
            .then(|| std::fs::metadata(first).map_err(|e| unreadable(first, e)))
            .transpose()?;
        let only_file = rest.is_empty() && metadata.as_ref().is_some_and(Metadata::is_file);
        let one_file = only_file || rest.is_empty() && tops[0].standard_input;
        let contents = tops.iter().any(|top| top.name.is_none());
        let name = match (&tops[..], contents) {
            ([top], false) => {
                String::from_utf8_lossy(top.name.as_deref().unwrap_or_default()).into_owned()
            }
            ([top], true) => top.path.display().to_string(),
            _ => format!("{} things", tops.len()),
        };
        Ok(SourceList {
            many: tops.len() > 1 || contents,
            tops,
            only: sources.only.clone(),
            exclude: patterns(&sources.exclude)?,
            attributes: sources.attributes,
            dense: sources.dense,
            name,
            size: metadata.filter(|_| only_file).map(|metadata| Bytes::new(metadata.len())),
            one_file,
        })
    }

    /// Whether what is sent can be sent again: standard input cannot.
    pub fn can_be_repeated(&self) -> bool {
        self.tops.iter().all(|top| !top.standard_input)
    }

    /// Lists everything, in order; ends early when `take` refuses.
    pub fn list(
        &self,
        mut take: impl FnMut(Listed) -> Result<(), TransferError>,
    ) -> Result<(), TransferError> {
        let mut walk = Walk { list: self, links: HashMap::new(), next: 0, take: &mut take };
        self.tops.iter().try_for_each(|top| walk.top(top))
    }
}

impl Top {
    fn new(path: &Path, name: Option<&str>) -> Result<Top, TransferError> {
        if path == Path::new("-") {
            let name = name.unwrap_or("stdin").as_bytes().to_vec();
            return Ok(Top { path: path.into(), name: Some(name), standard_input: true });
        }
        let is_directory = std::fs::metadata(path).map_err(|e| unreadable(path, e))?.is_dir();
        let bytes = path.as_os_str().as_bytes();
        let contents = is_directory && (bytes.ends_with(b"/") || bytes.ends_with(b"/."));
        let own = match name {
            Some(name) => Some(name.as_bytes().to_vec()),
            None if contents || bytes == b"." => None,
            None => match path.file_name() {
                Some(name) => Some(name.as_bytes().to_vec()),
                // A path such as `..`: named by what it leads to.
                None => {
                    let full = path.canonicalize().map_err(|e| unreadable(path, e))?;
                    full.file_name().map(|name| name.as_bytes().to_vec())
                }
            },
        };
        if let Some(name) = &own {
            RelativePath::new(name.clone())?;
            if name.contains(&b'/') {
                let name = String::from_utf8_lossy(name);
                let reason = "it holds a slash; send it under another with --name NAME";
                return Err(TransferError::NothingToSend(format!(
                    "the name \"{name}\" is refused: {reason}"
                )));
            }
        }
        Ok(Top { path: path.to_owned(), name: own, standard_input: false })
    }
}

struct Walk<'a> {
    list: &'a SourceList,
    /// The first entry of each file that has several names, by device and inode.
    links: HashMap<(u64, u64), u32>,
    next: u32,
    take: &'a mut dyn FnMut(Listed) -> Result<(), TransferError>,
}

impl Walk<'_> {
    fn top(&mut self, top: &Top) -> Result<(), TransferError> {
        if top.standard_input {
            let Some(Ok(path)) = top.name.clone().map(RelativePath::new) else { return Ok(()) };
            let modified = (0, 0);
            let file = SourceFile { path: top.path.clone(), size: None, modified, sparse: false };
            let attributes = Vec::new();
            let entry = Entry { path, kind: EntryKind::Stream, mode: 0o644, modified, attributes };
            return self.emit(entry, Some(file));
        }
        // What is named is followed, as scp does; links further down are sent as links.
        let metadata = std::fs::metadata(&top.path).map_err(|e| unreadable(&top.path, e))?;
        match (&top.name, &self.list.only) {
            (_, Some(only)) => {
                let name = top.name.as_deref();
                only.iter().try_for_each(|path| self.only(&top.path, name, path))
            }
            (Some(name), None) => {
                let path = RelativePath::new(name.clone())?;
                self.node(&top.path, path, &metadata)
            }
            (None, None) => self.children(&top.path, None),
        }
    }

    /// One of the names of `--files-from`, with the directories that lead to it.
    fn only(&mut self, top: &Path, name: Option<&[u8]>, below: &Path) -> Result<(), TransferError> {
        let clean = below.strip_prefix("./").unwrap_or(below);
        let bytes = [name.unwrap_or_default(), clean.as_os_str().as_bytes()];
        let joined = if name.is_some() { bytes.join(&b'/') } else { bytes[1].to_vec() };
        let path = match RelativePath::new(joined.strip_suffix(b"/").unwrap_or(&joined)) {
            Ok(path) => path,
            Err(error) => return (self.take)(Listed::LeftOut(error.to_string())),
        };
        let full = top.join(clean);
        // The directories above, with their own modes; those listed before are found unchanged.
        let mut above: Vec<&Path> = clean.ancestors().skip(1).collect();
        above.reverse();
        for directory in above {
            let bytes = directory.as_os_str().as_bytes();
            let joined = match (name, bytes) {
                (None, b"") => continue,
                (Some(name), b"") => name.to_vec(),
                (Some(name), bytes) => [name, bytes].join(&b'/'),
                (None, bytes) => bytes.to_vec(),
            };
            let directory = top.join(directory);
            if let (Ok(path), Ok(metadata)) =
                (RelativePath::new(joined), std::fs::metadata(&directory))
            {
                let entry = self.entry(&directory, path, EntryKind::Directory, &metadata);
                self.emit(entry, None)?;
            }
        }
        match full.symlink_metadata() {
            Ok(metadata) => self.node(&full, path, &metadata),
            Err(error) => self.left_out(&full, &error),
        }
    }

    fn node(
        &mut self,
        path: &Path,
        name: RelativePath,
        metadata: &Metadata,
    ) -> Result<(), TransferError> {
        let (kind, full) = (metadata.file_type(), path);
        if kind.is_dir() {
            let below = name.clone();
            let entry = self.entry(full, name, EntryKind::Directory, metadata);
            self.emit(entry, None)?;
            return self.children(full, Some(&below));
        }
        if kind.is_symlink() {
            let target = match std::fs::read_link(full) {
                Ok(target) => target.into_os_string().into_vec(),
                Err(error) => return self.left_out(full, &error),
            };
            let entry = self.entry(full, name, EntryKind::Symlink { target }, metadata);
            return self.emit(entry, None);
        }
        if !kind.is_file() {
            let what = if kind.is_fifo() {
                "a pipe"
            } else if kind.is_socket() {
                "a socket"
            } else {
                "a device"
            };
            let why = format!("{}: it is {what}; it was left out", full.display());
            return (self.take)(Listed::LeftOut(why));
        }
        let sparse = is_sparse(metadata) && !self.list.dense;
        let mut kind = EntryKind::File { size: metadata.len(), sparse };
        if metadata.nlink() > 1 {
            let inode = (metadata.dev(), metadata.ino());
            match self.links.get(&inode) {
                Some(to) => kind = EntryKind::HardLink { to: *to },
                None => {
                    self.links.insert(inode, self.next);
                }
            }
        }
        let file = kind.has_content().then(|| SourceFile {
            path: full.to_owned(),
            size: Some(metadata.len()),
            modified: modified(metadata),
            sparse,
        });
        let entry = self.entry(full, name, kind, metadata);
        self.emit(entry, file)
    }

    fn children(
        &mut self,
        directory: &Path,
        below: Option<&RelativePath>,
    ) -> Result<(), TransferError> {
        let read = |directory: &Path| -> io::Result<Vec<OsString>> {
            let entries = std::fs::read_dir(directory)?;
            let mut names: Vec<OsString> =
                entries.map(|entry| Ok(entry?.file_name())).collect::<io::Result<_>>()?;
            names.sort();
            Ok(names)
        };
        let names = match read(directory) {
            Ok(names) => names,
            Err(error) => return self.left_out(directory, &error),
        };
        for name in names {
            let path = match below {
                Some(below) => below.join(name.as_bytes()),
                None => RelativePath::new(name.as_bytes()),
            };
            let path = match path {
                Ok(path) => path,
                Err(error) => {
                    (self.take)(Listed::LeftOut(error.to_string()))?;
                    continue;
                }
            };
            if self.list.exclude.is_match(OsStr::from_bytes(path.as_bytes())) {
                continue;
            }
            let full = directory.join(&name);
            match full.symlink_metadata() {
                Ok(metadata) => self.node(&full, path, &metadata)?,
                Err(error) => self.left_out(&full, &error)?,
            }
        }
        Ok(())
    }

    fn entry(
        &self,
        full: &Path,
        path: RelativePath,
        kind: EntryKind,
        metadata: &Metadata,
    ) -> Entry {
        let wanted = self.list.attributes && kind.has_content();
        let attributes = if wanted { attributes(full) } else { Vec::new() };
        let (mode, modified) = (metadata.mode() & 0o777, modified(metadata));
        Entry { path, kind, mode, modified, attributes }
    }

    fn emit(&mut self, entry: Entry, file: Option<SourceFile>) -> Result<(), TransferError> {
        self.next = self.next.checked_add(1).ok_or_else(|| {
            TransferError::NothingToSend("there are more than 4 billion files".into())
        })?;
        (self.take)(Listed::Entry(entry, file))
    }

    fn left_out(&mut self, path: &Path, error: &io::Error) -> Result<(), TransferError> {
        (self.take)(Listed::LeftOut(format!("{}: {error}; it was left out", path.display())))
    }
}

impl SourceFile {
    /// Opens the file; not a pipe that took its place, which could be waited for for ever.
    pub fn open(&self) -> io::Result<File> {
        let flags = OFlags::NONBLOCK.bits() as i32;
        File::options().read(true).custom_flags(flags).open(&self.path)
    }

    /// Whether the file is as it was when it was listed.
    pub fn is_unchanged(&self, file: &File) -> io::Result<bool> {
        let now = file.metadata()?;
        Ok(now.is_file() && Some(now.len()) == self.size && modified(&now) == self.modified)
    }
}

/// Where the next data of a file is at or after `offset`; `size` if there is none.
pub(crate) fn next_data(file: &File, offset: u64, size: u64) -> u64 {
    match rustix::fs::seek(file.as_fd(), SeekFrom::Data(offset)) {
        Ok(data) => data.min(size),
        Err(Errno::NXIO) => size,
        Err(_) => offset,
    }
}

fn modified(metadata: &Metadata) -> (i64, u32) {
    (metadata.mtime(), metadata.mtime_nsec() as u32)
}

/// Fewer blocks than content: there are holes.
fn is_sparse(metadata: &Metadata) -> bool {
    metadata.blocks() * 512 < metadata.len()
}

/// The extended attributes that may be read.
fn attributes(path: &Path) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut names = vec![0u8; MAX_ATTRIBUTE_BYTES];
    let Ok(length) = rustix::fs::llistxattr(path, &mut names[..]) else { return Vec::new() };
    let names = names[..length].split(|byte| *byte == 0).filter(|name| name.starts_with(b"user."));
    let mut value = vec![0u8; MAX_ATTRIBUTE_BYTES];
    let mut read = |name: &[u8]| {
        let length = rustix::fs::lgetxattr(path, OsStr::from_bytes(name), &mut value[..]).ok()?;
        Some((name.to_vec(), value[..length].to_vec()))
    };
    let mut total = 0;
    let fits = |(name, value): &(Vec<u8>, Vec<u8>)| {
        total += name.len() + value.len();
        total <= MAX_ATTRIBUTE_BYTES * 4
    };
    names.filter_map(&mut read).take_while(fits).collect()
}

/// Patterns as in a shell: without a slash they match a name at any depth, with one from the top.
fn patterns(patterns: &[String]) -> Result<GlobSet, TransferError> {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        let bad = |error: globset::Error| TransferError::Pattern {
            pattern: pattern.clone(),
            reason: error.kind().to_string(),
        };
        let bare = pattern.trim_end_matches('/');
        let anchored = match bare.strip_prefix('/') {
            Some(rest) => rest.to_owned(),
            None if bare.contains('/') => bare.to_owned(),
            None => format!("**/{bare}"),
        };
        set.add(GlobBuilder::new(&anchored).literal_separator(true).build().map_err(bad)?);
    }
    set.build().map_err(|error| TransferError::Pattern {
        pattern: patterns.join(" "),
        reason: error.to_string(),
    })
}

fn unreadable(path: &Path, source: io::Error) -> TransferError {
    TransferError::Unreadable { path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn listed(sources: Sources) -> Vec<(String, EntryKind)> {
        let mut all = Vec::new();
        let list = SourceList::new(&sources).unwrap();
        list.list(|item| {
            if let Listed::Entry(entry, _) = item {
                all.push((entry.path.to_string(), entry.kind));
            }
            Ok(())
        })
        .unwrap();
        all
    }

    fn names(sources: Sources) -> Vec<String> {
        listed(sources).into_iter().map(|(name, _)| name).collect()
    }

    fn tree() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().join("top");
        fs::create_dir_all(top.join("a/b")).unwrap();
        fs::write(top.join("a/b/deep.txt"), "deep").unwrap();
        fs::write(top.join("one.txt"), "one").unwrap();
        fs::write(top.join("two.log"), "two").unwrap();
        fs::hard_link(top.join("one.txt"), top.join("uno.txt")).unwrap();
        symlink("one.txt", top.join("zlink")).unwrap();
        dir
    }

    fn sources(path: PathBuf) -> Sources {
        Sources { paths: vec![path], ..Sources::default() }
    }

    #[test]
    fn a_directory_is_listed_in_order_under_its_name() {
        let dir = tree();
        let all = listed(sources(dir.path().join("top")));
        let names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
        let expected = [
            "top",
            "top/a",
            "top/a/b",
            "top/a/b/deep.txt",
            "top/one.txt",
            "top/two.log",
            "top/uno.txt",
            "top/zlink",
        ];
        assert_eq!(names, expected);
        assert_eq!(all[6].1, EntryKind::HardLink { to: 4 });
        assert_eq!(all[7].1, EntryKind::Symlink { target: b"one.txt".to_vec() });
    }

    #[test]
    fn a_slash_at_the_end_stands_for_what_is_in_it() {
        let dir = tree();
        let path = PathBuf::from(format!("{}/", dir.path().join("top").display()));
        let list = SourceList::new(&sources(path.clone())).unwrap();
        assert!(list.many);
        assert_eq!(names(sources(path))[..2], ["a", "a/b"]);
    }

    #[test]
    fn what_is_excluded_is_left_out_with_all_below() {
        let dir = tree();
        let with = |pattern: &str| {
            let exclude = vec![pattern.to_owned()];
            names(Sources { exclude, ..sources(dir.path().join("top")) })
        };
        assert!(!with("*.log").contains(&"top/two.log".to_owned()));
        assert!(!with("b").iter().any(|name| name.contains("deep")));
        assert!(!with("top/a").iter().any(|name| name.contains("deep")));
        assert!(with("/a").iter().any(|name| name.contains("deep")));
        let exclude = vec!["[".to_owned()];
        assert!(SourceList::new(&Sources { exclude, ..sources(dir.path().into()) }).is_err());
    }

    #[test]
    fn only_what_is_named_comes_with_the_directories_that_lead_to_it() {
        let dir = tree();
        let only = Some(vec!["a/b/deep.txt".into(), "missing".into()]);
        let path = PathBuf::from(format!("{}/", dir.path().join("top").display()));
        assert_eq!(names(Sources { only, ..sources(path) }), ["a", "a/b", "a/b/deep.txt"]);
    }

    #[test]
    fn what_is_not_there_is_named() {
        let missing = SourceList::new(&sources("/nowhere/at/all".into())).err().unwrap();
        assert!(missing.to_string().contains("/nowhere/at/all"));
        assert!(SourceList::new(&Sources::default()).is_err());
    }

    #[test]
    fn the_holes_of_a_file_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sparse");
        let file = File::create(&path).unwrap();
        file.set_len(10 << 20).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, b"x", 5 << 20).unwrap();
        let file = File::open(&path).unwrap();
        let data = next_data(&file, 0, 10 << 20);
        assert!(data <= 5 << 20);
        if is_sparse(&file.metadata().unwrap()) {
            assert!(data > 4 << 20);
            assert_eq!(next_data(&file, 6 << 20, 10 << 20), 10 << 20);
        }
    }
}
