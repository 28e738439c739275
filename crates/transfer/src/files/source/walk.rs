//! The walk that lists files, by descriptors: a directory that is swapped for a link does not lead elsewhere.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::vec;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RawDir, Stat};
use rustix::io::Errno;
use sweetspot_protocol::record::{Entry, EntryKind, MAX_ATTRIBUTES};
use sweetspot_protocol::{Printable, RelativePath};

use super::root::{SourceFile, SourceRoot};
use super::snapshot::{Growth, Snapshot};
use super::{Listed, SourceList, SourcePath};
use crate::error::system;
use crate::files::target;
use crate::limits::{MAX_ATTRIBUTE_BYTES, attribute_bytes};
use crate::{Result, TransferError};

/// The buffer size for directory entries, as in the C library.
const NAMES_BYTES: usize = 32 << 10;
/// The number of directories kept open on the way to the current one: a tree may be deeper than the descriptor limit.
const MAX_OPEN_LEVELS: usize = 16;
/// The number of named paths kept open.
const MAX_OPEN_ROOTS: usize = 64;

pub(super) struct Walk<'a> {
    list: &'a SourceList,
    /// The first entry of each file that has several names, by device and inode.
    links: HashMap<(u64, u64), u32>,
    /// The names of files so far, by a hash; `None` where each can come once only.
    seen: Option<HashSet<u64>>,
    key: RandomState,
    next: u32,
    roots: usize,
    names: Vec<u8>,
    take: &'a mut dyn FnMut(Listed) -> Result<()>,
}

/// A directory that is being listed.
struct Level {
    /// Its path at the receiver; `None`: its contents go to the top.
    path: Option<RelativePath>,
    /// Its descriptor, while it is among the deepest.
    directory: Option<OwnedFd>,
    identity: (u64, u64),
    /// The names in it that come next.
    names: vec::IntoIter<Vec<u8>>,
}

/// A name in an open directory; for a root, the named path.
#[derive(Clone, Copy)]
struct EntryPlace<'a> {
    root: &'a Arc<SourceRoot>,
    directory: BorrowedFd<'a>,
    name: &'a OsStr,
}

