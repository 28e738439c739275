//! The source of an entry's content: a path that the user named, and a name below it.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{CWD, Mode, OFlags, Stat};
use rustix::io::Errno;
use sweetspot_protocol::{Printable, RelativePath};

use super::snapshot::{Growth, Snapshot};
use crate::error::for_peer::plain;
use crate::error::system;
use crate::files::beneath::open_beneath;

/// So that opening a pipe does not block, and a terminal does not become this program's controlling terminal.
const TO_READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

/// A path to send, in its state when listing began. A link that the user named is followed, as in scp; links below it are
/// not.
#[derive(Debug)]
pub(crate) struct SourceRoot {
    path: PathBuf,
    /// Its name at the receiver; `None`: its contents go into the target directory itself.
    name: Option<Vec<u8>>,
    identity: (u64, u64),
    /// A descriptor of the directory, if it is kept open.
    directory: Option<OwnedFd>,
}

/// The source of an entry's content.
#[derive(Debug, Clone)]
pub(crate) struct SourceFile {
    root: Arc<SourceRoot>,
    /// The name at the receiver, from which the path below the root follows.
    path: RelativePath,
    /// The state when it was listed; `None`: standard input.
    pub listed: Option<Snapshot>,
    /// Whether it can still be sent with the listed length if it has grown since.
    pub growth: Growth,
    pub sparse: bool,
}

impl SourceRoot {
    /// Opens `path`. If `kept`, a directory stays open; otherwise each use opens it again.
    pub fn open(path: &Path, name: Option<&[u8]>, kept: bool) -> io::Result<(SourceRoot, Stat)> {
        let (stat, directory) = match open_directory(path) {
            Ok(directory) => (rustix::fs::fstat(&directory)?, Some(directory)),
            Err(Errno::NOTDIR) => (rustix::fs::stat(path)?, None),
            Err(error) => return Err(error.into()),
        };
        let root = SourceRoot {
            path: path.to_owned(),
            name: name.map(<[u8]>::to_vec),
            identity: (stat.st_dev, stat.st_ino),
            directory: directory.filter(|_| kept),
        };
        Ok((root, stat))
    }

    pub fn standard_input(path: &Path, name: &[u8]) -> SourceRoot {
        let (path, name) = (path.to_owned(), Some(name.to_vec()));
        SourceRoot { path, name, identity: (0, 0), directory: None }
    }

    /// The path of an entry below the root; empty for the root itself.
    pub fn below<'a>(&self, path: &'a RelativePath) -> &'a [u8] {
        let below = self.name.as_ref().map_or(0, |name| name.len() + 1);
        path.as_bytes().get(below..).unwrap_or_default()
    }

    /// The path of an entry on this host.
    pub fn shown(&self, path: &RelativePath) -> PathBuf {
        match self.below(path) {
            b"" => self.path.clone(),
            below => self.path.join(OsStr::from_bytes(below)),
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Runs `work` with the root directory's descriptor. The error is ESTALE if another directory has taken its place.
    pub fn with_directory<T>(
        &self,
        work: impl FnOnce(BorrowedFd<'_>) -> io::Result<T>,
    ) -> io::Result<T> {
        if let Some(directory) = &self.directory {
            return work(directory.as_fd());
        }
        let directory = open_directory(&self.path)?;
        let stat = rustix::fs::fstat(&directory)?;
        if (stat.st_dev, stat.st_ino) != self.identity {
            return Err(Errno::STALE.into());
        }
        work(directory.as_fd())
    }

    /// Opens the directory at `below`; empty for the root itself.
    pub fn open_directory(&self, below: &[u8], flags: OFlags) -> io::Result<OwnedFd> {
        let flags = flags | OFlags::DIRECTORY | OFlags::CLOEXEC;
        self.with_directory(|root| match below {
            b"" => Ok(rustix::fs::openat(root, c".", flags, Mode::empty())?),
            below => open_beneath(root, below, flags),
        })
    }
}

fn open_directory(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::openat(CWD, path, flags, Mode::empty())
}

impl SourceFile {
    /// A file at `path` with the state `listed`.
    pub fn new(
        root: &Arc<SourceRoot>,
        path: &RelativePath,
        listed: Option<Snapshot>,
        growth: Growth,
        sparse: bool,
    ) -> SourceFile {
        let (root, path) = (Arc::clone(root), path.clone());
        SourceFile { root, path, listed, growth, sparse }
    }

    /// Standard input, with the name `path`.
    pub fn standard_input(root: &Arc<SourceRoot>, path: &RelativePath) -> SourceFile {
        let (root, path) = (Arc::clone(root), path.clone());
        SourceFile { root, path, listed: None, growth: Growth::Refused, sparse: false }
    }

    /// Its length; `None` for standard input.
    pub fn size(&self) -> Option<u64> {
        self.listed.map(|listed| listed.size)
    }

    /// Its name in the transfer.
    pub fn path(&self) -> &RelativePath {
        &self.path
    }

    pub fn shown(&self) -> PathBuf {
        self.root.shown(&self.path)
    }

    /// Opens the file that now has this name, without following links below the root. [`Snapshot::of`] shows whether it is
    /// still the listed file.
    pub fn open(&self) -> Result<File, Undelivered> {
        let opened = match self.root.below(&self.path) {
            b"" => {
                File::options().read(true).custom_flags(TO_READ.bits() as i32).open(&self.root.path)
            }
            below => {
                self.root.with_directory(|root| open_beneath(root, below, TO_READ)).map(File::from)
            }
        };
        opened.map_err(|error| match Errno::from_io_error(&error) {
            // A link, a socket, or a directory other than the listed one.
            Some(Errno::LOOP | Errno::NOTDIR | Errno::NXIO | Errno::STALE) => Undelivered::Replaced,
            _ => Undelivered::Unreadable(error),
        })
    }
}

/// The reason why a requested file is not sent.
#[derive(Debug)]
pub(crate) enum Undelivered {
    /// Another file has taken its name.
    Replaced,
    Changed,
    /// It became shorter.
    Shrank,
    Unreadable(io::Error),
    /// The receiver no longer wants it.
    GivenUp,
}

impl Undelivered {
    /// The message for this end's user.
    pub fn here(&self, path: &Path) -> String {
        let path = Printable(path);
        match self {
            Undelivered::Unreadable(error) => format!("{path}: {}", system(error)),
            _ => format!("{path} {}", self.problem()),
        }
    }

    /// The reason for the receiver, which knows the file by its own path.
    pub fn for_peer(&self) -> String {
        match self {
            Undelivered::Unreadable(error) => {
                format!("the sender cannot read it: {}", plain(error))
            }
            _ => format!("it {}", self.problem()),
        }
    }

    fn problem(&self) -> &'static str {
        match self {
            Undelivered::Replaced => "was replaced while it was being sent; send it again",
            Undelivered::Changed => {
                "kept changing while it was being sent; send it again when it no longer changes"
            }
            Undelivered::Shrank => {
                "shrank while it was being sent; send it again when it no longer changes"
            }
            Undelivered::Unreadable(_) => "cannot be read",
            Undelivered::GivenUp => "is no longer wanted",
        }
    }
}