impl<'a> Walk<'a> {
    pub fn new(list: &'a SourceList, take: &'a mut dyn FnMut(Listed) -> Result<()>) -> Walk<'a> {
        let names = Vec::with_capacity(NAMES_BYTES);
        let merges = list.tops.len() > 1 && list.tops.iter().any(|top| top.name.is_none());
        let (seen, key) = (merges.then(HashSet::new), RandomState::new());
        Walk { list, links: HashMap::new(), seen, key, next: 0, roots: 0, names, take }
    }

    /// Lists one of the paths that were named.
    pub fn top(&mut self, top: &SourcePath) -> Result<()> {
        if top.standard_input {
            return self.standard_input(top);
        }
        let kept = self.roots < MAX_OPEN_ROOTS;
        self.roots += 1;
        // A named link is followed, as scp does; links further down are sent as links.
        let (root, stat) = match SourceRoot::open(&top.path, top.name.as_deref(), kept) {
            Ok(opened) => opened,
            Err(source) => {
                let error = super::unreadable(&top.path, source);
                let alone = self.list.tops.len() + self.list.missing.len() == 1;
                return if alone {
                    Err(error)
                } else {
                    (self.take)(Listed::LeftOut(error.to_string()))
                };
            }
        };
        let root = Arc::new(root);
        match (&top.name, &self.list.only) {
            (_, Some(only)) => only.iter().try_for_each(|below| self.only(&root, top, below)),
            (Some(name), None) => {
                let path = RelativePath::new(name.clone())?;
                let place = EntryPlace { root: &root, directory: CWD, name: top.path.as_os_str() };
                match self.node(place, path, &stat)? {
                    Some(path) => self.tree(&root, Some(path)),
                    None => Ok(()),
                }
            }
            (None, None) => self.tree(&root, None),
        }
    }

    fn standard_input(&mut self, top: &SourcePath) -> Result<()> {
        let name = top.name.as_deref().unwrap_or_default();
        let path = RelativePath::new(name)?;
        let root = Arc::new(SourceRoot::standard_input(&top.path, name));
        let file = SourceFile::standard_input(&root, &path);
        let (modified, attributes) = ((0, 0), Vec::new());
        let entry =
            Entry { path, kind: EntryKind::Stream, mode: 0o644, modified, owner: None, attributes };
        self.emit(entry, Some(file))
    }

    /// One of the names of `--files-from`, with the directories that lead to it.
    fn only(&mut self, root: &Arc<SourceRoot>, top: &SourcePath, below: &Path) -> Result<()> {
        let clean = below.strip_prefix("./").unwrap_or(below).as_os_str().as_bytes();
        let joined = match &top.name {
            Some(name) => [name, clean].join(&b'/'),
            None => clean.to_vec(),
        };
        let path = match RelativePath::new(joined.strip_suffix(b"/").unwrap_or(&joined)) {
            Ok(path) => path,
            Err(error) => return (self.take)(Listed::LeftOut(error.to_string())),
        };
        // The parent directories, with their own modes; those already listed count as unchanged.
        let slashes = path.as_bytes().iter().enumerate().filter(|(_, byte)| **byte == b'/');
        let open = |below: &[u8]| {
            let directory = root.open_directory(below, OFlags::PATH)?;
            Ok((rustix::fs::fstat(&directory)?, directory))
        };
        let mut parent = open(b"").map(|(_, directory)| directory);
        let mut directories = Vec::new();
        for (slash, _) in slashes {
            let above = RelativePath::new(&path.as_bytes()[..slash])?;
            parent = match open(root.below(&above)) {
                Ok((stat, directory)) => {
                    directories.push(self.entry(above, EntryKind::Directory, &stat));
                    Ok(directory)
                }
                Err(error) => return self.left_out(&root.shown(&path), &error),
            };
        }
        let looked = parent.and_then(|parent| {
            let name = OsStr::from_bytes(path.split().1);
            let stat = rustix::fs::statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW)?;
            Ok((parent, stat))
        });
        let (parent, stat) = match looked {
            Ok(found) => found,
            Err(error) => return self.left_out(&root.shown(&path), &error),
        };
        let is_directory = target::is(&stat, FileType::Directory);
        if self.list.exclude.is_match_or_below(path.as_bytes(), is_directory) {
            return Ok(());
        }
        directories.into_iter().try_for_each(|directory| self.emit(directory, None))?;
        let name = path.split().1.to_vec();
        let place = EntryPlace { root, directory: parent.as_fd(), name: OsStr::from_bytes(&name) };
        match self.node(place, path, &stat)? {
            Some(path) => self.tree(root, Some(path)),
            None => Ok(()),
        }
    }

    /// All that is in the directory `path`.
    fn tree(&mut self, root: &Arc<SourceRoot>, path: Option<RelativePath>) -> Result<()> {
        let below = path.as_ref().map_or(&b""[..], |path| root.below(path));
        let opened = root.open_directory(below, OFlags::RDONLY);
        let first = opened.and_then(|directory| self.level(path.clone(), directory));
        let mut levels = match first {
            Ok(level) => vec![level],
            Err(error) => return self.left_out(&shown(root, path.as_ref()), &error),
        };
        while let Some(level) = levels.last_mut() {
            let Some(name) = level.names.next() else {
                levels.pop();
                continue;
            };
            match self.child(root, level, &name)? {
                Some(deeper) => levels.push(deeper),
                None => continue,
            }
            if let Some(outer) = levels.len().checked_sub(MAX_OPEN_LEVELS + 1) {
                levels[outer].directory = None;
            }
        }
        Ok(())
    }

    /// The names in an open directory, in order.
    fn level(&mut self, path: Option<RelativePath>, directory: OwnedFd) -> io::Result<Level> {
        let stat = rustix::fs::fstat(&directory)?;
        let mut names = Vec::new();
        let mut reading = RawDir::new(&directory, self.names.spare_capacity_mut());
        while let Some(entry) = reading.next() {
            let name = entry?.file_name().to_bytes().to_vec();
            if name != b"." && name != b".." {
                names.push(name);
            }
        }
        names.sort_unstable();
        let identity = (stat.st_dev, stat.st_ino);
        Ok(Level { path, directory: Some(directory), identity, names: names.into_iter() })
    }

    /// Lists one name in a directory. Returns its contents if it is a directory itself.
    fn child(
        &mut self,
        root: &Arc<SourceRoot>,
        level: &mut Level,
        name: &[u8],
    ) -> Result<Option<Level>> {
        let path = match &level.path {
            Some(below) => below.join(name),
            None => RelativePath::new(name),
        };
        let path = match path {
            Ok(path) => path,
            Err(error) => return (self.take)(Listed::LeftOut(error.to_string())).map(|()| None),
        };
        let name = OsStr::from_bytes(name);
        let looked = level.directory(root).and_then(|directory| {
            let stat = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
            Ok((EntryPlace { root, directory, name }, stat))
        });
        // Without a status it may be a directory.
        let may_be_directory =
            looked.as_ref().map_or(true, |(_, stat)| target::is(stat, FileType::Directory));
        if self.list.exclude.is_match(path.as_bytes(), may_be_directory) {
            return Ok(None);
        }
        let (place, stat) = match looked {
            Ok(found) => found,
            Err(error) => return self.left_out(&root.shown(&path), &error).map(|()| None),
        };
        if target::special(&stat).is_some() {
            return self.emit(self.entry(path, EntryKind::Special, &stat), None).map(|()| None);
        }
        let Some(path) = self.node(place, path, &stat)? else { return Ok(None) };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(place.directory, name, flags, Mode::empty());
        let opened = opened.map_err(io::Error::from);
        match opened.and_then(|directory| self.level(Some(path.clone()), directory)) {
            Ok(deeper) => Ok(Some(deeper)),
            Err(error) => self.left_out(&root.shown(&path), &error).map(|()| None),
        }
    }

    /// Lists the file at `place`. Returns its path if it is a directory.
    fn node(
        &mut self,
        place: EntryPlace<'_>,
        path: RelativePath,
        stat: &Stat,
    ) -> Result<Option<RelativePath>> {
        let file_type = FileType::from_raw_mode(stat.st_mode);
        if file_type != FileType::Directory && self.is_repeated(&path) {
            let shown = place.root.shown(&path);
            let why =
                format!("{}: another source has this name; it was left out", Printable(&shown));
            return (self.take)(Listed::LeftOut(why)).map(|()| None);
        }
        let what = match file_type {
            FileType::RegularFile => return self.file(place, path, stat).map(|()| None),
            FileType::Directory => {
                let entry = self.entry(path.clone(), EntryKind::Directory, stat);
                self.emit(entry, None)?;
                return Ok(Some(path));
            }
            FileType::Symlink => {
                let target = rustix::fs::readlinkat(place.directory, place.name, Vec::new());
                let entry = match target {
                    Ok(target) => {
                        let target = target.into_bytes();
                        self.entry(path, EntryKind::Symlink { target }, stat)
                    }
                    Err(error) => {
                        let path = place.root.shown(&path);
                        return self.left_out(&path, &error.into()).map(|()| None);
                    }
                };
                return self.emit(entry, None).map(|()| None);
            }
            // In a directory it would be skipped; here the user named it.
            _ => target::special(stat).unwrap_or("device"),
        };
        let shown = place.root.shown(&path);
        let next = match what {
            "pipe" => "; to send its content, give `-` as the source and redirect the pipe to it",
            _ => "",
        };
        let why = format!("{} is a {what} and was left out{next}", Printable(&shown));
        (self.take)(Listed::LeftOut(why)).map(|()| None)
    }

    /// Whether a file of this name came before; notes it.
    fn is_repeated(&mut self, path: &RelativePath) -> bool {
        let hash = self.key.hash_one(path.as_bytes());
        self.seen.as_mut().is_some_and(|seen| !seen.insert(hash))
    }

    fn file(&mut self, place: EntryPlace<'_>, path: RelativePath, stat: &Stat) -> Result<()> {
        let (listed, growth) = settled(place, stat);
        let size = listed.map_or(stat.st_size as u64, |listed| listed.size);
        // Fewer blocks than content: there are holes.
        let sparse = (stat.st_blocks as u64) * 512 < size && !self.list.dense;
        let mut kind = EntryKind::File { size, sparse };
        if stat.st_nlink > 1 {
            match self.links.get(&(stat.st_dev, stat.st_ino)) {
                Some(to) => kind = EntryKind::HardLink { to: *to },
                None => {
                    self.links.insert((stat.st_dev, stat.st_ino), self.next);
                }
            }
        }
        let content = kind.has_content();
        let file = content.then(|| SourceFile::new(place.root, &path, listed, growth, sparse));
        let mut entry = self.entry(path, kind, stat);
        if let Some(listed) = listed {
            entry.modified = listed.modified;
        }
        if self.list.attributes && content {
            let attributes = attributes(place).unwrap_or_default();
            // No receiver takes more.
            let fit = attribute_bytes(&attributes) <= MAX_ATTRIBUTE_BYTES
                && attributes.len() <= MAX_ATTRIBUTES;
            if fit {
                entry.attributes = attributes;
            } else {
                let path = shown(place.root, Some(&entry.path));
                let what = "its extended attributes are more than 64 KiB; they were left out";
                (self.take)(Listed::LeftOut(format!("{}: {what}", Printable(&path))))?;
            }
        }
        self.emit(entry, file)
    }

    fn entry(&self, path: RelativePath, kind: EntryKind, stat: &Stat) -> Entry {
        let (mode, modified) = (stat.st_mode & 0o7777, (stat.st_mtime, stat.st_mtime_nsec as u32));
        let accounts = self.list.owners.as_ref();
        let owner = accounts.map(|all| Box::new(all.owner(stat.st_uid, stat.st_gid)));
        Entry { path, kind, mode, modified, owner, attributes: Vec::new() }
    }

    fn emit(&mut self, entry: Entry, file: Option<SourceFile>) -> Result<()> {
        self.next = self.next.checked_add(1).ok_or_else(|| {
            TransferError::NothingToSend("there are more than 4 billion files".into())
        })?;
        (self.take)(Listed::Entry(entry, file))
    }

    fn left_out(&mut self, path: &Path, error: &io::Error) -> Result<()> {
        let why = match Errno::from_io_error(error) {
            Some(Errno::LOOP | Errno::NOTDIR) => {
                "its path contains a symbolic link; name the link's target".to_owned()
            }
            _ => system(error),
        };
        (self.take)(Listed::LeftOut(format!("{}: {why}; it was left out", Printable(path))))
    }
}

impl Level {
    /// Its descriptor; opened again if it was closed while the walk was deep below.
    fn directory(&mut self, root: &SourceRoot) -> io::Result<BorrowedFd<'_>> {
        if self.directory.is_none() {
            let below = self.path.as_ref().map_or(&b""[..], |path| root.below(path));
            let opened = root.open_directory(below, OFlags::RDONLY)?;
            let stat = rustix::fs::fstat(&opened)?;
            if (stat.st_dev, stat.st_ino) != self.identity {
                return Err(Errno::STALE.into());
            }
            self.directory = Some(opened);
        }
        self.directory.as_ref().map(AsFd::as_fd).ok_or_else(|| Errno::BADF.into())
    }
}

fn shown(root: &SourceRoot, path: Option<&RelativePath>) -> std::path::PathBuf {
    path.map_or_else(|| root.path().to_owned(), |path| root.shown(path))
}

/// The state of a file to list, and whether it may grow from that. A file that was changed lately takes another look.
fn settled(place: EntryPlace<'_>, stat: &Stat) -> (Option<Snapshot>, Growth) {
    let listed = Snapshot::of_status(stat);
    if !listed.is_some_and(|listed| listed.is_recent()) {
        return (listed, Growth::WithNewTimes);
    }
    let between = open(place).ok().map(File::from);
    let between = between.and_then(|file| Snapshot::between_writes(&file).ok().flatten());
    let same = |now: &Snapshot| listed.is_some_and(|listed| now.is_same_file(&listed));
    match between.filter(same) {
        Some(between) => (Some(between), Growth::Accepted),
        None => (listed, Growth::Refused),
    }
}

/// Opens a file for reading.
fn open(place: EntryPlace<'_>) -> rustix::io::Result<OwnedFd> {
    // The named path may be a link; below it none is followed.
    let follow = place.directory.as_raw_fd() == CWD.as_raw_fd();
    let nofollow = if follow { OFlags::empty() } else { OFlags::NOFOLLOW };
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC | nofollow;
    rustix::fs::openat(place.directory, place.name, flags, Mode::empty())
}

/// The extended attributes of a file that may be read.
fn attributes(place: EntryPlace<'_>) -> io::Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let file = open(place)?;
    let mut names = vec![0u8; MAX_ATTRIBUTE_BYTES];
    let length = rustix::fs::flistxattr(&file, &mut names[..])?;
    let names = names[..length].split(|byte| *byte == 0).filter(|name| name.starts_with(b"user."));
    let mut value = vec![0u8; MAX_ATTRIBUTE_BYTES];
    let mut read = |name: &[u8]| {
        let length = rustix::fs::fgetxattr(&file, OsStr::from_bytes(name), &mut value[..]).ok()?;
        Some((name.to_vec(), value[..length].to_vec()))
    };
    let mut all = Vec::new();
    for attribute in names.filter_map(&mut read) {
        all.push(attribute);
        // One too many is enough to know that they are too many.
        if attribute_bytes(&all) > MAX_ATTRIBUTE_BYTES {
            break;
        }
    }
    Ok(all)
}
